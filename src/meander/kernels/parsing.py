"""Lines of text to edges: spans of the raw bytes, times as integers, and a verdict on each row.

A row is a line, in every text format, so a bad row can never swallow the ones after it. One kernel for each
format splits a block of text into fields, stops at the end of the text or of the output, and returns the offset at
which to continue; another kernel judges all rows. The byte after the text must be a newline: it ends every search, so
that none has to test for the end of the text. A value that differs from its bytes in the text (a CSV field with
doubled quotes) is written to the tail, the free part of the buffer behind the text, so that all spans are of one
buffer, and a reject can show its line unchanged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import Array, kernel, unsigned
from meander.kernels.parsing_times import read_iso_time

SRC, LABEL, TRG, TIME, OP, LINE = range(6)
"""Rows of `start`, `end` and `kind`: the fields in the order of a .tsv file, and the whole line."""

VALUES = 6
"""The row of the first property; those of the others follow."""

ABSENT = -1
"""The start of a field that is not given; the span row of a column that is not used."""

FINE, MISSING, BAD_TIME, NEGATIVE, OUT_OF_RANGE, BAD_OP, BAD_VERTEX, BAD_LABEL, NOT_UTF8 = range(9)
UNPARSABLE, UNDECIDED, NO_EDGE, NO_FIELD, BAD_VALUE = 9, 10, 11, 12, 18
"""Verdicts on a row. The caller has to judge a row that is undecided. `MISSING` is of a row that is too short; if a
field has no value it is `NO_FIELD` and its number. `BAD_VALUE` is of the first property, the verdicts of the others
follow."""

MAX_TIME = 2**61 - 1
TENTH = MAX_TIME // 10

TAB, NEWLINE, RETURN, QUOTE, COMMA, PLUS, MINUS, ZERO, NINE = 9, 10, 13, 34, 44, 43, 45, 48, 57


class Rows(NamedTuple):
    """Buffers for the rows of one chunk."""

    start: Array
    end: Array
    kind: Array
    ts: Array
    op: Array
    verdict: Array
    vertex: Array


def make_rows(room: int, properties: int = 0) -> Rows:
    spans = VALUES + properties
    return Rows(
        start=np.empty((spans, room), np.int64),
        end=np.empty((spans, room), np.int64),
        kind=np.zeros((spans, room), np.int8),
        ts=np.empty(room, np.int64),
        op=np.ones(room, np.int8),
        verdict=np.zeros(room, np.int16),
        vertex=np.zeros(room, np.bool_),
    )


@kernel
def is_utf8(data: Array, start: int, end: int) -> bool:
    """Whether the span is well-formed UTF-8: no stray, overlong, surrogate or too large sequence."""
    at = start
    while at < end:
        first = data[at]
        if first < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more >= end or data[at + 1] < low or data[at + 1] > high:
            return False
        for i in range(2, more + 1):
            if data[at + i] < 0x80 or data[at + i] > 0xBF:
                return False
        at += more + 1
    return True


@kernel
def parse_time(data: Array, start: int, end: int) -> tuple[Any, int]:
    """The time as an integer, and a verdict on it."""
    at = start
    negative = at < end and data[at] == MINUS
    if negative:
        at += 1
    if at == end:
        return 0, NO_FIELD + TIME if not negative else BAD_TIME
    value = np.int64(0)
    large = False
    while at < end:
        digit = np.int64(data[at]) - ZERO
        if digit < 0 or digit > 9:
            return 0, BAD_TIME
        if value >= TENTH and (value > TENTH or digit > MAX_TIME - 10 * TENTH):
            large = True
        else:
            value = value * 10 + digit
        at += 1
    if negative and (value > 0 or large):
        return 0, NEGATIVE
    if large:
        return 0, OUT_OF_RANGE
    return value, FINE


@kernel
def judge_rows(data: Array, count: int, beyond_ascii: bool, optional: int, digits: int, rows: Rows) -> None:
    """Read time and operation of the rows that could be split, and give the verdict on each.

    `optional` has a bit for each field that may be empty: a row without target is a vertex, one without time is of
    time 0. A row whose operation is `ABSENT` is an insertion. Times of ISO 8601 are in units of 10**-digits seconds.
    """
    start = rows.start
    end = rows.end
    for row in range(count):
        if rows.verdict[row] != FINE:
            continue
        if start[SRC, row] == end[SRC, row]:
            rows.verdict[row] = NO_FIELD + SRC
            continue
        if start[LABEL, row] == end[LABEL, row] and not optional & (1 << LABEL):
            rows.verdict[row] = NO_FIELD + LABEL
            continue
        if start[TRG, row] == end[TRG, row] and not optional & (1 << TRG):
            rows.verdict[row] = NO_FIELD + TRG
            continue
        if beyond_ascii and not is_utf8(data, start[LINE, row], end[LINE, row]):
            rows.verdict[row] = NOT_UTF8
            continue
        time, verdict = parse_time(data, start[TIME, row], end[TIME, row])
        if verdict == BAD_TIME:
            is_time, time = read_iso_time(data, start[TIME, row], end[TIME, row], digits)
            if is_time:
                verdict = FINE if time >= 0 else NEGATIVE
        elif verdict == NO_FIELD + TIME and optional & (1 << TIME):
            verdict = FINE
        rows.ts[row] = time
        at = start[OP, row]
        if verdict == FINE and at >= 0:
            if end[OP, row] - at != 1 or (data[at] != PLUS and data[at] != MINUS):
                verdict = BAD_OP
            elif data[at] == MINUS:
                rows.op[row] = -1
        if verdict == FINE and start[TRG, row] == end[TRG, row]:
            start[TRG, row] = start[SRC, row]
            end[TRG, row] = end[SRC, row]
            rows.vertex[row] = True
        rows.verdict[row] = verdict


@kernel
def end_of_row(data: Array, begin: int, newline: int) -> int:
    """The end of the row whose line ends at `newline`, without a carriage return before it."""
    if newline > begin and data[newline - 1] == RETURN:
        return newline - 1
    return newline


@kernel
def split_tsv(data: Array, at: int, size: int, final: bool, rows: Rows) -> tuple[int, int]:
    """Rows of `src TAB label TAB trg TAB ts [TAB op]`.

    Returns the offset at which to continue, and the number of rows.
    The last line needs no newline if the text is `final`, and is left for the next call otherwise.
    """
    start = rows.start
    end = rows.end
    row = 0
    while at < size and row < rows.ts.size:
        begin = at
        field = SRC
        start[SRC, row] = at
        start[OP, row] = ABSENT
        while True:
            while data[at] > RETURN:
                at += 1
            if data[at] == TAB:
                if field < OP:
                    end[field, row] = at
                    start[field + 1, row] = at + 1
                field += 1
            elif data[at] == NEWLINE:
                break
            at += 1
        if at >= size and not final:
            return begin, row
        stop = end_of_row(data, begin, at)
        at += 1
        if stop == begin:
            continue
        start[LINE, row] = begin
        end[LINE, row] = stop
        if field < TIME:
            rows.verdict[row] = MISSING
        elif field > OP:
            rows.verdict[row] = UNPARSABLE
        else:
            end[field, row] = stop
            rows.verdict[row] = FINE
        row += 1
    return min(at, size), row


@kernel
def split_columns(
    data: Array, at: int, size: int, final: bool, least: int, span_rows: Array, rows: Rows
) -> tuple[int, int]:
    """Rows with tabs between their fields; `span_rows` has for each field its row of `start`, or `ABSENT`.

    A row has `least` fields or more; those that it lacks are `ABSENT`. Returns the offset at which to continue, and
    the number of rows.
    """
    row = 0
    while at < size and row < rows.ts.size:
        begin = at
        rows.start[OP, row] = ABSENT
        here = at
        field = 0
        while True:
            while data[at] > RETURN:
                at += 1
            if data[at] == NEWLINE:
                break
            if data[at] == TAB:
                if field < span_rows.size and span_rows[field] != ABSENT:
                    rows.start[span_rows[field], row] = here
                    rows.end[span_rows[field], row] = at
                field += 1
                here = at + 1
            at += 1
        if at >= size and not final:
            return begin, row
        stop = end_of_row(data, begin, at)
        at += 1
        if stop == begin:
            continue
        rows.start[LINE, row] = begin
        rows.end[LINE, row] = stop
        if field < span_rows.size and span_rows[field] != ABSENT:
            rows.start[span_rows[field], row] = here
            rows.end[span_rows[field], row] = stop
        field += 1
        if field < least:
            rows.verdict[row] = MISSING
        elif field > span_rows.size:
            rows.verdict[row] = UNPARSABLE
        else:
            rows.verdict[row] = FINE
            while field < span_rows.size:
                if span_rows[field] != ABSENT:
                    rows.start[span_rows[field], row] = ABSENT
                    rows.end[span_rows[field], row] = ABSENT
                field += 1
        row += 1
    return min(at, size), row


@kernel
def read_quoted(data: Array, at: int, stop: int, tail: int) -> tuple[int, int, int]:
    """The end of a quoted field whose text begins at `at`, and how many quotes in it are doubled.

    Returns the offset of the closing quote (-1 if there is none), that count, and the new end of the tail: a
    field with doubled quotes is written there with single ones.
    """
    doubled = 0
    close = at
    while close < stop:
        if data[close] == QUOTE:
            if close + 1 < stop and data[close + 1] == QUOTE:
                doubled += 1
                close += 1
            else:
                break
        close += 1
    if close >= stop:
        return -1, 0, tail
    if doubled:
        while at < close:
            data[tail] = data[at]
            tail += 1
            at += 2 if data[at] == QUOTE else 1
    return close, doubled, tail


@kernel
def split_csv(
    data: Array, at: int, size: int, final: bool, tail: int, span_rows: Array, rows: Rows
) -> tuple[int, int, int]:
    """Rows of comma-separated fields; `span_rows` has for each field its row of `start`, or `ABSENT`.

    Returns the offset at which to continue, the number of rows, and the end of the tail. A field in quotes may hold
    commas and doubled quotes, not newlines. Most bytes are of columns that nobody reads: the two loops that pass them
    are of one comparison each.
    """
    row = 0
    while at < size and row < rows.ts.size:
        begin = at
        while data[unsigned(at)] != NEWLINE:
            at += 1
        if at >= size and not final:
            return begin, row, tail
        stop = end_of_row(data, begin, at)
        at += 1
        if stop == begin:
            continue
        rows.start[LINE, row] = begin
        rows.end[LINE, row] = stop
        rows.start[OP, row] = ABSENT
        here = begin
        field = 0
        broken = False
        while True:
            start = here
            if here < stop and data[here] == QUOTE:
                before = tail
                close, doubled, tail = read_quoted(data, here + 1, stop, tail)
                broken = close < 0 or (close + 1 < stop and data[close + 1] != COMMA)
                if broken:
                    break
                start = before if doubled else here + 1
                end = tail if doubled else close
                here = close + 1
            else:
                while here < stop and data[unsigned(here)] != COMMA:
                    here += 1
                end = here
            if field < span_rows.size and span_rows[field] != ABSENT:
                rows.start[span_rows[field], row] = start
                rows.end[span_rows[field], row] = end
            field += 1
            if here >= stop:
                break
            here += 1
        if broken or field > span_rows.size:
            rows.verdict[row] = UNPARSABLE
        elif field < span_rows.size:
            rows.verdict[row] = MISSING
        else:
            rows.verdict[row] = FINE
        row += 1
    return min(at, size), row, tail


@kernel
def number_lines(data: Array, at: int, end: int, count: int, line: int, rows: Rows, number: Array) -> int:
    """Number the lines of the rows between `at` and `end`; returns the number of the last line.

    `line` is the number of the last line before `at`. Only the bytes between rows are read: the newline after each
    row, and empty lines.
    """
    for row in range(count):
        while at < rows.start[LINE, row]:
            if data[at] == NEWLINE:
                line += 1
            at += 1
        number[row] = line + 1
        at = rows.end[LINE, row]
    while at < end:
        if data[at] == NEWLINE:
            line += 1
        at += 1
    return line


@kernel
def judge_names(data: Array, start: Array, end: Array, kind: Array, missing: int, verdict: Array) -> None:
    """Judge names that did not come from lines: an empty one gets the verdict `missing`; strings must be UTF-8."""
    for row in range(start.size):
        if kind[row] == 0 and verdict[row] == FINE:
            if start[row] == end[row]:
                verdict[row] = missing
            elif not is_utf8(data, start[row], end[row]):
                verdict[row] = NOT_UTF8


@kernel
def judge_text(data: Array, start: Array, end: Array, bad: int, verdict: Array) -> None:
    """Give the verdict `bad` to rows whose text is not UTF-8."""
    for row in range(start.size):
        if verdict[row] == FINE and not is_utf8(data, start[row], end[row]):
            verdict[row] = bad
