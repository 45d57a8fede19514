"""Time-respecting paths in a dataflow: answers in both modes, and the path that proves each record."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meander
from ascending_twin import EXPRESSIONS, Expression, Valid, naive_answers
from meander.dataflow.answers import as_dicts
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY, Edges, as_text
from meander.dataflow.state import FIRST_CAPACITY
from meander.physical.plan import Links, PathOp, PhysicalPlan, Proof, Result, ScanOp
from meander.physical.streams import StreamRef
from meander.syntax.query import PathOrder
from meander.syntax.values import Property, ValueType

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "150"))
VERTICES = 4
WINDOW, SLIDE = 7, 2
TIME = Property("ts", ValueType.TIME)


class Event(NamedTuple):
    src: int
    label: str
    trg: int
    ts: int
    op: int


def plan_of(expression: Expression, order: PathOrder, root: int | None) -> PhysicalPlan:
    """One path over the labels a and b, which proves its own answers."""
    labels = "ab"[: 1 + max(source for _, source, _, _ in expression.moves)]
    scans = tuple(ScanOp(StreamRef("s"), label, WINDOW, SLIDE, None, (TIME,)) for label in labels)
    inputs = tuple(range(len(scans)))
    path = PathOp(
        inputs, expression.states, expression.accepting, expression.moves, "ascending", root, order=order
    )
    proof = Proof(path, tuple(labels[source] for _, source, _, _ in expression.moves))
    result = Result("", "Answer", "P", len(scans), 2, (proof,))
    indexed = {number: Links(out=True, into=True, width=1) for number in inputs}
    return PhysicalPlan((*scans, path), (*labels, "path"), (result,), indexed)


def edges_of(events: Sequence[Event]) -> Edges:
    return Edges(
        as_text([event.src for event in events]),
        as_text([event.label for event in events]),
        as_text([event.trg for event in events]),
        np.array([event.ts for event in events], np.int64),
        np.array([event.op for event in events], np.int8),
    )


def valid_at(events: Sequence[Event], now: int) -> list[Valid]:
    """The edges of the snapshot at `now`, each with its time and the end of its window."""
    alive: list[Valid] = []
    for event in events:
        if event.ts > now:
            break
        edge = "ab".index(event.label), event.src, event.trg
        if event.op > 0:
            alive.append(Valid(*edge, event.ts, event.ts // SLIDE * SLIDE + WINDOW))
        else:
            alive = [other for other in alive if other[:3] != edge]
    return [edge for edge in alive if edge.exp > now]


def is_word(expression: Expression, path: Sequence[Sequence[Any]], src: int, trg: int) -> bool:
    """Whether a path leads from `src` to `trg` and spells a word."""
    reached = {(src, 0)}
    for edge_src, label, edge_trg, _ in path:
        reached = {
            (edge_src if inverse else edge_trg, to)
            for vertex, state in reached
            for at, source, inverse, to in expression.moves
            if at == state and "ab"[source] == label and vertex == (edge_trg if inverse else edge_src)
        }
    return any(vertex == trg and state in expression.accepting for vertex, state in reached)


def check_path(
    expression: Expression, events: Sequence[Event], strict: bool, record: dict[str, Any], end: int
) -> None:
    path = record["path"]
    assert path is not None
    times = [step[3] for step in path]
    assert all(one < other if strict else one <= other for one, other in pairwise(times))
    assert is_word(expression, path, record["src"], record["trg"])
    for now in range(record["ts"], end):
        snapshot = {("ab"[edge.source], edge.src, edge.trg, edge.time) for edge in valid_at(events, now)}
        assert all((label, src, trg, time) in snapshot for src, label, trg, time in path)


def answers_of(dataflow: Dataflow, events: Sequence[Event], cuts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The records of a run in batches that end at the cuts, perhaps within an instant."""
    bounds = sorted({0, len(events), *(min(cut, len(events)) for cut in cuts)})
    for begin, end in pairwise(bounds):
        part = events[begin:end]
        for _, answers in dataflow.process({"s": edges_of(part)}, part[-1].ts):
            yield from as_dicts(answers)
    for _, answers in dataflow.process({}, INFINITY):
        yield from as_dicts(answers)


