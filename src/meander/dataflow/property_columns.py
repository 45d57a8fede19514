"""Columns of properties as they are read: typed Arrow arrays with nulls, and how values of every input become such.

The array of an INT or TIME is int64, of a FLOAT float64 without NaN, of a BOOL bool, of a STRING large_string. A
conversion also returns which rows have a value that is not of the type; these are null.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import (
    ARROW_TYPES,
    VERDICTS,
    Edges,
    Reason,
    arrow_text,
    as_text,
    match_labels,
)
from meander.dataflow.layout import EDGE_FIELDS, EXPIRY, TIME_DIGITS, StreamLayout
from meander.dataflow.path_texts import arrow_paths, checked_paths, is_path_type, python_paths
from meander.errors import InputError
from meander.kernels.jit import Array
from meander.kernels.parsing import BAD_VALUE, FINE, NO_FIELD, NOT_UTF8, judge_text
from meander.kernels.parsing_times import read_iso_time, read_iso_times
from meander.kernels.parsing_values import (
    Spans,
    find_lists,
    find_strings,
    read_bools,
    read_floats,
    read_integers,
    read_times,
)
from meander.kernels.spans import gather_spans
from meander.syntax.values import ValueType

UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400
"""Seconds."""

READABLE = {
    ValueType.INT: frozenset({ValueType.INT}),
    ValueType.FLOAT: frozenset({ValueType.FLOAT, ValueType.INT}),
    ValueType.STRING: frozenset({ValueType.STRING}),
    ValueType.BOOL: frozenset({ValueType.BOOL}),
    ValueType.TIME: frozenset({ValueType.TIME, ValueType.INT, ValueType.STRING}),
    ValueType.PATH: frozenset({ValueType.PATH, ValueType.STRING}),
}
"""For each type of a property the types of columns that can hold it; a string may be a time of ISO 8601, or the JSON
text of a path."""

Converted = tuple[pa.Array, Array | None]
"""A column, and the rows whose value is not of its type (None: there are none)."""


def reject_reason(layout: StreamLayout, verdict: int) -> str:
    """The reason of a reject for a verdict on its row."""
    if verdict >= BAD_VALUE:
        return Reason.bad_value(layout.properties[verdict - BAD_VALUE].name)
    if verdict >= NO_FIELD:
        return Reason.missing(layout.column(EDGE_FIELDS[verdict - NO_FIELD]))
    return VERDICTS[verdict]


def excuse_unread(layout: StreamLayout, number: int, edges: Edges, verdict: Array) -> None:
    """Of the rows that have a bad value of a property, given by its number, accept those of which it is not read.

    The value of such a row is null. A deletion is matched by all properties that a query names, so it is excused only
    if no query that names the property mentions its label.
    """
    bad = verdict == BAD_VALUE + number
    if not layout.schema.uses or not bad.any():
        return
    rows = np.flatnonzero(bad)
    name = layout.properties[number].name
    if layout.schema.tuples and name == EXPIRY.name:
        return  # a field of the tuple, whatever its label
    uses = [use for use in layout.schema.uses if name in use.named]
    labels = list(dict.fromkeys(use.of.label for use in uses if use.of.label is not None))
    position = match_labels(edges.label.take(rows), [label.encode() for label in labels])
    vertex = np.zeros(rows.size, np.bool_) if edges.vertex is None else edges.vertex[rows]
    deleted = edges.op[rows] < 0
    is_read = np.zeros(rows.size, np.bool_)
    for use in uses:
        of_class = vertex == use.of.vertex
        if use.of.label is not None:
            of_class &= position == labels.index(use.of.label)
        is_read |= of_class if name in use.read else of_class & deleted
    verdict[rows[~is_read]] = FINE


# ---------------------------------------------------------------------------------------------------------
# From spans of text


def from_spans(spans: Spans, kind: ValueType, verdict: Array, bad: int, digits: int) -> pa.Array:
    """The values of lines of text; rows with a value of another type get the verdict `bad`."""
    rows = verdict.size
    valid = np.empty(rows, np.bool_)
    if kind is ValueType.STRING:
        find_strings(spans, verdict, bad, valid)
        return _strings(spans, valid)
    if kind is ValueType.PATH:
        find_lists(spans, verdict, bad, valid)
        column, is_bad = checked_paths(_strings(spans, valid))
        if is_bad is not None:
            verdict[is_bad] = bad
        return column
    if kind is ValueType.FLOAT:
        return _floats(spans, verdict, bad)
    if kind is ValueType.BOOL:
        flags = np.empty(rows, np.bool_)
        read_bools(spans, verdict, bad, flags, valid)
        return _array(flags, valid)
    values = np.empty(rows, np.int64)
    if kind is ValueType.TIME:
        read_times(spans, verdict, bad, digits, values, valid)
    else:
        read_integers(spans, verdict, bad, values, valid)
    return _array(values, valid)


def _array(values: Array, valid: Array) -> pa.Array:
    return pa.array(values) if valid.all() else pa.array(values, mask=~valid)


def _strings(spans: Spans, valid: Array) -> pa.Array:
    start = np.where(valid, spans.start, 0)
    end = np.where(valid, spans.end, 0)
    out = np.empty(int((end - start).sum()), np.uint8)
    offsets = np.empty(valid.size + 1, np.int64)
    gather_spans(spans.data, start, end, out, offsets)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.large_string(), valid.size, [mask, pa.py_buffer(offsets), pa.py_buffer(out)]
    )


ROUND_LATER = 2


def _floats(spans: Spans, verdict: Array, bad: int) -> pa.Array:
    values = np.empty(verdict.size, np.float64)
    state = np.empty(verdict.size, np.int8)
    read_floats(spans, verdict, bad, values, state)
    later = np.flatnonzero(state == ROUND_LATER)
    if later.size:
        chosen = Spans(spans.data, spans.start[later], spans.end[later], spans.kind[later])
        values[later] = _strings(chosen, np.ones(later.size, np.bool_)).cast(pa.float64()).to_numpy()
    return _array(values, state != 0)


# ---------------------------------------------------------------------------------------------------------
# From Arrow


def value_type(kind: pa.DataType) -> ValueType | None:
    """The type of the values of an Arrow column; None for one that no property has."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_string(plain):
        return ValueType.STRING
    if pa.types.is_integer(plain):
        return ValueType.INT
    if pa.types.is_floating(plain) or pa.types.is_decimal(plain):
        return ValueType.FLOAT
    if pa.types.is_boolean(plain):
        return ValueType.BOOL
    if is_path_type(plain):
        return ValueType.PATH
    return ValueType.TIME if pa.types.is_timestamp(plain) or pa.types.is_date(plain) else None


