"""Where the time of a run goes: the same run as `meander run --runner local`, with a clock around each of its parts.

A clock charges time to the innermost part that is running, so the parts add up to the whole. A kernel that is called
from Python is charged beside the part that called it; kernels that call each other are one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

from meander.bench.measures.meander import WARM_UP_EDGES, first_edges, read_edges
from meander.bench.workloads import STREAM
from meander.dataflow.answers import AnswerSchema
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.runner import run_local
from meander.dataflow.sinks.writer import open_answers
from meander.dataflow.tabular import Chunk
from meander.engine import compile_query, open_dataflow, physical_plan
from meander.options import RunOptions

START, READ, INTERN, GRAPH, NAME, WRITE, OTHER = (
    "opening the dataflow",
    "reading",
    "interning",
    "graph of the window",
    "naming",
    "writing",
    "ordering, cutting and the rest",
)


class Clock:
    """Charges time to the innermost part that is running."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.kernels: dict[tuple[str, str], list[float]] = {}  # by part and name: seconds and calls
        self.parts = [OTHER]
        self.last = time.perf_counter()

    def lap(self) -> None:
        now = time.perf_counter()
        self.seconds[self.parts[-1]] = self.seconds.get(self.parts[-1], 0.0) + now - self.last
        self.last = now

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        self.lap()
        self.parts.append(part)
        try:
            yield
        finally:
            self.lap()
            self.parts.pop()

    def time(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time charged to a part."""

        def timed(*arguments: Any, **named: Any) -> Any:
            with self.of(part):
                return function(*arguments, **named)

        return timed

    def each(self, part: str, items: Iterator[Chunk]) -> Iterator[Chunk]:
        """The items, the time to produce them charged to a part."""
        while True:
            with self.of(part):
                item = next(items, None)
            if item is None:
                return
            yield item

    def time_kernel(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel, its time noted beside the part that calls it."""

        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return kernel(*arguments)
            finally:
                entry = self.kernels.setdefault((self.parts[-1], name), [0.0, 0])
                entry[0] += time.perf_counter() - begin
                entry[1] += 1

        return timed


class TimedPending:
    """The output of an operator; waiting for it is charged to the operator."""

    def __init__(self, clock: Clock, part: str, pending: Any) -> None:
        self.clock, self.part, self.pending = clock, part, pending

    @property
    def is_ready(self) -> bool:
        return bool(self.pending.is_ready)

    def result(self) -> Any:
        with self.clock.of(self.part):
            return self.pending.result()


def watch(clock: Clock, dataflow: Dataflow) -> None:
    """Put the clock around the parts of a dataflow."""

    def replace(owner: Any, method: str, part: str) -> None:
        setattr(owner, method, clock.time(part, getattr(owner, method)))

    for encoder in dataflow.encoders.values():
        replace(encoder, "encode", INTERN)
    for method in ("begin", "update", "reserve_vertices"):
        replace(dataflow.graph, method, GRAPH)
    replace(dataflow.reclaimer, "reclaim", GRAPH)
    for number, operator in enumerate(dataflow.operators):
        part = f"operator #{number} {dataflow.plan.names[number]}"
        start = clock.time(part, operator.start)
        vars(operator)["start"] = _pending(clock, part, start)
    for result in dataflow.results:
        replace(result, "process", NAME)


def _pending(clock: Clock, part: str, start: Callable[..., Any]) -> Callable[..., TimedPending]:
    return lambda *arguments: TimedPending(clock, part, start(*arguments))


@contextmanager
def watched_kernels(clock: Clock) -> Iterator[None]:
    """Every kernel that a module outside of the kernels calls by its name is timed."""
    replaced = []
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("meander.") and not module_name.startswith("meander.kernels"):
            for name, value in list(vars(module).items()):
                if isinstance(value, Dispatcher):
                    kernel = f"{value.py_func.__module__.removeprefix('meander.kernels.')}.{name}"
                    replaced.append((module, name, value))
                    setattr(module, name, clock.time_kernel(kernel, value))
    try:
        yield
    finally:
        for module, name, value in replaced:
            setattr(module, name, value)


def measure(file: str, text: str, *, enough: float, paths: bool = False) -> dict[str, Any]:
    """The seconds of each part of a run from a file to a file, and of each kernel in it.

    Runs are repeated until they took `enough` seconds in all, and the shortest counts.
    """
    options = RunOptions(paths=paths)
    plan = physical_plan([compile_query(text, options)], options)
    schema = AnswerSchema.of(plan.results[0], proofs=False, paths=paths)

    def run(clock: Clock, edges: int | None, out: Path) -> tuple[int, int]:
        with clock.of(START):
            dataflow = open_dataflow(plan, options)
        watch(clock, dataflow)
        read = records = 0
        chunks = read_edges(file, options)
        source = clock.each(READ, chunks if edges is None else first_edges(chunks, edges))

        def counted() -> Iterator[Chunk]:
            nonlocal read
            for chunk in source:
                read += chunk[0].rows
                yield chunk

        with clock.of(WRITE):
            sink = open_answers(str(out), schema, overwrite=True)
        for _, answers in run_local(dataflow, {STREAM: counted()}, live=False):
            records += answers.rows
            with clock.of(WRITE):
                sink.write(answers)
        with clock.of(WRITE):
            sink.close()
        return read, records

    with tempfile.TemporaryDirectory(prefix="meander-bench-") as folder:
        run(Clock(), WARM_UP_EDGES, Path(folder) / "warm-up.jsonl")
        spent = 0.0
        best: tuple[float, Clock, int, int] | None = None
        while best is None or spent < enough:
            latest = Clock()
            with watched_kernels(latest):
                counts = run(latest, None, Path(folder) / "answers.jsonl")
            latest.lap()
            seconds = sum(latest.seconds.values())
            spent += seconds
            if best is None or seconds < best[0]:
                best = seconds, latest, *counts
    assert best is not None
    total, clock, edges, records = best
    kernels = [
        {"part": part, "kernel": name, "seconds": round(seconds, 6), "calls": int(calls)}
        for (part, name), (seconds, calls) in clock.kernels.items()
    ]
    return {
        "edges": edges,
        "records": records,
        "seconds": round(total, 6),
        "parts": {part: round(seconds, 6) for part, seconds in clock.seconds.items()},
        "kernels": sorted(kernels, key=lambda kernel: -float(kernel["seconds"])),
    }
