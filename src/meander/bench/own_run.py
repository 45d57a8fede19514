"""Measures Meander: `python -m meander.bench.own_run REQUEST.json RESULT.json`.

The same query over the same file is run in two ways, neither of which writes answers anywhere:

- *by slide*: one batch per slide that has edges, all read beforehand; the time of each slide, and its 99th
  percentile. It ends with the file, or with the slide in which the time limit falls.
- *throughput*: the same edges, from the file's bytes to answers, in batches as `meander run` takes them. Time is
  split into reading the file and processing.

Both count the answers that hold at the ends of some slides, from the records, if that is requested; these counts are
compared with the peers'. The time of counting is not measured.

Several variants (path operators, numbers of threads) are measured in turns, in one process: a machine that is busy
for some seconds, or memory that the process has or has not yet, then affects all of them.

Kernels are compiled, or loaded from the cache, on a short prefix before anything is measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.bench.own import Request
from meander.bench.workloads import STREAM
from meander.dataflow.answers import Answers, as_column
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.runner import run_local
from meander.dataflow.sources.reader import open_source
from meander.dataflow.tabular import Chunk
from meander.engine import compile_query, open_dataflow, physical_plan
from meander.errors import MeanderError
from meander.options import DEFAULTS, LOCAL_BATCH_ROWS, RunOptions
from meander.physical.plan import PhysicalPlan

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")

WARM_UP_EDGES = 4_000
REPEATS = 41
ENOUGH_SECONDS = 16.0
"""A run is repeated, up to `REPEATS` times, while the runs so far took less than this; the median counts."""


class Stopwatch:
    """Measures how long an iterator takes to produce its items."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items; the time between them is not counted."""
        while True:
            begin = time.perf_counter()
            item = next(items, None)
            self.seconds += time.perf_counter() - begin
            if item is None:
                return
            yield item


class Counter:
    """Counts the answers that hold at the ends of some slides, from the records of a run without deletions."""

    FULL = 4_000_000

    def __init__(self, names: pa.Array, slides: Sequence[int], slide: int) -> None:
        self.names = names
        self.instants = {number: (number + 1) * slide - 1 for number in slides}
        self.held: dict[int, list[Array]] = {number: [] for number in slides}
        self.seconds = self.cpu_seconds = 0.0

    def add(self, answers: Answers) -> None:
        """Take the records of a batch."""
        begin, begin_cpu = time.perf_counter(), time.process_time()
        for number, instant in self.instants.items():
            rows = np.flatnonzero((answers.ts <= instant) & (instant < answers.exp))
            if rows.size:
                self._hold(number, answers, rows)
        self.seconds += time.perf_counter() - begin
        self.cpu_seconds += time.process_time() - begin_cpu

    def _hold(self, number: int, answers: Answers, rows: Array) -> None:
        key = np.zeros(rows.size, np.int64)
        for text in answers.vertices:
            names = as_column(text.take(rows)).cast(pa.string())
            key = key * len(self.names) + pc.index_in(names, value_set=self.names).to_numpy()
        self.held[number].append(key)
        if sum(part.size for part in self.held[number]) > self.FULL:
            self.held[number] = [np.unique(np.concatenate(self.held[number]))]

    def counts(self) -> list[tuple[int, int]]:
        return [
            (number, int(np.unique(np.concatenate(parts)).size) if parts else 0)
            for number, parts in self.held.items()
        ]


def first_edges(chunks: Iterator[Chunk], edges: int) -> Iterator[Chunk]:
    """The chunks of the first `edges` edges."""
    for chunk, rejects in chunks:
        yield (chunk if chunk.rows <= edges else chunk.take(slice(edges))), rejects
        edges -= chunk.rows
        if edges <= 0:
            return


def batches_of_slides(edges: Edges, slide: int) -> Iterator[tuple[dict[str, Edges], int]]:
    """One batch for each slide that has edges, up to its last instant."""
    slides = edges.ts // slide
    starts = np.flatnonzero(np.diff(slides, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), edges.rows], strict=True):
        yield {STREAM: edges.take(slice(start, end))}, (int(slides[start]) + 1) * slide - 1


