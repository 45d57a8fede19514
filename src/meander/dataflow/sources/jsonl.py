"""`.jsonl`: one JSON object per line, with `src`, `label`, `trg`, `ts` and perhaps `op` among its fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from meander.dataflow.edges import as_text
from meander.dataflow.layout import ANSWER, EXPIRY, PROPERTIES, StreamLayout
from meander.dataflow.records import NumberText, given_value
from meander.dataflow.sources.header import SPAN_ROWS, span_row
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.dataflow.tabular import is_encodable, judge_row, row_of_record
from meander.kernels.jit import Array
from meander.kernels.parsing import (
    ABSENT,
    FINE,
    LABEL,
    LINE,
    NOT_UTF8,
    SRC,
    TRG,
    UNDECIDED,
    UNPARSABLE,
    Rows,
)
from meander.kernels.parsing_json import NestedShape, ObjectShape, split_jsonl
from meander.kernels.parsing_values import (
    JSON_BOOL,
    JSON_LIST,
    JSON_NUMBER,
    JSON_OTHER,
    JSON_STRING,
    PLAIN,
)
from meander.syntax.values import ALL_PROPERTIES


class JsonlFormat(TextFormat):
    fixed_columns = False
    row_hint = (
        'a line of a .jsonl file is an object such as {"src": "a", "label": "knows", "trg": "b", "ts": 1}'
    )

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        return jsonl_parser(reader.layout), head

    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        try:
            fields = json.loads(first_line(path))
        except (ValueError, RecursionError):
            return []
        return list(fields) if isinstance(fields, dict) else []


def jsonl_parser(layout: StreamLayout) -> Parser:
    shape = object_shape(layout)

    def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
        at, count, block.tail = split_jsonl(
            block.data, at, block.size, block.final, block.beyond_ascii, block.tail, shape, rows
        )
        for row in np.flatnonzero(rows.verdict[:count] == UNDECIDED):
            block.tail = _judge_object(block.data, block.tail, rows, int(row), layout)
        return at, count

    return parse


def object_shape(layout: StreamLayout) -> ObjectShape:
    """The keys that the kernel looks for."""
    columns = layout.columns_wanted
    field = np.full(len(columns), -1, np.int64)
    value_row = np.full(len(columns), ABSENT, np.int64)
    for name, column in layout.columns_read.items():
        if name == ALL_PROPERTIES.name:
            continue
        target = field if name in SPAN_ROWS else value_row
        target[columns.index(column)] = span_row(layout, name)
    encoded = [column.encode() for column in columns]
    ends = np.cumsum([0, *map(len, encoded)])
    needed = sum(1 << SPAN_ROWS[name] for name in layout.required)
    keys = np.frombuffer(b"".join(encoded), np.uint8)
    nested_row = value_row.copy()
    properties = answer = -1
    text_row = ABSENT
    if layout.schema.tuples:
        nested_row[columns.index(layout.column(EXPIRY.name))] = ABSENT
        properties, answer = columns.index(PROPERTIES), columns.index(ANSWER)
        if ALL_PROPERTIES.name in layout.types:
            text_row = span_row(layout, ALL_PROPERTIES.name)
    nested = NestedShape(nested_row, properties, answer, text_row)
    return ObjectShape(keys, ends[:-1], ends[1:], field, value_row, needed, layout.digits, nested)


def _judge_object(buffer: Array, tail: int, rows: Rows, row: int, layout: StreamLayout) -> int:
    """Judge a line of JSON that the kernel left undecided; its names and values go to the tail."""
    raw = buffer[rows.start[LINE, row] : rows.end[LINE, row]].tobytes()
    try:
        fields = json.loads(
            raw.decode(), parse_int=NumberText, parse_float=NumberText, parse_constant=NumberText
        )
        if not isinstance(fields, dict):
            raise ValueError(fields)
        values = [_value(given_value(fields, layout, name), len(raw)) for name in layout.types]
        edge, is_vertex = row_of_record(fields, layout, _number)
        verdict = judge_row(edge)
    except (UnicodeDecodeError, UnicodeEncodeError):
        verdict = NOT_UTF8
    except (ValueError, RecursionError):
        verdict = UNPARSABLE
    rows.verdict[row] = verdict
    if verdict != FINE:
        return tail

    def write(span_row: int, content: Array) -> None:
        nonlocal tail
        rows.start[span_row, row] = tail
        buffer[tail : tail + content.size] = content
        tail += content.size
        rows.end[span_row, row] = tail

    src, label, trg, ts, *op = edge
    names = (
        {SRC: src} | ({} if is_vertex else {TRG: trg}) | ({} if layout.label is not None else {LABEL: label})
    )
    for target, value in names.items():
        name = as_text([value])
        write(target, name.data)
        rows.kind[target, row] = name.kind[0]
    if is_vertex:
        for column in (rows.start, rows.end, rows.kind):
            column[TRG, row] = column[SRC, row]
    for property_name, (kind, content) in zip(layout.types, values, strict=True):
        target = span_row(layout, property_name)
        write(target, np.frombuffer(content, np.uint8))
        rows.kind[target, row] = kind
        if kind == PLAIN:
            rows.start[target, row] = ABSENT
    rows.ts[row] = ts
    rows.op[row] = -1 if op == ["-"] else 1
    rows.vertex[row] = is_vertex
    return tail


def _number(value: Any) -> Any:
    """The value of a field, numbers as Python has them."""
    if not isinstance(value, NumberText):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _numbers(value: Any) -> Any:
    """A value of JSON with numbers as Python has them."""
    if isinstance(value, dict):
        return {name: _numbers(part) for name, part in value.items()}
    return [_numbers(part) for part in value] if isinstance(value, list) else _number(value)


def _value(value: Any, most: int) -> tuple[int, bytes]:
    """The kind and the text of a property's value, which has at most as many bytes as its line; null is `PLAIN`."""
    if value is None:
        return PLAIN, b""
    if isinstance(value, bool):
        return JSON_BOOL, b"true" if value else b"false"
    if isinstance(value, str) and is_encodable(value):
        return JSON_NUMBER if isinstance(value, NumberText) else JSON_STRING, value.encode()
    if isinstance(value, list):
        text = json.dumps(_numbers(value), ensure_ascii=False, separators=(",", ":")).encode()
        return (JSON_LIST, text) if len(text) <= most else (JSON_OTHER, b"")
    return JSON_OTHER, b""
