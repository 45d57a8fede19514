"""Rows: for each vertex and state, the roots from which an ascending path leads there, each with its largest expiry.

A row is a block of an arena, a hash table of its own with open addressing: most rows have a handful of roots, which
lie in one or two cache lines, and a few have thousands. A block has a power of two of slots, and at most three of
four are used. When a row is full it moves to another block, without the roots that have expired; the block that it
leaves is used again by a row of that width. A *bucket* is the number of a row: vertex * states + state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.jit import Array, inner_kernel, kernel

# Columns of `Rows.header`.
BEGIN, WIDTH, USED = 0, 1, 2
HEADER = 3
LEAST_WIDTH, MOST_WIDTH = 2, 31
SLOTS = 0  # in `Rows.counts`: of the arena, used by a block at some time
FREE = -1  # in place of a root


class Rows(NamedTuple):
    header: Array  # int32 by bucket: the first slot of its block, the binary logarithm of its slots (0: none), used
    root: Array  # int32 by slot of the arena
    exp: Array  # int64 by slot; 0: not valid
    free: Array  # int32 by width: the first free block or -1; its first root is the next one
    counts: Array


@inner_kernel
def find_slot(rows: Rows, bucket: int, root: int) -> int:
    """The slot of a root in a row that has a block, or the free slot where it belongs."""
    begin, width = rows.header[bucket, BEGIN], rows.header[bucket, WIDTH]
    offset = ((np.int64(root) * 2_654_435_769) & 0xFFFFFFFF) >> (32 - width)
    while rows.root[begin + offset] != root and rows.root[begin + offset] != FREE:
        offset = (offset + 1) & ((1 << width) - 1)
    return begin + offset


@inner_kernel
def expiry_of(rows: Rows, bucket: int, root: int) -> int:
    """Until when the root reaches the bucket, if that is later than now; else some earlier time, or 0."""
    if rows.header[bucket, WIDTH] == 0:
        return 0
    slot = find_slot(rows, bucket, root)
    return rows.exp[slot] if rows.root[slot] == root else 0


@kernel
def count_valid(rows: Rows, bucket: int, time: int) -> int:
    width = rows.header[bucket, WIDTH]
    if width == 0:
        return 0
    begin = rows.header[bucket, BEGIN]
    valid = 0
    for slot in range(begin, begin + (1 << width)):
        valid += rows.root[slot] != FREE and rows.exp[slot] > time
    return valid


@kernel
def width_for(roots: int) -> int:
    """The width of a new block: with these roots it is about half full."""
    width = LEAST_WIDTH
    while roots > (1 << width) // 2 + 1:
        width += 1
    return width


@kernel
def take_block(rows: Rows, width: int) -> int:
    """The first slot of a free block, or -1 if the arena is full."""
    begin = rows.free[width]
    if begin >= 0:
        rows.free[width] = rows.root[begin]
    else:
        begin = rows.counts[SLOTS]
        if begin + (1 << width) > rows.root.size:
            return -1
        rows.counts[SLOTS] = begin + (1 << width)
    rows.root[begin : begin + (1 << width)] = FREE
    return begin


@kernel
def move_row(rows: Rows, bucket: int, time: int) -> bool:
    """Move a row, without what is expired at `time`, to a block with room for one more; False if there is none."""
    width = width_for(count_valid(rows, bucket, time) + 1)
    begin = take_block(rows, width)
    if begin < 0:
        return False
    header = rows.header
    old, old_width = header[bucket, BEGIN], header[bucket, WIDTH]
    header[bucket, BEGIN], header[bucket, WIDTH], header[bucket, USED] = begin, width, 0
    if old_width > 0:
        for slot in range(old, old + (1 << old_width)):
            if rows.root[slot] != FREE and rows.exp[slot] > time:
                target = find_slot(rows, bucket, rows.root[slot])
                rows.root[target], rows.exp[target] = rows.root[slot], rows.exp[slot]
                header[bucket, USED] += 1
        rows.root[old] = rows.free[old_width]
        rows.free[old_width] = old
    return True


@kernel
def set_expiry(rows: Rows, bucket: int, root: int, exp: int, time: int) -> bool:
    """Set until when a root reaches the bucket; False if the arena is full. `time` is now."""
    header = rows.header
    if header[bucket, WIDTH] > 0:
        slot = find_slot(rows, bucket, root)
        if rows.root[slot] == root:
            rows.exp[slot] = exp
            return True
        width = header[bucket, WIDTH]
        if header[bucket, USED] < (1 << width) - (1 << width) // 4:
            rows.root[slot], rows.exp[slot] = root, exp
            header[bucket, USED] += 1
            return True
    if not move_row(rows, bucket, time):
        return False
    slot = find_slot(rows, bucket, root)
    rows.root[slot], rows.exp[slot] = root, exp
    header[bucket, USED] += 1
    return True


@kernel
def count_slots(rows: Rows, horizon: int) -> int:
    """The slots that all rows need without what is expired at `horizon`."""
    slots = 0
    for bucket in range(rows.header.shape[0]):
        valid = count_valid(rows, bucket, horizon)
        if valid > 0:
            slots += 1 << width_for(valid)
    return slots


@kernel
def copy_rows(old: Rows, new: Rows, horizon: int) -> None:
    """Move all rows, without what is expired at `horizon`, to an empty arena with room for them; the header is
    the same for both."""
    new.counts[SLOTS] = 0
    new.free[:] = -1
    for bucket in range(old.header.shape[0]):
        begin, width = old.header[bucket, BEGIN], old.header[bucket, WIDTH]
        valid = count_valid(old, bucket, horizon)
        new.header[bucket, WIDTH] = new.header[bucket, USED] = 0
        if valid == 0:
            continue
        new.header[bucket, WIDTH] = width_for(valid)
        new.header[bucket, BEGIN] = take_block(new, new.header[bucket, WIDTH])
        new.header[bucket, USED] = valid
        for slot in range(begin, begin + (1 << width)):
            if old.root[slot] != FREE and old.exp[slot] > horizon:
                target = find_slot(new, bucket, old.root[slot])
                new.root[target], new.exp[target] = old.root[slot], old.exp[slot]


@kernel
def clear_rows(rows: Rows, buckets: Array) -> None:
    """Empty the rows of some buckets, which are all that are not empty."""
    for i in range(buckets.size):
        rows.header[buckets[i], WIDTH] = rows.header[buckets[i], USED] = 0
    rows.counts[SLOTS] = 0
    rows.free[:] = -1
