"""Input that never expires is compacted to what still counts: the rows of tables, and what is derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cells_in_process import Cells
from hypothesis import given, settings
from hypothesis import strategies as st
from incidents import held_with_values, replaced_rows

import meander
from meander.dataflow.edges import INFINITY, Edges, as_text, concat_edges, nameless
from meander.dataflow.layout import StreamLayout
from meander.dataflow.records import expiries as record_ends
from meander.dataflow.sources.objects import source_of
from meander.dataflow.sources.source import ReadOptions
from meander.engine import compile_query
from meander.physical.streams import StreamSchema
from meander.spark.cell.compaction import drop_ended, drop_replaced, sum_up, value_codes
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import closed
from meander.syntax.values import Property, ValueType

SCHEMA = StreamSchema(
    (Property("w", ValueType.FLOAT), Property("z", ValueType.STRING)), vertices=True, table=True
)
LAYOUT = StreamLayout("s", schema=SCHEMA)
NAMED = ((), ("w",), ("z",), ("w", "z"))
Row = dict[str, Any]
Key = tuple[Any, ...]

table_rows = st.lists(
    st.fixed_dictionaries(
        {
            "src": st.sampled_from(("u", 1)),
            "label": st.sampled_from("ab"),
            "trg": st.sampled_from(("u", 1, None)),
            "ts": st.integers(0, 1),
            "op": st.sampled_from("++-"),
            "w": st.sampled_from((0.0, -0.0, 1.5, None)),
            "z": st.sampled_from(("", "é", None)),
        }
    ),
    max_size=24,
)


def edges_of_rows(rows: Sequence[Row]) -> Edges:
    parts = [edges for edges, _ in source_of(list(rows), "s").chunks(ReadOptions(LAYOUT))]
    return concat_edges(parts)


def in_order(rows: list[Row]) -> list[Row]:
    """The rows with their times as gaps turned to times."""
    time, ordered = 0, []
    for row in rows:
        time += row["ts"]
        ordered.append(row | {"ts": time})
    return ordered


def rows_of(edges: Edges) -> list[Row]:
    columns = {
        "src": edges.src.values(),
        "label": edges.label.values(),
        "trg": edges.trg.values(),
        "vertex": [False] * edges.rows if edges.vertex is None else edges.vertex.tolist(),
        "ts": edges.ts.tolist(),
        "op": edges.op.tolist(),
    }
    columns |= {name: column.to_pylist() for name, column in (edges.properties or {}).items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def held(rows: Sequence[Row], named: Sequence[str]) -> dict[Key, Row]:
    """What a table holds after some rows, for a query that names some properties: the definition."""
    table: dict[Key, Row] = {}
    for row in rows:
        key = (row["src"], row["label"], row["trg"], row["vertex"])
        before = table.get(key)
        if row["op"] > 0:
            table[key] = {name: row[name] for name in ("w", "z")}
        elif before is not None and all(row[name] in (None, before[name]) for name in named):
            del table[key]
    return table


@given(earlier=table_rows, rows=table_rows, reached=st.integers(0, 16))
@settings(deadline=None)
def test_a_table_holds_what_it_held_for_every_query(
    earlier: list[Row], rows: list[Row], reached: int
) -> None:
    everything = edges_of_rows(in_order([*earlier, *rows]))
    before, edges = everything.take(slice(len(earlier))), everything.take(slice(len(earlier), None))
    settled = int((edges.ts < reached).sum())
    for first in (everything.take(slice(0)), before):
        compacted = drop_replaced(edges, settled, from_start=not first.rows)
        assert (compacted.ts[1:] >= compacted.ts[:-1]).all()
        later = edges.rows - settled
        assert rows_of(compacted)[compacted.rows - later :] == rows_of(edges)[settled:]
        for rest in range(later + 1):
            whole = rows_of(concat_edges([first, edges.take(slice(settled + rest))]))
            left = rows_of(concat_edges([first, compacted.take(slice(compacted.rows - later + rest))]))
            for named in NAMED:
                assert held(left, named) == held(whole, named)


@given(rows=table_rows)
@settings(deadline=None)
def test_of_a_table_no_more_rows_stay_than_queries_can_tell_apart(rows: list[Row]) -> None:
    edges = edges_of_rows(in_order(rows))
    compacted = rows_of(drop_replaced(edges, edges.rows, from_start=True))
    keys = {tuple(row[name] for name in ("src", "label", "trg", "vertex")) for row in compacted}
    assert keys == set(held(rows_of(edges), ("w", "z")))
    assert len(compacted) <= len(keys) * len(NAMED)
    again = [
        row | {"op": "+-"[row["op"] < 0], "trg": None if row["vertex"] else row["trg"]} for row in compacted
    ]
    compacted_again = drop_replaced(edges_of_rows(again), len(again), from_start=True)
    assert rows_of(compacted_again) == compacted


def derived(changes: Sequence[tuple[str, int, int, int, int]]) -> Edges:
    names = as_text([name for name, *_ in changes])
    ts, exp, op, value = (np.array([row[at] for row in changes], np.int64) for at in (1, 2, 3, 4))
    properties = {"v": pa.array([None if one < 0 else one for one in value.tolist()], pa.int64())}
    return Edges(names, nameless(len(changes)), names, ts, op.astype(np.int8), exp=exp, properties=properties)


def expiries(edges: Edges, time: int) -> dict[Key, int]:
    """When each tuple expires that is valid after the instant `time`, by its changes until then."""
    assert edges.exp is not None
    assert edges.properties is not None
    found: dict[Key, int] = {}
    values = edges.properties["v"].to_pylist()
    rows = zip(
        edges.src.values(), values, edges.ts.tolist(), edges.exp.tolist(), edges.op.tolist(), strict=True
    )
    for name, value, ts, exp, op in rows:
        if ts > time:
            break
        before = found.get((name, value), 0)
        found[name, value] = max(before, exp) if op > 0 else min(before, max(ts, exp))
    return {key: exp for key, exp in found.items() if exp > time}


changes = st.lists(
    st.tuples(
        st.sampled_from("uv"),
        st.integers(0, 1),
        st.sampled_from((1, 3, 9, INFINITY)),
        st.sampled_from((1, 1, -1)),
        st.sampled_from((7, -1)),
    ),
    max_size=20,
)


@given(earlier=changes, later=changes, reached=st.integers(0, 12))
@settings(deadline=None)
def test_derived_tuples_hold_as_long_as_they_did(
    earlier: list[tuple[str, int, int, int, int]],
    later: list[tuple[str, int, int, int, int]],
    reached: int,
) -> None:
    time, rows = 0, []
    for name, gap, length, op, value in [*earlier, *later]:
        time += gap
        rows.append((name, time, min(INFINITY, time + length - (op < 0)), op, value))
    everything = derived(rows)
    before, edges = everything.take(slice(len(earlier))), everything.take(slice(len(earlier), None))
    settled = int((edges.ts < reached).sum())
    for first in (everything.take(slice(0)), before):
        compacted = sum_up(edges, settled, reached, from_start=not first.rows)
        assert (compacted.ts[1:] >= compacted.ts[:-1]).all()
        most = 1 if not first.rows else 2
        assert compacted.rows - (edges.rows - settled) <= 4 * most
        for instant in range(max(0, reached - 1), time + 4):
            whole = expiries(concat_edges([first, edges]), instant)
            assert expiries(concat_edges([first, compacted]), instant) == whole


TUPLES = StreamLayout(
    "s",
    schema=StreamSchema(
        (Property("w", ValueType.FLOAT), Property("z", ValueType.STRING)), vertices=True, tuples=True
    ),
)

tuple_rows = st.lists(
    st.fixed_dictionaries(
        {
            "src": st.sampled_from(("u", 1)),
            "label": st.just("a"),
            "trg": st.sampled_from(("u", None)),
            "ts": st.integers(0, 1),
            "op": st.sampled_from("++-"),
            "w": st.sampled_from((0.0, -0.0, 1.5, None)),
            "z": st.sampled_from(("", "é", None)),
            "exp": st.sampled_from((1, 3, 9, 16, None)),
        }
    ),
    max_size=24,
)


def edges_of_tuples(rows: Sequence[Row]) -> Edges:
    """The records in order of time; `exp` is a length that is not null, and then a time."""
    records = [
        row | {"exp": None if row["exp"] is None else row["ts"] + row["exp"]} for row in in_order(list(rows))
    ]
    return concat_edges([edges for edges, _ in source_of(records, "s").chunks(ReadOptions(TUPLES))])


def tuples_held(edges: Edges, named: Sequence[str], reached: int) -> dict[Key, float]:
    """When each tuple of a query that names some properties ends, of those that hold at the time reached or later:
    the definition."""
    rows: list[tuple[Key, Row, float]] = []
    for row in rows_of(edges):
        key = (row["src"], row["label"], row["trg"], row["vertex"])
        if row["op"] > 0:
            rows.append((key, row, INFINITY if row["exp"] is None else row["exp"]))
        else:
            said = [name for name in named if row[name] is not None]
            rows = [
                (of, before, min(end, row["ts"]))
                if of == key and all(before[name] == row[name] for name in said)
                else (of, before, end)
                for of, before, end in rows
            ]
    ends: dict[Key, float] = {}
    for key, row, end in rows:
        if end >= reached:
            of = (*key, *(row[name] for name in named))
            ends[of] = max(end, ends.get(of, 0))
    return {key: end for key, end in ends.items() if end > reached}


@given(earlier=tuple_rows, rows=tuple_rows, reached=st.integers(0, 16))
@settings(deadline=None)
def test_records_of_answers_hold_as_long_as_they_did_for_every_query(
    earlier: list[Row], rows: list[Row], reached: int
) -> None:
    everything = edges_of_tuples([*earlier, *rows])
    before, edges = everything.take(slice(len(earlier))), everything.take(slice(len(earlier), None))
    settled = int((edges.ts < reached).sum())
    for first in (everything.take(slice(0)), before):
        compacted = drop_ended(edges, record_ends(edges), settled, reached, from_start=not first.rows)
        later = edges.rows - settled
        assert rows_of(compacted)[compacted.rows - later :] == rows_of(edges)[settled:]
        for rest in range(later + 1):
            whole = concat_edges([first, edges.take(slice(settled + rest))])
            left = concat_edges([first, compacted.take(slice(compacted.rows - later + rest))])
            for named in NAMED:
                assert tuples_held(left, named, reached) == tuples_held(whole, named, reached)


@given(rows=tuple_rows)
@settings(deadline=None)
def test_of_records_that_their_own_retractions_end_nothing_stays(rows: list[Row]) -> None:
    starts = [row | {"op": "+"} for row in rows]
    edges = edges_of_tuples([*starts, *(row | {"op": "-", "exp": None} for row in starts)])
    assert not drop_ended(edges, record_ends(edges), edges.rows, 100, from_start=True).rows


def test_the_values_of_a_column_are_numbered_whatever_its_type() -> None:
    for column in (
        pa.array(["x", None, "y", "x"], pa.large_string()),
        pa.array(["x", None, "y", "x"], pa.large_string()).dictionary_encode(),
        pa.array([0.0, None, 1.0, -0.0]),
        pa.array([True, None, False, True]),
        pa.array([5, None, 6, 5], pa.int64()),
    ):
        assert value_codes(column).tolist() == [0, -1, 1, 0]


QUERIES = {
    "table": "TABLE s (w INT)\nAnswer(x, y, v: v) <- s.a(x, y, w: v), v > 3.",
    "derived": (
        "TABLE s (w INT)\nSTREAM t WINDOW 5\n"
        "D(x, z) <- s.a[w > 4](x, y), s.a(y, z).\nAnswer(x, y) <- (D/t.b?)+(x, y) as P."
    ),
}


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_a_table_that_is_replaced_often_is_stored_in_few_rows(name: str, cells: int, tmp_path: Any) -> None:
    rows = replaced_rows(1000)
    query = QUERIES[name]
    layout = StreamLayout("s", schema=StreamSchema((Property("w", ValueType.INT),), table=True))
    ((edges, _),) = source_of(rows, "s").chunks(ReadOptions(layout))
    run = Cells([compile_query(query, name="q")], cells, snapshots=tmp_path, snapshot_rows=500)
    most, size = 0, 50
    for number, start in enumerate(range(0, edges.rows, size)):
        if number % 40 == 20:
            run.cache.forget()
        streams = run.staged.streams
        end = [closed("t")] if number == 0 and "t" in streams else []
        run.step([edges_chunk("s", edges.take(slice(start, start + size))), *end])
        most = max(
            most, *(figures["window_rows"] for figures in run.figures[-run.jobs[-1].cells_of_all_stages :])
        )
    run.step([closed("s")])
    assert most < 2000
    streams = {"s": rows} | ({"t": []} if "t" in run.staged.streams else {})
    assert held_with_values(run.records) == held_with_values(list(meander.run(query, streams)))
    assert run.records
