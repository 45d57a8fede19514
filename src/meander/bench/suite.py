"""The benchmark: for each workload the peers as far as they get, then Meander on the same edges and on all.

A peer's figure counts only where its answers agree with Meander's, at the end of the prefix and at slides before it.
"""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product, zip_longest
from pathlib import Path

from rich.console import Console

from meander.bench import own, tables
from meander.bench.data import Graph, data_folder, is_available, load
from meander.bench.hardware import describe, sentence
from meander.bench.measurement import CLOCKS, BenchError, Measurement, check_equal
from meander.bench.peers import pathway
from meander.bench.plots import line_chart
from meander.bench.tables import Comparison, Report, Row
from meander.bench.workloads import DATA_SETS, QUERIES, DataSet, Workload, choose
from meander.errors import ArgumentError
from meander.options import RunOptions
from meander.physical.path_operators import PATH_OPERATORS
from meander.syntax.durations import format_duration, parse_duration

COUNTED_SLIDES = 9
KINDS = {"dense": ("mathoverflow", "cyclic"), "social": ("snb", "trees")}
"""The graph of a file, and a generated one of the same kind."""
PARTS = ("engines", "spark", "values")


@dataclass(frozen=True)
class Setting:
    """What is the same for all workloads of a run."""

    window: int
    slide: int
    limit: float
    path_operator: str
    clock: str
    prefix: int | None


def run(
    *,
    data: str = "all",
    queries: str = "all",
    prefix: int | None = None,
    peers: bool = True,
    path_operator: str = "auto",
    window: str = "30d",
    slide: str = "1d",
    time_limit: str = "60s",
    clock: str = "wall",
    write: Path | None = None,
    json: Path | None = None,
    windows: str | None = None,
    plot: Path | None = None,
    threads: str = "1",
    cells: str | None = None,
    only: str = "engines",
    batches: int = 40,
) -> int:
    """Measure, print the tables, and write the requested files; returns 1 if an engine failed or was wrong, else 0.

    With `windows` Meander alone is measured, over each of these window sizes, with each path operator named and each
    number of `threads`; `plot` then gets a chart of the throughput, with one of the p99 of a slide beside it. With
    `cells` the spread of work and edges over these numbers of cells is measured.
    """
    operators = [_one_of("--path-operator", name, tuple(PATH_OPERATORS)) for name in _names(path_operator)]
    if not operators or (len(operators) > 1 and windows is None):
        raise ArgumentError(
            f"--path-operator {path_operator}", hint="several can be compared with --windows alone"
        )
    setting = Setting(
        window=_duration("--window", window),
        slide=_duration("--slide", slide),
        limit=float(_duration("--time-limit", time_limit)),
        path_operator=operators[0],
        clock=_one_of("--clock", clock, CLOCKS),
        prefix=prefix,
    )
    if setting.window < setting.slide:
        raise ArgumentError(
            f"a window of {window} is shorter than its slide of {slide}",
            hint="answers are compared at the ends of slides, where such a window is empty",
        )
    if prefix is not None and prefix < 1:
        raise ArgumentError(f"--prefix {prefix} leaves no edges", hint="it is a number of edges, 1 or more")
    console = Console(stderr=True, highlight=False)
    workloads = choose(_data_sets(data, console), list(QUERIES) if queries == "all" else _names(queries))
    if _one_of("--only", only, PARTS) == "values":
        return _measure_values([workload.data for workload in workloads], setting, console, write, json)
    if only == "spark":
        return _measure_spark(
            [workload.data for workload in workloads], batches, setting, console, write, json
        )
    if cells is not None:
        return _measure_cells(workloads, _numbers("--cells", cells), setting, console, write, json)
    if windows is not None:
        sizes = [_duration("--windows", size) for size in _names(windows)]
        return _measure_windows(workloads, sizes, operators, _numbers("--threads", threads), setting, plot)
    report = Report(
        describe(),
        setting.window,
        setting.slide,
        path_operator,
        clock,
        _command(data, queries, prefix, path_operator, window, slide, time_limit, clock),
    )
    measures = _peers(console) if peers else {}
    graphs: dict[str, Graph] = {}
    for workload in workloads:
        name = workload.data.name
        if name not in graphs:
            graphs = {name: load(workload.data)}
        report.rows.append(_measure(workload, graphs[name].of(workload.labels), setting, measures, console))
        if write is not None:
            tables.write_markdown(report, write)
        if json is not None:
            tables.write_json(report.as_dict(), json)
    tables.print_report(report)
    return 1 if any(row.fault for row in report.rows) else 0


