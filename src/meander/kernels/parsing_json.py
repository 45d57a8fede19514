"""Lines of JSON to edges, for lines as programs write them: one flat object of strings and integers.

The kernel accepts a line only if nothing about it is unusual; any other line (escapes, nested values, fractions,
missing or doubled fields, bad syntax) it leaves undecided, for a full JSON parser to judge. So the two can only
differ in speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import kernel
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

Array = np.ndarray[Any, Any]

SPACE, TAB, COMMA, COLON, BACKSLASH, OPEN, CLOSE = 32, 9, 44, 58, 92, 123, 125

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


@kernel
def name_field(data: Array, start: int, end: int) -> int:
    """Which field a key names, or -1 for one of no interest."""
    length = end - start
    if length == 3 and data[start] == 115 and data[start + 1] == 114 and data[start + 2] == 99:
        return SRC
    if length == 3 and data[start] == 116 and data[start + 1] == 114 and data[start + 2] == 103:
        return TRG
    if length == 2 and data[start] == 116 and data[start + 1] == 115:
        return TIME
    if length == 2 and data[start] == 111 and data[start + 1] == 112:
        return OP
    if (
        length == 5
        and data[start] == 108
        and data[start + 1] == 97
        and data[start + 2] == 98
        and data[start + 3] == 101
        and data[start + 4] == 108
    ):
        return LABEL
    return -1


@kernel
def read_object(data: Array, at: int, stop: int, tail: int, rows: Rows, row: int) -> int:
    """The fields of the object in `at` to `stop`; returns where the tail ends, or -1 if undecided.

    The eight bytes of an integer vertex go to the tail.
    """
    found = 0
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
            if found & (1 << field):
                return -1
            found |= 1 << field
        at = skip_space(data, close + 1, stop)
        if at >= stop or data[at] != COLON:
            return -1
        at = skip_space(data, at + 1, stop)
        if at >= stop:
            return -1
        if data[at] == QUOTE:
            close = end_of_string(data, at + 1, stop)
            if close < 0 or field == TIME or (close == at + 1 and 0 <= field < LINE):
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
    needed = (1 << SRC) | (1 << LABEL) | (1 << TRG) | (1 << TIME)
    if found & needed != needed or skip_space(data, at + 1, stop) < stop:
        return -1
    return tail


@kernel
def split_jsonl(
    data: Array, at: int, size: int, final: bool, beyond_ascii: bool, tail: int, rows: Rows
) -> tuple[int, int, int]:
    """Rows of one object a line; returns where to go on, how many rows there are, and where the tail ends."""
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
        # An undecided line may leave bytes at the tail; the next one overwrites them.
        after = read_object(data, begin, stop, tail, rows, row)
        if after >= 0 and (not beyond_ascii or is_utf8(data, begin, stop)):
            tail = after
            rows.verdict[row] = FINE
        else:
            rows.verdict[row] = UNDECIDED
        row += 1
    return min(at, size), row, tail
