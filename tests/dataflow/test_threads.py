"""Threads: tasks in parallel and in order, and parts of a batch that start before others are finished."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine_runs import answered, dataflow_of, edges_of, processed
from meander.dataflow.answers import as_dicts
from meander.dataflow.batch import NO_PAIRS
from meander.dataflow.cutting import CutLimits, Cutter, Part
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY
from meander.dataflow.operator import Ready
from meander.dataflow.operators.path_auto import CostModel, PathAuto
from meander.dataflow.pipeline import Pipeline, StartedPart
from meander.dataflow.reclaiming import VertexReclaimer
from meander.dataflow.runner import run_local
from meander.dataflow.tabular import Chunk, from_tuples
from meander.dataflow.threads import LanePool
from meander.errors import InputError, MemoryBudgetError

CLOSURE = "STREAM s WINDOW 10 SLIDE 2\nAnswer(x, y) <- a+(x, y)."
EDGES = [(i * 7 % 11, "a", i * 5 % 13, i // 3, "-" if i % 17 == 16 else "+") for i in range(150)]
SECONDS = 60


# ---------------------------------------------------------------------------------------------------------
# A pool


def test_two_lanes_go_on_side_by_side() -> None:
    pool, meeting = LanePool(2), threading.Barrier(2)
    tasks = [pool.submit(lambda: meeting.wait(SECONDS), lane) for lane in ("left", "right")]
    assert sorted(pool.results(tasks)) == [0, 1]


def test_tasks_of_one_lane_are_done_in_turn() -> None:
    pool = LanePool(4)
    at_work: list[int] = []
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        at_work.append(number)
        seen.append((number, len(at_work)))
        at_work.remove(number)

    tasks = [pool.submit(lambda number=number: note(number), "lane") for number in range(200)]
    pool.results(tasks[150:])
    assert seen == [(number, 1) for number in range(200)]


def noted_work() -> tuple[Callable[[int], int], list[int]]:
    """Work that fails for zero, and the numbers for which it was done."""
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return 6 // number

    return work, done


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_is_raised_when_all_is_done(threads: int) -> None:
    pool, work, done = LanePool(threads), *noted_work()
    with pytest.raises(ZeroDivisionError):
        pool.map(work, [0, 1, 2, 3])
    assert sorted(done) == [0, 1, 2, 3]
    assert pool.map(work, [1, 2, 3]) == [6, 3, 2]
    assert pool.map(work, []) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_lane_does_not_go_on_after_a_failure(threads: int) -> None:
    pool, work, done = LanePool(threads), *noted_work()
    left = [pool.submit(lambda number=number: work(number), "left") for number in (2, 0, 3)]
    right = [pool.submit(lambda number=number: work(number), "right") for number in (6,)]
    assert pool.results(right) == [1]
    with pytest.raises(ZeroDivisionError):
        pool.results(left)
    assert sorted(done) == [0, 2, 6]
    with pytest.raises(ZeroDivisionError):
        pool.results([pool.submit(lambda: work(1), "left")])


def test_a_pool_rests_when_nothing_is_left() -> None:
    pool, done = LanePool(3), []
    for number in range(50):
        pool.submit(lambda number=number: done.append(number), number % 2)
    pool.drain()
    assert sorted(done) == list(range(50))


# ---------------------------------------------------------------------------------------------------------
# Parts of a batch


class Parts:
    """Five parts of nothing, and what a pipeline does with them; part number `fails` cannot be started."""

    def __init__(self, threads: int, *, fails: int = -1, ready: bool = False, paths: bool = False) -> None:
        self.events: list[str] = []
        self.fails, self.ready = fails, ready
        self.pipeline = Pipeline(LanePool(threads), self.start, self.finish, results=[0], paths=paths)

    def start(self, part: Part, horizon: int) -> StartedPart:
        if part.upto == self.fails:
            raise MemoryBudgetError("no more")
        self.events.append(f"start {part.upto}")
        return StartedPart(part, part.upto - 1, [Ready(NO_PAIRS, is_ready=self.ready)], 0)

    def finish(self, started: StartedPart) -> Iterator[Any]:
        self.events.append(f"finish {started.part.upto}")
        yield started.part.upto

    def run(self, count: int = 5, *, more: bool = False) -> list[str]:
        parts = [Part({}, number, None) for number in range(count)]
        for _ in self.pipeline.run(parts, lambda: -1, more=more):
            pass
        return self.events


IN_TURN = [f"{event} {number}" for number in range(5) for event in ("start", "finish")]


def test_with_threads_two_more_parts_start_before_the_first_is_finished() -> None:
    events = Parts(2).run()
    assert events[:4] == ["start 0", "start 1", "start 2", "finish 0"]
    assert sorted(events) == sorted(IN_TURN)


def test_one_thread_finishes_each_part_before_the_next() -> None:
    assert Parts(1).run() == IN_TURN


def test_output_that_the_next_part_would_overwrite_is_read_first() -> None:
    assert Parts(2, ready=True).run() == IN_TURN


def test_parts_with_paths_are_finished_in_turn() -> None:
    assert Parts(2, paths=True).run() == IN_TURN


def test_the_last_parts_may_wait_for_a_batch_that_is_announced() -> None:
    parts = Parts(2)
    assert parts.run(more=True).count("finish 3") == 0
    assert [started.part.upto for started in parts.pipeline.started] == [3, 4]


def test_if_a_part_fails_those_before_it_are_finished_first() -> None:
    parts = Parts(2, fails=3)
    with pytest.raises(MemoryBudgetError, match="no more"):
        parts.run(more=True)
    assert parts.events[-2:] == ["finish 1", "finish 2"]
    assert not parts.pipeline.started


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are cut after eight edges."""
    monkeypatch.setattr(Cutter, "limits", CutLimits(first=8, least=8, most_out=20))


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("path_operator", ["closure", "auto"])
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_that_are_begun_ahead_have_the_same_answers(
    threads: int, path_operator: str, mode: str, small_parts: None
) -> None:
    options = {"path_operator": path_operator, "mode": mode}
    alone = answered(dataflow_of(CLOSURE, **options), "s", *EDGES)
    together = answered(dataflow_of(CLOSURE, threads=threads, **options), "s", *EDGES)
    times = [record["ts"] for record in together]
    assert times == sorted(times)
    assert sorted(map(repr, together)) == sorted(map(repr, alone))


