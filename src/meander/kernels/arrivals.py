"""Arrivals: the edges that a scan has read, as a log, so that a deletion finds those that it removes.

Several arrivals can be one tuple: the same edge again, or edges that differ in properties that the query names but
does not bind. The tuple holds until the largest expiry of them, and a deletion may remove some of them only.

A row of the log is a key: the columns of the tuple, then three words for each named property (whether it is there,
and its 64 bits). Rows are in order of time. From the first deletion on, two chains lead from a row to the one before
it with the same ends and to the one before it of the same tuple; hash indexes find the newest row of each chain. If a
tuple is nothing but its two ends, both are one chain. Rows that are no longer valid leave a chain when it is walked,
so that walking costs no more than was added; the newest row of a chain stays, since the index refers to it.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.hashing import mix
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

ROWS = 0  # in `Arrivals.counts`

# Positions in the shape of a log: the number of columns of a tuple; the width of what an arrival that replaces agrees
# in beyond its ends; whether every arrival replaces those before it.
ARITY, REPLACED, REPLACES = 0, 1, 2

WORDS = 3  # of a property in a key: whether it is there, and its 64 bits
GIVEN, LOW, HIGH = 0, 1, 2

# In `Batch.source`: what a row of a table does that does not satisfy the scan's predicate, and what all others do.
REPLACE_ONLY, ARRIVE = 0, 1


class Arrivals(NamedTuple):
    key: Array  # by row
    exp: Array  # 0 once removed; negative while a deletion removes it
    older_pair: Array  # the row before it with the same ends, or -1
    older_tuple: Array  # the row before it of the same tuple, or -1
    pairs: Array  # the hash indexes: newest rows
    tuples: Array
    counts: Array


@inner_kernel
def find_pair(log: Arrivals, src: int, trg: int) -> int:
    """The slot of the newest arrival with these ends, or the free slot where it belongs."""
    mask = log.pairs.size - 1
    slot = mix(src, trg, 0) & mask
    while True:
        row = log.pairs[slot]
        if row < 0 or (log.key[row, SRC] == src and log.key[row, TRG] == trg):
            return slot
        slot = (slot + 1) & mask


@inner_kernel
def find_tuple(log: Arrivals, key: Array, arity: int) -> int:
    """The slot of the newest arrival of a tuple, or the free slot where it belongs."""
    mask = log.tuples.size - 1
    h = 0
    for column in range(arity):
        h = mix(key[column], column, h & 0x7FFFFFFF)
    slot = h & mask
    while True:
        row = log.tuples[slot]
        if row < 0:
            return slot
        equal = True
        for column in range(arity):
            if log.key[row, column] != key[column]:
                equal = False
                break
        if equal:
            return slot
        slot = (slot + 1) & mask


@kernel
def link_arrival(log: Arrivals, row: int, arity: int) -> None:
    """Make a row the newest of its chains."""
    slot = find_pair(log, log.key[row, SRC], log.key[row, TRG])
    log.older_pair[row] = log.pairs[slot]
    log.pairs[slot] = row
    if arity > 2:
        slot = find_tuple(log, log.key[row], arity)
        log.older_tuple[row] = log.tuples[slot]
        log.tuples[slot] = row


@kernel
def index_arrivals(log: Arrivals, arity: int) -> None:
    """Rebuild both indexes and all chains."""
    log.pairs[:] = -1
    log.tuples[:] = -1
    for row in range(log.counts[ROWS]):
        link_arrival(log, row, arity)


@kernel
def pack_arrivals(log: Arrivals, horizon: int) -> None:
    """Drop the rows that are removed, or expired at `horizon`. The chains are to be rebuilt."""
    kept = 0
    for row in range(log.counts[ROWS]):
        if log.exp[row] > horizon:
            for column in range(log.key.shape[1]):
                log.key[kept, column] = log.key[row, column]
            log.exp[kept] = log.exp[row]
            kept += 1
    log.counts[ROWS] = kept


@inner_kernel
def next_arrival(exp: Array, older: Array, row: int, time: int) -> int:
    """The row before `row` in a chain that is valid after `time` or being removed, or -1; the others between them
    leave the chain."""
    before = older[row]
    while before >= 0 and 0 <= exp[before] <= time:
        before = older[before]
    older[row] = before
    return before


@inner_kernel
def agrees(log: Arrivals, row: int, key: Array, arity: int, width: int) -> bool:
    """Whether an arrival has the properties that a key has, of those in columns `arity` to `width`."""
    for column in range(arity, width, WORDS):
        if key[column] != 0 and (
            log.key[row, column] == 0
            or log.key[row, column + LOW] != key[column + LOW]
            or log.key[row, column + HIGH] != key[column + HIGH]
        ):
            return False
    return True


@kernel
def mark_removed(log: Arrivals, key: Array, time: int, shape: Array, width: int) -> int:
    """Negate the expiry of every arrival valid after `time` that a key removes; how many."""
    arity = shape[ARITY]
    row = log.pairs[find_pair(log, key[SRC], key[TRG])]
    count = 0
    while row >= 0:
        if log.exp[row] > time and agrees(log, row, key, arity, width):
            log.exp[row] = -log.exp[row]
            count += 1
        row = next_arrival(log.exp, log.older_pair, row, time)
    return count


@kernel
def unmark_removed(log: Arrivals, key: Array) -> None:
    """Undo `mark_removed`."""
    row = log.pairs[find_pair(log, key[SRC], key[TRG])]
    while row >= 0:
        log.exp[row] = abs(log.exp[row])
        row = log.older_pair[row]


@kernel
def emit_tuple(out: Batch, at: int, key: Array, time: int, exp: int, op: int) -> None:
    """Write a row of the output, whose key is the first columns of `key`."""
    for column in range(out.key.shape[1]):
        out.key[at, column] = key[column]
    out.ts[at] = time
    out.exp[at] = exp
    out.op[at] = op


@kernel
def emit_removed(log: Arrivals, key: Array, time: int, shape: Array, out: Batch, cursor: Array) -> None:
    """Remove the marked arrivals; emit each tuple that thereby holds for less long, until what remains of it."""
    arity = shape[ARITY]
    removed = log.pairs[find_pair(log, key[SRC], key[TRG])]
    while removed >= 0:
        if log.exp[removed] < 0:
            if arity > 2:
                row = log.tuples[find_tuple(log, log.key[removed], arity)]
            else:
                row = log.pairs[find_pair(log, key[SRC], key[TRG])]
            before = after = time
            while row >= 0:
                if log.exp[row] < 0:
                    before = max(before, -log.exp[row])
                    log.exp[row] = 0
                else:
                    after = max(after, log.exp[row])
                row = next_arrival(log.exp, log.older_tuple, row, time)
            if after < before:
                emit_tuple(out, cursor[EMITTED], log.key[removed], time, after, -1)
                cursor[EMITTED] += 1
        removed = next_arrival(log.exp, log.older_pair, removed, time)


@kernel
def process_arrivals(batch: Batch, log: Arrivals, shape: Array, out: Batch, cursor: Array) -> int:
    """Process arrivals and deletions in their order, and emit the changes of the scan's tuples.

    `cursor` is [next row, output rows]; returns DONE, or what is full, to be called again with room for more. A row
    is processed whole or not at all.
    """
    arity = shape[ARITY]
    while cursor[NEXT_ROW] < batch.ts.size:
        i = cursor[NEXT_ROW]
        time, key = batch.ts[i], batch.key[i]
        arrives = batch.op[i] > 0
        adds = arrives and batch.source[i] == ARRIVE
        row = log.counts[ROWS]
        if adds and row == log.exp.size:
            return FULL_TABLE
        if not arrives or shape[REPLACES]:
            width = arity + shape[REPLACED] if arrives else key.size
            count = mark_removed(log, key, time, shape, width)
            if cursor[EMITTED] + count + 1 > out.ts.size:
                unmark_removed(log, key)
                return FULL_OUTPUT
            if count > 0:
                emit_removed(log, key, time, shape, out, cursor)
        elif cursor[EMITTED] == out.ts.size:
            return FULL_OUTPUT
        if adds:
            for column in range(key.size):
                log.key[row, column] = key[column]
            log.exp[row] = batch.exp[i]
            log.counts[ROWS] = row + 1
            link_arrival(log, row, arity)
            emit_tuple(out, cursor[EMITTED], key, time, batch.exp[i], 1)
            cursor[EMITTED] += 1
        cursor[NEXT_ROW] = i + 1
    return DONE
