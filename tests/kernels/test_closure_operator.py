"""The slide-batched closure where its ways differ: shares of the roots, tables that start too small, many roots."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

import pytest

import meander
from engine_runs import answered, dataflow_of, edges_of, processed
from judge import judge
from meander.dataflow.operators import path_closure as closure
from meander.dataflow.operators.path_closure import PathClosure
from meander.dataflow.state import FIRST_CAPACITY
from oracle import expect
from querytext import read_query

EXPRESSIONS = ("a+", "a*", "(a/b*)", "(a|^b)*", "((a|b)/c*)+", "(a/a+)")


def draw_edges(seed: int, *, deletions: float) -> list[tuple[Any, ...]]:
    """Forty edges over five vertices, in order of time; some delete an earlier one."""
    chance = random.Random(seed)
    edges: list[tuple[Any, ...]] = []
    time = 0
    for _ in range(40):
        time += chance.choice((0, 0, 1, 2))
        if edges and chance.random() < deletions:
            edges.append((*chance.choice(edges)[:3], time, "-"))
        else:
            edges.append((str(chance.randrange(5)), chance.choice("abc"), str(chance.randrange(5)), time))
    return edges


def held(records: list[dict[str, Any]], instant: int) -> set[tuple[str, str]]:
    """The pairs that hold at an instant."""
    return {(record["src"], record["trg"]) for record in records if record["ts"] <= instant < record["exp"]}


def hold_law(text: str, edges: list[tuple[Any, ...]], mode: str, threads: int = 1) -> None:
    answers = meander.run(text, edges, mode=mode, path_operator="closure", threads=threads)
    judge(answers, expect(read_query(text), {"s": edges}, 0), mode=mode, paths=False)


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_threads_that_share_the_roots_give_the_same_answers(expression: str, mode: str) -> None:
    text = f"STREAM s WINDOW 9 SLIDE 3\nAnswer(x, y) <- {expression}(x, y) as P."
    hold_law(text, draw_edges(1, deletions=0.1), mode, threads=3)


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_table_that_is_full_grows_and_nothing_is_lost(
    expression: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FIRST_CAPACITY, "2")
    text = f"STREAM s WINDOW 9 SLIDE 3\nAnswer(x, y) <- {expression}(x, y) as P."
    hold_law(text, draw_edges(2, deletions=0.1), mode)


@pytest.mark.parametrize("mode", ["intervals", "changes"])
def test_more_roots_than_a_block_has_bits(mode: str) -> None:
    """Seven hundred vertices lead into a cycle, which breaks and closes again."""
    edges: list[tuple[Any, ...]] = [(f"v{i}", "a", "x", 1) for i in range(700)]
    edges += [("x", "a", "y", 2), ("y", "a", "x", 5), ("x", "a", "y", 12), ("x", "a", "y", 14, "-")]
    answers = list(
        meander.run(
            "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y).", edges, mode=mode, path_operator="closure"
        )
    )
    to_y = [answer for answer in answers if answer["src"] == "v699" and answer["trg"] == "y"]
    if mode == "changes":
        assert [(record["op"], record["ts"]) for record in to_y] == [("+", 2), ("-", 11)]
    else:
        assert [(record["op"], record["ts"], record["exp"]) for record in to_y] == [("+", 2, 11)]
    assert len({(answer["src"], answer["trg"]) for answer in answers}) == 2 * 702


def test_a_component_that_stays_costs_no_output_in_changes_mode() -> None:
    """A ring whose edges arrive again and again before they expire: what holds already is never said twice."""
    ring = [(i, "a", (i + 1) % 6, time) for time in range(0, 60, 5) for i in range(6)]
    answers = list(
        meander.run(
            "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y).", ring, mode="changes", path_operator="closure"
        )
    )
    assert len(answers) == 2 * 36
    assert {answer["ts"] for answer in answers} == {0, 65}


def test_extensions_within_a_slide_are_one_record() -> None:
    """A pair joined by two edges of the same slide is emitted once, from its first instant to its last."""
    edges = [("u", "a", "v", 11), ("v", "a", "w", 12), ("u", "a", "w", 13), ("u", "a", "v", 14)]
    answers = meander.run(
        "STREAM s WINDOW 20 SLIDE 10\nAnswer(x, y) <- a+(x, y).", edges, path_operator="closure"
    )
    assert sorted((answer["src"], answer["trg"], answer["ts"], answer["exp"]) for answer in answers) == [
        ("u", "v", 11, 30),
        ("u", "w", 12, 30),
        ("v", "w", 12, 30),
    ]


def test_a_matrix_that_is_too_large_is_dropped_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three times many vertices and then few; too large is a matrix of more than 256 nodes or 64 roots."""
    monkeypatch.setattr(closure, "MOST_LEVELS", 256 * closure.CHUNK)
    chance = random.Random(2)
    edges = [
        (f"v{chance.randrange(vertices)}", "a", f"v{chance.randrange(vertices)}", time + i // 10)
        for time, vertices in zip(range(0, 600, 100), 3 * (300, 5), strict=True)
        for i in range(1000)
    ]
    text = "STREAM s WINDOW 30 SLIDE 10\nAnswer(x, y) <- a+(x, y)."
    dataflow = dataflow_of(text, path_operator="closure")
    [operator] = [item for item in dataflow.operators if isinstance(item, PathClosure)]
    answers, is_cached = [], []
    for begin in range(0, len(edges), 100):
        part = edges_of(*edges[begin : begin + 100])
        answers += processed(dataflow, {"s": part}, int(part.ts[-1]))
        [share] = operator.shares
        is_cached.append((operator.cached_roots > 0, share.tables.state.levels.level.size > 0))
    assert {(True, True), (False, False)} == set(is_cached)
    assert [item for item, _ in groupby(is_cached)].count((True, True)) == 3
    expected = answered(dataflow_of(text, path_operator="s-path"), "s", *edges)
    for instant in range(0, 600, 7):
        assert held(answers, instant) == held(expected, instant)


def test_the_matrix_gives_way_to_the_memory_budget() -> None:
    chance = random.Random(1)
    edges = [(f"v{chance.randrange(1200)}", "a", f"v{chance.randrange(1200)}", i // 10) for i in range(4000)]
    text = "STREAM s WINDOW 100 SLIDE 10\nAnswer(x, y) <- a+(x, y)."
    free = list(meander.run(text, edges, path_operator="closure"))
    tight = list(meander.run(text, edges, path_operator="closure", memory=16 << 20))
    assert sorted(map(repr, tight)) == sorted(map(repr, free))