Peer = Callable[[Graph, Workload, Setting], Measurement | None]


def _on_pathway(graph: Graph, workload: Workload, setting: Setting) -> Measurement | None:
    return pathway.measure(
        graph,
        workload,
        window=setting.window,
        slide=setting.slide,
        limit=setting.limit,
        grow=setting.prefix is None,
    )


def _on_duckdb(graph: Graph, workload: Workload, setting: Setting) -> Measurement | None:
    from meander.bench.peers import duckdb

    measured = duckdb.measure(
        graph, workload, window=setting.window, slide=setting.slide, limit=setting.limit
    )
    return measured if measured.edges else None


def _peers(console: Console) -> dict[str, Peer]:
    """The peers that are installed; prints which are not."""
    installed: dict[str, Peer] = {}
    if pathway.interpreter() is not None:
        installed["Pathway"] = _on_pathway
    else:
        console.print(f"Pathway is skipped: it is not installed ({pathway.INSTALL})", soft_wrap=True)
    if importlib.util.find_spec("duckdb") is not None:
        installed["DuckDB"] = _on_duckdb
    else:
        console.print("DuckDB is skipped: it is not installed (pip install duckdb)", soft_wrap=True)
    return installed


def _measure(
    workload: Workload, graph: Graph, setting: Setting, peers: dict[str, Peer], console: Console
) -> Row:
    """One workload: the peers first, as Meander is measured on the prefixes that they process, too."""
    if setting.prefix is not None:
        graph = graph.prefix(setting.prefix, setting.slide)
    row = Row(workload, graph.edges)
    what = f"{workload.data.name} {workload.query}"
    known: dict[int, Measurement] = {}

    def on_meander(part: Graph) -> Measurement:
        if part.edges not in known:
            with console.status(f"{what}: Meander on {part.edges:,} edges"):
                known[part.edges] = own.measure(
                    part,
                    workload,
                    window=setting.window,
                    slide=setting.slide,
                    limit=setting.limit,
                    counted=_counted(part, setting.slide),
                    variants=[RunOptions(path_operator=setting.path_operator)],
                )[0]
        return known[part.edges]

    try:
        for name, measure in peers.items():
            with console.status(f"{what}: {name}"):
                measured = measure(graph, workload, setting)
            if measured is None:
                console.print(
                    f"{what}: {name} did not complete a slide within the time limit", soft_wrap=True
                )
                continue
            part = graph.prefix(measured.edges, setting.slide)
            ours = on_meander(part)
            if ours.edges < part.edges:
                raise BenchError(
                    f"Meander processed {ours.edges:,} edges in the time limit, and {name} {measured.edges:,}: "
                    "no comparison"
                )
            row.peers[name] = Comparison(measured, ours, check_equal(what, ours, measured))
        row.own = on_meander(graph)
    except BenchError as error:
        row.fault = str(error)
        row.peers.clear()
    rates = [f"{name} {peer.peer.rate(setting.clock):,.0f}" for name, peer in row.peers.items()]
    if row.own is not None:
        rates.insert(0, f"Meander {row.own.rate(setting.clock):,.0f}")
    console.print(f"{what}: {row.fault or ', '.join(rates) + ' edges/s'}", soft_wrap=True)
    return row


