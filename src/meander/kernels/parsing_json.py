"""Lines of JSON to edges, as programs write them: one flat object of strings, numbers, true, false and null.

The kernel accepts a line only if nothing about it is unusual; any other line (escapes, nested values, missing or
repeated fields, bad syntax) is left undecided, for a full JSON parser to judge. So the two can only differ in speed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.parsing import (
    ABSENT,
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
from meander.kernels.parsing_times import read_iso_time
from meander.kernels.parsing_values import (
    DOT,
    JSON_BOOL,
    JSON_LIST,
    JSON_NUMBER,
    JSON_STRING,
    LOWER_E,
    UPPER_E,
)
from meander.kernels.spans import store_word

SPACE, TAB, COMMA, COLON, BACKSLASH, OPEN, CLOSE = 32, 9, 44, 58, 92, 123, 125
OPEN_LIST, CLOSE_LIST = 91, 93
DEEPEST = 60
"""The deepest nesting of lists and objects that are skipped."""

LOWER_T = 116

TRUE, FALSE, NULL = (np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))

NULL_START = ABSENT - 1
"""The start of a property that is null."""

LARGEST = 2**63 - 1
TENTH = LARGEST // 10


class NestedShape(NamedTuple):
    """What is read of the fields of a record that are no values: the key of the object that has its properties, their
    rows by key, and the row of all of them as one text; the key of the list that has its vertices, which is left
    undecided. Keys are -1 and rows `ABSENT` where nothing is read."""

    value_row: Array
    properties: int
    answer: int
    text_row: int


class ObjectShape(NamedTuple):
    """The keys that a reader looks for: spans of `keys`, for each its field of an edge and the row of its property
    (`ABSENT` if it is none). `needed` has a bit for each field without which an object is not an edge; times as text
    are in units of 10**-digits seconds."""

    keys: Array
    start: Array
    end: Array
    field: Array
    value_row: Array
    needed: int
    digits: int
    nested: NestedShape


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
def end_of_json_number(data: Array, at: int, stop: int) -> int:
    """The end of a number of JSON that begins at `at`; -1 if there is none."""
    if data[at] == MINUS:
        at += 1
    first = at
    while at < stop and ZERO <= data[at] <= NINE:
        at += 1
    if at == first or (data[first] == ZERO and at > first + 1):
        return -1
    if at < stop and data[at] == DOT:
        at += 1
        first = at
        while at < stop and ZERO <= data[at] <= NINE:
            at += 1
        if at == first:
            return -1
    if at < stop and (data[at] == LOWER_E or data[at] == UPPER_E):
        at += 1
        if at < stop and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        first = at
        while at < stop and ZERO <= data[at] <= NINE:
            at += 1
        if at == first:
            return -1
    return at


@inner_kernel
def find_key(data: Array, start: int, end: int, shape: ObjectShape) -> int:
    """The number of the key that the span holds, or -1."""
    for key in range(shape.start.size):
        first = shape.start[key]
        size = shape.end[key] - first
        if size != end - start:
            continue
        same = 0
        while same < size and data[start + same] == shape.keys[first + same]:
            same += 1
        if same == size:
            return key
    return -1


@kernel
def is_literal(data: Array, at: int, stop: int, word: Array) -> bool:
    """Whether the text goes on with this word, in lower case."""
    if at + word.size > stop:
        return False
    for i in range(word.size):  # noqa: SIM110 (kernels have no generators)
        if data[at + i] != word[i]:
            return False
    return True


@kernel
def end_of_key(data: Array, at: int, stop: int) -> int:
    """The offset after the colon of a key that begins at `at`; -1 if there is none."""
    if at >= stop or data[at] != QUOTE:
        return -1
    close = end_of_string(data, at + 1, stop)
    if close < 0:
        return -1
    at = skip_space(data, close + 1, stop)
    return at + 1 if at < stop and data[at] == COLON else -1


@kernel
def end_of_nested(data: Array, at: int, stop: int) -> int:
    """The end of the list or object that begins at `at`; -1 if it is not well formed, or has anything unusual."""
    objects = np.int64(0)  # a bit for each list (0) or object (1) that is open
    depth = 0
    while True:
        at = skip_space(data, at, stop)
        if at >= stop:
            return -1
        if data[at] == OPEN or data[at] == OPEN_LIST:
            if depth == DEEPEST:
                return -1
            is_object = data[at] == OPEN
            objects = objects << 1 | np.int64(is_object)
            depth += 1
            at = skip_space(data, at + 1, stop)
            if at >= stop:
                return -1
            if data[at] != (CLOSE if is_object else CLOSE_LIST):
                if is_object:
                    at = end_of_key(data, at, stop)
                    if at < 0:
                        return -1
                continue
        elif data[at] == QUOTE:
            at = end_of_string(data, at + 1, stop)
            if at < 0:
                return -1
            at += 1
        elif data[at] == MINUS or ZERO <= data[at] <= NINE:
            at = end_of_json_number(data, at, stop)
            if at < 0:
                return -1
        elif is_literal(data, at, stop, TRUE) or is_literal(data, at, stop, NULL):
            at += TRUE.size
        elif is_literal(data, at, stop, FALSE):
            at += FALSE.size
        else:
            return -1
        while True:
            at = skip_space(data, at, stop)
            if at >= stop:
                return -1
            if data[at] == COMMA:
                at = skip_space(data, at + 1, stop)
                if objects & 1:
                    at = end_of_key(data, at, stop)
                    if at < 0:
                        return -1
                break
            if data[at] != (CLOSE if objects & 1 else CLOSE_LIST):
                return -1
            objects >>= 1
            depth -= 1
            at += 1
            if depth == 0:
                return at


@inner_kernel
def append_member(data: Array, name: tuple[int, int], value: tuple[int, int], tail: int) -> int:
    """Write a comma and the spans of a name and a value at the tail, with a colon between; returns its new end."""
    data[tail] = COMMA
    tail += 1
    for at in range(name[0], name[1]):
        data[tail] = data[at]
        tail += 1
    data[tail] = COLON
    tail += 1
    for at in range(value[0], value[1]):
        data[tail] = data[at]
        tail += 1
    return tail


@kernel
def read_object(data: Array, at: int, stop: int, tail: int, shape: ObjectShape, rows: Rows, row: int) -> int:
    """The fields of the object in `at` to `stop`; returns the end of the tail, or -1 if undecided.

    The eight bytes of an integer vertex go to the tail; values of properties are spans of the text.
    """
    seen = 0
    given = 0
    inside = False  # the object of the properties
    text = shape.nested.text_row
    if text != ABSENT:
        rows.start[text, row] = ABSENT
    rows.op[row] = 1
    rows.ts[row] = 0
    rows.vertex[row] = False
    for key in range(shape.value_row.size):
        if shape.value_row[key] != ABSENT:
            rows.start[shape.value_row[key], row] = ABSENT
    at = skip_space(data, at, stop)
    if at >= stop or data[at] != OPEN:
        return -1
    while True:
        at = skip_space(data, at + 1, stop)
        if at >= stop or data[at] != QUOTE:
            return -1
        name = at
        close = end_of_string(data, at + 1, stop)
        if close < 0:
            return -1
        key = find_key(data, at + 1, close, shape)
        field = -1
        value_row = ABSENT
        if key >= 0:
            if inside:
                value_row = shape.nested.value_row[key]
            else:
                field = shape.field[key]
                value_row = shape.value_row[key]
            if not inside or value_row != ABSENT:
                if seen & (1 << key):
                    return -1
                seen |= 1 << key
        at = skip_space(data, close + 1, stop)
        if at >= stop or data[at] != COLON:
            return -1
        at = skip_space(data, at + 1, stop)
        if at >= stop:
            return -1
        value = at
        begin = at
        end = at
        kind = JSON_NUMBER
        if data[at] == QUOTE:
            kind = JSON_STRING
            begin = at + 1
            end = end_of_string(data, begin, stop)
            if end < 0 or (end == begin and SRC <= field <= TRG):
                return -1
            if field == OP:
                if end != begin + 1 or (data[begin] != PLUS and data[begin] != MINUS):
                    return -1
                rows.op[row] = 1 if data[begin] == PLUS else -1
            elif field == TIME:
                is_time, time = read_iso_time(data, begin, end, shape.digits)
                if not is_time or time < 0:
                    return -1
                rows.ts[row] = time
            elif field >= 0:
                rows.start[field, row] = begin
                rows.end[field, row] = end
                rows.kind[field, row] = 0
            at = end + 1
        elif data[at] == MINUS or ZERO <= data[at] <= NINE:
            if field >= 0:
                at, number = read_integer(data, at, stop)
                if at < 0 or field in (LABEL, OP):
                    return -1
                if field == TIME:
                    if number < 0 or number > MAX_TIME:
                        return -1
                    rows.ts[row] = number
                else:
                    store_word(data, tail, number)
                    rows.start[field, row] = tail
                    tail += 8
                    rows.end[field, row] = tail
                    rows.kind[field, row] = 1
            else:
                at = end_of_json_number(data, at, stop)
            if at < 0 or (at < stop and (data[at] == DOT or (data[at] | 32) == LOWER_E)):
                return -1
            end = at
        elif is_literal(data, at, stop, NULL):
            if field >= 0 and (field == OP or shape.needed & (1 << field)):
                return -1
            begin = NULL_START
            at += NULL.size
        elif field < 0 and (is_literal(data, at, stop, TRUE) or is_literal(data, at, stop, FALSE)):
            kind = JSON_BOOL
            at += TRUE.size if data[at] == LOWER_T else FALSE.size
            end = at
        elif data[at] == OPEN and key >= 0 and key == shape.nested.properties and not inside:
            if value_row != ABSENT:
                return -1
            begin = skip_space(data, at + 1, stop)
            if begin >= stop:
                return -1
            if data[begin] != CLOSE:
                inside = True
                if text != ABSENT:
                    rows.start[text, row] = tail
                    rows.kind[text, row] = JSON_STRING
                continue
            at = begin + 1
        elif (data[at] == OPEN or data[at] == OPEN_LIST) and field < 0:
            if data[at] == OPEN and value_row != ABSENT:
                return -1
            if not inside and key >= 0 and key == shape.nested.answer:
                return -1
            kind = JSON_LIST
            at = end_of_nested(data, at, stop)
            if at < 0:
                return -1
            end = at
        else:
            return -1
        if field >= 0 and begin >= 0:
            given |= 1 << field
        if value_row != ABSENT:
            rows.start[value_row, row] = begin
            rows.end[value_row, row] = end
            rows.kind[value_row, row] = kind
        if inside and text != ABSENT and begin >= 0 and kind != JSON_LIST:
            tail = append_member(data, (name, close + 1), (value, at), tail)
        at = skip_space(data, at, stop)
        if at >= stop:
            return -1
        if inside and data[at] == CLOSE:
            inside = False
            if text != ABSENT:
                rows.end[text, row] = tail
                if rows.start[text, row] == tail:
                    rows.start[text, row] = ABSENT
            at = skip_space(data, at + 1, stop)
            if at >= stop:
                return -1
        if data[at] == CLOSE and not inside:
            break
        if data[at] != COMMA:
            return -1
    if given & shape.needed != shape.needed or skip_space(data, at + 1, stop) < stop:
        return -1
    if not given & (1 << TRG):
        rows.start[TRG, row] = rows.start[SRC, row]
        rows.end[TRG, row] = rows.end[SRC, row]
        rows.kind[TRG, row] = rows.kind[SRC, row]
        rows.vertex[row] = True
    return tail


@kernel
def split_jsonl(
    data: Array,
    at: int,
    size: int,
    final: bool,
    beyond_ascii: bool,
    tail: int,
    shape: ObjectShape,
    rows: Rows,
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
        after = read_object(data, begin, stop, tail, shape, rows, row)
        if after >= 0 and (not beyond_ascii or is_utf8(data, begin, stop)):
            tail = after
            rows.verdict[row] = FINE
        else:
            rows.verdict[row] = UNDECIDED
        row += 1
    return min(at, size), row, tail
