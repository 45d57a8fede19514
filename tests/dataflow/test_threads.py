"""Threads: what a team does side by side and in turn, and parts of a batch that are begun ahead of others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine_runs import answered, dataflow_of, edges_of, processed
from meander.dataflow import dataflow as engine
from meander.dataflow.answers import as_dicts
from meander.dataflow.auto import AutoPathOperator
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY
from meander.dataflow.runner import run_local
from meander.dataflow.tabular import Chunk, from_tuples
from meander.dataflow.threads import Team
from meander.errors import InputError, MemoryBudgetError

CLOSURE = "STREAM s WINDOW 10 SLIDE 2\nAnswer(x, y) <- a+(x, y)."
EDGES = [(i * 7 % 11, "a", i * 5 % 13, i // 3, "-" if i % 17 == 16 else "+") for i in range(150)]
SECONDS = 60


# ---------------------------------------------------------------------------------------------------------
# A team


def test_two_lanes_go_on_side_by_side() -> None:
    team, meeting = Team(2), threading.Barrier(2)
    tasks = [team.start(lambda: meeting.wait(SECONDS), lane) for lane in ("left", "right")]
    assert sorted(team.results(tasks)) == [0, 1]


def test_tasks_of_one_lane_are_done_in_turn() -> None:
    team = Team(4)
    at_work: list[int] = []
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        at_work.append(number)
        seen.append((number, len(at_work)))
        at_work.remove(number)

    tasks = [team.start(lambda number=number: note(number), "lane") for number in range(200)]
    team.results(tasks[150:])
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
    team, work, done = Team(threads), *noted_work()
    with pytest.raises(ZeroDivisionError):
        team.map(work, [0, 1, 2, 3])
    assert sorted(done) == [0, 1, 2, 3]
    assert team.map(work, [1, 2, 3]) == [6, 3, 2]
    assert team.map(work, []) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_lane_does_not_go_on_after_a_failure(threads: int) -> None:
    team, work, done = Team(threads), *noted_work()
    left = [team.start(lambda number=number: work(number), "left") for number in (2, 0, 3)]
    right = [team.start(lambda number=number: work(number), "right") for number in (6,)]
    assert team.results(right) == [1]
    with pytest.raises(ZeroDivisionError):
        team.results(left)
    assert sorted(done) == [0, 2, 6]
    with pytest.raises(ZeroDivisionError):
        team.results([team.start(lambda: work(1), "left")])


def test_a_team_rests_when_nothing_is_left() -> None:
    team, done = Team(3), []
    for number in range(50):
        team.start(lambda number=number: done.append(number), number % 2)
    team.rest()
    assert sorted(done) == list(range(50))


# ---------------------------------------------------------------------------------------------------------
# Parts of a batch


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Batches are cut after eight edges; what happens to the parts is told in order."""
    monkeypatch.setattr(engine, "FIRST_CUT", 8)
    monkeypatch.setattr(engine, "LEAST_CUT", 8)
    monkeypatch.setattr(engine, "MOST_ROWS_OUT", 20)
    told: list[str] = []
    for method in ("_take", "_finish"):
        inner = getattr(Dataflow, method)

        def note(*arguments: Any, method: str = method, inner: Any = inner) -> Any:
            told.append(method)
            return inner(*arguments)

        monkeypatch.setattr(Dataflow, method, note)
    return told


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("path_operator", ["closure", "auto"])
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_that_are_begun_ahead_have_the_same_answers(
    threads: int, path_operator: str, mode: str, small_parts: list[str]
) -> None:
    options = {"path_operator": path_operator, "mode": mode}
    alone = answered(dataflow_of(CLOSURE, **options), "s", *EDGES)
    small_parts.clear()
    together = answered(dataflow_of(CLOSURE, threads=threads, **options), "s", *EDGES)
    times = [record["ts"] for record in together]
    assert times == sorted(times)
    assert sorted(map(repr, together)) == sorted(map(repr, alone))
    assert small_parts.count("_take") == small_parts.count("_finish") > 10
    if path_operator == "closure":
        assert small_parts[:4] == ["_take", "_take", "_take", "_finish"]


