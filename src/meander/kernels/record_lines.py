"""Lines of answers: where each begins and ends, and its time, so that lines of several writers can be merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import Array, kernel, unsigned
from meander.kernels.parsing import MINUS, NEWLINE, NINE, ZERO

TIME_KEY = np.frombuffer(b'"ts":', np.uint8)
"""The first of these in a line is the key of its time: within a string, a quotation mark has a backslash before it,
and no string that is a value has a colon after it."""

# Positions in the cursor of `index_runs`.
NEXT_BYTE, RUNS = 0, 1


@kernel
def find_record_time(data: Array, at: int, end: int) -> int:
    """Where the time stands in the line of an answer that begins at `at`."""
    # Few bytes are colons, so that one comparison decides as a rule.
    last = at + TIME_KEY.size - 1
    while last < end:
        if data[unsigned(last)] == TIME_KEY[TIME_KEY.size - 1]:
            known = TIME_KEY.size - 1
            while known > 0 and data[last - known] == TIME_KEY[TIME_KEY.size - 1 - known]:
                known -= 1
            if known == 0:
                return last + 1
        last += 1
    return end


@kernel
def read_record_time(data: Array, at: int, end: int) -> Any:
    """The time that stands at `at`."""
    negative = at < end and data[at] == MINUS
    if negative:
        at += 1
    time = np.int64(0)
    while at < end and ZERO <= data[at] <= NINE:
        time = time * 10 + (np.int64(data[at]) - ZERO)
        at += 1
    return -time if negative else time


@kernel
def index_runs(data: Array, start: Array, ts: Array, cursor: Array) -> bool:
    """Of each run of lines with one time: its first byte, and the time. A line ends with a newline.

    `cursor` is [next byte, runs]; False if there is no room for all runs, to be called again with more.
    """
    at, runs = cursor[NEXT_BYTE], cursor[RUNS]
    while at < data.size:
        begin = at
        at = find_record_time(data, begin, data.size)
        time = read_record_time(data, at, data.size)
        if runs == 0 or ts[runs - 1] != time:
            if runs == start.size:
                cursor[NEXT_BYTE], cursor[RUNS] = begin, runs
                return False
            start[runs] = begin
            ts[runs] = time
            runs += 1
        while data[unsigned(at)] != NEWLINE:
            at += 1
        at += 1
    cursor[NEXT_BYTE], cursor[RUNS] = at, runs
    return True


@kernel
def place_spans(data: Array, start: Array, end: Array, target: Array, out: Array) -> None:
    """Copy each span to its target in `out`."""
    for i in range(start.size):
        length = end[i] - start[i]
        for j in range(length):
            out[unsigned(target[i] + j)] = data[unsigned(start[i] + j)]
