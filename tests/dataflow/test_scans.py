"""Scans with properties: at every instant the tuples are those of the valid arrivals, however these are fed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.answers import NO_EXPIRY, Answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY, Edges, Text, as_text, concat_edges
from meander.dataflow.reclaiming import VertexReclaimer
from meander.dataflow.value_names import value_array
from meander.physical.plan import PhysicalPlan, ReceiveOp, Result, ScanOp
from meander.physical.streams import StreamRef
from meander.syntax.values import And, Comparison, Const, Not, Predicate, Property, Ref, ValueType, refs

INT, FLOAT, STRING, TIME, VERTEX = (
    ValueType.INT,
    ValueType.FLOAT,
    ValueType.STRING,
    ValueType.TIME,
    ValueType.VERTEX,
)
STREAM = "s"
WINDOW, SLIDE, END = 6, 2, 30


class Row(NamedTuple):
    src: str
    label: str
    trg: str | None
    ts: int
    op: int
    amount: int | None = None
    kind: str | None = None


# ---------------------------------------------------------------------------------------------------------
# The naive twin


class Arrival(NamedTuple):
    row: Row
    exp: int


def decide(predicate: Predicate | None, row: Row) -> bool | None:
    """Whether a row satisfies one of the predicates that are drawn below."""
    match predicate:
        case None:
            return True
        case And(parts):
            truths = [decide(part, row) for part in parts]
            return False if False in truths else None if None in truths else True
        case Not(part):
            inner = decide(part, row)
            return None if inner is None else not inner
        case Comparison(op, Ref(name), Const(value)):
            found = row.src if name == "trg" and row.trg is None else getattr(row, str(name))
            if found is None:
                return None
            return bool({"=": found == value, ">": op == ">" and found > value}[op])
    raise AssertionError(predicate)


def tuples_at(scan: ScanOp, rows: Sequence[Row], time: int) -> set[tuple[Any, ...]]:
    """The tuples of a scan that hold at an instant."""
    named = [value.name for value in scan.named]
    valid: list[Arrival] = []
    for row in rows:
        if row.ts > time:
            break
        if (scan.label is not None and row.label != scan.label) or (row.trg is None) != scan.vertex:
            continue

        def goes(other: Row, row: Row = row) -> bool:
            same = (other.src, other.label, other.trg) == (row.src, row.label, row.trg)
            if row.op > 0:
                return same and scan.table
            said = [name for name in named if getattr(row, name) is not None]
            return same and all(getattr(other, name) == getattr(row, name) for name in said)

        valid = [arrival for arrival in valid if not goes(arrival.row)]
        if row.op > 0:
            exp = INFINITY if scan.table else row.ts // scan.slide * scan.slide + scan.window
            valid.append(Arrival(row, exp))
    found = set()
    for row, exp in valid:
        values = [getattr(row, value.name) for value in scan.values]
        if exp > time and None not in values and decide(scan.predicate, row):
            typed = [
                float(value) if wanted.type is FLOAT else value
                for value, wanted in zip(values, scan.values, strict=True)
            ]
            found.add((row.src, row.src if row.trg is None else row.trg, *typed))
    return found


# ---------------------------------------------------------------------------------------------------------
# Runs


def edges_of(rows: Sequence[Row]) -> Edges:
    return Edges(
        src=as_text([row.src for row in rows]),
        label=as_text([row.label for row in rows]),
        trg=as_text([row.src if row.trg is None else row.trg for row in rows]),
        ts=np.array([row.ts for row in rows], np.int64),
        op=np.array([row.op for row in rows], np.int8),
        properties={
            "amount": pa.array([row.amount for row in rows], pa.int64()),
            "kind": pa.array([row.kind for row in rows], pa.large_string()),
        },
        vertex=np.array([row.trg is None for row in rows], np.bool_),
    )


def plan_of(scans: Sequence[ScanOp]) -> PhysicalPlan:
    """A plan whose results are the scans' tuples."""
    results = tuple(
        Result("", f"R{number}", f"R{number}", number, 2, values=scan.values)
        for number, scan in enumerate(scans)
    )
    return PhysicalPlan(tuple(scans), tuple(f"scan {number}" for number in range(len(scans))), results, {})


