"""Lines of JSON to edges, for lines as programs write them: one flat object of strings and integers.

The kernel accepts a line only if nothing about it is unusual; any other line (escapes, nested values, fractions,
missing or repeated fields, bad syntax) is left undecided, for a full JSON parser to judge. So the two can only
differ in speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.parsing import (
    FINE,
    LABEL,
    LINE,
    MAX_TIME,
    MINUS,
    NEWLINE,
    NINE,
    OP,
    PLUS,
    QUOTE,
    RETURN,
    SRC,
    TIME,
    TRG,
    UNDECIDED,
    ZERO,
    Rows,
    end_of_row,
    is_utf8,
)
from meander.kernels.spans import store_word

SPACE, TAB, COMMA, COLON, BACKSLASH, OPEN, CLOSE = 32, 9, 44, 58, 92, 123, 125

SRC_KEY, LABEL_KEY, TRG_KEY, TIME_KEY, OP_KEY = (
    np.frombuffer(key, np.uint8) for key in (b"src", b"label", b"trg", b"ts", b"op")
)

REQUIRED = (1 << SRC) | (1 << LABEL) | (1 << TRG) | (1 << TIME)
"""The fields without which an object is not an edge, as bits."""

LARGEST = 2**63 - 1
TENTH = LARGEST // 10


@kernel
def skip_space(data: Array, at: int, stop: int) -> int:
    while at < stop and (data[at] == SPACE or data[at] == TAB or data[at] == RETURN):
        at += 1
    return at


@kernel
def end_of_string(data: Array, at: int, stop: int) -> int:
    """The closing quote of a string whose text begins at `at`; -1 if it has escapes or no end."""
    while at < stop and data[at] != QUOTE:
        if data[at] == BACKSLASH or data[at] < SPACE:
            return -1
        at += 1
    return at if at < stop else -1


@kernel
def read_integer(data: Array, at: int, stop: int) -> tuple[int, Any]:
    """The end of an integer of 64 bits that begins at `at`, and its value; -1 for any other number."""
    negative = data[at] == MINUS
    if negative:
        at += 1
    first = at
    value = np.int64(0)
    while at < stop and ZERO <= data[at] <= NINE:
        digit = np.int64(data[at]) - ZERO
        if value >= TENTH and (value > TENTH or digit > LARGEST - 10 * TENTH):
            return -1, 0
        value = value * 10 + digit
        at += 1
    if at == first or (data[first] == ZERO and at > first + 1):
        return -1, 0
    return at, -value if negative else value


@inner_kernel
def is_key(data: Array, start: int, end: int, key: Array) -> bool:
    """Whether the span holds the bytes of a key."""
    if end - start != key.size:
        return False
    same = 0
    while same < key.size and data[start + same] == key[same]:
        same += 1
    return same == key.size


@kernel
def name_field(data: Array, start: int, end: int) -> int:
    """The field that a key names, or -1 if it is not a field of an edge."""
    if is_key(data, start, end, SRC_KEY):
        return SRC
    if is_key(data, start, end, TRG_KEY):
        return TRG
    if is_key(data, start, end, TIME_KEY):
        return TIME
    if is_key(data, start, end, OP_KEY):
        return OP
    if is_key(data, start, end, LABEL_KEY):
        return LABEL
    return -1


@kernel
def read_object(data: Array, at: int, stop: int, tail: int, rows: Rows, row: int) -> int:
    """The fields of the object in `at` to `stop`; returns the end of the tail, or -1 if undecided.

    The eight bytes of an integer vertex go to the tail.
    """
    fields = 0
    rows.op[row] = 1
    at = skip_space(data, at, stop)
    if at >= stop or data[at] != OPEN:
        return -1
    while True:
        at = skip_space(data, at + 1, stop)
        if at >= stop or data[at] != QUOTE:
            return -1
        close = end_of_string(data, at + 1, stop)
        if close < 0:
            return -1
        field = name_field(data, at + 1, close)
        if field >= 0:
            if fields & (1 << field):
                return -1
            fields |= 1 << field
        at = skip_space(data, close + 1, stop)
        if at >= stop or data[at] != COLON:
            return -1
        at = skip_space(data, at + 1, stop)
        if at >= stop:
            return -1
        if data[at] == QUOTE:
            close = end_of_string(data, at + 1, stop)
            if close < 0 or field == TIME or (close == at + 1 and 0 <= field <= TRG):
                return -1
            if field == OP:
                if close != at + 2 or (data[at + 1] != PLUS and data[at + 1] != MINUS):
                    return -1
                rows.op[row] = 1 if data[at + 1] == PLUS else -1
            elif field >= 0:
                rows.start[field, row] = at + 1
                rows.end[field, row] = close
                rows.kind[field, row] = 0
            at = close + 1
        elif data[at] == MINUS or ZERO <= data[at] <= NINE:
            at, value = read_integer(data, at, stop)
            if at < 0 or field in (LABEL, OP):
                return -1
            if field == TIME:
                if value < 0 or value > MAX_TIME:
                    return -1
                rows.ts[row] = value
            elif field >= 0:
                store_word(data, tail, value)
                rows.start[field, row] = tail
                tail += 8
                rows.end[field, row] = tail
                rows.kind[field, row] = 1
        else:
            return -1
        at = skip_space(data, at, stop)
        if at >= stop:
            return -1
        if data[at] == CLOSE:
            break
        if data[at] != COMMA:
            return -1
    if fields & REQUIRED != REQUIRED or skip_space(data, at + 1, stop) < stop:
        return -1
    return tail


@kernel
def split_jsonl(
    data: Array, at: int, size: int, final: bool, beyond_ascii: bool, tail: int, rows: Rows
) -> tuple[int, int, int]:
    """Rows of one object per line.

    Returns the offset at which to continue, the number of rows, and the end of the tail.
    """
    row = 0
    while at < size and row < rows.ts.size:
        begin = at
        while data[at] != NEWLINE:
            at += 1
        if at >= size and not final:
            return begin, row, tail
        stop = end_of_row(data, begin, at)
        at += 1
        if stop == begin:
            continue
        rows.start[LINE, row] = begin
        rows.end[LINE, row] = stop
        # An undecided line may leave bytes at the tail; the next line overwrites them.
        after = read_object(data, begin, stop, tail, rows, row)
        if after >= 0 and (not beyond_ascii or is_utf8(data, begin, stop)):
            tail = after
            rows.verdict[row] = FINE
        else:
            rows.verdict[row] = UNDECIDED
        row += 1
    return min(at, size), row, tail
