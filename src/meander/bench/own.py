"""Meander itself, measured in a process of its own with one thread: `python -m meander.bench.own REQUEST.json`.

Three ways to run the same query over the same file, none of which writes an answer anywhere:

- *throughput*: from the file's bytes to answers, in batches as `meander run` takes them. Time is split into reading
  (and ordering), interning names, the operators, and giving answers their names again.
- *by slide*: a batch for each slide that has edges, all read beforehand; how long a slide takes, and its 99th
  percentile.
- *counting*: how many answers hold at the ends of some slides, from the answer records, in both of those cuts into
  batches. This is what is held against the peers.

Kernels are compiled (or fetched from where they were kept) on a short prefix before anything is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander import __version__
from meander.bench.data import Graph
from meander.bench.measurement import BenchError, Measurement
from meander.bench.workloads import STREAM, Workload
from meander.dataflow.answers import Answers, as_column
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.runner import run_local
from meander.dataflow.sources import open_source
from meander.dataflow.tabular import Chunk
from meander.physical.plan import PhysicalPlan, Result, build
from meander.physical.planning import plan_query

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")
Batches = Iterator[tuple[dict[str, Edges], int]]
Outputs = Iterator[tuple[Result, Answers]]

BATCH_ROWS = 65_536
WARM_UP_EDGES = 4_000
REPEATS = 3
ENOUGH_SECONDS = 3.0
"""A run is repeated, up to `REPEATS` times, while the runs so far took less than this; the median counts."""


@dataclass(frozen=True)
class Request:
    """What to measure: the query's text on a file. `counted` are slides at whose ends the answers are counted."""

    file: str
    text: str
    slide: int
    path_operator: str
    batch_rows: int = BATCH_ROWS
    by_slide: bool = True
    counted: list[int] = field(default_factory=list)


class Parts:
    """How long the parts of a run take, by wrapping the functions that do them."""

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


def open_file(request: Request) -> Iterator[Chunk]:
    """The file in chunks, as `meander run` takes it."""
    return open_source(request.file, stream=STREAM, batch_rows=request.batch_rows)


def batches_of_slides(edges: Edges, slide: int) -> Batches:
    """One batch for each slide that has edges, up to its last instant."""
    slides = edges.ts // slide
    starts = np.flatnonzero(np.diff(slides, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), edges.rows], strict=True):
        yield {STREAM: edges.take(slice(start, end))}, (int(slides[start]) + 1) * slide - 1


def read_all(file: str) -> Edges:
    return concat_edges([edges for edges, _ in open_source(file, stream=STREAM, batch_rows=1 << 20)])


def measure_throughput(plan: PhysicalPlan, request: Request) -> dict[str, Any]:
    """One run from file to answers."""
    parts = Parts()
    flow = Dataflow(plan)
    parts.watch("intern", flow.vertices, "intern")
    for result in flow.results:
        parts.watch("answers", result, "process")
    records = state = 0
    begin, begin_cpu = time.perf_counter(), time.process_time()
    for _, answers in run_local(flow, {STREAM: parts.watched("read", open_file(request))}):
        records += answers.rows
        state = max(state, flow.state_bytes)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
    parts.add("operators", seconds - sum(parts.seconds.values()))
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "parts": parts.seconds,
        "answers": records,
        "state_bytes": state,
    }


def measure_slides(plan: PhysicalPlan, request: Request) -> dict[str, float]:
    """How long each slide takes: the 99th percentile, the median and the longest."""
    flow = Dataflow(plan)
    took = []
    for batch in batches_of_slides(read_all(request.file), request.slide):
        begin = time.perf_counter()
        for _ in flow.process(*batch):
            pass
        took.append(time.perf_counter() - begin)
    p50, p99, longest = (float(np.percentile(took, percent)) for percent in (50, 99, 100))
    return {"p50": p50, "p99": p99, "longest": longest}