def keys_of(answers: Answers) -> list[tuple[Any, ...]]:
    columns = [text.values() for text in answers.vertices]
    columns += [
        column.values.values() if isinstance(column.values, Text) else column.values.tolist()
        for column in answers.properties
    ]
    return list(zip(*columns, strict=True))


class Record(NamedTuple):
    key: tuple[Any, ...]
    ts: int
    exp: int
    op: int


def records_of(answers: Answers) -> Iterator[Record]:
    times = zip(answers.ts.tolist(), answers.exp.tolist(), answers.op.tolist(), strict=True)
    for key, (ts, exp, op) in zip(keys_of(answers), times, strict=True):
        yield Record(key, ts, INFINITY if exp == NO_EXPIRY else exp, op)


def holding_at(records: Sequence[Record], time: int) -> set[tuple[Any, ...]]:
    """The answers that hold at an instant, by the records' own rule: a `-` cuts all earlier records of an answer."""
    until: dict[tuple[Any, ...], int] = {}
    for key, ts, exp, op in records:
        if ts <= time:
            until[key] = max(until.get(key, 0), exp) if op > 0 else 0
    return {key for key, exp in until.items() if exp > time}


def run(
    scans: Sequence[ScanOp], rows: Sequence[Row], cuts: Sequence[int], *, mode: str, restart: bool
) -> dict[str, list[Record]]:
    """The records of each result; the rows are fed in parts that end at `cuts`, perhaps each by a fresh dataflow."""
    dataflow = Dataflow(plan_of(scans), mode=mode)
    records: dict[str, list[Record]] = {result.head: [] for result in dataflow.plan.results}
    bounds = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    for begin, end in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        last = begin == len(rows)
        part = {} if last else {STREAM: edges_of(rows[begin:end])}
        for result, answers in dataflow.process(part, INFINITY if last else rows[end - 1].ts):
            records[result.head] += records_of(answers)
        if restart:
            state = dataflow.snapshot()
            dataflow = Dataflow(plan_of(scans), mode=mode)
            dataflow.restore(state)
    return records


AMOUNT, KIND, TS = Property("amount", INT), Property("kind", STRING), Property("ts", TIME)
PREDICATES: list[Predicate | None] = [
    None,
    Comparison(">", Ref("amount", INT), Const(1, INT)),
    Comparison("=", Ref("kind", STRING), Const("x", STRING)),
    Comparison(">", Ref("ts", TIME), Const(4, TIME)),
    Comparison("=", Ref("src", VERTEX), Const("u", VERTEX)),
    Not(Comparison(">", Ref("amount", INT), Const(1, INT))),
    And(
        (
            Comparison("=", Ref("trg", VERTEX), Const("v", VERTEX)),
            Comparison(">", Ref("amount", INT), Const(0, INT)),
        )
    ),
]
VALUES = [(), (AMOUNT,), (KIND,), (TS,), (AMOUNT, KIND, TS), (Property("amount", FLOAT),)]


def scan_of(
    label: str | None = "a",
    predicate: Predicate | None = None,
    values: tuple[Property, ...] = (),
    named: tuple[Property, ...] = (AMOUNT, KIND),
    **options: Any,
) -> ScanOp:
    return ScanOp(StreamRef(STREAM), label, WINDOW, SLIDE, predicate, values, named, **options)


@st.composite
def scan_lists(draw: st.DrawFn) -> list[ScanOp]:
    table = draw(st.booleans())
    scans = []
    for _ in range(draw(st.integers(1, 3))):
        predicate, values = draw(st.sampled_from(PREDICATES)), draw(st.sampled_from(VALUES))
        read = {value.name for value in values} | {
            ref.name for ref in ([] if predicate is None else refs(predicate))
        }
        named = (AMOUNT, KIND) if read & {"amount", "kind"} or draw(st.booleans()) else ()
        label, vertex = draw(st.sampled_from(["a", "b", None])), draw(st.booleans())
        scans.append(scan_of(label, predicate, values, named, vertex=vertex, table=table))
    return list(dict.fromkeys(scans))


