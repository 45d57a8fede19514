"""Edges from Arrow tables and from Python tuples, with a reject for each row that cannot be used.

Arrow's string and integer columns become `Text` without a copy of their bytes. A column of an impossible type
(a vertex that is a float) is an error of the whole table; a value that cannot be used is a reject of its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import (
    MAX_TIME,
    VERDICTS,
    Edges,
    Origin,
    Reason,
    Reject,
    Text,
    arrow_text,
    as_text,
    integer_text,
    shown,
)
from meander.errors import InputError
from meander.kernels.jit import Array
from meander.kernels.parsing import BAD_OP, BAD_VERTEX, FINE, MISSING, NEGATIVE, OUT_OF_RANGE, judge_names

Chunk = tuple[Edges, list[Reject]]
"""Some edges in order of arrival, and the rejects met among them."""

STRING_TYPE, INTEGER_TYPE, TIMESTAMP_TYPE, NULL_TYPE = "string", "integer", "timestamp", "null"

FIELD_TYPES = {
    "src": (STRING_TYPE, INTEGER_TYPE),
    "label": (STRING_TYPE,),
    "trg": (STRING_TYPE, INTEGER_TYPE),
    "ts": (INTEGER_TYPE, TIMESTAMP_TYPE),
    "op": (STRING_TYPE,),
}
"""The fields of an edge, and the types that a column of each may have."""

EDGE_FIELDS = tuple(FIELD_TYPES)
REQUIRED_FIELDS = EDGE_FIELDS[:4]


def from_table(
    table: pa.Table,
    *,
    stream: str = "",
    batch_rows: int = 65536,
    time_unit: str = "s",
    where: str = "the table",
) -> Iterator[Chunk]:
    """The edges of a table with columns src, label, trg, ts and optionally op, in chunks."""
    first = 1
    for batch in table.to_batches(max_chunksize=batch_rows):
        yield from_arrow(batch, stream=stream, time_unit=time_unit, where=where, first=first)
        first += batch.num_rows


def from_arrow(
    batch: pa.RecordBatch,
    *,
    stream: str = "",
    time_unit: str = "s",
    where: str = "the table",
    path: str = "",
    first: int | None = None,
) -> Chunk:
    """The edges of a record batch; times that are timestamps are converted to `time_unit` ("s", "ms", "us").

    `first` is the number of the batch's first row in its table or in the file `path`, if it is known.
    """
    check_columns(batch.schema, where)
    columns = {name: _decoded(batch.column(name)) for name in EDGE_FIELDS if name in batch.schema.names}
    verdict = np.zeros(batch.num_rows, np.int8)
    for column in columns.values():
        if column.null_count:
            _mark(verdict, column.is_null().to_numpy(zero_copy_only=False), MISSING)
    names = [_name_column(columns[name], verdict) for name in ("src", "label", "trg")]
    for name in names:
        judge_names(*name, verdict)
    ts = _time_column(columns["ts"], time_unit, verdict)
    op = np.ones(batch.num_rows, np.int8)
    if "op" in columns:
        # Text files are read without it, and should not wait for its import.
        import pyarrow.compute as pc

        signs = columns["op"].cast(pa.large_string())
        minus = _truth(pc.equal(signs, "-"))
        _mark(verdict, ~(minus | _truth(pc.equal(signs, "+"))), BAD_OP)
        op[minus] = -1
    origin = None
    if first is not None:
        origin = Origin(path, 0, np.arange(first, first + batch.num_rows, dtype=np.int64))
    src, label, trg = names
    edges = Edges(src=src, label=label, trg=trg, ts=ts, op=op, origin=origin)
    if not verdict.any():
        return edges, []
    rejects = [
        Reject(
            stream,
            VERDICTS[int(verdict[row])],
            _row_text(columns, int(row)),
            path,
            0 if origin is None else int(origin.line[row]),
        )
        for row in np.flatnonzero(verdict)
    ]
    return edges.take(verdict == FINE), rejects


def check_columns(schema: pa.Schema, where: str) -> None:
    """Raise an error that names the column that is missing or has a type that cannot be used."""
    for name in REQUIRED_FIELDS:
        if name not in schema.names:
            raise InputError(
                f"{where} has no column {name}: it has " + (", ".join(schema.names) or "none"),
                hint="the columns of edges are src, label, trg, ts and perhaps op",
            )
    for name in EDGE_FIELDS:
        if name not in schema.names:
            continue
        if schema.names.count(name) > 1:
            raise InputError(f"{where} has more than one column {name}")
        kind = schema.field(name).type
        check_field_type(name, arrow_category(kind), f"the column {name} of {where}", str(kind))


def check_field_type(field: str, category: str, column: str, shown_type: str) -> None:
    """Refuse a column whose type cannot hold this field of an edge; an empty column of nulls can."""
    accepted = FIELD_TYPES[field]
    if category not in (*accepted, NULL_TYPE):
        wanted = " or ".join(f"{kind}s" for kind in accepted)
        raise InputError(f"{column} has type {shown_type}, not {wanted}")


def arrow_category(kind: pa.DataType) -> str:
    """Which of the types of `FIELD_TYPES` an Arrow type is; "" for any other."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(plain) or pa.types.is_large_string(plain) or plain == pa.string_view():
        return STRING_TYPE
    if pa.types.is_integer(plain):
        return INTEGER_TYPE
    if pa.types.is_timestamp(plain):
        return TIMESTAMP_TYPE
    return NULL_TYPE if pa.types.is_null(plain) else ""