class Counter:
    """How many answers hold at some instants, from the records of a run without deletions."""

    FULL = 4_000_000

    def __init__(self, names: pa.Array, instants: Sequence[int]) -> None:
        self.names = names
        self.instants = instants
        self.held: dict[int, list[Array]] = {instant: [] for instant in instants}

    def add(self, answers: Answers) -> None:
        """Take the records of a batch."""
        covering = {at: (answers.ts <= at) & (at < answers.exp) for at in self.instants}
        rows = np.flatnonzero(np.logical_or.reduce(list(covering.values())))
        if rows.size == 0:
            return
        key = np.zeros(answers.rows, np.int64)
        for text in answers.vertices:
            places = pc.index_in(as_column(text.take(rows)).cast(pa.string()), value_set=self.names)
            key[rows] = key[rows] * len(self.names) + places.to_numpy(zero_copy_only=False)
        for at, mask in covering.items():
            self.held[at].append(key[mask])
            if sum(part.size for part in self.held[at]) > self.FULL:
                self.held[at] = [np.unique(np.concatenate(self.held[at]))]

    def counts(self) -> list[int]:
        return [
            int(np.unique(np.concatenate([np.zeros(0, np.int64), *self.held[at]])).size)
            for at in self.instants
        ]


def by_slide(flow: Dataflow, edges: Edges, slide: int) -> Outputs:
    """The answers of a run with one batch for each slide."""
    for batch in batches_of_slides(edges, slide):
        yield from flow.process(*batch)


def count_answers(request: Request, outputs: Outputs, names: pa.Array) -> dict[int, int]:
    """The number of answers at the end of each slide that is asked for."""
    counter = Counter(names, [(slide + 1) * request.slide - 1 for slide in request.counted])
    for _, answers in outputs:
        counter.add(answers)
    return dict(zip(request.counted, counter.counts(), strict=True))


def perform(request: Request) -> dict[str, Any]:
    """All that a request asks for, in this process."""
    plan = build(plan_query(request.text), path_operator=request.path_operator)
    warm_up = read_all(request.file).take(slice(WARM_UP_EDGES))
    for _ in by_slide(Dataflow(plan), warm_up, request.slide):
        pass
    runs = [measure_throughput(plan, request)]
    while len(runs) < REPEATS and sum(run["seconds"] for run in runs) < ENOUGH_SECONDS:
        runs.append(measure_throughput(plan, request))
    result = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    if request.by_slide:
        result["slides"] = measure_slides(plan, request)
    if request.counted:
        edges = read_all(request.file)
        names = pc.unique(pa.concat_arrays([as_column(edges.src), as_column(edges.trg)])).cast(pa.string())
        counts = count_answers(request, by_slide(Dataflow(plan), edges, request.slide), names)
        whole = count_answers(request, run_local(Dataflow(plan), {STREAM: open_file(request)}), names)
        if whole != counts:
            raise BenchError(
                f"the answers depend on the batches: {counts} by slide, {whole} in large batches"
            )
        result["counts"] = list(counts.items())
    return result


def measure(
    graph: Graph,
    workload: Workload,
    *,
    window: int,
    slide: int,
    path_operator: str = "auto",
    counted: Sequence[int] = (),
    by_slide: bool = True,
) -> Measurement:
    """Meander on `graph`, in a process of its own that has one thread."""
    text = workload.text(window, slide)
    with tempfile.TemporaryDirectory(prefix="meander-bench-") as folder:
        file, asked, answer = (Path(folder) / name for name in ("edges.tsv", "request.json", "result.json"))
        graph.write(file)
        request = Request(str(file), text, slide, path_operator, by_slide=by_slide, counted=list(counted))
        asked.write_text(json.dumps(asdict(request)), encoding="utf-8")
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        command = [sys.executable, "-m", "meander.bench.own", str(asked), str(answer)]
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(
                f"Meander failed on {workload.data.name} {workload.query}:\n{done.stderr.strip()}"
            )
        result = json.loads(answer.read_text(encoding="utf-8"))
    return Measurement(
        "Meander",
        graph.edges,
        result["seconds"],
        result["cpu_seconds"],
        dict(result.get("counts", [])),
        result["slides"]["p99"] if by_slide else None,
        __version__,
        {key: result[key] for key in ("parts", "answers", "state_bytes", "slides") if key in result},
    )


def main(asked: str, answer: str) -> None:
    request = Request(**json.loads(Path(asked).read_text(encoding="utf-8")))
    try:
        result = perform(request)
    except BenchError as error:
        sys.exit(str(error))
    Path(answer).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