row_lists = st.lists(
    st.builds(
        Row,
        src=st.sampled_from("uv"),
        label=st.sampled_from("aab"),
        trg=st.sampled_from(["u", "v", None]),
        ts=st.integers(0, 12),
        op=st.sampled_from([1, 1, 1, -1]),
        amount=st.sampled_from([None, 0, 1, 2, 2]),
        kind=st.sampled_from([None, "x", "x", "a longer kind"]),
    ),
    max_size=24,
).map(lambda rows: sorted(rows, key=lambda row: row.ts))


@settings(max_examples=150, deadline=None)
@given(
    scan_lists(),
    row_lists,
    st.lists(st.integers(1, 23), max_size=8),
    st.sampled_from(["intervals", "changes"]),
    st.booleans(),
    st.booleans(),
)
def test_scans_have_the_tuples_of_their_valid_arrivals(
    scans: list[ScanOp], rows: list[Row], cuts: list[int], mode: str, restart: bool, tiny: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if tiny:
            patch.setenv("MEANDER_FIRST_CAPACITY", "2")
            patch.setattr(VertexReclaimer, "slack", 0)
        records = run(scans, rows, cuts, mode=mode, restart=restart)
    for number, scan in enumerate(scans):
        of_result = records[f"R{number}"]
        for time in range(END):
            assert holding_at(of_result, time) == tuples_at(scan, rows, time), (number, time)


def test_a_deletion_matches_the_properties_that_it_has() -> None:
    rows = [
        Row("u", "a", "v", 0, 1, 5, "x"),
        Row("u", "a", "v", 1, 1, 7, "x"),
        Row("u", "a", "v", 2, -1, 7),
        Row("u", "a", "v", 3, -1),
    ]
    scans = [scan_of(), scan_of(values=(AMOUNT,))]
    records = run(scans, rows, [], mode="intervals", restart=False)
    # The edge of time 0 ends at 6 as the other does, so the pair holds until the second deletion.
    assert [record for record in records["R0"] if record.op < 0] == [Record(("u", "v"), 3, INFINITY, -1)]
    removed = [(record.key, record.ts) for record in records["R1"] if record.op < 0]
    assert removed == [(("u", "v", 7), 2), (("u", "v", 5), 3)]


def test_a_tuple_that_loses_its_longest_arrival_holds_until_the_next() -> None:
    rows = [Row("u", "a", "v", 0, 1, 5), Row("u", "a", "v", 4, 1, 7), Row("u", "a", "v", 5, -1, 7)]
    (records,) = run([scan_of()], rows, [], mode="intervals", restart=False).values()
    assert records[-2:] == [Record(("u", "v"), 5, INFINITY, -1), Record(("u", "v"), 5, 6, 1)]


@pytest.mark.parametrize("mode", ["intervals", "changes"])
def test_the_rows_of_a_table_hold_for_ever(mode: str) -> None:
    rows = [Row("u", "a", "v", 0, 1, 5), Row("u", "a", "v", 9, 1, 7), Row("v", "a", "v", 9, 1, 0)]
    above = Comparison(">", Ref("amount", INT), Const(1, INT))
    scan = scan_of(predicate=above, values=(AMOUNT,), table=True)
    (records,) = run([scan], rows, [], mode=mode, restart=False).values()
    ended = [record for record in records if record.op < 0]
    assert ended == [Record(("u", "v", 5), 9, INFINITY, -1)]
    assert records[-1] == Record(("u", "v", 7), 9, INFINITY, 1) or mode == "changes"
    assert holding_at(records, INFINITY - 1) == {("u", "v", 7)}


def test_a_label_of_any_name_is_deleted_by_name() -> None:
    rows = [Row("u", "a", "v", 0, 1), Row("u", "b", "v", 1, 1), Row("u", "b", "v", 2, -1)]
    (records,) = run([scan_of(None, named=())], rows, [], mode="intervals", restart=False).values()
    assert holding_at(records, 3) == {("u", "v")}


def test_memory_follows_the_window() -> None:
    dataflow = Dataflow(plan_of([scan_of(values=(AMOUNT, KIND))]))
    sizes, rows_held = [], []
    for number in range(60):
        rows = [
            Row(f"u{number}", "a", f"v{i}", number * 3, 1, 1000 * number + i, f"k{number}")
            for i in range(400)
        ]
        if number % 7 == 6:
            rows.append(Row(f"u{number}", "a", "v3", number * 3, -1))
        list(dataflow.process({STREAM: edges_of(rows)}, number * 3))
        sizes.append(dataflow.state_bytes)
        rows_held.append(dataflow.figures()[0].state_rows)
    assert max(sizes[30:]) <= max(sizes[:30])
    assert max(rows_held) < 400 * 8


def test_memory_is_given_back_after_a_burst() -> None:
    dataflow = Dataflow(plan_of([scan_of(values=(AMOUNT,))]))
    burst = [Row("u", "a", "v", 0, 1, i) for i in range(50_000)]
    list(dataflow.process({STREAM: edges_of(burst)}, 0))
    high = dataflow.figures()[0].state_bytes
    for time in range(10, 40):
        list(dataflow.process({STREAM: edges_of([Row("u", "a", "v", time, 1, 1)] * 20)}, time))
    assert dataflow.figures()[0].state_bytes < high / 20


def test_inserting_and_deleting_one_edge_over_and_over_is_linear() -> None:
    rows = [Row("u", "a", "v", number // 4096, 1 if number % 2 == 0 else -1, 1) for number in range(60_000)]
    dataflow = Dataflow(plan_of([scan_of(values=(AMOUNT,))]))
    list(dataflow.process({STREAM: edges_of(rows)}, rows[-1].ts))
    # Each deletion walks the chain of the pair: 30,000 rows long, it would be walked 450 million times.
    assert dataflow.figures()[0].state_rows < 60_000


def test_edges_that_no_scan_wants_are_not_interned() -> None:
    rows = [Row(f"u{number}", "a", f"v{number}", 0, 1, number % 100) for number in range(1000)]
    few = Comparison(">", Ref("amount", INT), Const(98, INT))
    dataflow = Dataflow(plan_of([scan_of(predicate=few)]))
    list(dataflow.process({STREAM: edges_of(rows)}, 0))
    assert dataflow.vertices.count == 20


def test_derived_tuples_keep_their_values_between_stages() -> None:
    """The raw result of one stage, as edges with properties, is what the next one receives."""
    rows = [
        Row("u", "a", "v", 0, 1, 5, "x"),
        Row("u", "a", "v", 1, 1, 6, "x"),
        Row("u", "a", "v", 2, -1, 5),
    ]
    values = (AMOUNT, KIND, TS)
    (scan,) = plan_of([scan_of(values=values)]).operators
    raw = Result("", "D", "D", 0, 2, raw=True, values=values)
    first = Dataflow(PhysicalPlan((scan,), ("scan",), (raw,), {}))
    receive = ReceiveOp(StreamRef("d", derived=True), values)
    result = Result("", "Answer", "Answer", 0, 2, values=values)
    second = Dataflow(PhysicalPlan((receive,), ("receive",), (result,), {}))
    records: list[Record] = []
    for _, tuples in first.process({STREAM: edges_of(rows)}, 2):
        derived = Edges(
            src=tuples.vertices[0],
            label=as_text([""] * tuples.rows),
            trg=tuples.vertices[1],
            ts=tuples.ts,
            op=tuples.op,
            exp=tuples.exp,
            properties={column.name: value_array(column) for column in tuples.properties},
        )
        assert (
            concat_edges([derived, derived]).take(slice(tuples.rows, None)).properties == derived.properties
        )
        for _, answers in second.process({"d": derived}, 2):
            records += records_of(answers)
    for time in range(3):
        assert holding_at(records, time) == tuples_at(cast(ScanOp, scan), rows, time)
