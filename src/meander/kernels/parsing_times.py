"""Times as text: ISO 8601 dates and times to integers in a stream's unit.

    2026-01-31      2026-01-31 13:05      2026-01-31T13:05:59.25Z      2026-01-31T13:05:59+01:00

A time without a zone is UTC. Digits beyond the unit are dropped, so that an instant never moves forward.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import Array, kernel

MINUS, PLUS, COLON, DOT, COMMA, SPACE, ZERO, NINE = 45, 43, 58, 46, 44, 32, 48, 57
UPPER_T, LOWER_T, UPPER_Z, LOWER_Z = 84, 116, 90, 122

DAY, HOUR, MINUTE = 86_400, 3_600, 60  # in seconds
SHORTEST, DATE_LENGTH = 10, 10
UNKNOWN = -1


@kernel
def read_digits(data: Array, at: int, end: int, count: int) -> Any:
    """The number of `count` digits that begins at `at`, or `UNKNOWN`."""
    if at + count > end:
        return UNKNOWN
    number = np.int64(0)
    for i in range(count):
        digit = np.int64(data[at + i]) - ZERO
        if digit < 0 or digit > 9:
            return UNKNOWN
        number = number * 10 + digit
    return number


@kernel
def days_of_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@kernel
def days_since_1970(year: int, month: int, day: int) -> int:
    """The days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date
    algorithms"): years begin in March, so that a leap day is a year's last."""
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@kernel
def read_zone(data: Array, at: int, end: int) -> tuple[bool, int]:
    """Whether the rest of the span is a zone (or nothing), and its offset from UTC in seconds."""
    if at == end:
        return True, 0
    if at + 1 == end:
        return data[at] == UPPER_Z or data[at] == LOWER_Z, 0
    sign = data[at]
    if sign != PLUS and sign != MINUS:
        return False, 0
    hours = read_digits(data, at + 1, end, 2)
    at += 3
    minutes = 0
    if at < end:
        if data[at] == COLON:
            at += 1
        minutes = read_digits(data, at, end, 2)
        at += 2
    if at != end or hours == UNKNOWN or hours > 23 or minutes == UNKNOWN or minutes > 59:
        return False, 0
    offset = hours * HOUR + minutes * MINUTE
    return True, -offset if sign == MINUS else offset


@kernel
def read_iso_time(data: Array, start: int, end: int, digits: int) -> tuple[bool, Any]:
    """Whether the span is a date or a time of ISO 8601, and the time in units of 10**-digits seconds since 1970."""
    zero = np.int64(0)
    if end - start < SHORTEST or data[start + 4] != MINUS or data[start + 7] != MINUS:
        return False, zero
    year = read_digits(data, start, end, 4)
    month = read_digits(data, start + 5, end, 2)
    day = read_digits(data, start + 8, end, 2)
    if year < 0 or month < 1 or month > 12 or day < 1 or day > days_of_month(year, month):
        return False, zero
    seconds = np.int64(days_since_1970(year, month, day)) * DAY
    fraction = np.int64(0)
    places = 0
    at = start + DATE_LENGTH
    if at < end:
        if data[at] != UPPER_T and data[at] != LOWER_T and data[at] != SPACE:
            return False, zero
        hour = read_digits(data, at + 1, end, 2)
        minute = read_digits(data, at + 4, end, 2)
        if hour < 0 or hour > 23 or minute < 0 or minute > 59 or data[at + 3] != COLON:
            return False, zero
        seconds += hour * HOUR + minute * MINUTE
        at += 6
        if at < end and data[at] == COLON:
            second = read_digits(data, at + 1, end, 2)
            if second < 0 or second > 59:
                return False, zero
            seconds += second
            at += 3
            if at < end and (data[at] == DOT or data[at] == COMMA):
                at += 1
                first = at
                while at < end and ZERO <= data[at] <= NINE:
                    if places < digits:
                        fraction = fraction * 10 + (np.int64(data[at]) - ZERO)
                        places += 1
                    at += 1
                if at == first:
                    return False, zero
        is_zone, offset = read_zone(data, at, end)
        if not is_zone:
            return False, zero
        seconds -= offset
    for place in range(digits):
        seconds *= 10
        if place >= places:
            fraction *= 10
    return True, seconds + fraction


@kernel
def read_iso_times(data: Array, start: Array, end: Array, digits: int, times: Array, is_time: Array) -> None:
    """The time of each span, 0 for one that is no time of ISO 8601."""
    for row in range(start.size):
        is_time[row], times[row] = read_iso_time(data, start[row], end[row], digits)
