"""Values of properties: spans of text to columns of one type, with a verdict on each row.

A value is null if its field is empty or absent. One that is not of the type of its property gives its row the
verdict `bad`. Rows that have another verdict already are skipped.

A field of a line (`PLAIN`) has no type of its own. A value of JSON has one, which has to be that of the property: no
string is a number, and no number a string.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import Array, kernel
from meander.kernels.parsing import FINE, MINUS, NINE, PLUS, ZERO
from meander.kernels.parsing_times import read_iso_time

PLAIN, JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_LIST, JSON_OTHER = range(6)
"""The kinds of a span that holds a value; a `JSON_LIST` may be a path, and `JSON_OTHER` (an object) is of no type."""


class Spans(NamedTuple):
    """The values of a column: spans of one buffer, and their kinds. A value that is absent starts before 0."""

    data: Array
    start: Array
    end: Array
    kind: Array


LARGEST = 2**63 - 1
TENTH = LARGEST // 10

DOT, UPPER_E, LOWER_E, CASE = 46, 69, 101, 32
EXACT_MANTISSA = 1 << 53
EXACT_POWERS = 22
POWERS_OF_TEN = np.array([10.0**power for power in range(EXACT_POWERS + 1)])

TRUE, FALSE, NAN, INF, INFINITE = (
    np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"nan", b"inf", b"infinity")
)


@kernel
def is_word(data: Array, start: int, end: int, word: Array) -> bool:
    """Whether the span is the word, which is in lower case, in any case."""
    if end - start != word.size:
        return False
    same = 0
    while same < word.size and (data[start + same] | CASE) == word[same]:
        same += 1
    return same == word.size


@kernel
def read_signed(data: Array, start: int, end: int) -> tuple[bool, Any]:
    """Whether the span is an integer of 64 bits in decimal digits, and the integer."""
    at = start
    negative = at < end and data[at] == MINUS
    if negative:
        at += 1
    if at == end:
        return False, np.int64(0)
    # Counted downwards: the least integer has no positive counterpart.
    value = np.int64(0)
    while at < end:
        digit = np.int64(data[at]) - ZERO
        if digit < 0 or digit > 9 or value < -TENTH:
            return False, np.int64(0)
        if value == -TENTH and digit > LARGEST - 10 * TENTH + (1 if negative else 0):
            return False, np.int64(0)
        value = value * 10 - digit
        at += 1
    return True, value if negative else -value


@kernel
def end_of_number(data: Array, at: int, end: int) -> int:
    """The end of a decimal number, perhaps with fraction and exponent, that begins at `at`; -1 if there is none."""
    if at < end and data[at] == MINUS:
        at += 1
    digits = 0
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
        digits += 1
    if at < end and data[at] == DOT:
        at += 1
        while at < end and ZERO <= data[at] <= NINE:
            at += 1
            digits += 1
    if digits == 0:
        return -1
    if at < end and (data[at] == LOWER_E or data[at] == UPPER_E):
        at += 1
        if at < end and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        first = at
        while at < end and ZERO <= data[at] <= NINE:
            at += 1
        if at == first:
            return -1
    return at


@kernel
def read_short_number(data: Array, start: int, end: int) -> tuple[bool, float]:
    """The number in a span, if it can be computed without rounding twice; its digits are known to be a number's.

    A mantissa of 53 bits and a power of ten up to 10**22 are exact doubles, so one operation on them rounds once
    (Clinger, "How to read floating point numbers accurately").
    """
    at = start
    negative = data[at] == MINUS
    if negative:
        at += 1
    mantissa = np.int64(0)
    power = np.int64(0)
    in_fraction = False
    while at < end and data[at] != LOWER_E and data[at] != UPPER_E:
        if data[at] == DOT:
            in_fraction = True
        else:
            if mantissa > EXACT_MANTISSA:
                return False, 0.0
            mantissa = mantissa * 10 + (np.int64(data[at]) - ZERO)
            if in_fraction:
                power -= 1
        at += 1
    if at < end:
        at += 1
        minus = data[at] == MINUS
        if minus or data[at] == PLUS:
            at += 1
        exponent = np.int64(0)
        while at < end:
            if exponent < 10_000:
                exponent = exponent * 10 + (np.int64(data[at]) - ZERO)
            at += 1
        power += -exponent if minus else exponent
    if mantissa > EXACT_MANTISSA or power > EXACT_POWERS or power < -EXACT_POWERS:
        return False, 0.0
    value = np.float64(mantissa)
    value = value / POWERS_OF_TEN[-power] if power < 0 else value * POWERS_OF_TEN[power]
    return True, -value if negative else value


@kernel
def is_null(spans: Spans, row: int) -> bool:
    start = spans.start[row]
    return start < 0 or (spans.kind[row] == PLAIN and start == spans.end[row])


@kernel
def read_integers(spans: Spans, verdict: Array, bad: int, values: Array, valid: Array) -> None:
    """INT: decimal digits, perhaps after a minus. A fraction, even of zeros, is not of this type."""
    for row in range(verdict.size):
        values[row] = 0
        valid[row] = False
        if verdict[row] != FINE or is_null(spans, row):
            continue
        kind, start, end = spans.kind[row], spans.start[row], spans.end[row]
        fits = False
        if kind in (PLAIN, JSON_NUMBER):
            fits, value = read_signed(spans.data, start, end)
            values[row] = value
        valid[row] = fits
        if not fits:
            verdict[row] = bad


@kernel
def read_floats(spans: Spans, verdict: Array, bad: int, values: Array, state: Array) -> None:
    """FLOAT: decimal numbers, infinities, and NaN, which is null.

    `state` is 0 for a null, 1 for a value, and 2 for a number that another function has to round.
    """
    for row in range(verdict.size):
        values[row] = 0.0
        state[row] = 0
        if verdict[row] != FINE or is_null(spans, row):
            continue
        kind, start, end = spans.kind[row], spans.start[row], spans.end[row]
        if kind != PLAIN and kind != JSON_NUMBER:
            verdict[row] = bad
        elif end_of_number(spans.data, start, end) == end:
            exact, value = read_short_number(spans.data, start, end)
            values[row] = value
            state[row] = 1 if exact else 2
        else:
            negative = spans.data[start] == MINUS
            first = start + 1 if negative else start
            if is_word(spans.data, first, end, INF) or is_word(spans.data, first, end, INFINITE):
                values[row] = -np.inf if negative else np.inf
                state[row] = 1
            elif not is_word(spans.data, first, end, NAN):
                verdict[row] = bad


@kernel
def read_bools(spans: Spans, verdict: Array, bad: int, values: Array, valid: Array) -> None:
    """BOOL: true and false in any case; in a field without type 1 and 0 as well."""
    for row in range(verdict.size):
        values[row] = False
        valid[row] = False
        if verdict[row] != FINE or is_null(spans, row):
            continue
        kind, start, end = spans.kind[row], spans.start[row], spans.end[row]
        digit = kind == PLAIN and end - start == 1
        valid[row] = True
        if kind != PLAIN and kind != JSON_BOOL:
            valid[row] = False
            verdict[row] = bad
        elif is_word(spans.data, start, end, TRUE) or (digit and spans.data[start] == ZERO + 1):
            values[row] = True
        elif not is_word(spans.data, start, end, FALSE) and not (digit and spans.data[start] == ZERO):
            valid[row] = False
            verdict[row] = bad


@kernel
def read_times(spans: Spans, verdict: Array, bad: int, digits: int, values: Array, valid: Array) -> None:
    """TIME: an integer in the stream's unit, of `digits` decimal places of a second, or a time of ISO 8601."""
    for row in range(verdict.size):
        values[row] = 0
        valid[row] = False
        if verdict[row] != FINE or is_null(spans, row):
            continue
        kind, start, end = spans.kind[row], spans.start[row], spans.end[row]
        fits = False
        value = np.int64(0)
        if kind in (PLAIN, JSON_NUMBER):
            fits, value = read_signed(spans.data, start, end)
        if not fits and (kind in (PLAIN, JSON_STRING)):
            fits, value = read_iso_time(spans.data, start, end, digits)
        values[row] = value
        valid[row] = fits
        if not fits:
            verdict[row] = bad


@kernel
def find_lists(spans: Spans, verdict: Array, bad: int, valid: Array) -> None:
    """What may be a PATH: fields without type, and lists of JSON."""
    for row in range(verdict.size):
        valid[row] = False
        if verdict[row] != FINE or is_null(spans, row):
            continue
        if spans.kind[row] in (PLAIN, JSON_LIST):
            valid[row] = True
        else:
            verdict[row] = bad


@kernel
def find_strings(spans: Spans, verdict: Array, bad: int, valid: Array) -> None:
    """STRING: fields without type, and strings of JSON."""
    for row in range(verdict.size):
        valid[row] = False
        if verdict[row] != FINE or is_null(spans, row):
            continue
        if spans.kind[row] in (PLAIN, JSON_STRING):
            valid[row] = True
        else:
            verdict[row] = bad
