"""The text of a path to its edges: a list of `[src, label, trg]` or `[src, label, trg, ts]` in JSON.

The kernel reads a text only if nothing about it is unusual; any other (escapes, numbers that are not integers, what
is no path at all) is left for a full JSON parser to judge. So the two can only differ in speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.jit import Array, kernel
from meander.kernels.parsing import MINUS, NINE, QUOTE, ZERO
from meander.kernels.parsing_json import (
    CLOSE_LIST,
    COMMA,
    NULL,
    OPEN_LIST,
    end_of_string,
    is_literal,
    read_integer,
    skip_space,
)
from meander.kernels.spans import store_word
from meander.kernels.writing import NO_TIME

FIELDS = 3


class PathEdges(NamedTuple):
    """The edges of paths: `start`, `end` and `kind` have rows for `src`, `label` and `trg`."""

    start: Array
    end: Array
    kind: Array
    ts: Array


@kernel
def read_path(data: Array, at: int, stop: int, words: int, edges: PathEdges, count: int) -> int:
    """The edges of the path in `at` to `stop`, from number `count` on; returns the new count, or -1 if undecided.

    An integer takes eight bytes from `words` on: sixteen for each edge.
    """
    at = skip_space(data, at, stop)
    if at >= stop or data[at] != OPEN_LIST:
        return -1
    at = skip_space(data, at + 1, stop)
    if at < stop and data[at] == CLOSE_LIST:
        return count if skip_space(data, at + 1, stop) == stop else -1
    while True:
        if at >= stop or data[at] != OPEN_LIST:
            return -1
        for field in range(FIELDS):
            at = skip_space(data, at + 1, stop)
            if at >= stop:
                return -1
            if data[at] == QUOTE:
                end = end_of_string(data, at + 1, stop)
                if end <= at + 1:
                    return -1
                edges.start[field, count] = at + 1
                edges.end[field, count] = end
                edges.kind[field, count] = 0
                at = end + 1
            elif field != 1 and (data[at] == MINUS or ZERO <= data[at] <= NINE):
                at, number = read_integer(data, at, stop)
                if at < 0:
                    return -1
                word = words + 16 * count + 8 * (field >> 1)
                store_word(data, word, number)
                edges.start[field, count] = word
                edges.end[field, count] = word + 8
                edges.kind[field, count] = 1
            else:
                return -1
            at = skip_space(data, at, stop)
            if at >= stop or (data[at] != COMMA and (field < FIELDS - 1 or data[at] != CLOSE_LIST)):
                return -1
        edges.ts[count] = NO_TIME
        if data[at] == COMMA:
            at = skip_space(data, at + 1, stop)
            if is_literal(data, at, stop, NULL):
                at += NULL.size
            elif at < stop and ZERO <= data[at] <= NINE:
                at, number = read_integer(data, at, stop)
                if at < 0:
                    return -1
                edges.ts[count] = number
            else:
                return -1
            at = skip_space(data, at, stop)
            if at >= stop or data[at] != CLOSE_LIST:
                return -1
        count += 1
        at = skip_space(data, at + 1, stop)
        if at >= stop:
            return -1
        if data[at] == CLOSE_LIST:
            return count if skip_space(data, at + 1, stop) == stop else -1
        if data[at] != COMMA:
            return -1
        at = skip_space(data, at + 1, stop)


@kernel
def split_paths(
    data: Array, bounds: Array, words: int, edges: PathEdges, offsets: Array, usual: Array
) -> None:
    """The edges of the texts between `bounds`, those of each from its offset on; an undecided text has none."""
    count = 0
    for row in range(usual.size):
        offsets[row] = count
        found = read_path(data, bounds[row], bounds[row + 1], words, edges, count)
        usual[row] = found >= 0
        if found >= 0:
            count = found
    offsets[usual.size] = count


def most_edges(data: Array) -> int:
    """A bound for the edges in some texts: each has a list of its own."""
    return int(np.count_nonzero(data == OPEN_LIST))
