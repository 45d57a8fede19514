"""Answers as lines of JSON: from columns to bytes, without a Python object per record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.dataflow.answers import PATH, SLOT, Answers, AnswerSchema, Paths, ValueColumn
from meander.dataflow.edges import Text, arrow_text, concat_texts, frozen, integer_text
from meander.kernels.jit import Array
from meander.kernels.writing import (
    MOST_DIGITS,
    MOST_ESCAPED,
    NULL,
    VERBATIM,
    Columns,
    EdgeColumns,
    PathColumns,
    Records,
    measure_paths,
    write_edges,
    write_paths,
    write_records,
)
from meander.syntax.values import ValueType

OUTPUT_BYTES = 1 << 20
NO_TIMES = np.empty(0, np.int64)


def jsonl_blocks(answers: Answers) -> Iterator[memoryview]:
    """The records, one per line, in blocks of whole lines. A block is valid until the next one is requested."""
    literals, bounds = _literals(answers.label, answers.schema)
    records = _records(answers, literals.size)
    out = np.empty(max(OUTPUT_BYTES, int(records.most.max(initial=0))), np.uint8)
    row = 0
    while row < answers.rows:
        row, length = write_records(records, literals, bounds, row, out)
        yield out[:length].data


def _records(answers: Answers, literal_bytes: int) -> Records:
    vertices = _columns(answers.rows, answers.vertices)
    proof = () if answers.proof is None else (answers.proof,)
    values = _columns(answers.rows, (*map(json_text, answers.properties), *proof))
    most = _most_bytes(vertices) + _most_bytes(values) + literal_bytes + 3 * MOST_DIGITS
    paths = NO_PATHS
    if answers.path is not None:
        paths = _path_columns(answers.path)
        most = most + _path_bytes(paths)
    return Records(
        most=most,
        vertices=vertices,
        ts=np.ascontiguousarray(answers.ts, np.int64),
        exp=np.ascontiguousarray(answers.exp, np.int64),
        op=np.ascontiguousarray(answers.op, np.int8),
        values=values,
        has_paths=answers.path is not None,
        paths=paths,
    )


def _path_columns(paths: Paths) -> PathColumns:
    """The paths with the text of each edge, which is written once however many paths have the edge."""
    edges = EdgeColumns(
        ends=_columns(paths.src.rows, (paths.src, paths.trg)),
        labels=_columns(paths.label.rows, (paths.label,)),
        times=NO_TIMES if paths.ts is None else np.ascontiguousarray(paths.ts, np.int64),
    )
    most = _most_bytes(edges.ends) + _most_bytes(edges.labels) + MOST_DIGITS + 1
    text, bounds = np.empty(int(most.sum()), np.uint8), np.zeros(most.size + 1, np.int64)
    write_edges(edges, text, bounds)
    return PathColumns(
        given=np.ascontiguousarray(paths.given, np.bool_),
        offsets=np.ascontiguousarray(paths.offsets, np.int64),
        step=np.ascontiguousarray(paths.steps, np.int64),
        text=text,
        bounds=bounds,
    )


def _path_bytes(paths: PathColumns) -> Array:
    """The bytes of each path, with a separator after each edge."""
    size = np.empty(paths.given.size, np.int64)
    measure_paths(paths, size)
    return size


def json_text(column: ValueColumn) -> Text:
    """The values as spans that the writing kernel knows: names, or JSON text."""
    if isinstance(column.values, Paths):
        return path_text(column.values)
    if isinstance(column.values, Text):
        return column.values
    if column.type in (ValueType.INT, ValueType.TIME):
        return integer_text(column.values)
    if column.type == ValueType.BOOL:
        shown = pc.if_else(pa.array(column.values, pa.bool_()), "true", "false")
    else:
        shown = pa.array(column.values, pa.float64()).cast(pa.large_string())
        if (column.values == np.trunc(column.values)).any():
            # A whole number stays a FLOAT for whoever reads it.
            shown = pc.replace_substring_regex(shown, r"^(-?\d+)$", r"\1.0")
        if not np.isfinite(column.values).all():
            # JSON has no infinity: a number that is too large for a double is read as one.
            shown = pc.replace_substring(shown, "inf", "1e999")
    text = arrow_text(shown.cast(pa.large_string()))
    return text._replace(kind=np.full(text.rows, VERBATIM, np.int8))


def path_text(paths: Paths) -> Text:
    """Each path as JSON text, null for none."""
    columns = _path_columns(paths)
    most = _path_bytes(columns) + NULL.size
    out = np.empty(max(OUTPUT_BYTES, int(most.max(initial=0))), np.uint8)
    end = np.zeros(most.size, np.int64)
    row = 0
    while row < most.size:
        at = int(end[row - 1]) if row else 0
        row = write_paths(columns, most, row, out, at, end)
        if row < most.size:
            out = np.concatenate([out, np.empty_like(out)])
    start = np.concatenate([np.zeros(1, np.int64), end])[: most.size]
    return Text(frozen(out), start, end, np.full(most.size, VERBATIM, np.int8))


def _most_bytes(names: Columns) -> Array:
    """An upper bound, for each row, of the bytes of its names and of the separators between them."""
    factor = np.where(names.kind == VERBATIM, 1, MOST_ESCAPED)
    most: Array = (factor * (names.end - names.start) + MOST_DIGITS + 4).sum(axis=0)
    return most


def _columns(rows: int, texts: tuple[Text, ...]) -> Columns:
    """The texts as columns over one buffer, which those of one dataflow share already."""
    joined = concat_texts(texts)
    shape = (len(texts), rows)
    return Columns(
        joined.data,
        np.ascontiguousarray(joined.start).reshape(shape),
        np.ascontiguousarray(joined.end).reshape(shape),
        np.ascontiguousarray(joined.kind).reshape(shape),
    )


NO_PATHS = PathColumns(
    np.zeros(0, np.bool_), np.zeros(1, np.int64), NO_TIMES, np.zeros(0, np.uint8), np.zeros(1, np.int64)
)


@lru_cache(1024)
def _literals(label: str, schema: AnswerSchema) -> tuple[Array, Array]:
    """The text between the values of a record, in the order of the writing kernel, and where each literal begins."""
    fields = replace(schema, paths=False).fields
    template = "{" + ",".join(f'"{field.name}":{field.json(label, schema)}' for field in fields)
    *before_values, last = template.split(SLOT)
    path_opening, path_closing = PATH.json(label, schema).split(SLOT)
    endings = [
        f"{last}}}\n",
        f'{last},"{PATH.name}":{path_opening}',
        f"{path_closing}}}\n",
        f'{last},"{PATH.name}":null}}\n',
    ]
    encoded = [literal.encode() for literal in (*before_values, *endings)]
    bounds = np.cumsum([0] + [len(literal) for literal in encoded]).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), bounds
