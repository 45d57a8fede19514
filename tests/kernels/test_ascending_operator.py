"""Time-respecting paths against a naive twin: after every instant, every answer has exactly its largest expiry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meander.dataflow.batch import empty_batch
from meander.dataflow.edges import integer_text
from meander.dataflow.graph import WindowGraph
from meander.dataflow.operators.path_ascending import PathAscending
from meander.dataflow.state import FIRST_CAPACITY, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import Batch
from meander.physical.plan import PathOp
from meander.syntax.query import PathOrder
from operator_context import context_of, rows_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "150"))
VERTICES = 5
LONG = 1 << 62

Move = tuple[int, int, bool, int]


class Expression(NamedTuple):
    """An automaton over inputs 0 and 1."""

    text: str
    states: int
    accepting: tuple[int, ...]
    moves: tuple[Move, ...]


EXPRESSIONS = (
    Expression("a+", 2, (1,), ((0, 0, False, 1), (1, 0, False, 1))),
    Expression("a*", 1, (0,), ((0, 0, False, 0),)),
    Expression("a/b*", 2, (1,), ((0, 0, False, 1), (1, 1, False, 1))),
    Expression("(a|^b)+", 2, (1,), ((0, 0, False, 1), (0, 1, True, 1), (1, 0, False, 1), (1, 1, True, 1))),
    Expression("(^a)*", 1, (0,), ((0, 0, True, 0),)),
    Expression("(a/^a)+", 3, (2,), ((0, 0, False, 1), (1, 0, True, 2), (2, 0, False, 1))),
    Expression("a?/b?/a?", 4, (0, 1, 2, 3), ((0, 0, False, 1), (0, 1, False, 2), (1, 0, False, 3), (1, 1, False, 2), (2, 0, False, 3))),
    Expression("a{2}|b", 3, (2,), ((0, 0, False, 1), (0, 1, False, 2), (1, 0, False, 2))),
)  # fmt: skip


class Change(NamedTuple):
    """An arrival, or a retraction of the arrivals of a time."""

    source: int
    src: int
    trg: int
    ts: int
    exp: int
    op: int
    time: int


class Valid(NamedTuple):
    source: int
    src: int
    trg: int
    time: int
    exp: int


def naive_answers(
    arrivals: Sequence[Valid], expression: Expression, strict: bool, now: int, roots: Sequence[int]
) -> dict[tuple[int, int], int]:
    """The largest least expiry over all ascending walks, by pair: dynamic programming over the times."""
    valid = sorted((arrival for arrival in arrivals if arrival.exp > now), key=lambda arrival: arrival.time)
    best: dict[tuple[int, int], int] = {}
    for root in roots:
        reached = {(root, 0): LONG * 2}
        for _, instant in groupby(valid, key=lambda arrival: arrival.time):
            edges = list(instant)
            while True:
                before = dict(reached)
                for edge in edges:
                    for state, source, inverse, to in expression.moves:
                        tail, head = (edge.trg, edge.src) if inverse else (edge.src, edge.trg)
                        lasts = min(before.get((tail, state), 0), edge.exp)
                        if source != edge.source or lasts == 0:
                            continue
                        reached[head, to] = max(reached.get((head, to), 0), lasts)
                        if to in expression.accepting:
                            best[root, head] = max(best.get((root, head), 0), lasts)
                if strict or before == reached:
                    break
        if 0 in expression.accepting:
            for edge in valid:
                if root in (edge.src, edge.trg):
                    best[root, root] = max(best.get((root, root), 0), edge.exp)
    return best


class Twin:
    """The valid arrivals, changed as the batches say."""

    def __init__(self) -> None:
        self.arrivals: list[Valid] = []

    def apply(self, change: Change) -> None:
        if change.op > 0:
            if change.exp > change.ts:
                self.arrivals.append(Valid(change.source, change.src, change.trg, change.ts, change.exp))
            return
        key = (change.source, change.src, change.trg, change.time)
        self.arrivals = [
            arrival._replace(exp=min(arrival.exp, max(change.exp, change.ts)))
            if arrival[:4] == key
            else arrival
            for arrival in self.arrivals
        ]


class Run:
    """An operator by itself, and what its output says."""

    def __init__(self, expression: Expression, strict: bool, root: int | None) -> None:
        order = PathOrder.STRICTLY_ASCENDING if strict else PathOrder.ASCENDING
        inputs = tuple(range(1 + max(source for _, source, _, _ in expression.moves)))
        node = PathOp(
            inputs, expression.states, expression.accepting, expression.moves, "ascending", root, order=order
        )
        self.inputs = len(inputs)
        self.vertices = Vertices(Store("vertices"))
        self.numbers = self.vertices.intern(integer_text(np.arange(VERTICES)))
        context = context_of(WindowGraph(Store("graph"), []), "path", self.vertices)
        self.operator = PathAscending(node, context)
        self.names = {int(number): name for name, number in enumerate(self.numbers)}
        self.holds: dict[tuple[int, int], int] = {}

    def batches(self, changes: Sequence[Change]) -> list[Batch]:
        """One batch per input."""
        found = []
        for source in range(self.inputs):
            chosen = [change for change in changes if change.source == source]
            batch = empty_batch(len(chosen), 3)
            times = self.vertices.intern(integer_text(np.array([change.time for change in chosen], np.int64)))
            for row, change in enumerate(chosen):
                ends = (self.numbers[change.src], self.numbers[change.trg])
                batch.key[row] = (*ends, times[row])
                batch.ts[row], batch.exp[row], batch.op[row] = change.ts, change.exp, change.op
            found.append(batch)
        return found

    def process(self, changes: Sequence[Change], upto: int) -> list[tuple[int, ...]]:
        out = self.operator.start(self.batches(changes), upto).result()
        return [(self.names[x], self.names[y], ts, exp, op) for x, y, ts, exp, op in rows_of(out)]

    def apply(self, record: tuple[int, ...]) -> None:
        x, y, ts, exp, op = record
        held = self.holds.get((x, y), 0)
        if op > 0:
            assert exp > ts and exp > held, "a record extends its answer"
        else:
            assert ts <= exp < held and held > ts, "a retraction shortens an answer that holds"
        self.holds[x, y] = exp


@st.composite
def streams(draw: st.DrawFn, retractions: bool) -> list[Change]:
    """Changes in order of time, with many ties; expiries are in no order."""
    changes: list[Change] = []
    now = 0
    vertex = st.integers(0, VERTICES - 1)
    for _ in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from((0, 0, 0, 1, 1, 3)))
        arrived = [change for change in changes if change.op > 0]
        if retractions and arrived and draw(st.integers(0, 3)) == 0:
            lost = draw(st.sampled_from(arrived))
            exp = draw(st.sampled_from((now, now, now - 1, now + 2)))
            changes.append(lost._replace(ts=now, exp=exp, op=-1))
        else:
            exp = draw(st.sampled_from((now + 6, now + 6, now + 2, now + 9, now, LONG)))
            changes.append(Change(draw(st.integers(0, 1)), draw(vertex), draw(vertex), now, exp, 1, now))
    return changes


def check(
    expression: Expression,
    strict: bool,
    changes: Sequence[Change],
    cuts: Sequence[int],
    root: int | None = None,
    restore: bool = False,
) -> None:
    """Run the changes in batches that end at the cuts: after each instant there holds what the twin finds."""
    run, twin = Run(expression, strict, root), Twin()
    changes = [change for change in changes if change.source < run.inputs]
    bounds = sorted({0, len(changes), *(min(cut, len(changes)) for cut in cuts)})
    for begin, end in pairwise(bounds):
        part = changes[begin:end]
        emitted = run.process(part, part[-1].ts)
        assert emitted == sorted(emitted, key=lambda record: record[2])
        roots = range(VERTICES) if root is None else [root]
        for now, instant in groupby(part, key=lambda change: change.ts):
            for change in instant:
                twin.apply(change)
            while emitted and emitted[0][2] == now:
                run.apply(emitted.pop(0))
            expected = naive_answers(twin.arrivals, expression, strict, now, roots)
            assert {pair: exp for pair, exp in run.holds.items() if exp > now} == expected
        assert not emitted
        if restore:
            other = Run(expression, strict, root)
            other.vertices, other.operator.vertices = run.vertices, run.vertices
            other.operator.store.restore(run.operator.store.snapshot())
            other.operator.bind()
            other.holds = run.holds
            run = other


def cut_anywhere(length: int = 14) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, length), max_size=length)


def cut_by_instant(changes: Sequence[Change]) -> list[int]:
    return [i + 1 for i, (one, other) in enumerate(pairwise(changes)) if one.ts != other.ts]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(EXPRESSIONS), st.booleans(), streams(retractions=False), cut_anywhere())
def test_every_answer_has_its_largest_expiry(
    expression: Expression, strict: bool, changes: list[Change], cuts: list[int]
) -> None:
    check(expression, strict, changes, cuts)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.sampled_from(EXPRESSIONS), st.booleans(), streams(retractions=True), cut_anywhere(), st.booleans())
def test_a_retraction_leaves_what_other_paths_prove(
    expression: Expression, strict: bool, changes: list[Change], cuts: list[int], by_instant: bool
) -> None:
    check(expression, strict, changes, cut_by_instant(changes) if by_instant else cuts)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.booleans(),
    streams(retractions=True),
    cut_anywhere(),
    st.sampled_from((None, 0, 1)),
)
def test_an_operator_continues_from_its_snapshot(
    expression: Expression, strict: bool, changes: list[Change], cuts: list[int], root: int | None
) -> None:
    check(expression, strict, changes, cuts, root, restore=True)
