"""Paths that come in as values: each is numbered by its JSON text, as a name is.

So the path of a tuple is a key column of its scan like any other value, and is read again where an answer returns it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.answers import NO_TIME, Paths
from meander.dataflow.edges import MAX_TIME, Text, arrow_text, as_text, concat_texts, frozen, integer_text
from meander.dataflow.sinks.jsonl import path_text
from meander.kernels.jit import Array
from meander.kernels.parsing_paths import FIELDS, PathEdges, most_edges, split_paths

STEP = ("src", "label", "trg", "ts")
TEXT = pa.large_string()


def read_paths(texts: Text) -> Paths:
    """The paths that some texts hold; a text that is not a path gives none."""
    paths = _usual_paths(texts)
    return paths if paths.given.all() else _with_unusual(paths, texts)


def _usual_paths(texts: Text) -> Paths:
    """The paths of those texts that the kernel reads."""
    data, bounds = texts.packed()
    most = most_edges(data)
    words = data.size
    room = np.concatenate([data, np.zeros(16 * most, np.uint8)])
    edges = PathEdges(
        np.zeros((FIELDS, most), np.int64),
        np.zeros((FIELDS, most), np.int64),
        np.zeros((FIELDS, most), np.int8),
        np.full(most, NO_TIME),
    )
    offsets, usual = np.zeros(texts.rows + 1, np.int64), np.zeros(texts.rows, np.bool_)
    split_paths(room, bounds, words, edges, offsets, usual)
    count = int(offsets[-1])
    src, label, trg = (
        Text(frozen(room), *(column[field, :count] for column in edges[:FIELDS])) for field in range(FIELDS)
    )
    return Paths(offsets, src, label, trg, usual, edges.ts[:count])


def _with_unusual(paths: Paths, texts: Text) -> Paths:
    """The paths, and those of texts that the kernel has not read."""
    rows = np.flatnonzero(~paths.given)
    known = path_rows([python_path(text) for text in _json_values(texts.take(rows))])
    length = np.diff(paths.offsets)
    length[rows] = np.diff(known.offsets)
    begin = paths.offsets[:-1].copy()
    begin[rows] = paths.label.rows + known.offsets[:-1]
    given = paths.given.copy()
    given[rows] = known.given
    offsets = np.concatenate([[0], np.cumsum(length)])
    order = np.repeat(begin - offsets[:-1], length) + np.arange(offsets[-1])
    src, label, trg = (
        concat_texts([getattr(paths, name), getattr(known, name)]).take(order) for name in STEP[:FIELDS]
    )
    assert paths.ts is not None
    assert known.ts is not None
    return Paths(offsets, src, label, trg, given, np.concatenate([paths.ts, known.ts])[order])


def _json_values(texts: Text) -> list[Any]:
    values: list[Any] = []
    data, bounds = texts.packed()
    raw = data.tobytes()
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        try:
            values.append(json.loads(raw[start:end]))
        except (ValueError, RecursionError):
            values.append(None)
    return values


def path_rows(values: Sequence[list[tuple[Any, ...]] | None]) -> Paths:
    """Paths of `python_path` as columns."""
    lengths = [len(value or ()) for value in values]
    steps = [step for value in values for step in value or ()]
    src, label, trg = (as_text([step[field] for step in steps]) for field in range(FIELDS))
    return Paths(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        src,
        label,
        trg,
        np.array([value is not None for value in values], np.bool_),
        np.array([step[FIELDS] for step in steps], np.int64),
    )


def python_path(value: Any) -> list[tuple[Any, ...]] | None:
    """The edges `(src, label, trg, ts)` of a path whose steps are sequences or mappings; None for what is no path."""
    if isinstance(value, np.ndarray):
        value = list(value)
    if not isinstance(value, list | tuple):
        return None
    steps = [python_step(step) for step in value]
    return None if None in steps else [step for step in steps if step is not None]


def python_step(step: Any) -> tuple[Any, ...] | None:
    if isinstance(step, Mapping):
        if not set(STEP[:FIELDS]) <= set(step) <= set(STEP):
            return None
        step = [step.get(name) for name in STEP]
    elif isinstance(step, np.ndarray):
        step = list(step)
    if not isinstance(step, list | tuple) or not FIELDS <= len(step) <= len(STEP):
        return None
    src, label, trg, ts = (*step, None)[: len(STEP)]
    if not (_is_vertex(src) and _is_vertex(trg) and isinstance(label, str) and _is_vertex(label)):
        return None
    if ts is None:
        ts = NO_TIME
    elif not _is_integer(ts) or not 0 <= ts <= MAX_TIME:
        return None
    return src, label, trg, ts


def _is_vertex(value: Any) -> bool:
    if isinstance(value, str):
        try:
            return bool(value.encode())
        except UnicodeEncodeError:
            return False
    return _is_integer(value) and -(2**63) <= value < 2**63


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def path_column(paths: Paths) -> pa.Array:
    """Paths as a column of their texts, null where there is none."""
    data, offsets = path_text(paths).packed()
    column = pa.LargeStringArray.from_buffers(paths.given.size, pa.py_buffer(offsets), pa.py_buffer(data))
    if paths.given.all():
        return column
    import pyarrow.compute as pc

    return pc.if_else(pa.array(paths.given), column, None)


def checked_paths(column: pa.Array) -> tuple[pa.Array, Array | None]:
    """A column of texts of paths, null where a text is not one, and which these are."""
    given = column.is_valid().to_numpy(zero_copy_only=False)
    texts = arrow_text(column)
    paths = _usual_paths(texts)
    if not (given & ~paths.given).any():
        return column, None
    paths = _with_unusual(paths, texts)
    bad = given & ~paths.given
    return path_column(paths), bad if bad.any() else None


def is_path_type(kind: pa.DataType) -> bool:
    """Whether the values of an Arrow column are lists of edges."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    step = kind.value_type
    if pa.types.is_struct(step):
        names = [field.name for field in step]
        return set(STEP[:FIELDS]) <= set(names) <= set(STEP)
    return bool(pa.types.is_list(step) or pa.types.is_large_list(step))


