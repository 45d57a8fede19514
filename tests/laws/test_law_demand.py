"""A closure that is told what it is probed for gives every answer that it would give untold."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meander
from engine_runs import plan_query
from judge import judge
from meander.algebra.nodes import Path, Pattern
from meander.algebra.printing import walk
from meander.physical.builder import build
from meander.physical.plan import PathOp
from oracle import expect
from querytext import read_query
from strategies import CAPACITIES, restless

EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "300"))

BODIES = (
    "Answer(x, y) <- a+(x, y), b(x, m), c(m, y).",
    "Answer(x, y) <- a*(x, y), b(x, y).",
    "Answer(y, x) <- (a|^b)+(x, y), c(y, x).",
    "Answer(x, m) <- (a/b?)+(x, y), b(x, m), c(m, y).",
    "Answer(x, y) <- a+(x, y), a(x, m), a(m, y).",
    "Answer(x, y, z) <- a+(x, y), b+(y, z), c(x, y), c(y, z).",
    "Answer(x, x) <- a+(x, x), b(x, x).",
    'Answer(x, y) <- a+("1", y), b("1", y), c(x, y).',
    "RL(x, y) <- a+(x, y), b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y), c(m, y).",
    "RL(x, y) <- (a?)+(x, y), b(x, m), c(m, y).\nAnswer(x, y) <- (d/RL+/d)(x, y).",
)

vertices = st.sampled_from("1234")
steps = st.tuples(
    vertices, st.sampled_from("aaabbccd"), vertices, st.sampled_from((0, 0, 1, 1, 2, 6)), st.integers(0, 9)
)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Edges in order of time; one in ten is a deletion."""
    edges: list[tuple[Any, ...]] = []
    time = 0
    for src, label, trg, pause, chance in draw(st.lists(steps, max_size=60)):
        time += pause
        edges.append((src, label, trg, time, "-" if chance == 9 else "+"))
    return edges


@pytest.mark.parametrize("path_operator", ["closure", "auto"])
@given(
    body=st.sampled_from(BODIES),
    window=st.sampled_from([(4, 1), (8, 1), (8, 3), (12, 12)]),
    edges=streams(),
    batch_rows=st.sampled_from([1, 3, 10, 65536]),
    mode=st.sampled_from(["intervals", "changes"]),
    threads=st.sampled_from([1, 1, 2]),
    paths=st.booleans(),
    moves=st.integers(0, 99),
    capacity=st.sampled_from(CAPACITIES),
)
@settings(max_examples=max(1, EXAMPLES // 3), deadline=None)
def test_what_is_asked_for_is_given(
    path_operator: str,
    body: str,
    window: tuple[int, int],
    edges: list[tuple[Any, ...]],
    batch_rows: int,
    mode: str,
    threads: int,
    paths: bool,
    moves: int,
    capacity: int | None,
) -> None:
    text = f"STREAM s WINDOW {window[0]} SLIDE {window[1]}\n{body}"
    with restless(moves, capacity):
        records = list(
            meander.run(
                text,
                {"s": edges},
                mode=mode,
                batch_rows=batch_rows,
                path_operator=path_operator,
                threads=threads,
                paths=paths,
            )
        )
    judge(records, expect(read_query(text), {"s": edges}, 0), mode=mode, paths=paths)


@pytest.mark.parametrize("body", [body for body in BODIES if '"' not in body and "(x, x)" not in body])
def test_these_closures_are_told(body: str) -> None:
    [result] = plan_query(f"STREAM s WINDOW 8\n{body}")
    assert any(isinstance(node, Path) and node.demand is not None for node in walk(result.plan))


def test_one_end_alone_asks_for_nothing() -> None:
    [result] = plan_query("STREAM s WINDOW 8\nAnswer(x, m) <- a+(x, y), b(x, m).")
    assert all(not isinstance(node, Path) or node.demand is None for node in walk(result.plan))


def test_where_the_ends_are_all_that_is_handed_out_the_rest_is_joined_once() -> None:
    [result] = plan_query(f"STREAM s WINDOW 8\n{BODIES[0]}")
    assert isinstance(result.plan, Pattern)
    closure, asked = result.plan.inputs
    assert isinstance(closure, Path)
    assert closure.demand == asked


def test_a_closure_that_somebody_wants_whole_is_found_once() -> None:
    text = "STREAM s WINDOW 8\nAP(x, y) <- a+(x, y).\nIn(x, y) <- AP(x, y), b(x, y).\nRESULT AP, In"
    operators = build(plan_query(text)).operators
    [closure] = [one for one in operators if isinstance(one, PathOp)]
    assert closure.demand is None
