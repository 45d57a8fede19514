"""Time-respecting paths against a naive twin: after every instant, every answer has exactly its largest expiry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascending_twin import EXPRESSIONS, LONG, Expression, Valid, naive_answers
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


class Change(NamedTuple):
    """An arrival, or a retraction of the arrivals of a time."""

    source: int
    src: int
    trg: int
    ts: int
    exp: int
    op: int
    time: int


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

    def __init__(
        self, expression: Expression, strict: bool, root: int | None, vertices: int = VERTICES
    ) -> None:
        order = PathOrder.STRICTLY_ASCENDING if strict else PathOrder.ASCENDING
        inputs = tuple(range(1 + max(source for _, source, _, _ in expression.moves)))
        node = PathOp(
            inputs, expression.states, expression.accepting, expression.moves, "ascending", root, order=order
        )
        self.inputs = len(inputs)
        self.vertices = Vertices(Store("vertices"))
        self.numbers = self.vertices.intern(integer_text(np.arange(vertices)))
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
            assert exp > max(ts, held), "a record extends its answer"
        else:
            assert ts <= exp < held, "a retraction shortens an answer that holds"
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


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(expression=st.sampled_from(EXPRESSIONS), changes=streams(retractions=True), cuts=cut_anywhere())
def test_full_tables_grow_and_nothing_is_lost(
    strict: bool, expression: Expression, changes: list[Change], cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_CAPACITY, "2")
        check(expression, strict, changes, cuts)


@pytest.mark.parametrize("strict", [False, True])
def test_many_edges_of_one_instant(strict: bool) -> None:
    """A chain that arrives backwards within one instant, in two parts: every pair is emitted once."""
    length = 300
    run = Run(EXPRESSIONS[0], strict, None, vertices=length + 1)
    chain = [Change(0, i, i + 1, 5, 50, 1, 5) for i in reversed(range(length))]
    cut = 3 * length // 4
    emitted = run.process(chain[:cut], 5) + run.process(chain[cut:], 5)
    pairs = {(x, y) for x, y, _, _, _ in emitted}
    assert len(emitted) == len(pairs) == (length if strict else length * (length + 1) // 2)


def test_parts_of_an_instant_continue_each_other_only_if_equal_times_do() -> None:
    first, second = Change(0, 1, 2, 5, 50, 1, 5), Change(0, 0, 1, 5, 50, 1, 5)
    for strict, expected in ((False, [(0, 1, 5, 50, 1), (0, 2, 5, 50, 1)]), (True, [(0, 1, 5, 50, 1)])):
        run = Run(EXPRESSIONS[0], strict, None)
        assert run.process([first], 5) == [(1, 2, 5, 50, 1)]
        assert sorted(run.process([second], 5)) == expected


def test_a_retraction_after_many_vertices_derives_no_more_than_it_must() -> None:
    """A hub with hundreds of roots: an edge into it is lost, and with it the pairs of the one root that used it."""
    roots = 200
    run = Run(EXPRESSIONS[0], False, None, vertices=roots + 2)
    hub, end = roots, roots + 1
    arrivals = [Change(0, root, hub, root, 10_000, 1, root) for root in range(roots)]
    arrivals.append(Change(0, hub, end, roots, 10_000, 1, roots))
    assert len(run.process(arrivals, roots)) == 2 * roots + 1
    lost = arrivals[7]._replace(ts=roots + 1, exp=roots + 1, op=-1)
    now = roots + 1
    assert sorted(run.process([lost], now)) == [(7, hub, now, now, -1), (7, end, now, now, -1)]
    assert run.process([lost], now) == []


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.booleans(), streams(retractions=True), cut_anywhere())
def test_cells_that_own_the_first_edges_have_all_answers_together(
    strict: bool, changes: list[Change], cuts: list[int]
) -> None:
    """A cell reads the edges whose source it owns as first steps, and all edges as later ones."""
    closure, shared = EXPRESSIONS[0], EXPRESSIONS[2]
    edges = [change._replace(source=0) for change in changes]
    runs = [Run(closure, strict, None), Run(shared, strict, None), Run(shared, strict, None)]
    bounds = sorted({0, len(edges), *(min(cut, len(edges)) for cut in cuts)})
    for begin, end in pairwise(bounds):
        part = edges[begin:end]
        for cell, run in enumerate(runs, -1):
            owned = [change for change in part if cell < 0 or change.src % 2 == cell]
            later = [change._replace(source=1) for change in part] if cell >= 0 else []
            for record in run.process(owned + later, part[-1].ts):
                run.apply(record)
        now = part[-1].ts
        whole, *cells = ({pair: exp for pair, exp in run.holds.items() if exp > now} for run in runs)
        assert whole == cells[0] | cells[1]
        assert not cells[0].keys() & cells[1].keys()


def test_a_retraction_changes_what_the_open_instant_was_before() -> None:
    """Strictly ascending: 1 → 2 is extended at 5, then 0 loses a path to 1, then 2 → 3 arrives at 5 too."""
    lost = Change(0, 0, 1, 1, 50, 1, 1)
    other = Change(0, 0, 1, 2, 40, 1, 2)
    for kept, from_zero in (([], []), ([other], [(0, 3, 5, 6, 1)])):
        run = Run(EXPRESSIONS[0], True, None)
        run.process([lost, *kept, Change(0, 1, 2, 3, 6, 1, 3)], 3)
        run.process([Change(0, 1, 2, 5, 20, 1, 5)], 5)
        run.process([lost._replace(ts=5, exp=5, op=-1)], 5)
        emitted = run.process([Change(0, 2, 3, 5, 50, 1, 5)], 5)
        assert sorted(emitted) == [*from_zero, (1, 3, 5, 6, 1), (2, 3, 5, 50, 1)]