def test_vertex_numbers_are_used_again_while_parts_wait(
    small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VertexReclaimer, "slack", 4)
    edges = [(f"v{i}", "a", f"v{i + 1}", i) for i in range(400)]
    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    together = answered(dataflow, "s", *edges)
    alone = answered(dataflow_of(CLOSURE, path_operator="closure"), "s", *edges)
    assert sorted(map(repr, together)) == sorted(map(repr, alone))
    assert dataflow.vertices.capacity == 1024
    assert dataflow.vertices.count < 200


def test_a_batch_that_is_given_up_leaves_nothing_at_work(small_parts: None) -> None:
    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    given_up = dataflow.process({"s": edges_of(*EDGES)}, INFINITY)
    next(given_up)
    given_up.close()
    assert not dataflow.pool.queue
    assert not dataflow.pool.busy_lanes


def test_a_budget_that_a_thread_reaches_is_an_error_of_the_run(small_parts: None) -> None:
    edges = [(i % 400, "a", (i + 1) % 400, i // 100) for i in range(3000)]
    options: dict[str, Any] = {"path_operator": "closure", "threads": 2}
    used = dataflow_of(CLOSURE, **options).state_bytes
    dataflow = dataflow_of(CLOSURE, memory=used + 100_000, **options)
    with pytest.raises(MemoryBudgetError, match=r"PATH .* would hold"):
        processed(dataflow, {"s": edges_of(*edges)}, INFINITY)
    assert not dataflow.pool.busy_lanes


def test_a_move_while_parts_wait_leaves_what_s_path_has_emitted(
    small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-PATH takes a part; before its output is emitted, the output of the closure moves to S-PATH again."""
    edges = [(f"{part}{i}", "a", f"{part}{i + 1}", part) for part in range(1, 10) for i in range(8)]
    alone = answered(dataflow_of(CLOSURE, path_operator="s-path"), "s", *edges)

    class Turns(CostModel):
        def decide(self, current: int, *_: object) -> int:
            return 1 - current

    monkeypatch.setattr(PathAuto, "costs", Turns(least_work=0))
    together = answered(dataflow_of(CLOSURE, path_operator="auto", threads=2), "s", *edges)
    assert {repr(answer) for answer in alone} == {repr(answer) for answer in together}


# ---------------------------------------------------------------------------------------------------------
# Batches of a local run


def chunks_of(edges: list[Any], size: int = 30) -> Iterator[Chunk]:
    return iter(from_tuples(edges, batch_rows=size))


@pytest.mark.parametrize("threads", [1, 2])
def test_answers_do_not_wait_for_a_chunk_that_does_not_come(threads: int) -> None:
    more, seen = threading.Event(), []

    def slowly() -> Iterator[Chunk]:
        yield from chunks_of(EDGES[:30])
        more.wait(SECONDS)
        yield from chunks_of(EDGES[30:])

    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=threads)
    for _, answers in run_local(dataflow, {"s": slowly()}):
        seen.append((more.is_set(), answers.rows))
        more.set()
    assert seen[0][0] is False
    assert seen[0][1] > 0
    assert len(seen) > 1


@pytest.mark.parametrize("path_operator", ["closure", "auto"])
@pytest.mark.parametrize("threads", [1, 2])
def test_where_no_source_waits_parts_are_at_work_while_more_is_read(
    threads: int, path_operator: str, small_parts: None
) -> None:
    unfinished: list[int] = []
    dataflows: list[Dataflow] = []

    def read() -> Iterator[Chunk]:
        for chunk in chunks_of(EDGES):
            unfinished.append(len(dataflows[0].pipeline.started))
            yield chunk

    def run(threads: int, source: Iterator[Chunk], live: bool) -> list[dict[str, Any]]:
        dataflow = dataflow_of(CLOSURE, path_operator=path_operator, threads=threads)
        dataflows.append(dataflow)
        ran = run_local(dataflow, {"s": source}, live=live)
        return [answer for _, answers in ran for answer in as_dicts(answers)]

    emitted, expected = run(threads, read(), False), run(1, chunks_of(EDGES), True)
    times = [record["ts"] for record in emitted]
    assert times == sorted(times)
    assert sorted(map(repr, emitted)) == sorted(map(repr, expected))
    if path_operator == "closure":
        assert unfinished == [0, *([2 * (threads - 1)] * 4)]


def test_what_was_answered_is_emitted_before_an_error_of_the_caller(small_parts: None) -> None:
    """Of five chunks the last has an edge that comes too late, and no place to write that to."""

    def fail(rejects: Any) -> None:
        raise OSError("the disk is full")

    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    emitted: list[dict[str, Any]] = []
    chunks = chunks_of([*EDGES[:120], (1, "a", 2, 0)])
    with pytest.raises(OSError, match="the disk is full"):
        emitted.extend(
            answer
            for _, answers in run_local(dataflow, {"s": chunks}, live=False, reject=fail)
            for answer in as_dicts(answers)
        )
    ran = run_local(dataflow_of(CLOSURE, path_operator="closure"), {"s": chunks_of(EDGES[:120])})
    expected = [answer for _, answers in ran for answer in as_dicts(answers)]
    assert sorted(map(repr, emitted)) == sorted(
        repr(record) for record in expected if record["ts"] <= dataflow.time
    )
    assert dataflow.time == EDGES[119][3]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_broken_source_gave_before_is_answered_and_then_the_error_is_raised(
    threads: int, live: bool
) -> None:
    def broken() -> Iterator[Chunk]:
        yield from chunks_of(EDGES[:90])
        raise InputError("the disk is gone")

    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=threads)
    emitted: list[dict[str, Any]] = []
    with pytest.raises(InputError, match="the disk is gone"):
        emitted.extend(
            answer
            for _, answers in run_local(dataflow, {"s": broken()}, live=live)
            for answer in as_dicts(answers)
        )
    reached = EDGES[89][3]
    expected = processed(dataflow_of(CLOSURE, path_operator="closure"), {"s": edges_of(*EDGES[:90])}, reached)
    assert sorted(map(repr, emitted)) == sorted(map(repr, expected))