def measure_slides(
    plan: PhysicalPlan, options: RunOptions, edges: Edges, request: Request, counter: Counter
) -> tuple[int, list[float]]:
    """The number of edges that were processed within the limit, slide by slide, and the seconds of each slide."""
    dataflow = open_dataflow(plan, options)
    seconds: list[float] = []
    processed = 0
    for batch, upto in batches_of_slides(edges, request.slide):
        begin, counting = time.perf_counter(), counter.seconds
        for _, answers in dataflow.process(batch, upto):
            counter.add(answers)
        seconds.append(time.perf_counter() - begin - (counter.seconds - counting))
        processed += batch[STREAM].rows
        if sum(seconds) > request.limit:
            break
    return processed, seconds


def measure_throughput(
    plan: PhysicalPlan, options: RunOptions, request: Request, edges: int, counter: Counter
) -> dict[str, Any]:
    """One run from the file to answers."""
    reading = Stopwatch()
    dataflow = open_dataflow(plan, options)
    records = state = 0
    begin, begin_cpu = time.perf_counter(), time.process_time()
    chunks = reading.time(first_edges(read_edges(request.file, options), edges))
    for _, answers in run_local(dataflow, {STREAM: chunks}, live=False):
        records += answers.rows
        state = max(state, dataflow.state_bytes)
        counter.add(answers)
    seconds = time.perf_counter() - begin - counter.seconds
    cpu_seconds = time.process_time() - begin_cpu - counter.cpu_seconds
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "parts": {"read": reading.seconds, "process": seconds - reading.seconds},
        "answers": records,
        "state_bytes": state,
        "counts": counter.counts(),
    }


def read_edges(file: str, options: RunOptions) -> Iterator[Chunk]:
    return open_source(file, stream=STREAM, batch_rows=options.batch_rows or LOCAL_BATCH_ROWS)


class Trial:
    """One variant: measured slide by slide when it is created, then as often as `run` is called."""

    def __init__(self, options: RunOptions, request: Request, edges: Edges, names: pa.Array) -> None:
        self.options, self.request, self.names = options, request, names
        self.plan = physical_plan([compile_query(request.text, options)], options)
        measure_slides(self.plan, options, edges.take(slice(WARM_UP_EDGES)), request, self._counter())
        counter = self._counter()
        self.edges, self.slides = measure_slides(self.plan, options, edges, request, counter)
        self.counts = counter.counts()
        self.runs: list[dict[str, Any]] = []

    def _counter(self) -> Counter:
        return Counter(self.names, self.request.counted, self.request.slide)

    @property
    def is_done(self) -> bool:
        return len(self.runs) == REPEATS or sum(run["seconds"] for run in self.runs) >= ENOUGH_SECONDS

    def run(self) -> None:
        run = measure_throughput(self.plan, self.options, self.request, self.edges, self._counter())
        if run["counts"] != self.counts:
            raise MeanderError(
                f"the answers depend on the batches: {self.counts} by slide, {run['counts']} otherwise"
            )
        self.runs.append(run)

    def result(self) -> dict[str, Any]:
        median = sorted(self.runs, key=lambda run: float(run["seconds"]))[len(self.runs) // 2]
        p50, p99, longest = (float(np.percentile(self.slides, percent)) for percent in (50, 99, 100))
        return {**median, "edges": self.edges, "slides": {"p50": p50, "p99": p99, "longest": longest}}


def perform(request: Request) -> list[dict[str, Any]]:
    """Measure what a request asks for, in this process: one result per variant."""
    edges = concat_edges([chunk for chunk, _ in read_edges(request.file, DEFAULTS)])
    ends = pa.concat_arrays([as_column(edges.src), as_column(edges.trg)])
    names = pc.unique(ends).cast(pa.string())
    trials = [Trial(RunOptions(**variant), request, edges, names) for variant in request.variants]
    # To and fro: what a run leaves behind, above all memory that it frees, affects both of its neighbors.
    waiting = trials
    while waiting:
        for trial in waiting:
            trial.run()
        waiting = [trial for trial in reversed(waiting) if not trial.is_done]
    return [trial.result() for trial in trials]


def main(request_file: str, result_file: str) -> None:
    request = Request(**json.loads(Path(request_file).read_text(encoding="utf-8")))
    try:
        results = perform(request)
    except MeanderError as error:
        sys.exit(str(error))
    Path(result_file).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