def _decoded(column: pa.Array) -> pa.Array:
    """The column without dictionary, view or null types."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
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


def _time_column(column: pa.Array, time_unit: str, verdict: Array) -> Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(time_unit, tz=column.type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_large_string(column.type):
        return np.zeros(len(column), np.int64)
    ts = _integers(column, MAX_TIME + 1)
    _mark(verdict, ts < 0, NEGATIVE)
    _mark(verdict, ts > MAX_TIME, OUT_OF_RANGE)
    return ts


def _row_text(columns: dict[str, pa.Array], row: int) -> str:
    """The row as JSON."""

    def plain(scalar: pa.Scalar) -> Any:
        try:
            return scalar.as_py()
        except UnicodeDecodeError:
            return shown(scalar.as_buffer().to_pybytes())

    return json.dumps(
        {name: plain(column[row]) for name, column in columns.items()}, ensure_ascii=False, default=str
    )


def from_tuples(rows: Iterable[Any], *, stream: str = "", batch_rows: int = 65536) -> Iterator[Chunk]:
    """The edges of (src, label, trg, ts[, op]) tuples, in chunks; a reject's text is the tuple as Python shows it."""
    source = enumerate(rows, start=1)
    while True:
        block = list(islice(source, batch_rows))
        if not block:
            return
        accepted: list[Sequence[Any]] = []
        numbers = []
        rejects = []
        for number, row in block:
            reason = judge_row(row)
            if reason is None:
                accepted.append(row)
                numbers.append(number)
            else:
                rejects.append(Reject(stream, reason, repr(row), line=number))
        yield edges_of(accepted)._replace(origin=Origin("", 0, np.array(numbers, np.int64))), rejects


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


def judge_row(row: Any) -> str | None:
    """Why the row (src, label, trg, ts[, op]) cannot be used, or None."""
    if not isinstance(row, (tuple, list)) or len(row) > 5:
        return Reason.UNPARSABLE
    if len(row) < 4 or any(value is None or (isinstance(value, str) and not value) for value in row[:4]):
        return Reason.MISSING
    src, label, trg, ts = row[:4]
    for vertex in (src, trg):
        if not isinstance(vertex, str) and not (_is_integer(vertex) and -(2**63) <= vertex < 2**63):
            return Reason.BAD_VERTEX
    if not isinstance(label, str):
        return Reason.BAD_LABEL
    for name in (src, label, trg):
        if isinstance(name, str) and not name.isascii() and not _is_encodable(name):
            return Reason.NOT_UTF8
    if not _is_integer(ts):
        return Reason.NOT_INTEGER
    if ts < 0:
        return Reason.NEGATIVE
    if ts > MAX_TIME:
        return Reason.OUT_OF_RANGE
    if len(row) == 5 and not (isinstance(row[4], str) and row[4] in ("+", "-")):
        return Reason.MISSING if row[4] is None else Reason.BAD_OP
    return None


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_encodable(name: str) -> bool:
    """Half of a surrogate pair is a Python character, but cannot be encoded."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
