"""Edges from Arrow tables and from Python objects, with a reject for each row that cannot be used.

Arrow's string and integer columns become `Text` without a copy of their bytes. A column of an impossible type
(a vertex that is a float) is an error of the whole table; a value that cannot be used is a reject of its row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import (
    MAX_TIME,
    Edges,
    Origin,
    Reject,
    Text,
    arrow_text,
    as_text,
    concat_texts,
    constant_text,
    integer_text,
    shown,
)
from meander.dataflow.layout import EDGE_FIELDS, StreamLayout
from meander.dataflow.property_columns import (
    Converted,
    check_value_type,
    decode_dictionary,
    excuse_unread,
    from_arrow_column,
    from_python,
    is_nan,
    is_string,
    python_time,
    reject_reason,
    times_of_text,
    times_of_timestamps,
)
from meander.dataflow.records import NoEdge, edge_columns, edge_schema, given_value, single_vertex
from meander.errors import InputError
from meander.kernels.jit import Array
from meander.kernels.parsing import (
    BAD_LABEL,
    BAD_OP,
    BAD_TIME,
    BAD_VALUE,
    BAD_VERTEX,
    FINE,
    LABEL,
    MISSING,
    NEGATIVE,
    NO_EDGE,
    NO_FIELD,
    NOT_UTF8,
    OP,
    OUT_OF_RANGE,
    SRC,
    TRG,
    UNPARSABLE,
    judge_names,
)
from meander.syntax.values import ValueType

Chunk = tuple[Edges, list[Reject]]
"""Some edges in order of arrival, and the rejects met among them."""

STRING_TYPE, INTEGER_TYPE, TIMESTAMP_TYPE, NULL_TYPE = "string", "integer", "timestamp", "null"

FIELD_TYPES = {
    "src": (STRING_TYPE, INTEGER_TYPE),
    "label": (STRING_TYPE,),
    "trg": (STRING_TYPE, INTEGER_TYPE),
    "ts": (INTEGER_TYPE, TIMESTAMP_TYPE, STRING_TYPE),
    "op": (STRING_TYPE,),
}
"""The fields of an edge, and the types that a column of each may have. A time as a string is one of ISO 8601."""


def from_table(
    table: pa.Table,
    *,
    stream: str = "",
    batch_rows: int = 65536,
    time_unit: str = "s",
    where: str = "the table",
    layout: StreamLayout | None = None,
) -> Iterator[Chunk]:
    """The edges of a table with columns src, label, trg, ts and optionally op, in chunks; for `layout` see
    `from_arrow`."""
    layout = layout or StreamLayout(stream, time_unit)
    first = 1
    for batch in table.to_batches(max_chunksize=batch_rows):
        yield from_arrow(batch, layout=layout, where=where, first=first)
        first += batch.num_rows


def from_arrow(
    batch: pa.RecordBatch,
    *,
    stream: str = "",
    time_unit: str = "s",
    where: str = "the table",
    path: str = "",
    first: int | None = None,
    layout: StreamLayout | None = None,
) -> Chunk:
    """The edges of a record batch; times that are timestamps are converted to `time_unit` ("s", "ms", "us").

    `layout` says which columns are read, in place of `stream` and `time_unit`. `first` is the number of the batch's
    first row in its table or in the file `path`, if it is known.
    """
    layout = layout or StreamLayout(stream, time_unit)
    check_schema(batch.schema, layout, where)
    records = batch
    batch, no_edge = edge_columns(records, layout)
    known = set(batch.schema.names)
    columns = {
        name: _decoded(batch.column(column))
        for name, column in layout.columns_read.items()
        if column in known
    }
    rows = batch.num_rows
    verdict = np.zeros(rows, np.int16)
    if no_edge is not None:
        _mark(verdict, no_edge, NO_EDGE)
    for name in (*layout.required, "op"):
        if name in columns and columns[name].null_count:
            is_null = columns[name].is_null().to_numpy(zero_copy_only=False)
            _mark(verdict, is_null, NO_FIELD + EDGE_FIELDS.index(name))
    src = _name_column(columns["src"], verdict)
    label = (
        _name_column(columns["label"], verdict) if layout.label is None else constant_text(layout.label, rows)
    )
    vertex = None
    if layout.schema.vertices:
        trg, vertex = _targets(columns.get("trg"), src, verdict)
    else:
        trg = _name_column(columns["trg"], verdict)
    for field, names in {SRC: src, LABEL: label, TRG: trg}.items():
        judge_names(*names, NO_FIELD + field, verdict)
    ts = _time_column(columns["ts"], layout, verdict) if "ts" in columns else np.zeros(rows, np.int64)
    op = np.ones(rows, np.int8)
    if "op" in columns:
        # Text files are read without it, and should not wait for its import.
        import pyarrow.compute as pc

        signs = columns["op"].cast(pa.large_string())
        minus = _truth(pc.equal(signs, "-"))
        _mark(verdict, ~(minus | _truth(pc.equal(signs, "+"))), BAD_OP)
        op[minus] = -1
    origin = None
    if first is not None:
        numbers = np.arange(first, first + rows, dtype=np.int64)
        origin = Origin(path, 0, numbers, lambda number: row_text(records, number - first))
    edges = Edges(src, label, trg, ts, op, origin=origin, vertex=vertex)
    if layout.types:

        def read(name: str, kind: ValueType) -> Converted:
            return from_arrow_column(columns.get(name, pa.nulls(rows)), kind, layout.time_unit)

        edges = edges._replace(properties=_property_columns(read, edges, layout, verdict))
    if not verdict.any():
        return edges, []
    rejects = [
        Reject(
            layout.stream,
            reject_reason(layout, int(verdict[row])),
            row_text(records, int(row)),
            path,
            0 if origin is None else int(origin.line[row]),
        )
        for row in np.flatnonzero(verdict)
    ]
    return edges.take(verdict == FINE), rejects


def check_schema(schema: pa.Schema, layout: StreamLayout, where: str) -> None:
    """Raise an error that names the column that is missing or has a type that cannot be used."""
    schema = edge_schema(schema, layout)
    names = list(schema.names)
    layout.check_columns(names, where, "the columns of edges are src, label, trg, ts and perhaps op")
    for name, column in layout.columns_read.items():
        if column not in names:
            continue
        kind = schema.field(column).type
        if name in FIELD_TYPES:
            check_field_type(name, arrow_category(kind), f"the column {column} of {where}", str(kind))
        else:
            check_value_type(kind, layout.types[name], f"the column {column} of {where}")


def check_field_type(
    field: str, category: str, column: str, shown_type: str, types: Sequence[str] | None = None
) -> None:
    """Refuse a column whose type cannot hold this field of an edge; an empty column of nulls can.

    The accepted types are `types`, or else those of `FIELD_TYPES`.
    """
    accepted = FIELD_TYPES[field] if types is None else types
    if category not in (*accepted, NULL_TYPE):
        wanted = " or ".join(f"{kind}s" for kind in accepted)
        raise InputError(f"{column} has type {shown_type}, not {wanted}", hint="convert the column")


def arrow_category(kind: pa.DataType) -> str:
    """Which of the types of `FIELD_TYPES` an Arrow type is; "" for any other."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_string(plain):
        return STRING_TYPE
    if pa.types.is_integer(plain):
        return INTEGER_TYPE
    if pa.types.is_timestamp(plain) or pa.types.is_date(plain):
        return TIMESTAMP_TYPE
    return NULL_TYPE if pa.types.is_null(plain) else ""


