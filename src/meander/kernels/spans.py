"""Byte strings as spans of one buffer: hashing, comparing, gathering.

A name never becomes a Python object on its way through. Words of eight bytes are put together from single
bytes: the compiler turns this into one load, and it needs no alignment. Arithmetic is modulo 2**64; run
uncompiled, NumPy would warn of each overflow, so callers hold `wrapping()` around it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numba
import numpy as np

from meander.kernels.jit import kernel

Array = np.ndarray[Any, Any]

_config: Any = numba.config

SEED = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xFF51AFD7ED558CCD)
FINISH = np.uint64(0xC4CEB9FE1A85EC53)
HALF = np.uint64(32)


def wrapping() -> AbstractContextManager[object]:
    """A context in which 64-bit arithmetic wraps around in silence, compiled or not."""
    return np.errstate(over="ignore") if _config.DISABLE_JIT else nullcontext()


@kernel
def load_word(data: Array, at: int) -> Any:
    """The eight bytes from `at` on, little-endian, as uint64."""
    return (
        np.uint64(data[at])
        | (np.uint64(data[at + 1]) << np.uint64(8))
        | (np.uint64(data[at + 2]) << np.uint64(16))
        | (np.uint64(data[at + 3]) << np.uint64(24))
        | (np.uint64(data[at + 4]) << np.uint64(32))
        | (np.uint64(data[at + 5]) << np.uint64(40))
        | (np.uint64(data[at + 6]) << np.uint64(48))
        | (np.uint64(data[at + 7]) << np.uint64(56))
    )


@kernel
def load_head(data: Array, start: int, end: int) -> Any:
    """The first eight bytes of the span as int64, zeros after its end."""
    if start + 8 <= end:
        return np.int64(load_word(data, start))
    word = np.int64(0)
    shift = 0
    for at in range(start, end):
        word |= np.int64(data[at]) << shift
        shift += 8
    return word


@kernel
def store_word(data: Array, at: int, value: int) -> None:
    """Write the int64 `value` as eight bytes, little-endian."""
    for i in range(8):
        data[at + i] = (value >> (8 * i)) & 0xFF


@kernel
def hash_span(data: Array, start: int, end: int, kind: int) -> Any:
    """A hash of 32 bits (as uint64) of the bytes, their number and their kind."""
    hashed = SEED * np.uint64(2 * (end - start) + kind + 1)
    at = start
    while at + 8 <= end:
        hashed = (hashed ^ load_word(data, at)) * MIX
        hashed ^= hashed >> HALF
        at += 8
    if at < end:
        word = np.uint64(0)
        shift = np.uint64(0)
        while at < end:
            word |= np.uint64(data[at]) << shift
            shift += np.uint64(8)
            at += 1
        hashed = (hashed ^ word) * MIX
        hashed ^= hashed >> HALF
    return (hashed * FINISH) >> HALF


@kernel
def equal_spans(left: Array, left_start: int, right: Array, right_start: int, length: int) -> bool:
    """Whether `length` bytes of the one are those of the other."""
    for i in range(length):  # noqa: SIM110 (kernels have no generators)
        if left[left_start + i] != right[right_start + i]:
            return False
    return True


@kernel
def gather_spans(data: Array, start: Array, end: Array, out: Array, offsets: Array) -> None:
    """Copy the spans one after the other into `out`, which has room for all, and note where each begins."""
    at = 0
    offsets[0] = 0
    for i in range(start.size):
        for j in range(start[i], end[i]):
            out[at] = data[j]
            at += 1
        offsets[i + 1] = at


@kernel
def index_spans(data: Array, start: Array, end: Array, slots: Array) -> None:
    """Enter the spans, as their numbers plus one, into the zeroed `slots` (a power of two, not all used).

    Of equal spans the first one counts.
    """
    for i in range(start.size):
        length = end[i] - start[i]
        slot = np.int64(hash_span(data, start[i], end[i], 0)) & (slots.size - 1)
        while slots[slot] != 0:
            other = slots[slot] - 1
            if end[other] - start[other] == length and equal_spans(
                data, start[other], data, start[i], length
            ):
                break
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot] == 0:
            slots[slot] = i + 1


@kernel
def match_spans(
    data: Array,
    start: Array,
    end: Array,
    known: Array,
    known_start: Array,
    known_end: Array,
    slots: Array,
    out: Array,
) -> None:
    """For each span the number of the equal one among the indexed `known`, or -1."""
    for i in range(start.size):
        length = end[i] - start[i]
        slot = np.int64(hash_span(data, start[i], end[i], 0)) & (slots.size - 1)
        out[i] = -1
        while slots[slot] != 0:
            other = slots[slot] - 1
            if known_end[other] - known_start[other] == length and equal_spans(
                known, known_start[other], data, start[i], length
            ):
                out[i] = other
                break
            slot = (slot + 1) & (slots.size - 1)


@kernel
def order_spans(
    left: Array,
    left_start: Array,
    left_end: Array,
    right: Array,
    right_start: Array,
    right_end: Array,
    out: Array,
) -> None:
    """The order of two columns of spans by their bytes, row by row: negative, zero or positive.

    A side of a single span is compared with every span of the other.
    """
    for i in range(out.size):
        at = left_start[i if left_start.size > 1 else 0]
        to = right_start[i if right_start.size > 1 else 0]
        left_length = left_end[i if left_end.size > 1 else 0] - at
        right_length = right_end[i if right_end.size > 1 else 0] - to
        order = 0
        for j in range(min(left_length, right_length)):
            if left[at + j] != right[to + j]:
                order = 1 if left[at + j] > right[to + j] else -1
                break
        if order == 0 and left_length != right_length:
            order = 1 if left_length > right_length else -1
        out[i] = order
