"""What Spark adds: the pipeline beside the same Spark session without Meander in it, as ratios of one run.

- *Rates*: a file of edges to answers in a file, beside the same file read by Spark and written to `noop`. Once in a
  Spark that has just started, and when Java has compiled what both run, which favors what is Java's.
- *A small batch*: ten edges, beside ten rows that Spark reads and hands to a function, and what its parts take.
- *A restart*: until state is back, beside the time to load its snapshot.
- *A profile*: the parts of the time from a file to committed answers.

A first batch, which is not measured, has started the workers and loaded the kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from meander.bench.data import Graph
from meander.bench.workloads import STREAM, Workload
from meander.spark.checkpoint.notes import read_note, write_note
from meander.spark.run import Run
from meander.spark.session import Session
from meander.spark.settings import local_spark

COLUMNS = "src string, label string, trg string, ts long"
WARM_UP = 5_000
YOUNG = "young"
"""The ratio in a Spark that has just started."""
BATCH = 10
FIRST_BATCHES = 10
WINDOW_EDGES = 500_000
EVER = 10**12


PARTS = ("rates", "batch", "restart", "profile")


def measure(
    part: str,
    graph: Graph,
    workloads: Sequence[Workload],
    *,
    window: int,
    slide: int,
    rounds: int,
    batches: int,
) -> dict[str, Any]:
    """One of `PARTS`, in a Spark session of its own; only rates are of more than one workload.

    `rounds` is how often rates are measured after the first time, `batches` the number of small batches.
    """
    spark = local_spark()
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    text, edges = workloads[0].text(window, slide), graph.of(workloads[0].labels)
    try:
        with tempfile.TemporaryDirectory(prefix="meander-bench-") as name:
            folder = Path(name)
            if part == "rates":
                return rates(spark, workloads, graph, window, slide, folder, rounds)
            if part == "batch":
                return small_batch(spark, edges, text, batches, folder / "batch")
            if part == "restart":
                filling = graph.of([*workloads[0].labels, "likes"]).take(slice(WINDOW_EDGES))
                return restart(spark, filling, workloads[0].text(EVER, slide), folder / "restart")
            return profile(spark, edges, text, folder / "profile")
    finally:
        spark.stop()


def rates(
    spark: Any,
    workloads: Sequence[Workload],
    graph: Graph,
    window: int,
    slide: int,
    folder: Path,
    rounds: int,
) -> dict[str, dict[str, float]]:
    """For each query edges per second with Meander, and rows per second without.

    All are measured in turn, several times over. The first time is not counted: it is for Java to compile what it
    runs, on both sides. Of the others the median is.
    """
    parts = {workload.query: graph.of(workload.labels) for workload in workloads}
    took: dict[str, list[tuple[float, float]]] = {workload.query: [] for workload in workloads}
    for number in range(1 + rounds):
        for workload in workloads:
            output = folder / f"{workload.query}-{number}"
            took[workload.query].append(
                one_round(spark, parts[workload.query], workload.text(window, slide), output)
            )
    by_query = {}
    for query, seconds in took.items():
        edges = parts[query].edges - first_edges(parts[query])
        by_noop, by_meander = (statistics.median(side) for side in zip(*seconds[1:], strict=True))
        by_query[query] = {
            "edges": edges,
            "meander": edges / by_meander,
            "noop": edges / by_noop,
            "ratio": by_noop / by_meander,
            YOUNG: seconds[0][0] / seconds[0][1],
        }
    return by_query


def first_edges(graph: Graph) -> int:
    """The edges of a query's first batch, which starts workers and loads kernels."""
    return min(WARM_UP, graph.edges // 2)


def one_round(spark: Any, graph: Graph, text: str, folder: Path) -> tuple[float, float]:
    """The seconds for a file, after a first small one: read by Spark and written to `noop`, and with Meander."""
    warm = first_edges(graph)
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    write_file(graph.take(slice(warm)), inputs / "0.tsv")
    rest = folder / "1.tsv"
    write_file(graph.take(slice(warm, None)), rest)

    def timed(query: Any, rows: Callable[[], int]) -> float:
        """From when the file is there until the query has committed its last row."""
        query.processAllAvailable()
        shutil.copy(rest, inputs / ".1")
        begun = time.perf_counter()
        (inputs / ".1").replace(inputs / "1.tsv")
        while rows() < graph.edges:
            query.processAllAvailable()
        took = time.perf_counter() - begun
        (inputs / "1.tsv").unlink()
        return took

    rows = spark.readStream.schema(COLUMNS).option("sep", "\t").csv(str(inputs))
    noop = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "noop")).start()
    by_noop = timed(noop, lambda: sum(progress["numInputRows"] for progress in progress_of(noop)))
    noop.stop()
    with started(spark, inputs, text, folder) as run:
        by_meander = timed(run.query, lambda: run.totals["edges"])
    return by_noop, by_meander