def check(
    expression: Expression,
    order: PathOrder,
    events: Sequence[Event],
    cuts: Sequence[int],
    mode: str,
    root: int | None,
) -> None:
    dataflow = Dataflow(plan_of(expression, order, root), mode=mode, paths=True)
    records = list(answers_of(dataflow, events, cuts))
    strict = order is PathOrder.STRICTLY_ASCENDING
    labels = {"ab"[source] for _, source, _, _ in expression.moves}
    events = [event for event in events if event.label in labels]
    holds: dict[tuple[int, int], set[int]] = defaultdict(set)
    last = max((event.ts for event in events), default=0) + WINDOW + 1
    by_pair = defaultdict(list)
    for record in records:
        by_pair[record["src"], record["trg"]].append(record)
    for pair, of_pair in by_pair.items():
        for number, record in enumerate(of_pair):
            if record["op"] == "-":
                holds[pair] -= set(range(record["ts"], last))
                continue
            stops = [other["ts"] for other in of_pair[number + 1 :] if other["op"] == "-"]
            end = min([*stops, last if record["exp"] is None else record["exp"]])
            holds[pair] |= set(range(record["ts"], end))
            check_path(
                expression, events, strict, record, end if mode == "intervals" else min(end, record["ts"] + 1)
            )
    roots = range(VERTICES) if root is None else [root]
    for now in range(last):
        expected = set(naive_answers(valid_at(events, now), expression, strict, now, roots))
        assert {pair for pair, instants in holds.items() if now in instants} == expected, now


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Edges in order of time, with many ties; some delete all arrivals of an edge."""
    events: list[Event] = []
    now = 0
    for _ in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from((0, 0, 1, 1, 2)))
        if events and draw(st.integers(0, 4)) == 0:
            events.append(draw(st.sampled_from(events))._replace(ts=now, op=-1))
        else:
            vertex = st.integers(0, VERTICES - 1)
            events.append(Event(draw(vertex), draw(st.sampled_from("ab")), draw(vertex), now, 1))
    return events


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from((PathOrder.ASCENDING, PathOrder.STRICTLY_ASCENDING)),
    streams(),
    st.lists(st.integers(0, 12), max_size=6),
    st.sampled_from(("intervals", "changes")),
    st.sampled_from((None, None, 1)),
)
def test_every_record_is_true_and_proved_by_a_path_in_order_of_time(
    expression: Expression,
    order: PathOrder,
    events: list[Event],
    cuts: list[int],
    mode: str,
    root: int | None,
) -> None:
    check(expression, order, events, cuts, mode, root)


def test_a_path_has_the_times_of_its_steps() -> None:
    events = [Event(0, "a", 1, 1, 1), Event(1, "a", 2, 3, 1), Event(1, "a", 0, 3, 1), Event(2, "a", 3, 3, 1)]
    found = {}
    for order in (PathOrder.ASCENDING, PathOrder.STRICTLY_ASCENDING):
        dataflow = Dataflow(plan_of(EXPRESSIONS[0], order, None), paths=True)
        found[order] = {
            (record["src"], record["trg"]): record["path"] for record in answers_of(dataflow, events, ())
        }
    assert found[PathOrder.ASCENDING][0, 3] == [[0, "a", 1, 1], [1, "a", 2, 3], [2, "a", 3, 3]]
    assert (0, 3) not in found[PathOrder.STRICTLY_ASCENDING]
    assert found[PathOrder.STRICTLY_ASCENDING][0, 2] == [[0, "a", 1, 1], [1, "a", 2, 3]]


def test_memory_follows_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever new vertices: numbers, rows and arrivals are used again."""
    monkeypatch.setenv(FIRST_CAPACITY, "64")
    dataflow = Dataflow(plan_of(EXPRESSIONS[1], PathOrder.ASCENDING, None))
    sizes = []
    for round_number in range(60):
        now, first = 10 * round_number, 150 * round_number
        events = [Event(first + i, "a", first + i + 1 - i % 3, now + i // 15, 1) for i in range(149)]
        for _ in dataflow.process({"s": edges_of(events)}, now + 9):
            pass
        sizes.append(dataflow.state_bytes)
    assert max(sizes[30:]) <= max(sizes[:30])
    assert dataflow.operators[-1].state_rows < 2000


def test_a_shorter_path_with_equal_times_proves_nothing_that_is_strictly_ascending() -> None:
    events = [
        Event(0, "a", 3, 3, 1),
        Event(0, "a", 1, 4, 1),
        Event(1, "a", 2, 4, 1),
        Event(3, "a", 4, 4, 1),
        Event(4, "a", 2, 5, 1),
    ]
    dataflow = Dataflow(plan_of(EXPRESSIONS[0], PathOrder.STRICTLY_ASCENDING, None), paths=True)
    [record] = [
        record for record in answers_of(dataflow, events, ()) if (record["src"], record["trg"]) == (0, 2)
    ]
    assert (record["ts"], record["exp"]) == (5, 9)
    assert record["path"] == [[0, "a", 3, 3], [3, "a", 4, 4], [4, "a", 2, 5]]


def test_a_deletion_beside_a_path_does_not_retract_its_record() -> None:
    arrivals = [Event(0, "a", 1, 1, 1), Event(1, "a", 2, 2, 1), Event(1, "a", 3, 2, 1)]
    events = [*arrivals, Event(1, "a", 3, 3, -1)]
    dataflow = Dataflow(plan_of(EXPRESSIONS[0], PathOrder.ASCENDING, None), paths=True)
    retracted = [record for record in answers_of(dataflow, events, ()) if record["op"] == "-"]
    assert sorted((record["src"], record["trg"]) for record in retracted) == [(0, 3), (1, 3)]


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.sampled_from(EXPRESSIONS), streams(), st.sampled_from(("intervals", "changes")))
def test_full_tables_grow_and_no_record_is_lost(
    expression: Expression, events: list[Event], mode: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_CAPACITY, "2")
        check(expression, PathOrder.ASCENDING, events, range(12), mode, None)


@pytest.mark.filterwarnings("ignore:no edge had the label")
@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(streams(), st.sampled_from(("ascending", "strictly ascending")), st.sampled_from(((1, 2), (2, 1))))
def test_a_head_of_any_label_ascends_as_its_labels_do(
    events: list[Event], order: str, ends: tuple[int, int]
) -> None:
    """Edges of one time that differ in their label are one step, which holds as long as one of them does."""
    x, y = (f"v{end}" for end in ends)
    steps = {
        f"Step(v1, v2) <- s.*({x}, {y}).\n": "Step",
        "": "(a|b)" if ends == (1, 2) else "(^a|^b)",
    }
    rows = [(e.src, e.label, e.trg, e.ts, "+" if e.op > 0 else "-") for e in events]
    held = [
        held_at(f"STREAM s WINDOW 10\n{rules}Answer(x, y) <- {step}+(x, y) {order}.", rows)
        for rules, step in steps.items()
    ]
    assert held[0] == held[1]


def held_at(query: str, rows: list[tuple[int, str, int, int, str]]) -> set[tuple[int, int, int]]:
    """The answers of a query, each with the instants at which it holds."""
    held: set[tuple[int, int, int]] = set()
    for record in meander.run(query, rows, rejects=[]):
        pair, last = (record["src"], record["trg"]), record["exp"] or max(ts for _, _, _, ts, _ in rows) + 10
        instants = {(*pair, instant) for instant in range(record["ts"], last)}
        held = held | instants if record["op"] == "+" else held - instants
    return held