def arrow_paths(column: pa.Array) -> tuple[pa.Array, Array | None]:
    """A column of a type that `is_path_type` accepts as one of texts, and which rows are no paths."""
    import pyarrow.compute as pc

    steps = column.flatten()
    if not _has_plain_steps(steps.type):
        return python_paths(column.to_pylist())
    names = [_step_names(pc.struct_field(steps, name)) for name in STEP[:FIELDS]]
    is_bad = np.zeros(len(steps), np.bool_)
    for name in STEP[:FIELDS]:
        is_bad |= ~pc.struct_field(steps, name).is_valid().to_numpy(zero_copy_only=False)
    for text in names:
        is_bad |= text.start == text.end
    ts = np.full(len(steps), NO_TIME)
    if steps.type.get_field_index("ts") >= 0:
        times = pc.struct_field(steps, "ts").cast(pa.int64())
        ts = np.asarray(times.fill_null(NO_TIME).to_numpy(zero_copy_only=False))
        timeless = times.is_null().to_numpy(zero_copy_only=False)
        is_bad |= ~timeless & ((ts < 0) | (ts > MAX_TIME))
    length = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(length)])
    given = column.is_valid().to_numpy(zero_copy_only=False)
    bad = np.zeros(given.size, np.bool_)
    bad[np.repeat(np.arange(given.size), length)[is_bad]] = True
    src, label, trg = names
    # What is bad is written all the same, and is null then.
    return path_column(Paths(offsets, src, label, trg, given & ~bad, ts)), bad if bad.any() else None


def _has_plain_steps(kind: pa.DataType) -> bool:
    """Whether steps are structs of strings and integers, as runs write them."""
    if not pa.types.is_struct(kind):
        return False
    types = {field.name: field.type for field in kind}
    strings = {pa.string(), pa.large_string()}
    vertices = {*strings, pa.int64(), pa.int32()}
    return (
        types["label"] in strings
        and {types["src"], types["trg"]} <= vertices
        and types.get("ts", pa.int64()) in {pa.int64(), pa.int32()}
    )


def _step_names(column: pa.Array) -> Text:
    if pa.types.is_integer(column.type):
        return integer_text(column.fill_null(0).to_numpy(zero_copy_only=False))
    return arrow_text(column)


def python_paths(values: Sequence[Any]) -> tuple[pa.Array, Array | None]:
    """Python objects as a column of the texts of paths, and which of them are no paths."""
    paths = path_rows([None if value is None else python_path(value) for value in values])
    bad = np.array([value is not None for value in values], np.bool_) & ~paths.given
    return path_column(paths), bad if bad.any() else None