def small_batch(spark: Any, graph: Graph, text: str, batches: int, folder: Path) -> dict[str, float]:
    """The median milliseconds of a batch of ten edges: all, without Meander, and the parts of what it takes."""
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    for number in range(FIRST_BATCHES + batches):
        part = graph.take(slice(number * BATCH, (number + 1) * BATCH))
        write_file(part, inputs / f"{number:05}.tsv")
    rows = spark.readStream.schema(COLUMNS).option("sep", "\t").option("maxFilesPerTrigger", 1)
    with open(folder / "plain.jsonl", "w", encoding="utf-8") as out:

        def take(frame: Any, _: int) -> None:
            out.writelines(json.dumps(row.asDict()) + "\n" for row in frame.collect())
            out.flush()
            os.fsync(out.fileno())

        writer = rows.csv(str(inputs)).writeStream.foreachBatch(take)
        plain = writer.option("checkpointLocation", str(folder / "plain")).trigger(availableNow=True).start()
        plain.awaitTermination()
    with started(spark, inputs, text, folder, follow=False, batch_rows=BATCH) as run:
        run.wait()
        cells = [figures["cells"][0]["seconds"] for figures in run.figures][FIRST_BATCHES:]
        own = progress_of(run.query)[FIRST_BATCHES:]
    without = progress_of(plain)[FIRST_BATCHES:]

    def median_of(part: str, batches: list[dict[str, Any]]) -> float:
        return float(statistics.median(batch["durationMs"].get(part, 0) for batch in batches))

    whole, spark_alone = median_of("triggerExecution", own), median_of("triggerExecution", without)
    states = [progress["stateOperators"][0] for progress in own]
    return {
        "with Meander": whole,
        "the same without": spark_alone,
        "beyond": whole - spark_alone,
        "of all: planning": median_of("queryPlanning", own),
        "of all: offsets and commits": sum(
            median_of(part, own) for part in ("latestOffset", "walCommit", "commitOffsets")
        ),
        "of all: stateful operator": statistics.median(state["allUpdatesTimeMs"] for state in states),
        "of that, Python": 1e3 * statistics.median(sum(seconds.values()) for seconds in cells),
        "of all: state commit": statistics.median(state["commitTimeMs"] for state in states),
    }


def profile(spark: Any, graph: Graph, text: str, folder: Path) -> dict[str, float]:
    """The seconds from a file to committed answers, after a first small batch, by part; `total` is all of them."""
    warm = first_edges(graph)
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    write_file(graph.take(slice(warm)), inputs / "0.tsv")
    with started(spark, inputs, text, folder) as run:
        run.query.processAllAvailable()
        before, batches_before = len(run.figures), len(progress_of(run.query))
        begun = time.perf_counter()
        write_file(graph.take(slice(warm, None)), inputs / "1.tsv")
        while run.totals["edges"] < graph.edges:
            run.query.processAllAvailable()
        total = time.perf_counter() - begun
        cells = [cell for figures in run.figures[before:] for cell in figures["cells"]]
        batches = progress_of(run.query)[batches_before:]
    in_cell = {
        name: sum(cell["seconds"].get(phase, 0.0) for cell in cells)
        for name, phase in (
            ("cell: ingest and shipping", "ingest"),
            ("cell: dataflow (interning, operators, naming)", "dataflow"),
            ("cell: keeping the window's input", "keep"),
        )
    }

    def spent(*parts: str) -> float:
        return sum(float(batch["durationMs"].get(part, 0)) for batch in batches for part in parts) / 1e3

    by_spark = {
        "Spark: planning": spent("queryPlanning"),
        "Spark: offsets and commits": spent("latestOffset", "getBatch", "walCommit", "commitOffsets"),
    }
    state = sum(operator["commitTimeMs"] for batch in batches for operator in batch["stateOperators"]) / 1e3
    known = {**in_cell, **by_spark, "Spark: commit of its state store": state}
    rest = max(0.0, total - sum(known.values()))
    return {**known, "Spark: reading tasks, scheduling, transport, writing": rest, "total": total}


def restart(spark: Any, graph: Graph, text: str, folder: Path) -> dict[str, float]:
    """The seconds until a worker that knows nothing has the state of a window again, and those of its snapshot.

    A worker is ready when it has loaded the snapshot and gone through the edges since, counted from when it got its
    first batch. The whole start is from the call of `start` until the first batch's answers are written.
    """
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    filled = graph.edges - 2 * BATCH
    parts = (slice(filled), slice(filled, filled + BATCH), slice(filled + BATCH, None))
    # After each batch of those that fill the window there is a snapshot, after the small one none.
    options = {"snapshot_rows": BATCH + 1}
    with started(spark, inputs, text, folder, **options) as run:
        for number, part in enumerate(parts[:2]):
            write_file(graph.take(part), inputs / f"{number}.tsv")
            run.process_available()
    # Under another identity the run gets other workers, as it does in a new process.
    record = folder / "checkpoint" / "meander" / "run.json"
    known = read_note(record)
    write_note(record, known | {"run": known["run"][::-1]})
    write_file(graph.take(parts[2]), inputs / "2.tsv")
    begun = time.perf_counter()
    with started(spark, inputs, text, folder, **options) as run:
        while not run.figures and run.active:
            time.sleep(0.005)
        took = time.perf_counter() - begun
        run.process_available()
        cell = run.figures[0]["cells"][0]
    load, ready = cell["seconds"]["load"], cell["seconds"]["rebuild"]
    return {
        "edges in the window": cell["window_rows"],
        "edges since the snapshot": BATCH,
        "snapshot loaded": load,
        "state is back": ready,
        "ratio": ready / load,
        "whole start": took,
    }


@contextmanager
def started(spark: Any, inputs: Path, text: str, folder: Path, **options: Any) -> Iterator[Run]:
    """The query over the files of a folder, with its answers in a file."""
    session = Session(spark)
    session.stream(STREAM, str(inputs))
    session.query(text, "bench")
    run = session.start(str(folder / "checkpoint"), {"bench": str(folder / "answers.jsonl")}, **options)
    try:
        yield run
    finally:
        run.stop()


def write_file(graph: Graph, path: Path) -> None:
    """The edges as a file that appears at once."""
    draft = path.with_name(f".{path.name}")
    graph.write(draft)
    draft.replace(path)


def progress_of(query: Any) -> list[dict[str, Any]]:
    """What Spark reports of each batch that had input."""
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    return [batch for batch in batches if batch["numInputRows"]]
