"""Measures Meander.

The same query over the same file is run in two ways, neither of which writes answers anywhere:

- *by slide*: one batch per slide that has edges, all read beforehand; the time of each slide, and its 99th
  percentile. It ends with the file, or with the slide in which the time limit falls.
- *throughput*: the same edges, from the file's bytes to answers, in batches as `meander run` takes them. Time is
  split into reading the file and processing.

Both count the answers that hold at the ends of some slides, from the records, if that is requested; these counts are
compared with those of other variants and of the peers. The time of counting is not measured.

Several variants (path operators, plans, windows, numbers of threads) are measured in turns, in one process: a machine
that is busy for some seconds, or memory that the process has or has not yet, then affects all of them.

Kernels are compiled, or loaded from the cache, on a short prefix before anything is measured.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.bench.measurement import BenchError, Measurement, check_equal
from meander.bench.workloads import STREAM
from meander.dataflow.answers import Answers, as_column
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.runner import run_local
from meander.dataflow.sources.reader import open_source
from meander.dataflow.tabular import Chunk
from meander.engine import compile_query, open_dataflow, physical_plan
from meander.options import DEFAULTS, LOCAL_BATCH_ROWS, RunOptions
from meander.physical.plan import PhysicalPlan

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")

WARM_UP_EDGES = 4_000
MOST_WARM_UPS = 6
REPEATS = 41


@dataclass(frozen=True)
class Variant:
    """A way to answer a query: its text, its slide, and the fields of a `RunOptions`."""

    text: str
    slide: int
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Request:
    """What to measure on a file.

    `counted` are the slides at whose ends the answers are counted. A run by slide ends after `limit` seconds.
    The other run is repeated, up to `REPEATS` times, while the runs so far took less than `enough` seconds;
    the median counts.
    """

    file: str
    variants: Sequence[Variant]
    counted: Sequence[int]
    limit: float
    enough: float


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
    plan: PhysicalPlan, options: RunOptions, edges: Edges, slide: int, limit: float, counter: Counter
) -> tuple[int, list[float]]:
    """The number of edges that were processed within the limit, slide by slide, and the seconds of each slide."""
    dataflow = open_dataflow(plan, options)
    seconds: list[float] = []
    processed = 0
    for batch, upto in batches_of_slides(edges, slide):
        begin, counting = time.perf_counter(), counter.seconds
        for _, answers in dataflow.process(batch, upto):
            counter.add(answers)
        seconds.append(time.perf_counter() - begin - (counter.seconds - counting))
        processed += batch[STREAM].rows
        if sum(seconds) > limit:
            break
    return processed, seconds


def measure_throughput(
    plan: PhysicalPlan, options: RunOptions, file: str, edges: int, counter: Counter
) -> dict[str, Any]:
    """One run from the file to answers."""
    reading = Stopwatch()
    dataflow = open_dataflow(plan, options)
    records = state = 0
    begin, begin_cpu = time.perf_counter(), time.process_time()
    chunks = reading.time(first_edges(read_edges(file, options), edges))
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
        "records": records,
        "state_bytes": state,
        "counts": counter.counts(),
    }


def read_edges(file: str, options: RunOptions) -> Iterator[Chunk]:
    return open_source(file, stream=STREAM, batch_rows=options.batch_rows or LOCAL_BATCH_ROWS)


class Trial:
    """One variant: measured slide by slide when it is created, then as often as `run` is called."""

    def __init__(self, variant: Variant, request: Request, edges: Edges, names: pa.Array) -> None:
        self.variant, self.request, self.names = variant, request, names
        self.options = RunOptions(**variant.options)
        self.plan = physical_plan([compile_query(variant.text, self.options)], self.options)
        slide, limit = variant.slide, request.limit
        first = edges.take(slice(WARM_UP_EDGES))
        for _ in range(MOST_WARM_UPS):
            warmed, took = measure_slides(self.plan, self.options, first, slide, limit, self._counter())
            # A kernel that had to be compiled can take all of the time, before others were called.
            if warmed == first.rows or max(took) < limit / 2:
                break
        counter = self._counter()
        self.edges, self.slides = measure_slides(self.plan, self.options, edges, slide, limit, counter)
        self.reached = int(edges.ts[self.edges - 1] // slide)
        self.counts = [(number, count) for number, count in counter.counts() if number <= self.reached]
        self.runs: list[dict[str, Any]] = []

    def _counter(self) -> Counter:
        return Counter(self.names, self.request.counted, self.variant.slide)

    @property
    def is_done(self) -> bool:
        spent = sum(float(run["seconds"]) for run in self.runs)
        return len(self.runs) == REPEATS or (bool(self.runs) and spent >= self.request.enough)

    def run(self) -> None:
        run = measure_throughput(self.plan, self.options, self.request.file, self.edges, self._counter())
        # What negative tuples derive again is emitted when it is due, so later slides are not comparable.
        counts = [pair for pair in run["counts"] if pair[0] <= self.reached]
        if counts != self.counts:
            raise BenchError(f"the answers depend on the batches: {self.counts} by slide, {counts} otherwise")
        self.runs.append(run)

    def measurement(self) -> Measurement:
        """The median run, with the number of answers at the slides that were counted and reached."""
        median = sorted(self.runs, key=lambda run: float(run["seconds"]))[len(self.runs) // 2]
        p50, p99, longest = (float(np.percentile(self.slides, percent)) for percent in (50, 99, 100))
        details = {name: median[name] for name in ("parts", "records", "state_bytes")}
        return Measurement(
            "Meander",
            self.edges,
            median["seconds"],
            median["cpu_seconds"],
            dict(self.counts),
            p99,
            details={
                **details,
                "slides": {
                    "number": len(self.slides),
                    "seconds": sum(self.slides),
                    "p50": p50,
                    "longest": longest,
                },
                "runs": len(self.runs),
                "process_bytes": peak_memory(),
            },
        )


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def perform(request: Request) -> list[Measurement | str]:
    """Measure what a request asks for, in this process: per variant a measurement, or why there is none.

    Raises `BenchError` if two variants have different answers at a slide that both reached and counted.
    """
    edges = concat_edges([chunk for chunk, _ in read_edges(request.file, DEFAULTS)])
    names = pa.array([], pa.string())
    if request.counted:
        ends = pa.concat_arrays([as_column(edges.src.plain()), as_column(edges.trg.plain())])
        names = pc.unique(ends).cast(pa.string())
    trials: dict[int, Trial] = {}
    failures: dict[int, str] = {}

    def attempt(number: int) -> None:
        try:
            if number not in trials:
                trials[number] = Trial(request.variants[number], request, edges, names)
            else:
                trials[number].run()
        except Exception as error:
            failures[number] = f"{type(error).__name__}: {error}"
            trials.pop(number, None)

    for number in range(len(request.variants)):
        attempt(number)
    # To and fro: what a run leaves behind, above all memory that it frees, affects both of its neighbors.
    waiting = list(trials)
    while waiting:
        for number in waiting:
            attempt(number)
        waiting = [number for number in reversed(waiting) if number in trials and not trials[number].is_done]
    measured = {number: trial.measurement() for number, trial in trials.items()}
    for one, other in combinations(sorted(measured), 2):
        sample, second = measured[one], measured[other]
        common = {
            slide: count
            for slide, count in sample.counts.items()
            if slide <= min(trials[one].reached, trials[other].reached)
        }
        if request.variants[one].slide == request.variants[other].slide and common:
            what = f"{request.variants[one].name} and {request.variants[other].name}"
            check_equal(what, Measurement("the first", 0, 0.0, 0.0, common), second)
    return [measured.get(number) or failures[number] for number in range(len(request.variants))]