def is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def check_value_type(kind: pa.DataType, wanted: ValueType, column: str) -> None:
    """Refuse a column whose values are not of the type; an empty column of nulls is of every type."""
    check_readable(value_type(kind), pa.types.is_null(kind), wanted, column, str(kind))


def check_readable(
    given: ValueType | None, is_null: bool, wanted: ValueType, column: str, shown_type: str
) -> None:
    if given not in READABLE[wanted] and not is_null:
        hint = f"declare the property as {given}, or convert the column" if given else "convert the column"
        if wanted is ValueType.PATH:
            hint = "a path is a list of edges [src, label, trg]; declare the property with its own type"
        raise InputError(f"{column} has type {shown_type}, and the query reads it as {wanted}", hint=hint)


def decode_dictionary(column: pa.Array) -> pa.Array:
    """A column of values instead of codes into a dictionary."""
    if column.type.value_type == pa.string_view():  # as polars has it, and Arrow cannot take from
        strings = column.dictionary.cast(pa.large_string())
        column = pa.DictionaryArray.from_arrays(column.indices, strings)
    return column.dictionary_decode()


def from_arrow_column(column: pa.Array, kind: ValueType, unit: str) -> Converted:
    """The values of an Arrow column whose type `check_value_type` accepts."""
    given = column.type
    if pa.types.is_null(given):
        return pa.nulls(len(column), ARROW_TYPES[kind]), None
    if pa.types.is_dictionary(given):
        column = decode_dictionary(column)
        given = column.type
    if kind is ValueType.STRING:
        return _valid_text(column.cast(pa.large_string()))
    if kind is ValueType.PATH:
        return _paths_of_text(column.cast(pa.large_string())) if is_string(given) else arrow_paths(column)
    if kind is ValueType.BOOL:
        return column, None
    if kind is ValueType.FLOAT:
        return _without_nan(column), None
    if pa.types.is_integer(given):
        return _int64(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if is_string(given):
        times, is_time = times_of_text(column, unit)
        bad = valid & ~is_time
    else:
        times, beyond = times_of_timestamps(column, unit)
        bad = valid & beyond
    return _array(times, valid & ~bad), bad if bad.any() else None


def _valid_text(column: pa.Array) -> Converted:
    """The strings; Arrow does not check that those of a file are UTF-8."""
    import pyarrow.compute as pc

    text = arrow_text(column)
    verdict = np.zeros(text.rows, np.int16)
    judge_text(text.data, text.start, text.end, NOT_UTF8, verdict)
    bad = verdict != FINE
    if not bad.any():
        return column, None
    return pc.if_else(pa.array(bad), None, column), bad


def _paths_of_text(column: pa.Array) -> Converted:
    text, bad = _valid_text(column)
    paths, others = checked_paths(text)
    return paths, others if bad is None else bad if others is None else bad | others


def _without_nan(column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    if pa.types.is_decimal(column.type):
        # Arrow multiplies by a power of ten, which is often not the nearest double: 6.1 would not equal 6.1.
        column = column.cast(pa.string())
    floats = column.cast(pa.float64(), safe=False)
    nan = pc.is_nan(floats)
    return pc.if_else(nan, None, floats) if pc.any(nan).as_py() else floats


def _int64(column: pa.Array) -> Converted:
    import pyarrow.compute as pc

    if column.type != pa.uint64():
        return column.cast(pa.int64()), None
    large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())).fill_null(False)
    if not pc.any(large).as_py():
        return column.cast(pa.int64()), None
    return pc.if_else(large, None, column).cast(pa.int64()), large.to_numpy(zero_copy_only=False)


