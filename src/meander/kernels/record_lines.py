"""Lines of answers: where each begins and ends, and its time, so that lines of several writers can be merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import Array, kernel
from meander.kernels.parsing import MINUS, NEWLINE, NINE, ZERO

TIME_KEY = np.frombuffer(b'"ts":', np.uint8)
"""The first of these in a line is the key of its time: within a string, a quotation mark has a backslash before it,
and no string that is a value has a colon after it."""


@kernel
def read_record_time(data: Array, at: int, end: int) -> Any:
    """The time in the line of an answer."""
    known = 0
    while at < end and known < TIME_KEY.size:
        if data[at] == TIME_KEY[known]:
            known += 1
        else:
            known = 1 if data[at] == TIME_KEY[0] else 0
        at += 1
    negative = at < end and data[at] == MINUS
    if negative:
        at += 1
    time = np.int64(0)
    while at < end and ZERO <= data[at] <= NINE:
        time = time * 10 + (np.int64(data[at]) - ZERO)
        at += 1
    return -time if negative else time


@kernel
def index_records(data: Array, start: Array, end: Array, ts: Array) -> None:
    """Of each line, which ends with a newline: its first byte, the byte after it, and its time."""
    at = 0
    for row in range(start.size):
        begin = at
        while data[at] != NEWLINE:
            at += 1
        at += 1
        start[row] = begin
        end[row] = at
        ts[row] = read_record_time(data, begin, at)
