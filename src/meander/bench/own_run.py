"""What is measured of Meander: `python -m meander.bench.own_run REQUEST.json RESULT.json`.

Two ways to run the same query over the same file, neither of which writes an answer anywhere:

- *by slide*: a batch for each slide that has edges, all read beforehand; how long a slide takes, and its 99th
  percentile. It ends with the file, or with the slide in which the time limit falls.
- *throughput*: the same edges, from the file's bytes to answers, in batches as `meander run` takes them. Time is
  split into reading (and ordering), interning names, the operators, and giving answers their names again.

In both, the answers that hold at the ends of some slides are counted from the records, where that is asked for; it is
these counts that are held against the peers'. The time that counting takes is not measured.

Several ways to answer (path operators, numbers of threads) are measured in turns, in one process: a machine that is
busy for some seconds, or memory that the process has or has not yet, then meets all of them.

Kernels are compiled (or fetched from where they were kept) on a short prefix before anything is measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.bench.own import Request, Way
from meander.bench.workloads import STREAM
from meander.dataflow.answers import Answers, as_column
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.runner import run_local
from meander.dataflow.sources.reader import open_source
from meander.dataflow.tabular import Chunk
from meander.errors import MeanderError
from meander.physical.plan import PhysicalPlan, build
from meander.physical.planning import plan_query

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")

WARM_UP_EDGES = 4_000
REPEATS = 41
ENOUGH_SECONDS = 16.0
"""A run is repeated, up to `REPEATS` times, while the runs so far took less than this; the median counts."""


class Parts:
    """How long the parts of a run take, by wrapping what does them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, part: str, owner: object, method: str) -> None:
        """Count the time of calls to a method of `owner` towards `part`."""
        inner: Callable[..., Any] = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return inner(*arguments, **options)
            finally:
                self.add(part, time.perf_counter() - begin)

        setattr(owner, method, timed)

    def watched(self, part: str, items: Iterator[Item]) -> Iterator[Item]:
        """The same items; the time that it takes to get them counts towards `part`."""
        while True:
            begin = time.perf_counter()
            item = next(items, None)
            self.add(part, time.perf_counter() - begin)
            if item is None:
                return
            yield item

    def add(self, part: str, seconds: float) -> None:
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds


class Counter:
    """How many answers hold at the ends of some slides, from the records of a run without deletions."""

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
    """The chunks up to that many edges."""
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
    plan: PhysicalPlan, threads: int, edges: Edges, request: Request, counter: Counter
) -> tuple[int, list[float]]:
    """How many edges were taken within the limit, slide by slide, and how long each slide took."""
    flow = Dataflow(plan, threads=threads)
    took: list[float] = []
    taken, spent = 0, 0.0
    for batch, upto in batches_of_slides(edges, request.slide):
        begin, counting = time.perf_counter(), counter.seconds
        for _, answers in flow.process(batch, upto):
            counter.add(answers)
        took.append(time.perf_counter() - begin - (counter.seconds - counting))
        taken += batch[STREAM].rows
        spent += took[-1]
        if spent > request.limit:
            break
    return taken, took


def measure_throughput(
    plan: PhysicalPlan, threads: int, request: Request, edges: int, counter: Counter
) -> dict[str, Any]:
    """One run from the file to answers."""
    parts = Parts()
    flow = Dataflow(plan, threads=threads)
    parts.watch("intern", flow.vertices, "intern")
    for result in flow.results:
        parts.watch("answers", result, "process")
    records = state = 0
    begin, begin_cpu = time.perf_counter(), time.process_time()
    chunks = first_edges(open_source(request.file, stream=STREAM, batch_rows=request.batch_rows), edges)
    for _, answers in run_local(flow, {STREAM: parts.watched("read", chunks)}, live=False):
        records += answers.rows
        state = max(state, flow.state_bytes)
        counter.add(answers)
    seconds = time.perf_counter() - begin - counter.seconds
    cpu_seconds = time.process_time() - begin_cpu - counter.cpu_seconds
    parts.add("operators", seconds - sum(parts.seconds.values()))
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "parts": parts.seconds,
        "answers": records,
        "state_bytes": state,
        "counts": counter.counts(),
    }


class Trial:
    """One way to answer the query: slide by slide when it is made, then as often as `run` is called."""

    def __init__(self, way: Way, request: Request, edges: Edges, names: pa.Array) -> None:
        self.way, self.request, self.names = way, request, names
        chosen = plan_query(request.text, path_operator=way.path_operator)
        self.plan = build(chosen, path_operator=way.path_operator)
        measure_slides(self.plan, way.threads, edges.take(slice(WARM_UP_EDGES)), request, self._counter())
        counter = self._counter()
        self.edges, self.slides = measure_slides(self.plan, way.threads, edges, request, counter)
        self.counts = counter.counts()
        self.runs: list[dict[str, Any]] = []

    def _counter(self) -> Counter:
        return Counter(self.names, self.request.counted, self.request.slide)

    @property
    def is_done(self) -> bool:
        return len(self.runs) == REPEATS or sum(run["seconds"] for run in self.runs) >= ENOUGH_SECONDS

    def run(self) -> None:
        run = measure_throughput(self.plan, self.way.threads, self.request, self.edges, self._counter())
        if run["counts"] != self.counts:
            raise MeanderError(
                f"the answers depend on the batches: {self.counts} by slide, {run['counts']} otherwise"
            )
        self.runs.append(run)

    def result(self) -> dict[str, Any]:
        middle = sorted(self.runs, key=lambda run: float(run["seconds"]))[len(self.runs) // 2]
        p50, p99, longest = (float(np.percentile(self.slides, percent)) for percent in (50, 99, 100))
        return {**middle, "edges": self.edges, "slides": {"p50": p50, "p99": p99, "longest": longest}}


def perform(request: Request) -> list[dict[str, Any]]:
    """All that a request asks for, in this process: a result for each way."""
    edges = concat_edges(
        [chunk for chunk, _ in open_source(request.file, stream=STREAM, batch_rows=request.batch_rows)]
    )
    ends = pa.concat_arrays([as_column(edges.src), as_column(edges.trg)])
    names = pc.unique(ends).cast(pa.string())
    trials = [Trial(Way(*way), request, edges, names) for way in request.ways]
    # To and fro: what one leaves behind, memory that is given back above all, meets each of its neighbors.
    waiting = trials
    while waiting:
        for trial in waiting:
            trial.run()
        waiting = [trial for trial in reversed(waiting) if not trial.is_done]
    return [trial.result() for trial in trials]


def main(asked: str, answer: str) -> None:
    request = Request(**json.loads(Path(asked).read_text(encoding="utf-8")))
    try:
        results = perform(request)
    except MeanderError as error:
        sys.exit(str(error))
    Path(answer).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