def times_of_timestamps(column: pa.Array, unit: str) -> tuple[Array, Array]:
    """Timestamps or dates in the unit, rounded down, and which of them are beyond 64 bits; a null is 0."""
    if pa.types.is_date32(column.type):
        count, per_second = DAY, 1
        values = column.cast(pa.int32()).cast(pa.int64())
    else:
        count, per_second = 1, UNITS_PER_SECOND["ms" if pa.types.is_date64(column.type) else column.type.unit]
        values = column.cast(pa.int64())
    times = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))
    factor = count * UNITS_PER_SECOND[unit]
    if factor % per_second:
        return times // (per_second // factor), np.zeros(times.size, np.bool_)
    factor //= per_second
    if factor == 1:
        return times, np.zeros(times.size, np.bool_)
    limit = (2**63 - 1) // factor
    beyond = (times > limit) | (times < -limit)
    return np.where(beyond, 0, times) * factor, beyond


def times_of_text(column: pa.Array, unit: str) -> tuple[Array, Array]:
    """Times of ISO 8601 in the unit, and which of the texts are such."""
    text = arrow_text(column.cast(pa.large_string()))
    times = np.empty(text.rows, np.int64)
    is_time = np.empty(text.rows, np.bool_)
    read_iso_times(text.data, text.start, text.end, TIME_DIGITS[unit], times, is_time)
    return times, is_time


# ---------------------------------------------------------------------------------------------------------
# From Python