def test_one_thread_finishes_each_part_before_the_next(small_parts: list[str]) -> None:
    answered(dataflow_of(CLOSURE, path_operator="closure"), "s", *EDGES)
    assert small_parts == ["_take", "_finish"] * (len(small_parts) // 2)


def test_vertex_numbers_are_used_again_while_parts_wait(
    small_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FEW_VERTICES", 4)
    edges = [(f"v{i}", "a", f"v{i + 1}", i) for i in range(400)]
    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    together = answered(dataflow, "s", *edges)
    alone = answered(dataflow_of(CLOSURE, path_operator="closure"), "s", *edges)
    assert sorted(map(repr, together)) == sorted(map(repr, alone))
    assert dataflow.vertices.capacity == 1024
    assert dataflow.vertices.count < 200


def test_a_batch_that_is_given_up_leaves_nothing_at_work(small_parts: list[str]) -> None:
    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    given_up = dataflow.process({"s": edges_of(*EDGES)}, INFINITY)
    next(given_up)
    given_up.close()
    assert not dataflow.team.waiting
    assert not dataflow.team.busy


def test_a_budget_that_a_thread_reaches_is_an_error_of_the_run(small_parts: list[str]) -> None:
    edges = [(i % 400, "a", (i + 1) % 400, i // 100) for i in range(3000)]
    options: dict[str, Any] = {"path_operator": "closure", "threads": 2}
    used = dataflow_of(CLOSURE, **options).state_bytes
    dataflow = dataflow_of(CLOSURE, memory=used + 100_000, **options)
    with pytest.raises(MemoryBudgetError, match=r"PATH .* would hold"):
        processed(dataflow, {"s": edges_of(*edges)}, INFINITY)
    assert not dataflow.team.busy


def test_a_move_while_parts_wait_leaves_what_s_path_has_handed_out(
    small_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-PATH takes a part, and before that is handed out what the closure has made moves to S-PATH again."""
    edges = [(f"{part}{i}", "a", f"{part}{i + 1}", part) for part in range(1, 10) for i in range(8)]
    alone = answered(dataflow_of(CLOSURE, path_operator="s-path"), "s", *edges)
    turns = iter([1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0])
    monkeypatch.setattr(AutoPathOperator, "_wanted", lambda *_: next(turns, 1))
    together = answered(dataflow_of(CLOSURE, path_operator="auto", threads=2), "s", *edges)
    assert {repr(one) for one in alone} == {repr(one) for one in together}


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
    threads: int, path_operator: str, small_parts: list[str]
) -> None:
    unfinished: list[int] = []

    def read() -> Iterator[Chunk]:
        for chunk in chunks_of(EDGES):
            unfinished.append(small_parts.count("_take") - small_parts.count("_finish"))
            yield chunk

    def run(threads: int, source: Iterator[Chunk], live: bool) -> list[dict[str, Any]]:
        dataflow = dataflow_of(CLOSURE, path_operator=path_operator, threads=threads)
        ran = run_local(dataflow, {"s": source}, live=live)
        return [one for _, answers in ran for one in as_dicts(answers)]

    found, expected = run(threads, read(), False), run(1, chunks_of(EDGES), True)
    times = [record["ts"] for record in found]
    assert times == sorted(times)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    if path_operator == "closure":
        assert unfinished == [0, *([2 * (threads - 1)] * 4)]


@pytest.mark.parametrize("threads", [1, 2])
def test_where_a_part_fails_the_answers_of_those_before_are_handed_out(
    threads: int, small_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Dataflow._take

    def fail(self: Dataflow, edges: Any, upto: int, horizon: int) -> Any:
        if small_parts.count("_take") == 6:
            raise MemoryBudgetError("no more")
        return inner(self, edges, upto, horizon)

    monkeypatch.setattr(Dataflow, "_take", fail)
    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=threads)
    found: list[dict[str, Any]] = []
    with pytest.raises(MemoryBudgetError, match="no more"):
        found.extend(
            one
            for _, answers in dataflow.process({"s": edges_of(*EDGES)}, INFINITY, more=True)
            for one in as_dicts(answers)
        )
    monkeypatch.setattr(Dataflow, "_take", inner)
    before = [edge for edge in EDGES if edge[3] <= dataflow.time]
    expected = processed(
        dataflow_of(CLOSURE, path_operator="closure"), {"s": edges_of(*before)}, dataflow.time
    )
    assert 40 < len(before) < 100
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert not dataflow.begun


def test_what_was_answered_is_handed_out_before_an_error_of_the_caller(small_parts: list[str]) -> None:
    """Of five chunks the last has an edge that comes too late, and no place to write that to."""

    def fail(rejects: Any) -> None:
        raise OSError("the disk is full")

    dataflow = dataflow_of(CLOSURE, path_operator="closure", threads=2)
    found: list[dict[str, Any]] = []
    chunks = chunks_of([*EDGES[:120], (1, "a", 2, 0)])
    with pytest.raises(OSError, match="the disk is full"):
        found.extend(
            one
            for _, answers in run_local(dataflow, {"s": chunks}, live=False, reject=fail)
            for one in as_dicts(answers)
        )
    ran = run_local(dataflow_of(CLOSURE, path_operator="closure"), {"s": chunks_of(EDGES[:120])})
    expected = [one for _, answers in ran for one in as_dicts(answers)]
    assert sorted(map(repr, found)) == sorted(repr(one) for one in expected if one["ts"] <= dataflow.time)
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
    found: list[dict[str, Any]] = []
    with pytest.raises(InputError, match="the disk is gone"):
        found.extend(
            one for _, answers in run_local(dataflow, {"s": broken()}, live=live) for one in as_dicts(answers)
        )
    reached = EDGES[89][3]
    expected = processed(dataflow_of(CLOSURE, path_operator="closure"), {"s": edges_of(*EDGES[:90])}, reached)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
