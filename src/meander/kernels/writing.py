"""Answer records to lines of JSON, as bytes.

A record is a row of values (the vertices, `ts`, `exp`, `op`, and its named values) with literal text before each, and
after the last. The literals come as one buffer, so that the same kernel writes edges (`src`, `trg`, `label`) and
answers of any arity, with and without paths. It stops before a record that might not fit into the rest of the output.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import Array, kernel
from meander.kernels.spans import load_word

NO_EXPIRY = -1
NO_TIME = -1

END, PATH, PATH_END, NO_PATH = range(4)
"""Literals after those of the values: the end of a record without path, and the text around a path."""

INTERVAL_VALUES = 3
"""The values after the vertices: `ts`, `exp` and `op`."""

QUOTE, BACKSLASH, SPACE, COMMA, BRACKET_OPEN, BRACKET_CLOSE, PLUS, MINUS, ZERO = (
    34,
    92,
    32,
    44,
    91,
    93,
    43,
    45,
    48,
)
LETTER_A, LETTER_U = 97, 117
NULL = np.frombuffer(b"null", np.uint8)
SHORT_ESCAPES = np.zeros(32, np.uint8)
SHORT_ESCAPES[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", np.uint8)

TEN = np.uint64(10)

VERBATIM = 2
"""The kind of a span that is JSON text already, beside the kinds of names: 0 for strings, 1 for integers."""

MOST_DIGITS = 20
MOST_ESCAPED = 6


class Columns(NamedTuple):
    """Columns of names over one buffer: `start`, `end` and `kind` have one row for each column."""

    data: Array
    start: Array
    end: Array
    kind: Array


class EdgeColumns(NamedTuple):
    """The edges of paths; `times` has `NO_TIME` for an edge without one, or is empty."""

    ends: Columns
    labels: Columns
    times: Array


class PathColumns(NamedTuple):
    """The paths of records: `offsets` delimits the steps of each, and a step is an edge.

    The JSON text of edge i is `text[bounds[i] : bounds[i + 1]]`.
    """

    given: Array
    offsets: Array
    step: Array
    text: Array
    bounds: Array


class Records(NamedTuple):
    """The records to write: `most` bounds the bytes of each."""

    most: Array
    vertices: Columns
    ts: Array
    exp: Array
    op: Array
    values: Columns
    has_paths: bool
    paths: PathColumns


@kernel
def put_literal(out: Array, at: int, literals: Array, start: int, end: int) -> int:
    for i in range(start, end):
        out[at] = literals[i]
        at += 1
    return at


@kernel
def put_integer(out: Array, at: int, value: Any) -> int:
    """The decimal digits of an int64; the output has room for `MOST_DIGITS`."""
    if value < 0:
        out[at] = MINUS
        at += 1
        # -2**63 cannot be negated in int64; negate value + 1 instead.
        rest = np.uint64(-(value + 1)) + np.uint64(1)
    else:
        rest = np.uint64(value)
    first = at + MOST_DIGITS - 1
    last = first
    while True:
        first -= 1
        tenth = rest // TEN
        out[first] = ZERO + np.int64(rest - tenth * TEN)
        rest = tenth
        if rest == 0:
            break
    for i in range(last - first):
        out[at + i] = out[first + i]
    return at + last - first


@kernel
def put_string(out: Array, at: int, data: Array, start: int, end: int) -> int:
    """The UTF-8 bytes in quotes, with JSON's escapes and no others."""
    out[at] = QUOTE
    at += 1
    for i in range(start, end):
        byte = data[i]
        if byte >= SPACE and byte != QUOTE and byte != BACKSLASH:
            out[at] = byte
            at += 1
            continue
        out[at] = BACKSLASH
        if byte >= SPACE:
            out[at + 1] = byte
            at += 2
        elif SHORT_ESCAPES[byte]:
            out[at + 1] = SHORT_ESCAPES[byte]
            at += 2
        else:
            out[at + 1] = LETTER_U
            out[at + 2] = ZERO
            out[at + 3] = ZERO
            out[at + 4] = ZERO + (byte >> 4)
            low = byte & 15
            out[at + 5] = ZERO + low if low < 10 else LETTER_A + low - 10
            at += 6
    out[at] = QUOTE
    return at + 1


@kernel
def put_name(out: Array, at: int, data: Array, start: int, end: int, kind: int) -> int:
    if kind:
        return put_integer(out, at, np.int64(load_word(data, start)))
    return put_string(out, at, data, start, end)


