"""Derived tuples of three columns through PATTERN, UNION, FILTER and the graph, in plans written out by hand.

The third column plays the part of a value: Through(x, z, m) <- a(x, m), b(m, z) or b(x, m), a(m, z), and
Answer(x, y, m) <- Through(x, z, m), Through(y, w, m), x != y joins two of them by it alone.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_runs import Run, Step, edges_of, processed, steps_of
from meander.dataflow.answers import as_dicts
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY
from meander.dataflow.state import FIRST_CAPACITY
from meander.physical.plan import (
    FilterOp,
    Links,
    PatternOp,
    PhysicalPlan,
    Result,
    ScanOp,
    UnionOp,
    output_arity,
)
from meander.physical.programs import plan_programs
from meander.physical.streams import StreamRef
from meander.syntax.values import Comparison, Const, Ref, ValueType

WINDOW, SLIDE = 10, 2
BOTH = Links(out=True, into=True)


def pattern(
    inputs: tuple[int, ...], ends: tuple[tuple[int, ...], ...], output: tuple[int, ...], *differ: int
) -> PatternOp:
    predicate = Comparison("!=", *map(Ref, differ)) if differ else None
    programs = plan_programs(ends, output, (False,) * len(ends), [frozenset(differ)] if differ else [])
    return PatternOp(inputs, ends, output, programs, predicate)


OPERATORS = (
    ScanOp(StreamRef("s"), "a", WINDOW, SLIDE, None),
    ScanOp(StreamRef("s"), "b", WINDOW, SLIDE, None),
    pattern((0, 1), ((0, 1), (1, 2)), (0, 2, 1)),
    pattern((1, 0), ((0, 1), (1, 2)), (0, 2, 1)),
    UnionOp((2, 3), 3),
    pattern((4, 4), ((0, 1, 2), (3, 4, 2)), (0, 3, 2), 0, 3),
    FilterOp((5,), Comparison("=", Ref(0, ValueType.VERTEX), Const("p", ValueType.VERTEX))),
)
PLAN = PhysicalPlan(
    OPERATORS,
    tuple(f"operator {number}" for number in range(len(OPERATORS))),
    (Result("", "Answer", "Answer", 5, 3), Result("", "OfP", "OfP", 6, 3)),
    {0: BOTH, 1: BOTH, 4: Links(out=True, into=True, values=(0,), width=1), 6: Links(width=1)},
)

Answer = tuple[str, ...]


def expected(rows: Sequence[tuple[Any, ...]], instant: int) -> set[Answer]:
    """The answers on the snapshot at an instant, from the definitions."""
    valid: dict[tuple[str, str, str], int] = {}
    for src, label, trg, ts, op in rows:
        if ts <= instant:
            end = ts // SLIDE * SLIDE + WINDOW
            valid[src, label, trg] = max(valid.get((src, label, trg), 0), end) if op == "+" else 0
    held = {edge for edge, end in valid.items() if end > instant}
    through = {
        (x, m)
        for (x, one, m), (other, two, _) in product(held, held)
        if m == other and {one, two} == {"a", "b"}
    }
    return {(x, y, m) for (x, m), (y, other) in product(through, through) if m == other and x != y}


def holding(records: Sequence[dict[str, Any]], instant: int) -> set[Answer]:
    """The answers that hold at an instant, by their records."""
    ends: defaultdict[Answer, int] = defaultdict(int)
    for record in records:
        if record["ts"] <= instant:
            answer = tuple(record["answer"])
            ends[answer] = max(ends[answer], record["exp"]) if record["op"] == "+" else 0
    return {answer for answer, end in ends.items() if end > instant}


def fed(run: Run, step: Step) -> list[dict[str, Any]]:
    """The records of one step, each with the label of its result."""
    name, edges = step
    if edges is None:
        run.ingest.close(name)
    else:
        run.ingest.push(name, edges)
    results = run.dataflow.process(*run.ingest.release())
    return [record | {"label": result.label} for result, answers in results for record in as_dicts(answers)]


drawn_rows = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.sampled_from("ab"),
        st.sampled_from("pqrs"),
        st.sampled_from((0, 0, 1, 3)),
        st.sampled_from("+++-"),
    ),
    max_size=24,
)


def check_records(rows: Sequence[tuple[Any, ...]], records: Sequence[dict[str, Any]]) -> None:
    for instant in range(rows[-1][3] + WINDOW + 1 if rows else 0):
        for label in ("Answer", "OfP"):
            wanted = {answer for answer in expected(rows, instant) if label == "Answer" or answer[0] == "p"}
            of_label = [record for record in records if record["label"] == label]
            assert holding(of_label, instant) == wanted


@given(drawn=drawn_rows, batch_rows=st.sampled_from((1, 3, 30)), cut=st.integers(0, 24), tiny=st.booleans())
@settings(max_examples=int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "60")), deadline=None)
def test_three_columns_go_through_all_operators(
    drawn: list[tuple[Any, ...]], batch_rows: int, cut: int, tiny: bool
) -> None:
    rows: list[tuple[Any, ...]] = []
    time = 0
    for src, label, trg, gap, op in drawn:
        time += gap
        rows.append((src, label, trg, time, op))
    with patch.dict(os.environ, {FIRST_CAPACITY: "1"} if tiny else {}):
        run = Run(PLAN, ("s",))
        records: list[dict[str, Any]] = []
        for number, step in enumerate(steps_of({"s": rows}, batch_rows)):
            if number == cut:
                earlier, run = run, Run(PLAN, ("s",))
                run.restore(earlier.snapshot())
            records += fed(run, step)
    check_records(rows, records)


def test_numbers_that_only_a_value_column_refers_to_are_kept_and_then_freed() -> None:
    """Vertices come and go, so their numbers are used again; the third columns of valid tuples still name them."""
    rows = []
    for number in range(400):
        for x in "pq":
            rows += [(f"{x}{number}", "a", f"m{number}", number, "+"), (f"m{number}", "b", "z", number, "+")]
    with patch.dict(os.environ, {FIRST_CAPACITY: "1"}):
        dataflow = Dataflow(PLAN)
        dataflow.reclaimer.slack = 16
        most = 0
        records = []
        for start in range(0, len(rows), 8):
            records += processed(dataflow, {"s": edges_of(*rows[start : start + 8])}, rows[start + 7][3])
            most = max(most, dataflow.vertices.count)
        records += processed(dataflow, {}, INFINITY)
    assert most < 200
    found = {tuple(record["answer"]) for record in records}
    assert found == {
        answer
        for number in range(400)
        for answer in ((f"p{number}", f"q{number}", f"m{number}"), (f"q{number}", f"p{number}", f"m{number}"))
    }


@pytest.mark.parametrize(("number", "arity"), [(0, 2), (4, 3), (5, 3), (6, 3)])
def test_the_arity_of_an_operator_is_that_of_its_tuples(number: int, arity: int) -> None:
    assert output_arity(OPERATORS, number) == arity
