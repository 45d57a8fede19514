"""Answer records to lines of JSON, as bytes.

A record is literal pieces with names and numbers between them; the pieces come as one buffer, so that the same
kernel writes edges (`src`, `trg`, `label`) and answers of any arity, with and without paths. The kernel stops
before a record that might not fit into what is left of the output.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import kernel
from meander.kernels.spans import load_word

Array = np.ndarray[Any, Any]

NO_EXPIRY = -1

HEAD, BETWEEN, TIME, EXPIRY, NO_END, INSERTED, DELETED, PATH, NO_PATH, LAST = range(10)
"""Places of the pieces: before the first vertex, between vertices, before the time, and so on to the line's end."""

QUOTE, BACKSLASH, SPACE, COMMA, OPEN, CLOSE, MINUS, ZERO = 34, 92, 32, 44, 91, 93, 45, 48
LETTER_A, LETTER_U = 97, 117
SHORT_ESCAPES = np.zeros(32, np.uint8)
SHORT_ESCAPES[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", np.uint8)

TEN = np.uint64(10)

MOST_DIGITS = 20
MOST_ESCAPED = 6


class Columns(NamedTuple):
    """Columns of names over one buffer: `start`, `end` and `kind` have one row for each column."""

    data: Array
    start: Array
    end: Array
    kind: Array


class Records(NamedTuple):
    """What is to be written; the paths' edges are all records' one after the other, from `offsets` to `offsets`."""

    vertices: Columns
    ts: Array
    exp: Array
    op: Array
    has_paths: bool
    given: Array
    offsets: Array
    ends: Columns
    labels: Columns


@kernel
def put_piece(out: Array, at: int, pieces: Array, bounds: Array, piece: int) -> int:
    for i in range(bounds[piece], bounds[piece + 1]):
        out[at] = pieces[i]
        at += 1
    return at


@kernel
def put_integer(out: Array, at: int, value: Any) -> int:
    """The decimal digits of an int64; the output has room for `MOST_DIGITS`."""
    if value < 0:
        out[at] = MINUS
        at += 1
        # The least int64 has no positive twin, but one more than it has.
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
def bound_names(start: Array, end: Array, row: int) -> Any:
    """The most bytes that the names of a row can take."""
    most = 0
    for column in range(start.shape[0]):
        most += MOST_ESCAPED * (end[column, row] - start[column, row]) + MOST_DIGITS + 2
    return most


@kernel
def put_path(out: Array, at: int, first: int, last: int, ends: Columns, labels: Columns) -> int:
    """The edges from `first` to `last`, `[src,label,trg]` each, without the brackets around them."""
    for edge in range(first, last):
        if edge > first:
            out[at] = COMMA
            at += 1
        out[at] = OPEN
        at = put_name(out, at + 1, ends.data, ends.start[0, edge], ends.end[0, edge], ends.kind[0, edge])
        out[at] = COMMA
        at = put_string(out, at + 1, labels.data, labels.start[0, edge], labels.end[0, edge])
        out[at] = COMMA
        at = put_name(out, at + 1, ends.data, ends.start[1, edge], ends.end[1, edge], ends.kind[1, edge])
        out[at] = CLOSE
        at += 1
    return at


@kernel
def bound_record(records: Records, bounds: Array, row: int) -> Any:
    """The most bytes that a record can take."""
    vertices = records.vertices
    between = bounds[BETWEEN + 1] - bounds[BETWEEN]
    most = bounds[bounds.size - 1] + vertices.start.shape[0] * between + 2 * (MOST_DIGITS + 2)
    most += bound_names(vertices.start, vertices.end, row)
    if records.has_paths:
        for edge in range(records.offsets[row], records.offsets[row + 1]):
            most += bound_names(records.ends.start, records.ends.end, edge) + 8
            most += bound_names(records.labels.start, records.labels.end, edge)
    return most


@kernel
def write_records(records: Records, pieces: Array, bounds: Array, row: int, out: Array) -> tuple[int, int]:
    """Write records from `row` on; returns the first that is not written, and the length of the output."""
    at = 0
    data = records.vertices.data
    start = records.vertices.start
    end = records.vertices.end
    kind = records.vertices.kind
    while row < records.ts.size:
        if at + bound_record(records, bounds, row) > out.size:
            break
        at = put_piece(out, at, pieces, bounds, HEAD)
        for column in range(start.shape[0]):
            if column:
                at = put_piece(out, at, pieces, bounds, BETWEEN)
            at = put_name(out, at, data, start[column, row], end[column, row], kind[column, row])
        at = put_piece(out, at, pieces, bounds, TIME)
        at = put_integer(out, at, records.ts[row])
        at = put_piece(out, at, pieces, bounds, EXPIRY)
        if records.exp[row] == NO_EXPIRY:
            at = put_piece(out, at, pieces, bounds, NO_END)
        else:
            at = put_integer(out, at, records.exp[row])
        at = put_piece(out, at, pieces, bounds, INSERTED if records.op[row] > 0 else DELETED)
        if records.has_paths:
            if records.given[row]:
                at = put_piece(out, at, pieces, bounds, PATH)
                at = put_path(
                    out, at, records.offsets[row], records.offsets[row + 1], records.ends, records.labels
                )
                out[at] = CLOSE
                at += 1
            else:
                at = put_piece(out, at, pieces, bounds, NO_PATH)
        at = put_piece(out, at, pieces, bounds, LAST)
        row += 1
    return row, at