def _measure_windows(
    workloads: list[Workload],
    sizes: list[int],
    operators: list[str],
    numbers: list[int],
    setting: Setting,
    plot: Path | None,
) -> int:
    """Throughput and the p99 of a slide against the size of the window, for each query, path operator and number of
    threads."""
    out, console = Console(highlight=False), Console(stderr=True, highlight=False)
    rates: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    slides: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for workload in workloads:
        graph = load(workload.data).of(workload.labels)
        if setting.prefix is not None:
            graph = graph.prefix(setting.prefix, setting.slide)
        variants = [
            RunOptions(path_operator=operator, threads=threads)
            for operator, threads in product(operators, numbers)
        ]
        for size in sizes:
            with console.status(f"{workload.data.name} {workload.query}: window {format_duration(size)}"):
                measurements = own.measure(
                    graph, workload, window=size, slide=setting.slide, limit=setting.limit, variants=variants
                )
            best = max(measured.rate(setting.clock) for measured in measurements)
            for options, measured in zip(variants, measurements, strict=True):
                threads = [f"{options.threads} threads"] if options.threads > 1 else []
                what = (workload.data.name, workload.query, options.path_operator, *threads)
                rate, p99 = measured.rate(setting.clock), (measured.p99 or 0.0) * 1e3
                rates.setdefault(what, []).append((float(size), rate))
                slides.setdefault(what, []).append((float(size), p99))
                share = f" ({rate / best:.2f} of the fastest)" if len(measurements) > 1 else ""
                out.print(
                    f"{' '.join(what)}, window {format_duration(size)}: {rate:,.0f} edges/s{share} over "
                    f"{measured.edges:,} edges, p99 of a slide {p99:,.1f} ms",
                    soft_wrap=True,
                )
    if plot is not None:
        # The title has the words that all lines have in common, each line the rest.
        columns = [set(column) for column in zip_longest(*rates, fillvalue="1 thread")]
        common = ", ".join(next(iter(column)) for column in columns if len(column) == 1)
        for path, upward, lines in (
            (plot, "edges per second", rates),
            (plot.with_stem(plot.stem + "-p99"), "p99 of a slide, ms", slides),
        ):
            named = {
                " ".join(word for word, column in zip(what, columns, strict=False) if len(column) > 1): line
                for what, line in lines.items()
            }
            path.write_text(
                line_chart(common or upward, "window", upward, named, show=_days), encoding="utf-8"
            )
    return 0


def _measure_cells(
    workloads: list[Workload],
    numbers: list[int],
    setting: Setting,
    console: Console,
    write: Path | None,
    json: Path | None,
) -> int:
    # It imports PySpark, which no other measurement needs.
    from meander.bench import cells

    spreads = cells.measure_cells(
        workloads,
        numbers,
        window=setting.window,
        slide=setting.slide,
        prefix=setting.prefix or cells.PREFIX,
        path_operator=setting.path_operator,
        note=lambda spread: console.print(
            f"{spread.data} {spread.query}, {spread.cells} cells: {spread.seconds:.2f} s"
        ),
    )
    machine = describe()
    text = f"{sentence(machine)}\n\n{cells.as_markdown(spreads)}"
    print(text)
    if write is not None:
        tables.write_between_marks(text, write, "# Cells")
    if json is not None:
        tables.write_json({"machine": machine, "cells": [asdict(spread) for spread in spreads]}, json)
    return 0


def _measure_spark(
    data: list[DataSet],
    batches: int,
    setting: Setting,
    console: Console,
    write: Path | None,
    json: Path | None,
) -> int:
    # It imports PySpark: engines are measured without it.
    from meander.bench import spark_run

    chosen = next((graph for graph in data if graph.name in KINDS["social"]), DATA_SETS["trees"])
    graph = load(chosen)
    if setting.prefix is not None:
        graph = graph.prefix(setting.prefix, setting.slide)
    measured = spark_run.measure(
        graph, chosen, window=setting.window, slide=setting.slide, batches=batches, console=console
    )
    machine = describe()
    notes = [sentence(machine), f"Data: {chosen.about}. Both sides of a ratio are of one run."]
    tables.print_sections(measured.sections(), notes)
    if write is not None:
        text = "\n\n".join([*notes, *tables.sections_as_markdown(measured.sections())])
        tables.write_between_marks(text, write, "# Benchmarks", tables.SPARK_MARKS)
    if json is not None:
        tables.write_json({"machine": machine, "data": chosen.name, **asdict(measured)}, json)
    return 0