PYTHON_TYPES: Mapping[ValueType, tuple[type, ...]] = {
    ValueType.INT: (int, np.integer),
    ValueType.FLOAT: (float, int, np.floating, np.integer),
    ValueType.STRING: (str,),
    ValueType.BOOL: (bool, np.bool_),
    ValueType.TIME: (int, np.integer),
    ValueType.PATH: (),
}
"""The types of Python objects that Arrow converts as they are; bool, a subclass of int, counts for BOOL alone."""

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)


def from_python(values: Sequence[Any], kind: ValueType, unit: str) -> Converted:
    """The values of Python objects. None and NaN are null; a TIME may be a datetime, a date, or text of ISO 8601."""
    if kind is ValueType.PATH:
        return python_paths([None if is_nan(value) else value for value in values])
    kinds = set(map(type, values)) - {type(None)}
    if all(
        issubclass(known, PYTHON_TYPES[kind]) and _is_flag(known) == (kind is ValueType.BOOL)
        for known in kinds
    ):
        try:
            return pa.array(values, ARROW_TYPES[kind], from_pandas=True), None
        except (OverflowError, UnicodeEncodeError, pa.ArrowException):
            pass  # some of the values cannot be converted: which of them is found one by one
    bad = np.zeros(len(values), np.bool_)
    converted: list[Any] = [None] * len(values)
    for row, value in enumerate(values):
        if value is None or is_nan(value):
            continue
        try:
            converted[row] = python_value(value, kind, unit)
        except (TypeError, ValueError, OverflowError):
            bad[row] = True
    return pa.array(converted, ARROW_TYPES[kind], from_pandas=True), bad if bad.any() else None


def _is_flag(kind: type) -> bool:
    return issubclass(kind, bool | np.bool_)


def is_nan(value: Any) -> bool:
    """Whether the value is NaN, or the NaT of pandas."""
    return isinstance(value, float | np.floating | datetime.datetime | Decimal) and bool(value != value)


def python_value(value: Any, kind: ValueType, unit: str) -> Any:
    """The value as one of the property's type; raises ValueError if it is not."""
    if kind is ValueType.TIME:
        return python_time(value, unit)
    if _is_flag(type(value)) != (kind is ValueType.BOOL):
        raise ValueError(value)
    if kind is ValueType.BOOL:
        return bool(value)
    if kind is ValueType.FLOAT and isinstance(value, float | int | np.floating | np.integer | Decimal):
        return float(value)
    if kind is ValueType.INT and isinstance(value, int | np.integer):
        return _within_64_bits(int(value))
    if kind is ValueType.STRING and isinstance(value, str):
        value.encode()
        return str(value)
    raise ValueError(value)


def python_time(value: Any, unit: str) -> int:
    """The integer, datetime, date or text of ISO 8601 as a time in the unit; raises ValueError if it is none."""
    if isinstance(value, int | np.integer) and not _is_flag(type(value)):
        return _within_64_bits(int(value))
    if isinstance(value, str):
        text = as_text([value])
        is_time, time = read_iso_time(text.data, 0, text.data.size, TIME_DIGITS[unit])
        if is_time:
            return int(time)
        raise ValueError(value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise ValueError(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    microseconds: int = (value - EPOCH) // MICROSECOND
    return microseconds // (10**6 // UNITS_PER_SECOND[unit])


def _within_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(value)
    return value


# ---------------------------------------------------------------------------------------------------------
# To bytes and back


def pack_columns(columns: Mapping[str, pa.Array]) -> Array:
    """The columns as the bytes of an Arrow stream."""
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return np.frombuffer(sink.getvalue(), np.uint8)


def unpack_columns(data: Array) -> dict[str, pa.Array]:
    """The columns of `pack_columns`, which share no memory with `data`."""
    with pa.ipc.open_stream(pa.py_buffer(data.tobytes())) as reader:
        batch = reader.read_next_batch()
    return dict(zip(batch.schema.names, batch.columns, strict=True))