@kernel
def write_edges(edges: EdgeColumns, out: Array, bounds: Array) -> None:
    """Write each edge as `[src,label,trg]` or `[src,label,trg,ts]`, and where each begins. Needs room for all."""
    ends, labels = edges.ends, edges.labels
    at = 0
    for edge in range(bounds.size - 1):
        out[at] = BRACKET_OPEN
        at = put_name(out, at + 1, ends.data, ends.start[0, edge], ends.end[0, edge], ends.kind[0, edge])
        out[at] = COMMA
        at = put_string(out, at + 1, labels.data, labels.start[0, edge], labels.end[0, edge])
        out[at] = COMMA
        at = put_name(out, at + 1, ends.data, ends.start[1, edge], ends.end[1, edge], ends.kind[1, edge])
        if edges.times.size and edges.times[edge] != NO_TIME:
            out[at] = COMMA
            at = put_integer(out, at + 1, edges.times[edge])
        out[at] = BRACKET_CLOSE
        at += 1
        bounds[edge + 1] = at


@kernel
def measure_paths(paths: PathColumns, size: Array) -> None:
    """For each path the bytes of its edges, with a separator after each."""
    for row in range(size.size):
        total = 0
        for at in range(paths.offsets[row], paths.offsets[row + 1]):
            edge = paths.step[at]
            total += paths.bounds[edge + 1] - paths.bounds[edge] + 1
        size[row] = total


@kernel
def put_path(out: Array, at: int, first: int, last: int, paths: PathColumns) -> int:
    """The steps from `first` to `last`, without the brackets around them."""
    for step in range(first, last):
        if step > first:
            out[at] = COMMA
            at += 1
        edge = paths.step[step]
        for i in range(paths.bounds[edge], paths.bounds[edge + 1]):
            out[at] = paths.text[i]
            at += 1
    return at


@kernel
def write_paths(paths: PathColumns, most: Array, row: int, out: Array, at: int, end: Array) -> int:
    """Write the paths from `row` on as JSON text, one after the other from `at` on, and where each ends; returns the
    first for which there is no room, `most` being the bytes that each may take."""
    while row < most.size:
        if at + most[row] > out.size:
            break
        if paths.given[row]:
            out[at] = BRACKET_OPEN
            at = put_path(out, at + 1, paths.offsets[row], paths.offsets[row + 1], paths)
            out[at] = BRACKET_CLOSE
            at += 1
        else:
            at = put_literal(out, at, NULL, 0, NULL.size)
        end[row] = at
        row += 1
    return row


@kernel
def put_value(out: Array, at: int, values: Columns, column: int, row: int) -> int:
    start, end = values.start[column, row], values.end[column, row]
    if values.kind[column, row] == VERBATIM:
        return put_literal(out, at, values.data, start, end)
    return put_name(out, at, values.data, start, end, values.kind[column, row])


@kernel
def write_records(records: Records, literals: Array, bounds: Array, row: int, out: Array) -> tuple[int, int]:
    """Write records from `row` on; returns the first that is not written, and the length of the output."""
    at = 0
    data = records.vertices.data
    start = records.vertices.start
    end = records.vertices.end
    kind = records.vertices.kind
    arity = start.shape[0]
    fields = arity + INTERVAL_VALUES
    named = records.values.start.shape[0]
    endings = fields + named
    while row < records.ts.size:
        if at + records.most[row] > out.size:
            break
        for field in range(fields):
            # Inlined, as is the number below: a call would cost more than the few bytes.
            for i in range(bounds[field], bounds[field + 1]):
                out[at] = literals[i]
                at += 1
            if field < arity:
                if kind[field, row] == 0:
                    at = put_string(out, at, data, start[field, row], end[field, row])
                    continue
                value = np.int64(load_word(data, start[field, row]))
            elif field == arity:
                value = records.ts[row]
            elif field == arity + 1:
                value = records.exp[row]
                if value == NO_EXPIRY:
                    at = put_literal(out, at, NULL, 0, NULL.size)
                    continue
            else:
                out[at] = PLUS if records.op[row] > 0 else MINUS
                at += 1
                continue
            at = put_integer(out, at, value)
        for column in range(named):
            at = put_literal(out, at, literals, bounds[fields + column], bounds[fields + column + 1])
            at = put_value(out, at, records.values, column, row)
        last = END
        if records.has_paths and not records.paths.given[row]:
            last = NO_PATH
        elif records.has_paths:
            offsets = records.paths.offsets
            at = put_literal(out, at, literals, bounds[endings + PATH], bounds[endings + PATH + 1])
            at = put_path(out, at, offsets[row], offsets[row + 1], records.paths)
            last = PATH_END
        at = put_literal(out, at, literals, bounds[endings + last], bounds[endings + last + 1])
        row += 1
    return row, at
