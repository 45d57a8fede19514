"""One task, in this process: `python -m meander.bench.measures.worker REQUEST.json RESULT.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from meander.bench.data import Graph, read_graph
from meander.bench.measurement import BenchError, Measurement, check_equal
from meander.bench.workloads import DataSet, Workload
from meander.errors import MeanderError

# Each measure imports what only it needs when it is called: PySpark and DuckDB take longer to load than most tasks.

Request = dict[str, Any]
Result = dict[str, Any]


def workload_of(request: Request) -> Workload:
    return Workload(DataSet(**request["data_set"]), request["query"])


def graph_of(request: Request) -> Graph:
    return read_graph(Path(request["file"]))


def counted_slides(graph: Graph, slide: int, number: int) -> list[int]:
    """The slides at whose ends the answers are counted: spread over the graph, the last one among them."""
    first, last = int(graph.ts[0] // slide), int(graph.ts[-1] // slide)
    return sorted({last - (last - first) * step // number for step in range(number)})


def run_variants(request: Request, file: str, counted: list[int]) -> list[Measurement | str]:
    """Meander over a file, with each variant of the settings."""
    from meander.bench.measures import meander

    settings, workload = request["settings"], workload_of(request)
    variants = [
        meander.Variant(
            workload.text(variant.get("window", settings["window"]), variant.get("slide", settings["slide"])),
            variant.get("slide", settings["slide"]),
            variant.get("options", {}),
            variant["name"],
        )
        for variant in settings["variants"]
    ]
    return meander.perform(meander.Request(file, variants, counted, settings["limit"], settings["enough"]))


def measure_meander(request: Request) -> Result:
    """Meander, with one variant or several."""
    settings = request["settings"]
    graph = graph_of(request)
    counted = counted_slides(graph, settings["slide"], settings["counted"]) if settings["counted"] else []
    measured = run_variants(request, request["file"], counted)
    if all(isinstance(one, str) for one in measured):
        raise BenchError(str(measured[0]))
    return {
        "edges": graph.edges,
        "variants": {
            variant["name"]: {"failure": one} if isinstance(one, str) else one.as_dict()
            for variant, one in zip(settings["variants"], measured, strict=True)
        },
    }


def measure_peer(request: Request) -> Result:
    """A peer as far as it gets, then Meander on the same edges; their answers have to agree."""
    settings, workload, graph = request["settings"], workload_of(request), graph_of(request)
    window, slide, limit = settings["window"], settings["slide"], settings["limit"]
    if settings["engine"] == "DuckDB":
        from meander.bench.peers import duckdb

        measured: Measurement | None = duckdb.measure(
            graph, workload, window=window, slide=slide, limit=limit
        )
    else:
        from meander.bench.peers import pathway

        measured = pathway.measure(
            graph, workload, window=window, slide=slide, limit=limit, grow=settings["grow"]
        )
        if measured is not None and settings["tail"]:
            measured = pathway.with_p99(measured, graph, workload, window=window, slide=slide, limit=limit)
    if measured is None or not measured.edges:
        return {"edges": graph.edges, "peer": None, "meander": None, "slides_checked": 0}
    part = graph.prefix(measured.edges, slide)
    file = Path(request["file"]).with_name(f"prefix-{part.edges}.tsv")
    part.write(file)
    try:
        (own,) = run_variants(
            {**request, "settings": {**settings, "limit": settings["own_limit"]}},
            str(file),
            counted_slides(part, slide, settings["counted"]),
        )
    finally:
        file.unlink()
    if isinstance(own, str):
        raise BenchError(f"Meander failed: {own}")
    if own.edges < part.edges:
        raise BenchError(
            f"Meander processed {own.edges:,} edges in the time limit, and {measured.engine} "
            f"{measured.edges:,}: no comparison"
        )
    checked = check_equal(f"{workload.data.name} {workload.query}", own, measured)
    return {
        "edges": graph.edges,
        "peer": measured.as_dict(),
        "meander": own.as_dict(),
        "slides_checked": checked,
    }


def measure_cells(request: Request) -> Result:
    from meander.bench.measures import cells

    settings = request["settings"]
    spreads = cells.measure_cells(
        workload_of(request),
        graph_of(request),
        settings["cells"],
        window=settings["window"],
        slide=settings["slide"],
    )
    return {"spreads": [asdict(spread) for spread in spreads]}


def measure_values(request: Request) -> Result:
    from meander.bench.measures import values

    settings = request["settings"]
    return values.measure(settings["part"], graph_of(request), size=settings["size"], limit=settings["limit"])


def measure_spark(request: Request) -> Result:
    from meander.bench.measures import spark

    settings, data = request["settings"], DataSet(**request["data_set"])
    return spark.measure(
        settings["part"],
        graph_of(request),
        [Workload(data, query) for query in settings["queries"]],
        window=settings["window"],
        slide=settings["slide"],
        rounds=settings["rounds"],
        batches=settings["batches"],
    )


def measure_profile(request: Request) -> Result:
    from meander.bench.measures import profile

    settings = request["settings"]
    text = workload_of(request).text(settings["window"], settings["slide"])
    return profile.measure(request["file"], text, enough=settings["enough"], paths=settings["paths"])


MEASURES: dict[str, Callable[[Request], Result]] = {
    "meander": measure_meander,
    "peer": measure_peer,
    "cells": measure_cells,
    "values": measure_values,
    "spark": measure_spark,
    "profile": measure_profile,
}


def main(request_file: str, result_file: str) -> None:
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    outcome: dict[str, Any]
    try:
        outcome = {"result": MEASURES[request["kind"]](request)}
    except MeanderError as error:
        outcome = {"failure": str(error)}
    Path(result_file).write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
