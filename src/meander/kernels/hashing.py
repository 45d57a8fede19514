"""The one hash index of the kernels: open addressing with linear probing over the key columns of a table.

An index is an array of slots, its length a power of two and at most half full; a slot has the number of a row, or -1.
Vertex names have an index of their own (`interning`): their keys are spans of bytes, and its slots carry a hash.
"""

from __future__ import annotations

import numpy as np

from meander.kernels.jit import Array, inner_kernel, kernel


@kernel
def mix(a: int, b: int, c: int) -> int:
    """Hash three numbers below 2**31; the result is not negative, and no step exceeds 63 bits.

    The middle bits of a product depend on all bits below them, so those are the result.
    """
    h = np.int64(a) * 1_013_904_223 + np.int64(b) * 736_338_717 + np.int64(c) * 894_784_853
    h ^= h >> 32
    h = (h & 0x7FFFFFFF) * 2_045_197_649 + (h >> 31)
    return int((h ^ (h >> 32)) >> 12)


@inner_kernel
def find_triple(slots: Array, first: Array, second: Array, third: Array, key: tuple[int, int, int]) -> int:
    """The slot of a key of three columns, or the free slot where it belongs."""
    mask = slots.size - 1
    slot = mix(key[0], key[1], key[2]) & mask
    while True:
        row = slots[slot]
        if row < 0 or (first[row] == key[0] and second[row] == key[1] and third[row] == key[2]):
            return slot
        slot = (slot + 1) & mask


@inner_kernel
def free_slot(slots: Array, a: int, b: int, c: int) -> int:
    """The free slot for a key of three columns that is not in the index."""
    mask = slots.size - 1
    slot = mix(a, b, c) & mask
    while slots[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def hash_key(key: Array) -> int:
    """Hash a key of any number of columns."""
    h = 0
    for column in range(key.size):
        h = mix(key[column], column, h & 0x7FFFFFFF)
    return h


@kernel
def find_key(slots: Array, keys: Array, key: Array) -> int:
    """The slot of a row of the key matrix `keys`, or the free slot where it belongs."""
    mask = slots.size - 1
    slot = hash_key(key) & mask
    while True:
        row = slots[slot]
        if row < 0:
            return slot
        equal = True
        for column in range(key.size):
            if keys[row, column] != key[column]:
                equal = False
                break
        if equal:
            return slot
        slot = (slot + 1) & mask


@kernel
def index_keys(slots: Array, keys: Array, count: int) -> None:
    """Rebuild an index over the first `count` rows of a key matrix."""
    slots[:] = -1
    for row in range(count):
        slots[find_key(slots, keys, keys[row])] = row