def _decoded(column: pa.Array) -> pa.Array:
    """The column without dictionary, view or null types."""
    if pa.types.is_dictionary(column.type):
        column = decode_dictionary(column)
    if column.type == pa.string_view() or pa.types.is_null(column.type):
        column = column.cast(pa.large_string())
    return column


def _mark(verdict: Array, chosen: Array, value: int) -> None:
    """Set the verdict of chosen rows that have none yet: the first fault is the reason."""
    verdict[chosen & (verdict == FINE)] = value


def _truth(column: pa.Array) -> Array:
    truth: Array = column.fill_null(False).to_numpy(zero_copy_only=False)
    return truth


def _integers(column: pa.Array, most: int) -> Array:
    """Integers of any width as int64, those above `most` as `most` and nulls as 0."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(most))
    return np.asarray(values, dtype=np.int64)


def _name_column(column: pa.Array, verdict: Array) -> Text:
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64():
            _mark(
                verdict, column.fill_null(0).to_numpy(zero_copy_only=False) > np.uint64(2**63 - 1), BAD_VERTEX
            )
        return integer_text(_integers(column, 2**63 - 1))
    return arrow_text(column)


def _targets(column: pa.Array | None, src: Text, verdict: Array) -> tuple[Text, Array]:
    """The targets, and which rows are vertices: of these the source stands for the target."""
    if column is None:
        return src, np.ones(src.rows, np.bool_)
    trg = _name_column(column, verdict)
    absent = column.is_null().to_numpy(zero_copy_only=False)
    absent |= (trg.kind == 0) & (trg.start == trg.end)
    return (replace_names(trg, absent, src), absent) if absent.any() else (trg, absent)


def replace_names(names: Text, chosen: Array, others: Text) -> Text:
    """The names, those of the chosen rows replaced by the others."""
    both = concat_texts([names, others])
    names, others = both.take(slice(None, names.rows)), both.take(slice(names.rows, None))
    columns = (np.where(chosen, other, name) for name, other in zip(names[1:], others[1:], strict=True))
    return Text(names.data, *columns)


def _time_column(column: pa.Array, layout: StreamLayout, verdict: Array) -> Array:
    if pa.types.is_integer(column.type):
        ts = _integers(column, MAX_TIME + 1)
    elif is_string(column.type):
        ts, is_time = times_of_text(column, layout.time_unit)
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        _mark(verdict, ~is_time & ~is_null, BAD_TIME)
    else:
        ts, beyond = times_of_timestamps(column, layout.time_unit)
        ts = np.where(beyond, MAX_TIME + 1, ts) if beyond.any() else ts
    _mark(verdict, ts < 0, NEGATIVE)
    _mark(verdict, ts > MAX_TIME, OUT_OF_RANGE)
    return ts


def _property_columns(
    read: Callable[[str, ValueType], Converted], edges: Edges, layout: StreamLayout, verdict: Array
) -> dict[str, pa.Array]:
    """The columns that `read` returns; rows with a value of another type get a verdict."""
    properties = {}
    for number, (name, kind) in enumerate(layout.types.items()):
        properties[name], bad = read(name, kind)
        if bad is not None:
            _mark(verdict, bad, BAD_VALUE + number)
            excuse_unread(layout, number, edges, verdict)
    return properties


def row_text(batch: pa.RecordBatch, row: int) -> str:
    """A row as JSON, with all of its columns."""
    cells = zip(batch.schema.names, batch.columns, strict=True)
    return json.dumps(
        {name: _plain_scalar(column[row]) for name, column in cells}, ensure_ascii=False, default=str
    )


def _plain_scalar(scalar: pa.Scalar) -> Any:
    """The value of a scalar as far as Python has one."""
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.value
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return shown(scalar.as_buffer().to_pybytes()) if is_string(scalar.type) else str(scalar.type)
    except (ValueError, OverflowError):  # a timestamp that is no datetime
        return getattr(scalar, "value", str(scalar.type))


# ---------------------------------------------------------------------------------------------------------
# Python objects


def from_tuples(
    rows: Iterable[Any],
    *,
    stream: str = "",
    batch_rows: int = 65536,
    layout: StreamLayout | None = None,
) -> Iterator[Chunk]:
    """The edges of rows in chunks; a reject's text is the row as Python shows it.

    A row is a tuple (src, label, trg, ts[, op]), without the label in a stream whose rows all have one, or a mapping
    from the names of columns. Tuples have no properties.
    """
    layout = layout or StreamLayout(stream)
    source = enumerate(rows, start=1)
    while block := list(islice(source, batch_rows)):
        yield _from_rows(block, layout)


def _from_rows(block: Sequence[tuple[int, Any]], layout: StreamLayout) -> Chunk:
    accepted: list[Sequence[Any]] = []
    numbers = []
    vertices = []
    given: list[Any] = []
    rejects = []
    judge_as_is = layout.label is None
    for number, row in block:
        fault = judge_row(row) if judge_as_is else UNPARSABLE
        edge, is_vertex = row, False
        if fault != FINE:
            # Not the usual tuple: perhaps a mapping, or a row that the layout allows.
            edge, is_vertex = _complete(row, layout)
            fault = judge_row(edge)
        if fault == FINE:
            accepted.append(edge)
            numbers.append(number)
            vertices.append(is_vertex)
            given.append(row)
        else:
            rejects.append(Reject(layout.stream, reject_reason(layout, fault), repr(row), line=number))
    first = block[0][0]
    origin = Origin("", 0, np.array(numbers, np.int64), lambda number: repr(block[number - first][1]))
    edges = edges_of(accepted)._replace(origin=origin)
    if layout.schema.vertices:
        edges = edges._replace(vertex=np.array(vertices, np.bool_))
    if not layout.types:
        return edges, rejects

    def read(name: str, kind: ValueType) -> Converted:
        values = [
            None if type(row) is tuple or not isinstance(row, Mapping) else given_value(row, layout, name)
            for row in given
        ]
        return from_python(values, kind, layout.time_unit)

    verdict = np.zeros(edges.rows, np.int16)
    edges = edges._replace(properties=_property_columns(read, edges, layout, verdict))
    if not verdict.any():
        return edges, rejects
    rejects += [
        Reject(layout.stream, reject_reason(layout, int(verdict[row])), repr(given[row]), line=numbers[row])
        for row in np.flatnonzero(verdict)
    ]
    rejects.sort(key=lambda reject: reject.line)
    return edges.take(verdict == FINE), rejects


def _complete(row: Any, layout: StreamLayout) -> tuple[Any, bool]:
    """The row as a tuple (src, label, trg, ts[, op]), and whether it is a vertex."""
    if isinstance(row, Mapping):
        return row_of_record(row, layout, _plain)
    if isinstance(row, tuple | list):
        if layout.label is not None:
            row = (*row[:1], layout.label, *row[1:])
        if 1 <= len(row) <= 5:
            return complete_row(row, layout)
    return None, False


def _plain(value: Any) -> Any:
    return None if is_nan(value) else value


def row_of_record(
    row: Mapping[str, Any], layout: StreamLayout, plain: Callable[[Any], Any]
) -> tuple[Any, bool]:
    """The mapping as a row that `judge_row` knows, and whether it is a vertex; `plain` converts its values."""
    record = single_vertex(row, layout)
    if isinstance(record, NoEdge):
        return record, False
    return complete_row(edge_fields(record, layout, plain), layout)


def edge_fields(row: Mapping[str, Any], layout: StreamLayout, plain: Callable[[Any], Any]) -> list[Any]:
    """The fields src, label, trg, ts and perhaps op of a mapping."""
    edge = [plain(row.get(layout.column(name))) for name in EDGE_FIELDS[:4]]
    operation = layout.column("op")
    return [*edge, row[operation]] if operation in row else edge


def complete_row(row: Sequence[Any], layout: StreamLayout) -> tuple[tuple[Any, ...], bool]:
    """The row (src, label, trg, ts[, op]) as `judge_row` accepts it, with what the layout says of a field that it
    lacks, and whether it is a vertex."""
    src, label, trg, ts, *op = row if len(row) > 3 else (*row, None, None, None)[:4]
    label = label if layout.label is None else layout.label
    is_vertex = layout.schema.vertices and _is_missing(trg)
    if is_vertex:
        trg = src
    if layout.schema.table and _is_missing(ts):
        ts = 0
    elif ts is not None and not _is_integer(ts):
        with suppress(ValueError, TypeError, OverflowError):  # `judge_row` gives the reason
            ts = python_time(ts, layout.time_unit)
    return (src, label, trg, ts, *op), is_vertex


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)


def edges_of(rows: Sequence[Sequence[Any]]) -> Edges:
    """The edges of rows that `judge_row` accepts."""
    count = len(rows)
    return Edges(
        src=as_text(row[0] for row in rows),
        label=as_text(row[1] for row in rows),
        trg=as_text(row[2] for row in rows),
        ts=np.fromiter((row[3] for row in rows), np.int64, count),
        op=np.fromiter((-1 if len(row) == 5 and row[4] == "-" else 1 for row in rows), np.int8, count),
    )


def judge_row(row: Any) -> int:
    """The verdict on a row (src, label, trg, ts[, op])."""
    if not isinstance(row, (tuple, list)) or len(row) > 5:
        return NO_EDGE if isinstance(row, NoEdge) else UNPARSABLE
    if len(row) < 4:
        return MISSING
    for field, value in enumerate(row[:4]):
        if value is None or (isinstance(value, str) and not value):
            return NO_FIELD + field
    src, label, trg, ts = row[:4]
    for vertex in (src, trg):
        if not isinstance(vertex, str) and not (_is_integer(vertex) and -(2**63) <= vertex < 2**63):
            return BAD_VERTEX
    if not isinstance(label, str):
        return BAD_LABEL
    for name in (src, label, trg):
        if isinstance(name, str) and not name.isascii() and not is_encodable(name):
            return NOT_UTF8
    if not _is_integer(ts):
        return BAD_TIME
    if ts < 0:
        return NEGATIVE
    if ts > MAX_TIME:
        return OUT_OF_RANGE
    if len(row) == 5 and not (isinstance(row[4], str) and row[4] in ("+", "-")):
        return NO_FIELD + OP if row[4] is None else BAD_OP
    return FINE


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_encodable(name: str) -> bool:
    """Half of a surrogate pair is a Python character, but cannot be encoded."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
