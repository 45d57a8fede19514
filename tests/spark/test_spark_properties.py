"""Properties and vertices travel with their edges through everything between an input of Spark and the dataflow."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cells_in_process import Cells

from meander.algebra.nodes import Share, Slice
from meander.dataflow.edges import Edges
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.objects import source_of
from meander.dataflow.sources.source import ReadOptions
from meander.engine import compile_query
from meander.errors import ArgumentError
from meander.physical.plan import ScanOp
from meander.physical.stages import Delivery
from meander.physical.streams import ClassUse, LabelClass, StreamSchema
from meander.spark.cell.manifest import CellManifest
from meander.spark.cell.recovery import restore_ingest
from meander.spark.cell.scatter import Scatter
from meander.spark.edge_codec import chunk_edges, decode_edges, decode_rejects, edges_chunk, encode_edges
from meander.spark.input.dataframes import chunk_frame, record_frame, send_to_one
from meander.spark.input.ledger import Segment
from meander.spark.input.reader import batch_chunks, line_chunks, read_segment
from meander.spark.input.stream_source import StreamSource
from meander.spark.messages import Chunk, Kind, segment_list
from meander.spark.workers.warm_up import text_reader
from meander.syntax.values import Property, ValueType

SCHEMA = StreamSchema(
    (
        Property("amount", ValueType.FLOAT),
        Property("currency", ValueType.STRING),
        Property("due", ValueType.TIME),
        Property("number", ValueType.INT),
        Property("urgent", ValueType.BOOL),
    ),
    vertices=True,
)
LAYOUT = StreamLayout("s", schema=SCHEMA)
ROWS: list[dict[str, Any]] = [
    {
        "src": f"v{ts % 5}",
        "label": "a",
        "trg": None if ts % 4 == 3 else f"v{ts % 3}",
        "ts": ts,
        "amount": None if ts % 3 == 0 else ts / 4,
        "currency": None if ts % 5 == 0 else "é€$"[ts % 3] * (ts % 4 + 1),
        "due": None if ts % 7 == 0 else -ts,
        "number": None if ts % 2 == 0 else ts * 10**15,
        "urgent": None if ts % 6 == 0 else ts % 2 == 1,
    }
    for ts in range(40)
]


def edges_of_rows(rows: list[dict[str, Any]]) -> Edges:
    ((edges, rejects),) = source_of(rows, "s").chunks(ReadOptions(LAYOUT))
    assert rejects == []
    return edges


def rows_of(edges: Edges) -> list[dict[str, Any]]:
    vertex = [False] * edges.rows if edges.vertex is None else edges.vertex.tolist()
    trg = [None if one else name for one, name in zip(vertex, edges.trg.values(), strict=True)]
    columns = {"src": edges.src.values(), "label": edges.label.values(), "trg": trg, "ts": edges.ts.tolist()}
    columns |= {name: column.to_pylist() for name, column in (edges.properties or {}).items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def field(value: object) -> str:
    return "" if value is None else str(value)


def as_lines(rows: list[dict[str, Any]], separator: str) -> bytes:
    lines = [list(ROWS[0]), *([field(value) for value in row.values()] for row in rows)]
    return "".join(separator.join(line) + "\n" for line in lines).encode()


def test_edges_come_out_of_a_chunk_with_their_properties() -> None:
    edges = edges_of_rows(ROWS)
    for compressed in (False, True):
        assert rows_of(decode_edges(encode_edges(edges, lines=False, compressed=compressed))) == ROWS
        part = edges.take(slice(7, 19))
        assert rows_of(decode_edges(encode_edges(part, lines=False, compressed=compressed))) == ROWS[7:19]


def test_edges_without_properties_cost_no_bytes_for_them() -> None:
    ((edges, _),) = source_of([("x", "a", "y", 1)], "s").chunks(ReadOptions(StreamLayout("s")))
    with pa.ipc.open_stream(encode_edges(edges, lines=False)) as reader:
        assert reader.schema.names == ["src", "label", "trg", "ts", "op"]


@pytest.mark.parametrize(("name", "separator"), [("s.csv", ","), ("s.tsv", "\t")])
def test_every_part_of_a_file_with_a_header_has_its_columns(
    tmp_path: Path, name: str, separator: str
) -> None:
    path = tmp_path / name
    text = as_lines(ROWS, separator)
    path.write_bytes(text)
    ends = [at + 1 for at, byte in enumerate(text) if byte == ord("\n")]
    for cut in (ends[0], ends[1], ends[20], ends[-2]):
        found = [
            row
            for start, end in ((0, cut), (cut, len(text)))
            for edges, rejects in read_segment(Segment("s", str(path), start, end), LAYOUT)
            for row in rows_of(edges)
            if not rejects
        ]
        assert found == ROWS


QUERY = compile_query("STREAM s WINDOW 9\nAnswer(x, y) <- a(x, y).", name="q")


def test_a_cell_keeps_the_properties_of_edges_that_wait_and_of_its_window(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(as_lines(ROWS, ",") + b"x,a,y,50,much,,,,\n")
    cells = Cells([QUERY], 1, lateness=5)
    cells.local.jobs = [replace(job, layouts={"s": LAYOUT}) for job in cells.jobs]

    def stored_rows() -> list[dict[str, Any]]:
        (store,) = cells.local.stores.values()
        blocks = [data for name, data in store.values.items() if isinstance(name, int)]
        return [row for data in blocks for row in rows_of(decode_edges(data))]

    cells.step([segment_list([Segment("s", str(path), 0, path.stat().st_size)])])
    assert stored_rows() == [row for row in ROWS if 25 <= row["ts"] <= 34]
    assert [reject.reason for reject in cells.rejects] == ["bad value of amount"]
    values = {name: sum(row[name] is not None for row in ROWS) for name in LAYOUT.types}
    assert {name: count for _, name, count in cells.figures[-1]["values"]} == values
    (job,) = cells.local.jobs
    (store,) = cells.local.stores.values()
    waiting = restore_ingest(job, CellManifest.from_bytes(store.read_manifest()), store)
    waiting.close("s")
    released, _ = waiting.release()
    assert rows_of(released["s"]) == ROWS[35:]


def test_properties_are_sent_to_the_cells_that_read_their_edges() -> None:
    scatter = Scatter((0, 1), (Delivery(1, "s", "a", False, (Share(2, (Slice("src", 2),)),)),))
    messages = scatter.send([edges_chunk("s", edges_of_rows(ROWS))])
    found = [row for one in messages if one.kind == Kind.EDGES for row in rows_of(decode_edges(one.data))]
    assert sorted(found, key=lambda row: row["ts"]) == ROWS


def test_records_are_json_where_columns_are_read_by_name() -> None:
    values = [json.dumps(row) for row in ROWS] + ["v1\ta\tv2\t50"]
    batch = pa.record_batch({"value": pa.array(values).cast(pa.binary())})
    chunks = line_chunks(batch, LAYOUT)
    assert [row for one in chunks if one.kind == Kind.EDGES for row in rows_of(chunk_edges(one))] == ROWS
    (reject,) = [reject for one in chunks if one.kind == Kind.REJECTS for reject in decode_rejects(one.data)]
    assert reject.reason == "unparsable row"


def test_a_bad_value_of_a_record_rejects_it_only_where_a_query_reads_it() -> None:
    uses = (ClassUse(LabelClass("a"), ("due",), ("due",)), ClassUse(LabelClass("b"), (), ("due",)))
    layout = StreamLayout("s", schema=replace(SCHEMA, uses=uses))
    rows = [
        {"src": "u", "label": label, "trg": "v", "ts": 1, "op": op, "due": "soon"}
        for op in "+-"
        for label in "abc"
    ]
    records = pa.record_batch({"value": pa.array(map(json.dumps, rows)).cast(pa.binary())})
    columns = pa.RecordBatch.from_pylist(rows)
    for chunks in (line_chunks(records, layout), batch_chunks(columns, layout)):
        edges = [chunk_edges(one) for one in chunks if one.kind == Kind.EDGES]
        found = [(row["label"], op) for one in edges for row, op in zip(rows_of(one), one.op, strict=True)]
        assert found == [("b", 1), ("c", 1), ("c", -1)]


def test_the_warm_up_reads_values_of_every_type() -> None:
    (job,) = Cells([QUERY], 1).jobs
    scans = [operator for operator in job.plan.operators if isinstance(operator, ScanOp)]
    ((edges, rejects),) = text_reader(LAYOUT, scans, 0).chunks()
    assert rejects == []
    assert edges.rows
    assert {column.null_count for column in (edges.properties or {}).values()} == {0}


def test_a_layout_survives_as_json() -> None:
    uses = (ClassUse(LabelClass("a"), ("due",), ("due", "number")), ClassUse(LabelClass(None, True), (), ()))
    layout = StreamLayout("s", "ms", replace(SCHEMA, uses=uses), {"src": "from"}, "a")
    assert StreamLayout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


TYPED = (
    "who string, whom string, at timestamp, amount decimal(9,2), currency string, due date, number int, "
    "urgent boolean"
)


def frame_rows(rows: Any) -> list[dict[str, Any]]:
    chunks = [Chunk(row.kind, row.stream, row.position, bytes(row.data)) for row in rows.collect()]
    return [row for one in chunks if one.kind == Kind.EDGES for row in rows_of(chunk_edges(one))]


@pytest.mark.spark
def test_typed_columns_of_a_frame_and_records_of_json(spark: Any, tmp_path: Path) -> None:
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    data = [
        ("x", "y", moment, Decimal("1.25"), "EUR", moment.date(), 7, True),
        ("x", None, moment, *[None] * 5),
    ]
    frame = spark.createDataFrame(data, TYPED).coalesce(1)
    columns = {"src": "who", "trg": "whom", "ts": "at"}
    source = StreamSource(frame=frame, columns=columns, label="a")
    assert source.property_types()["amount"] == ValueType.FLOAT
    assert source.property_types()["due"] == ValueType.TIME
    layout = source.layout("s", SCHEMA, "s")
    seconds = int(moment.timestamp())
    wanted = [
        {"src": "x", "label": "a", "trg": "y", "ts": seconds}
        | {"amount": 1.25, "currency": "EUR", "due": seconds, "number": 7, "urgent": True},
        {"src": "x", "label": "a", "trg": None, "ts": seconds} | dict.fromkeys(LAYOUT.types),
    ]
    assert frame_rows(chunk_frame(frame, layout, send_to_one(0))) == wanted
    static = source.materialize(spark, layout, tmp_path / "static")
    segment_layout = static.layout("s", SCHEMA, "s")
    found = [
        row
        for path in sorted(Path(static.location).glob("*.parquet"))
        for edges, _ in read_segment(Segment("s", str(path), 0, -1), segment_layout)
        for row in rows_of(edges)
    ]
    assert found == wanted
    records = spark.createDataFrame([(json.dumps(row).encode(),) for row in ROWS], "value binary").coalesce(1)
    assert frame_rows(record_frame(records, LAYOUT, send_to_one(0))) == ROWS
    wrong = StreamSchema((Property("number", ValueType.STRING),), vertices=True)
    message = "the column number of stream s has type int, and the query reads it as STRING"
    with pytest.raises(ArgumentError, match=message):
        source.check(source.layout("s", wrong, "s"), follow=True)