def _measure_values(
    data: list[DataSet], setting: Setting, console: Console, write: Path | None, json: Path | None
) -> int:
    # It imports DuckDB, which no other measurement of Meander needs.
    from meander.bench import values

    chosen = next((graph for graph in data if graph.name in KINDS["dense"]), DATA_SETS["cyclic"])
    graph = load(chosen)
    if setting.prefix is not None:
        graph = graph.prefix(setting.prefix, setting.slide)
    measured = values.measure(graph, "c2q", limit=setting.limit, console=console)
    machine = describe()
    notes = [sentence(machine), f"Data: {chosen.about}, and generated transfers."]
    tables.print_sections(measured.sections(), notes)
    if write is not None:
        text = "\n\n".join([*notes, *tables.sections_as_markdown(measured.sections())])
        tables.write_between_marks(text, write, "# Benchmarks", tables.VALUES_MARKS)
    if json is not None:
        tables.write_json({"machine": machine, "data": chosen.name, **asdict(measured)}, json)
    return 0


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(name) for name in _names(text)]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ArgumentError(
            f"{option} {text}", hint="write numbers from 1 on, separated by commas, such as 2,3,8"
        )
    return numbers


def _days(size: float) -> str:
    return format_duration(int(size))


def _counted(graph: Graph, slide: int) -> list[int]:
    """The slides at whose ends the answers are counted: spread over the prefix, the last one among them."""
    first, last = int(graph.ts[0] // slide), int(graph.ts[-1] // slide)
    return sorted({last - (last - first) * step // COUNTED_SLIDES for step in range(COUNTED_SLIDES)})


def _data_sets(data: str, console: Console) -> list[str]:
    """The named data sets, each once; for a kind, the one with a file, or the generated one if there is no file."""
    names: dict[str, None] = {}
    for name in _names("dense,social" if data == "all" else data):
        if name in KINDS:
            real, name = KINDS[name]
            if is_available(DATA_SETS[real]):
                name = real
            else:
                console.print(
                    f"{DATA_SETS[real].file} is not in {data_folder()} (MEANDER_DATA names another folder): "
                    f"{name}, a generated graph, is measured instead",
                    soft_wrap=True,
                )
        names[name] = None
    return list(names)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _duration(option: str, text: str) -> int:
    try:
        duration = parse_duration(text)
    except ArgumentError as error:
        raise ArgumentError(f"{option}: {error.message}", hint=error.hint) from None
    if duration == 0:
        raise ArgumentError(f"{option}: a duration of zero", hint="write 30d, 12h or 60s")
    return duration


def _one_of(option: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise ArgumentError(f"{option} {value} is unknown", hint=f"it is one of {', '.join(accepted)}")
    return value


def _command(
    data: str,
    queries: str,
    prefix: int | None,
    path_operator: str,
    window: str,
    slide: str,
    time_limit: str,
    clock: str,
) -> str:
    """The command of this run."""
    given = {
        "--data": (data, "all"),
        "--queries": (queries, "all"),
        "--prefix": (prefix, None),
        "--path-operator": (path_operator, "auto"),
        "--window": (window, "30d"),
        "--slide": (slide, "1d"),
        "--time-limit": (time_limit, "60s"),
        "--clock": (clock, "wall"),
    }
    words = [word for name, (value, usual) in given.items() if value != usual for word in (name, str(value))]
    return shlex.join(["meander", "bench", *words])
