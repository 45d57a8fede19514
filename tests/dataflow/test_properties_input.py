"""The same rows give the same edges with properties from every input, and a bad value rejects its row alone."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meander
from meander.dataflow.edges import Edges, Reject, by_time, concat_edges
from meander.dataflow.ingest import Ingest
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.columns import extra_columns, property_types, url_types
from meander.dataflow.sources.objects import source_of
from meander.dataflow.sources.reader import open_source
from meander.dataflow.sources.source import ReadOptions
from meander.dataflow.tabular import Chunk, row_text
from meander.dataflow.tally import Tally
from meander.engine import compile_query, physical_plan
from meander.errors import InputError, MeanderError
from meander.physical.streams import StreamSchema
from meander.syntax.values import Property, ValueType

Row = dict[str, Any]

NAMES = {
    "amount": ValueType.FLOAT,
    "count": ValueType.INT,
    "currency": ValueType.STRING,
    "urgent": ValueType.BOOL,
    "due": ValueType.TIME,
}
SCHEMA = StreamSchema(tuple(Property(name, kind) for name, kind in sorted(NAMES.items())), vertices=True)
LAYOUT = StreamLayout("bank", schema=SCHEMA)
ARROW = {
    "src": pa.string(),
    "label": pa.string(),
    "trg": pa.string(),
    "ts": pa.int64(),
    "op": pa.string(),
    "amount": pa.float64(),
    "count": pa.int64(),
    "currency": pa.string(),
    "urgent": pa.bool_(),
    "due": pa.int64(),
    "ignored": pa.string(),
}


def layout(*properties: Property, **options: Any) -> StreamLayout:
    return StreamLayout("bank", schema=StreamSchema(properties, **options))


def records(chunks: Iterator[Chunk]) -> tuple[list[Row], list[Reject]]:
    """Each edge as a dict, a vertex without target; and the rejects."""
    rows, rejects = [], []
    for edges, bad in chunks:
        rows += rows_of(edges)
        rejects += bad
    return rows, rejects


def rows_of(edges: Edges) -> list[Row]:
    columns: dict[str, list[Any]] = {
        "src": edges.src.values(),
        "label": edges.label.values(),
        "trg": edges.trg.values(),
        "ts": edges.ts.tolist(),
        "op": ["-" if op < 0 else "+" for op in edges.op.tolist()],
        **{name: column.to_pylist() for name, column in (edges.properties or {}).items()},
    }
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for row, is_vertex in zip(
        rows, [False] * edges.rows if edges.vertex is None else edges.vertex, strict=True
    ):
        if is_vertex:
            assert row["trg"] == row["src"]
            row["trg"] = None
    return rows


def read(path: Path, of: StreamLayout = LAYOUT, **options: Any) -> tuple[list[Row], list[Reject]]:
    return records(open_source(str(path), layout=of, **options))


def read_text(
    folder: Path, name: str, text: str, of: StreamLayout = LAYOUT
) -> tuple[list[Row], list[Reject]]:
    (folder / name).write_text(text)
    return read(folder / name, of)


def read_object(edges: Any, of: StreamLayout = LAYOUT, batch_rows: int = 3) -> tuple[list[Row], list[Reject]]:
    source = source_of(edges, "bank")
    source.check(of)
    return records(source.chunks(ReadOptions(of, batch_rows)))


def field(value: Any) -> str:
    return "" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


def as_csv(rows: list[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = list(reversed(ARROW))
    writer.writerow(columns)
    writer.writerows([field(row[name]) for name in columns] for row in rows)
    return out.getvalue()


def as_tsv(rows: list[Row]) -> str:
    columns = list(reversed(ARROW))
    return "".join(
        "\t".join(line) + "\n" for line in [columns, *([field(row[c]) for c in columns] for row in rows)]
    )


def as_jsonl(rows: list[Row], *, ascii_only: bool, sparse: bool) -> str:
    return "".join(
        json.dumps(
            {name: value for name, value in row.items() if value is not None or not sparse},
            ensure_ascii=ascii_only,
        )
        + "\n"
        for row in rows
    )


word = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"),
    min_size=1,
    max_size=5,
)
integer = st.integers(-(2**63), 2**63 - 1)
row = st.fixed_dictionaries(
    {
        "src": word,
        "label": word,
        "trg": st.one_of(st.none(), word),
        "ts": st.integers(0, 2**61 - 1),
        "op": st.sampled_from("+-"),
        "amount": st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-(2**53), 2**53).map(float)),
        "count": st.one_of(st.none(), integer),
        "currency": st.one_of(st.none(), word),
        "urgent": st.one_of(st.none(), st.booleans()),
        "due": st.one_of(st.none(), integer),
        "ignored": st.one_of(st.none(), word),
    }
)
within = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@within
@given(st.lists(row, max_size=6), st.booleans(), st.booleans(), st.sampled_from([1, 2, 65536]))
def test_every_input_gives_the_same_edges(
    tmp_path: Path, rows: list[Row], ascii_only: bool, sparse: bool, batch: int
) -> None:
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in ARROW.items()})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text(as_csv(rows), newline="")
    (tmp_path / "a.tsv").write_text(as_tsv(rows), newline="")
    (tmp_path / "a.jsonl").write_text(as_jsonl(rows, ascii_only=ascii_only, sparse=sparse))
    wanted = [{name: value for name, value in row.items() if name != "ignored"} for row in rows]
    key = repr  # tells -0.0 from 0.0, and 1 from 1.0 and True
    for name in ("a.parquet", "a.csv", "a.tsv", "a.jsonl"):
        found, rejects = read(tmp_path / name, batch_rows=batch)
        assert ([sorted(map(key, one.items())) for one in found], rejects) == (
            [sorted(map(key, one.items())) for one in wanted],
            [],
        ), name
    for edges in (table, table.to_reader(), rows, pl.from_arrow(table), *table.to_batches()[:1]):
        found, rejects = read_object(edges, batch_rows=batch)
        assert [sorted(map(key, one.items())) for one in found] == [
            sorted(map(key, one.items())) for one in wanted
        ]
        assert rejects == []


BAD = {
    "amount": ["x", "1,5", "1e", "--1"],
    "count": ["5.0", "x", "9223372036854775808", "1e3"],
    "urgent": ["yes", "2"],
    "due": ["2026-02-30", "12:30", "1.5"],
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_value_rejects_its_row_and_no_other(tmp_path: Path, name: str) -> None:
    of = layout(Property(name, NAMES[name]))
    good = {"urgent": "true"}.get(name, "7")
    lines = [line for text in BAD[name] for line in (f'a,l,b,1,"{text}"', f"a,l,b,1,{good}", "a,l,b,1,")]
    found, rejects = read_text(tmp_path, "a.csv", f"src,label,trg,ts,{name}\n" + "\n".join(lines), of)
    assert [one[name] for one in found] == [json.loads(good), None] * len(BAD[name])
    assert [(one.reason, one.text) for one in rejects] == [
        (f"bad value of {name}", text) for text in lines[::3]
    ]


def test_bad_values_of_json_are_those_of_another_type(tmp_path: Path) -> None:
    values = {
        "amount": ['"1.5"', "true", "[1]", '{"x": 1}'],
        "count": ["5.0", "5.5", '"5"', "1e3", "9223372036854775808", "false"],
        "currency": ["5", "1.5", "true", '["EUR"]'],
        "urgent": ["1", '"true"', "0.0"],
        "due": ['"5"', "1.5", '"2026-02-30"', "true"],
    }
    lines, reasons = [], []
    for name, texts in values.items():
        for text in texts:
            lines.append(f'{{"src": "a", "label": "l", "trg": "b", "ts": 1, "{name}": {text}}}')
            reasons.append((f"bad value of {name}", lines[-1]))
    found, rejects = read_text(tmp_path, "a.jsonl", "\n".join(lines))
    assert (found, [(one.reason, one.text) for one in rejects]) == ([], reasons)
    objects = [json.loads(line) for line in lines]
    found, rejects = read_object(objects, batch_rows=100)
    assert (found, [one.reason for one in rejects]) == ([], [reason for reason, _ in reasons])
    assert [one.line for one in rejects] == list(range(1, len(lines) + 1))


USES = "STREAM bank (due TIME) WINDOW 1h\nAnswer(x, y) <- a[due > 5](x, z), b(z, y), n(x, due: d), m(x)."
STRANGE: list[tuple[str, str | None, str]] = [
    (label, trg, op) for op in "+-" for label in ("a", "b", "z", "n", "m") for trg in ("v", None)
]
"""Rows with a value that is not of its type: label, target and operation."""


def schema_of(text: str) -> StreamSchema:
    return physical_plan([compile_query(text)]).schemas["bank"]


def is_rejected(label: str, trg: str | None, op: str) -> bool:
    """By `USES`: insertions of which the property is read, and deletions that the query mentions."""
    mentioned = [("a", True), ("b", True), ("n", False), ("m", False)]
    read = [("a", True), ("n", False)]
    return (label, trg is not None) in (mentioned if op == "-" else read)


def test_a_bad_value_rejects_a_row_only_where_a_query_reads_it(tmp_path: Path) -> None:
    of = StreamLayout("bank", schema=schema_of(USES))
    rows = [
        {"src": "u", "label": label, "trg": trg, "ts": 1, "op": op, "due": due}
        for label, trg, op in STRANGE
        for due in ("soon", "1970-01-01T00:00:07Z", None)
    ]
    wanted, refused = [], []
    for row in rows:
        if row["due"] == "soon" and is_rejected(row["label"], row["trg"], row["op"]):
            refused.append(row)
        else:
            wanted.append(row | {"due": 7 if row["due"] and row["due"] != "soon" else None})
    lines = [",".join(row)] + [",".join(field(value) for value in row.values()) for row in rows]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet")
    json_text = "\n".join(map(json.dumps, rows))
    inputs = {
        "csv": read_text(tmp_path, "a.csv", "\n".join(lines), of),
        "tsv": read_text(tmp_path, "a.tsv", "\n".join(lines).replace(",", "\t"), of),
        "jsonl": read_text(tmp_path, "a.jsonl", json_text, of),
        "jsonl with escapes": read_text(tmp_path, "b.jsonl", json_text.replace("label", "\\u006cabel"), of),
        "parquet": read(tmp_path / "a.parquet", of),
        "mappings": read_object(rows, of),
        "table": read_object(table, of),
        "pandas": read_object(pd.DataFrame(rows), of),
        "polars": read_object(pl.DataFrame(rows), of),
    }
    for name, (found, rejects) in inputs.items():
        assert found == wanted, name
        assert [reject.reason for reject in rejects] == ["bad value of due"] * len(refused), name
    assert [json.loads(reject.text) for reject in inputs["jsonl"][1]] == refused


def test_a_property_of_edges_of_any_label_is_read_of_all_edges(tmp_path: Path) -> None:
    text = "CONSTRUCT (x)-[:r]->(y) MATCH (x)-[e]->(y), (x)-[f:a]->(y), (x:n) ON bank WINDOW (1h) WHERE "
    of = StreamLayout("bank", schema=schema_of(text + "e.count > 1"))
    only_a = StreamLayout("bank", schema=schema_of(text + "f.count > 1"))
    rows = [{"src": "u", "label": one, "trg": "v", "ts": 1, "count": "many"} for one in ("a", "z")]
    rows.append({"src": "u", "label": "z", "ts": 1, "count": "many"})
    assert [len(found) for found in read_object(rows, of)] == [1, 2]
    assert [len(found) for found in read_object(rows, only_a)] == [2, 1]
    deletions = [row | {"op": "-"} for row in rows]
    assert [len(found) for found in read_object(deletions, only_a)] == [1, 2]


def test_two_queries_read_a_property_of_the_labels_of_each() -> None:
    texts = [
        "STREAM bank WINDOW 1h\nAnswer(x, y) <- a[count > 1](x, y).",
        "STREAM bank WINDOW 2h\nAnswer(x, y) <- b[count > 1]/c(x, y).",
        "STREAM bank WINDOW 2h\nAnswer(x, y) <- d(x, y).",
    ]
    queries = [compile_query(text, name=f"q{number}") for number, text in enumerate(texts)]
    of = StreamLayout("bank", schema=physical_plan(queries).schemas["bank"])
    rows = [
        {"src": "u", "label": one, "trg": "v", "ts": 1, "op": op, "count": "many"}
        for op in "+-"
        for one in "abcdz"
    ]
    found, rejects = read_object(rows, of, batch_rows=100)
    assert [row["label"] + row["op"] for row in found] == ["c+", "d+", "z+", "d-", "z-"]
    assert {reject.reason for reject in rejects} == {"bad value of count"}


def test_half_a_surrogate_pair_is_a_bad_value_of_the_property_alone(tmp_path: Path) -> None:
    of = StreamLayout("bank", schema=schema_of('STREAM bank WINDOW 1h\nA(x, y) <- a[note = "x"](x, y).'))
    lines = [
        json.dumps({"src": "u", "label": one, "trg": "v", "ts": 1, "note": "\ud800"}) for one in ("a", "z")
    ]
    found, rejects = read_text(tmp_path, "a.jsonl", "\n".join(lines), of)
    assert [row["label"] for row in found] == ["z"]
    assert [reject.reason for reject in rejects] == ["bad value of note"]


@pytest.mark.filterwarnings("ignore:no edge of the stream")
def test_a_late_row_is_rejected_with_all_that_it_has() -> None:
    text = "STREAM bank WINDOW 1h\nAnswer(x, y) <- a[count > 1](x, y)."
    late = {"src": "u", "label": "a", "trg": "w", "ts": 3, "count": 2, "note": "é"}
    rows = [late | {"trg": "v", "ts": 9}, late, late | {"ts": -1}, late | {"ts": 10}]
    tuples = [("u", "a", "v", 9), ("u", "a", "w", 3), ("u", "a", "w", -1)]
    for edges in (rows, tuples, pa.Table.from_pylist(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
        rejects: list[dict[str, str]] = []
        list(meander.run(text, edges, rejects=rejects, batch_rows=2))
        given = tuples if edges is tuples else rows
        texts = {reject["reason"]: reject["text"] for reject in rejects}
        assert len(texts) == len(rejects)
        if isinstance(edges, list):
            assert texts == {"too late": repr(given[1]), "negative time": repr(given[2])}
        else:
            found = {reason: json.loads(text) for reason, text in texts.items()}
            assert found == {"too late": given[1], "negative time": given[2]}


def test_a_late_edge_of_which_only_the_columns_are_known_is_rejected_with_its_properties() -> None:
    of = layout(Property("count", ValueType.INT), Property("note", ValueType.STRING), vertices=True)
    rows = [
        {"src": "u", "label": "a", "trg": "v", "ts": 9},
        {"src": "u", "label": "a", "trg": 7, "ts": 3, "op": "-", "count": 2, "note": None},
        {"src": "u", "label": "n", "trg": None, "ts": 3, "count": None, "note": "é"},
    ]
    ((edges, _),) = source_of(rows, "bank").chunks(ReadOptions(of))
    rejects = Ingest(["bank"]).push("bank", edges.without_origin())
    assert [json.loads(reject.text) for reject in rejects] == rows[1:]


def test_a_row_is_shown_whatever_its_columns_are() -> None:
    batch = pa.record_batch(
        {
            "bytes": pa.array([b"\xff"]),
            "text": pa.array([b"a\xff"]).view(pa.string()),
            "far": pa.array([2**60], pa.timestamp("s")),
            "list": pa.array([[1, None]]),
            "day": pa.array([datetime.date(2026, 1, 1)]),
            "code": pa.array(["x"]).dictionary_encode(),
        }
    )
    assert json.loads(row_text(batch, 0)) == {
        "bytes": "b'\\xff'",
        "text": "a\\xff",
        "far": 2**60,
        "list": [1, None],
        "day": "2026-01-01",
        "code": "x",
    }


def test_rejects_are_those_of_rows_that_the_query_reads(tmp_path: Path) -> None:
    text = "STREAM s WINDOW 1h\nAnswer(x, y) <- a[port > 5](x, z), b(z, y)."
    (tmp_path / "s.csv").write_text(
        "src,label,trg,ts,port\na,a,b,1,7\nb,b,c,2,ssh\nb,z,c,2,ssh\na,a,c,2,ssh\n"
    )
    for plan in range(len(meander.plans(text))):
        rejects: list[dict[str, str]] = []
        answers = list(meander.run(text, {"s": str(tmp_path / "s.csv")}, rejects=rejects, plan=plan))
        assert [(one["src"], one["trg"]) for one in answers] == [("a", "c")]
        assert rejects == [{"stream": "s", "reason": "bad value of port", "text": "a,a,c,2,ssh"}]


def test_nan_is_null_and_an_infinity_is_a_value(tmp_path: Path) -> None:
    of = layout(Property("amount", ValueType.FLOAT))
    wanted = [None, math.inf, None]
    edge = '{"src": "a", "label": "l", "trg": "b", "ts": 1, "amount": %s}\n'
    found, _ = read_text(
        tmp_path, "a.jsonl", "".join(edge % text for text in ("NaN", "Infinity", "null")), of
    )
    assert [one["amount"] for one in found] == wanted
    frame = pd.DataFrame(
        {"src": "a", "label": "l", "trg": "b", "ts": 1, "amount": [math.nan, math.inf, None]}
    )
    for edges in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame), frame.to_dict("records")):
        assert [one["amount"] for one in read_object(edges, of)[0]] == wanted


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1000), ("us", 1_000_000)])
def test_times_are_iso_text_or_timestamps_in_every_input(tmp_path: Path, unit: str, per_second: int) -> None:
    of = StreamLayout("bank", unit, StreamSchema((Property("due", ValueType.TIME),)))
    moment = datetime.datetime(2026, 1, 31, 13, 5, 59, 250_000)
    text = moment.isoformat()
    wanted = 1_769_864_759 * per_second + per_second // 4
    csv_text = f"src,label,trg,ts,due\na,l,b,{text},{text}Z\n"
    json_text = json.dumps({"src": "a", "label": "l", "trg": "b", "ts": text, "due": text + "+00:00"})
    inputs = [
        read_text(tmp_path, "a.csv", csv_text, of),
        read_text(tmp_path, "a.tsv", csv_text.replace(",", "\t"), of),
        read_text(tmp_path, "a.jsonl", json_text, of),
        read_text(tmp_path, "b.jsonl", json_text.replace("src", "\\u0073rc"), of),
    ]
    zoned = moment.replace(tzinfo=datetime.UTC).astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    for time in (moment, zoned, text):
        mapping = {"src": "a", "label": "l", "trg": "b", "ts": time, "due": time}
        inputs += [read_object([mapping], of), read_object(pa.Table.from_pylist([mapping]), of)]
    inputs.append(read_object(pd.DataFrame([mapping | {"ts": moment, "due": zoned}]), of))
    for found, rejects in inputs:
        assert ([(one["ts"], one["due"]) for one in found], rejects) == ([(wanted, wanted)], [])


def test_dates_are_midnight_and_times_before_1970_are_negative(tmp_path: Path) -> None:
    table = pa.table(
        {
            "src": ["a"] * 2,
            "label": ["l"] * 2,
            "trg": ["b"] * 2,
            "ts": [datetime.date(2026, 1, 1), datetime.date(1969, 1, 1)],
        }
    )
    found, (reject,) = read_object(table, StreamLayout("bank"))
    assert (found[0]["ts"], reject.reason) == (1_767_225_600, "negative time")
    text = "src,label,trg,ts\na,l,b,2026-01-01\na,l,b,1969-01-01\na,l,b,01/02/2026\n"
    found, rejects = read_text(tmp_path, "a.csv", text, StreamLayout("bank"))
    assert (found[0]["ts"], [one.reason for one in rejects]) == (1_767_225_600, ["negative time", "bad time"])


def test_columns_of_other_names_and_a_constant_label(tmp_path: Path) -> None:
    schema = StreamSchema((Property("amount", ValueType.FLOAT), Property("when", ValueType.TIME)))
    columns = {"src": "from", "trg": "to", "ts": "when", "amount": "Amount, paid"}
    of = StreamLayout("bank", schema=schema, columns=columns, label="transfer")
    row = {"to": "b", "Amount, paid": 2.5, "from": "a", "when": 7, "label": "other", "src": "x"}
    wanted = {"src": "a", "label": "transfer", "trg": "b", "ts": 7, "op": "+", "amount": 2.5, "when": 7}
    table = pa.Table.from_pylist([row])
    pq.write_table(table, tmp_path / "a.parquet")
    line = ",".join(map(str, row.values()))
    inputs = [
        read(tmp_path / "a.parquet", of),
        read_text(tmp_path, "a.csv", f'to,"Amount, paid",from,when,label,src\n{line}\n', of),
        read_text(tmp_path, "a.tsv", "\t".join(row) + "\n" + line.replace(",", "\t"), of),
        read_text(tmp_path, "a.jsonl", json.dumps(row), of),
        read_text(tmp_path, "b.jsonl", json.dumps(row | {"note": "\n"}), of),
        *(read_object(edges, of) for edges in ([row], table, pd.DataFrame([row]), pl.DataFrame([row]))),
    ]
    for found in inputs:
        assert found == ([wanted], [])
    assert [names for _, names in extra_columns(str(tmp_path / "a.csv"), of)] == [["label", "src"]]


def test_tuples_and_lines_without_header_leave_out_the_label_of_their_stream(tmp_path: Path) -> None:
    of = StreamLayout("bank", label="transfer")
    wanted = [("a", "transfer", "b", 1, "+"), ("a", "transfer", "b", 2, "-")]
    inputs = [
        read_text(tmp_path, "a.tsv", "a\tb\t1\na\tb\t2\t-\n", of),
        read_object([("a", "b", 1), ("a", "b", 2, "-")], of),
    ]
    for found, rejects in inputs:
        assert ([tuple(one.values()) for one in found], rejects) == (wanted, [])
    assert [one.reason for one in read_object([("a", "transfer", "b", 1, "-")], of)[1]] == ["unparsable row"]


def test_vertices_are_rows_without_target_where_the_stream_has_them(tmp_path: Path) -> None:
    wanted = [("a", None), ("a", "b")]
    texts = {
        "a.csv": "src,label,trg,ts\na,l,,1\na,l,b,1\n",
        "b.csv": "src,label,ts\na,l,1\n",
        "a.tsv": "a\tl\t\t1\na\tl\tb\t1\n",
        "a.jsonl": '{"src":"a","label":"l","ts":1}\n{"src":"a","label":"l","trg":"b","ts":1}\n',
        "b.jsonl": '{"src":"a","label":"l","trg":null,"ts":1}\n{"src":"a","label":"l","trg":"b","ts":1}\n',
        "c.jsonl": '{"src":"a","label":"l","trg":"","ts":1}\n',
    }
    for name, text in texts.items():
        found, rejects = read_text(tmp_path, name, text, layout(vertices=True))
        assert ([(one["src"], one["trg"]) for one in found], rejects) == (wanted[: len(found)], []), name
        assert found, name
    table = pa.table({"src": [1, 1], "label": ["l", "l"], "trg": [None, "b"], "ts": [1, 1]})
    for edges in (table, [(1, "l", None, 1), {"src": 1, "label": "l", "trg": "b", "ts": 1}]):
        found, rejects = read_object(edges, layout(vertices=True))
        assert ([(one["src"], one["trg"]) for one in found], rejects) == ([(1, None), (1, "b")], [])
        assert [one.reason for one in read_object(edges, StreamLayout("bank"))[1]] == ["missing field trg"]
    assert (
        "missing field trg" in read_text(tmp_path, "a.tsv", "a\tl\t\t1\n", StreamLayout("bank"))[1][0].reason
    )


def test_rows_of_a_table_need_no_time(tmp_path: Path) -> None:
    of = layout(Property("risk", ValueType.INT), table=True)
    texts = {
        "a.csv": "src,label,trg,risk\na,l,b,3\n",
        "b.csv": "src,label,trg,ts,risk\na,l,b,,3\n",
        "a.tsv": "src\tlabel\ttrg\trisk\na\tl\tb\t3\n",
        "a.jsonl": '{"src":"a","label":"l","trg":"b","risk":3}',
        "b.jsonl": '{"src":"a","label":"l","trg":"b","ts":null,"risk":3}',
    }
    inputs = [read_text(tmp_path, name, text, of) for name, text in texts.items()]
    row = {"src": "a", "label": "l", "trg": "b", "risk": 3}
    inputs += [read_object([row], of), read_object(pd.DataFrame([row]), of)]
    for found in inputs:
        assert found == ([{**row, "ts": 0, "op": "+"}], [])
    assert read_text(tmp_path, "c.tsv", "a\tl\tb\na\tl\tb\t5", layout(table=True))[1] == []


def test_arrow_columns_of_every_type_that_a_property_can_have() -> None:
    types = {
        ValueType.INT: [pa.int8(), pa.uint64(), pa.int64()],
        ValueType.FLOAT: [pa.float32(), pa.float64(), pa.int32(), pa.decimal128(9, 2)],
        ValueType.STRING: [
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int8(), pa.string()),
        ],
        ValueType.BOOL: [pa.bool_()],
        ValueType.TIME: [pa.int64(), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin"), pa.date32()],
    }
    one = {ValueType.STRING: "1", ValueType.BOOL: True, ValueType.TIME: 86_400}
    for kind, arrow_types in types.items():
        for arrow_type in arrow_types:
            value = one.get(kind, 1)
            if pa.types.is_decimal(arrow_type):
                value = Decimal(1)
            elif pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type):
                value = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
            column = pa.array([value, None], type=arrow_type)
            table = pa.table(
                {"src": ["a"] * 2, "label": ["l"] * 2, "trg": ["b"] * 2, "ts": [1, 2], "x": column}
            )
            found, rejects = read_object(table, layout(Property("x", kind)))
            assert ([row["x"] for row in found], rejects) == ([one.get(kind, 1), None], []), arrow_type
            assert property_types(source_of(table, "s").column_types())["x"] in (kind, ValueType.INT)


@pytest.mark.parametrize("kind", [pa.decimal128(18, 2), pa.decimal256(50, 10)])
def test_a_decimal_is_the_nearest_float_as_in_text_and_rows(tmp_path: Path, kind: pa.DataType) -> None:
    of = layout(Property("x", ValueType.FLOAT))
    chance = random.Random(3)
    texts = [
        "6.1",
        "-0.07",
        "9999999999999.99",
        *(f"{chance.randrange(10**9) / 100:.2f}" for _ in range(500)),
    ]
    rows = [{"src": "a", "label": "l", "trg": "b", "ts": 1, "x": Decimal(text)} for text in texts]
    table = pa.table(
        {name: [row[name] for row in rows] for name in ("src", "label", "trg", "ts")}
        | {"x": pa.array([row["x"] for row in rows], kind)}
    )
    content = "".join(f"a,l,b,1,{text}\n" for text in texts)
    wanted = [float(text) for text in texts]
    for edges, rejects in (
        read_object(table, of),
        read_object(rows, of),
        read_text(tmp_path, "a.csv", f"src,label,trg,ts,x\n{content}", of),
    ):
        assert ([row["x"] for row in edges], rejects) == (wanted, [])


def test_a_frame_with_two_columns_of_one_name_is_refused() -> None:
    frame = pd.DataFrame([["a", "l", "b", 1, 2, 3]], columns=["src", "label", "trg", "ts", "x", "x"])
    with pytest.raises(InputError, match="column names") as raised:
        source_of(frame, "s")
    assert raised.value.hint == "give each column a name of its own"


def test_values_of_arrow_beyond_their_type_reject_their_rows() -> None:
    table = pa.table(
        {
            "src": ["a"] * 3,
            "label": ["l"] * 3,
            "trg": ["b"] * 3,
            "ts": [1, 2, 3],
            "count": pa.array([2**63, 5, None], pa.uint64()),
            "due": ["2026-01-01", "soon", None],
        }
    )
    found, rejects = read_object(
        table, layout(Property("count", ValueType.INT), Property("due", ValueType.TIME))
    )
    assert [(one["count"], one["due"]) for one in found] == [(None, None)]
    assert [one.reason for one in rejects] == ["bad value of count", "bad value of due"]
    assert json.loads(rejects[1].text)["due"] == "soon"


def refused(action: Any) -> str:
    with pytest.raises(MeanderError) as error:
        action()
    return str(error.value)


def test_a_missing_column_is_named_with_those_that_exist_and_what_to_write(tmp_path: Path) -> None:
    of = layout(Property("amount", ValueType.FLOAT))
    message = refused(lambda: read_text(tmp_path, "a.csv", "from,label,trg,ts\n", of))
    assert "a.csv has no column src: it has from, label, trg, ts\n" in message
    assert message.endswith("--columns bank:src=COLUMN reads it from another column (in Python, columns=)")
    assert "--label bank=LABEL gives all rows one label" in refused(
        lambda: read_text(tmp_path, "a.csv", "src,trg,ts\n", of)
    )
    assert refused(lambda: read_text(tmp_path, "a.csv", "src,label,trg,ts,Amount\n", of)).splitlines() == [
        f"{tmp_path / 'a.csv'} has no column amount, which the query reads: it has src, label, trg, ts, Amount",
        "hint: --columns bank:amount=COLUMN reads it from another column (in Python, columns=)",
    ]
    table = pa.table({"src": ["a"], "label": ["l"], "trg": ["b"], "ts": [1]})
    assert "the table has no column amount, which the query reads" in refused(lambda: read_object(table, of))
    message = refused(lambda: read_object(table.append_column("amount", pa.array(["1"])), of))
    assert message.splitlines() == [
        "the column amount of the table has type string, and the query reads it as FLOAT",
        "hint: declare the property as STRING, or convert the column",
    ]


@pytest.mark.parametrize(("separator", "shown"), [(";", ";"), ("\t", "a tab"), ("|", "|")])
def test_a_csv_file_with_another_separator_is_refused(tmp_path: Path, separator: str, shown: str) -> None:
    names = ["from", "label", "trg", "ts"]
    text = separator.join(names) + "\n" + separator.join("alb1") + "\n"
    for columns, missing in (({}, "src"), ({"src": "from"}, "from")):
        of = StreamLayout("bank", columns=columns)
        message = refused(lambda of=of: read_text(tmp_path, "a.csv", text, of))
        assert (
            f"a.csv has no column {missing}: its separator seems to be {shown}\nhint: a .csv file" in message
        )
    only = StreamLayout(
        "bank", schema=StreamSchema(vertices=True, table=True), columns={"src": "a;b"}, label="n"
    )
    assert len(read_text(tmp_path, "a.csv", "a;b\nu\n", only)[0]) == 1


def test_a_required_value_that_is_missing_is_named_by_its_column(tmp_path: Path) -> None:
    of = StreamLayout("bank", columns={"trg": "account_to"})
    rows: list[Row] = [
        {"src": "a", "label": "l", "account_to": "b", "ts": 1, "op": "+"},
        {"src": None, "label": "l", "account_to": None, "ts": 1, "op": "+"},
        {"src": "a", "label": None, "account_to": "b", "ts": 1, "op": "+"},
        {"src": "a", "label": "l", "account_to": None, "ts": 1, "op": "+"},
        {"src": "a", "label": "l", "account_to": "b", "ts": None, "op": "+"},
    ]
    wanted = [f"missing field {name}" for name in ("src", "label", "account_to", "ts")]
    lines = [",".join(rows[0])] + [",".join(map(field, row.values())) for row in rows]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet")
    inputs = [
        read_text(tmp_path, "a.csv", "\n".join(lines), of),
        read_text(tmp_path, "a.tsv", "\n".join(lines).replace(",", "\t"), of),
        read_text(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)), of),
        read_text(
            tmp_path,
            "b.jsonl",
            "\n".join(
                json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows
            ),
            of,
        ),
        read(tmp_path / "a.parquet", of),
        read_object(rows, of, 100),
        read_object(table, of),
    ]
    for found, rejects in inputs:
        assert len(found) == 1
        assert [reject.reason for reject in rejects] == wanted
    _, (short,) = read_text(tmp_path, "c.csv", f"{lines[0]}\na,l,b\n", of)
    assert short.reason == "missing field"


def test_one_file_of_a_folder_may_lack_a_property(tmp_path: Path) -> None:
    of = layout(Property("amount", ValueType.FLOAT))
    (tmp_path / "1.csv").write_text("src,label,trg,ts\na,l,b,1\n")
    (tmp_path / "2.csv").write_text("src,label,trg,ts,amount\na,l,b,2,5\n")
    assert [one["amount"] for one in read(tmp_path, of)[0]] == [None, 5.0]


def test_a_tsv_file_without_header_has_no_properties(tmp_path: Path) -> None:
    of = layout(Property("amount", ValueType.FLOAT))
    message = refused(lambda: read_text(tmp_path, "a.tsv", "a\tl\tb\t1\n", of))
    assert "a.tsv has no header" in message
    assert message.endswith("begin the file with a line of names, with tabs between: src label trg ts amount")
    assert read_text(tmp_path, "a.tsv", "src\tlabel\ttrg\tts\tmore\na\tl\tb\t1\tx\n", StreamLayout())[0]


def test_the_types_of_columns_are_known_before_a_query_is_compiled(tmp_path: Path) -> None:
    table = pa.table(
        {"src": ["a"], "label": ["l"], "trg": ["b"], "ts": [1], "Amount": [1.5], "tags": [["x"]]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    wanted = {"Amount": ValueType.FLOAT, "tags": None}
    assert url_types(str(tmp_path / "a.parquet")) == wanted
    assert url_types(str(tmp_path), {"amount": "Amount", "ts": "x"}) == wanted | {"amount": ValueType.FLOAT}
    assert property_types(source_of(pl.from_arrow(table), "s").column_types()) == wanted
    assert url_types(str(tmp_path / "nosuch.csv")) == property_types(source_of([], "s").column_types()) == {}


def test_properties_and_vertices_pass_through_ingest_and_its_snapshots() -> None:
    rows = [
        {
            "src": f"v{ts}",
            "label": "l",
            "trg": None if ts % 3 == 0 else "w",
            "ts": ts,
            "count": ts,
            "currency": "é" * ts,
        }
        for ts in (4, 2, 9, 3, 8, 12)
    ]
    of = layout(Property("count", ValueType.INT), Property("currency", ValueType.STRING), vertices=True)
    ingest = Ingest(["bank"], lateness=9)
    for edges, _ in source_of(rows, "bank").chunks(ReadOptions(of, 2)):
        assert ingest.push("bank", edges) == []
    first, frontier = ingest.release()
    assert frontier == 3
    restored = Ingest(["bank"], lateness=9)
    restored.restore({name: array.copy() for name, array in ingest.snapshot().items()})
    restored.close("bank")
    rest, _ = restored.release()
    whole = concat_edges([first["bank"], rest["bank"]])
    wanted = [{**one, "op": "+"} for one in sorted(rows, key=lambda one: one["ts"])]
    assert rows_of(whole) == [{name: one[name] for name in rows_of(whole)[0]} for one in wanted]


def test_edges_of_queries_without_properties_have_none() -> None:
    ((edges, _),) = source_of([("a", "l", "b", 1)], "bank").chunks(ReadOptions(StreamLayout("bank")))
    assert (edges.properties, edges.vertex) == (None, None)
    ingest = Ingest(["bank"])
    ingest.push("bank", edges)
    assert not any("properties" in name or "vertex" in name for name in ingest.snapshot())


def test_parts_without_a_property_have_no_values_of_it() -> None:
    of = layout(Property("count", ValueType.INT))
    ((with_count, _),) = source_of([{"src": "a", "label": "l", "trg": "b", "ts": 5, "count": 1}], "s").chunks(
        ReadOptions(of)
    )
    ((without, _),) = source_of([("a", "l", "b", 3)], "s").chunks(ReadOptions(StreamLayout()))
    edges = by_time(concat_edges([with_count, without]))
    assert [one["count"] for one in rows_of(edges)] == [None, 1]
    assert rows_of(edges.take([1])) == rows_of(edges.take(slice(1, 2))) == rows_of(edges)[1:]


def test_a_property_that_no_edge_has_had_is_named_at_the_end() -> None:
    tally = Tally()
    of = layout(Property("amount", ValueType.FLOAT), Property("count", ValueType.INT))
    tally.read_properties({"bank": of})
    rows = [{"src": "a", "label": "l", "trg": "b", "ts": 1, "count": value} for value in (None, 5)]
    for _ in tally.counting("bank", source_of(rows, "bank").chunks(ReadOptions(of))):
        pass
    assert tally.values == {("bank", "amount"): 0, ("bank", "count"): 1}
    assert tally.properties_unseen == [
        "no edge of the stream bank had a value of amount, which the query reads"
    ]


QUERY = "STREAM bank WINDOW 1h\nAnswer(x, y) <- sent(x, y)."


def test_categories_of_a_frame_are_strings() -> None:
    query = 'STREAM s WINDOW 9\nAnswer(x, y, w: w) <- a(x, y, w: w), w > "e".'
    rows = [
        {"src": "u", "label": "a", "trg": "v", "ts": ts, "w": w} for ts, w in enumerate(["f", None, "d", "g"])
    ]
    kinds = {"src": pl.Categorical, "label": pl.Enum(["a"]), "trg": pl.Categorical, "w": pl.Categorical}
    frame = pl.DataFrame(rows)
    for edges in (
        frame.cast(kinds),
        frame.cast(kinds).to_arrow(),
        pd.DataFrame(rows).astype(dict.fromkeys(kinds, "category")),
    ):
        answers = meander.run(query, edges)
        assert [(one["src"], one["trg"], one["ts"], one["properties"]["w"]) for one in answers] == [
            ("u", "v", 0, "f"),
            ("u", "v", 3, "g"),
        ]


def test_run_takes_rows_and_frames_with_columns_and_labels(tmp_path: Path) -> None:
    rows = [
        {"from": "a", "to": "b", "at": "2026-01-01T00:00:01"},
        {"from": "b", "to": "c", "at": 1_767_225_605},
    ]
    options: dict[str, Any] = {
        "columns": {"bank": {"src": "from", "trg": "to", "ts": "at"}},
        "labels": {"bank": "sent"},
    }
    wanted = [("a", "b", 1_767_225_601), ("b", "c", 1_767_225_605)]
    typed = [
        row | {"at": datetime.datetime.fromtimestamp(ts, datetime.UTC)}
        for row, (_, _, ts) in zip(rows, wanted, strict=True)
    ]
    for edges in (
        rows,
        [rows[0], ("b", "c", 1_767_225_605)],
        typed,
        pd.DataFrame(typed),
        pl.DataFrame(typed),
    ):
        answers = meander.run(QUERY, edges, **options)
        assert [(one["src"], one["trg"], one["ts"]) for one in answers] == wanted
    message = refused(lambda: meander.run(QUERY, rows, columns={"bank": {"sorce": "from"}}))
    assert message.startswith("columns: the stream bank has no field sorce\nhint: its fields are src, label,")
    message = refused(lambda: meander.run(QUERY, rows, labels={"bnk": "sent"}))
    assert (
        message == "labels has a stream bnk, and the query has none of that name\nhint: its streams are bank"
    )
    assert "columns of the stream bank is 'from'" in refused(
        lambda: meander.run(QUERY, rows, columns={"bank": "from"})
    )


def test_a_table_that_arrow_cannot_read_is_an_error() -> None:
    frame = pd.DataFrame({"src": ["a", 1], "label": ["l"] * 2, "trg": ["b"] * 2, "ts": [1, 2]})
    with pytest.raises(InputError, match="the table cannot be read by Arrow: "):
        list(meander.run(QUERY, frame))
