"""Names to dense numbers and back: an open-addressing hash table over spans of an arena.

`slots` holds, for each name, 32 bits of its hash and its number plus one in one word, so that a probe costs
one load and the table can be rebuilt from `hash` without reading a name. What a comparison needs lies
together in one row of `span`, the first eight bytes of the name included: a short name is found with two
reads of cold memory. Names lie in `arena` in the order in which they came, which `order` remembers: a sweep
walks it and copies what lives into another arena. Nothing in an arena is ever overwritten, so spans of it
stay valid.

A string and an integer are different names even if they look alike: the kind takes part in hash and equality.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.jit import inner_kernel, kernel, prefetch
from meander.kernels.spans import equal_spans, hash_span, load_head

Array = np.ndarray[Any, Any]

COUNT, USED, FRESH, FREE = 0, 1, 2, 3
"""Positions in `counters`: names held, arena bytes used, least number never used, free numbers."""

START, LENGTH, KIND, HEAD = 0, 1, 2, 3
"""Columns of `span`: where the name begins in the arena, its length, kind and first eight bytes."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

AHEAD, NEAR = 24, 12
"""How many rows before a name is looked up its slot is fetched, and the span that the slot leads to."""


class Names(NamedTuple):
    """The columns of the table; all but `slots`, `arena` and `counters` have one row for each number."""

    slots: Array
    arena: Array
    span: Array
    hash: Array
    pinned: Array
    order: Array
    free: Array
    counters: Array


class Entries(NamedTuple):
    """A dictionary of names, spans of `data`: their hashes, and the numbers that they have so far, or else -1."""

    data: Array
    start: Array
    end: Array
    kind: Array
    hash: Array
    number: Array


@kernel
def put_slot(slots: Array, hashed: Any, number: int) -> None:
    """Enter a number that is not in the table."""
    slot = np.int64(hashed) & (slots.size - 1)
    while slots[slot] != 0:
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = (np.uint64(hashed) << HALF) | np.uint64(number + 1)


@kernel
def hash_names(data: Array, start: Array, end: Array, kind: Array, hashes: Array) -> None:
    """The hash of each name; apart from the search, so that the processor can overlap the searches of many names."""
    for row in range(start.size):
        hashes[row] = hash_span(data, start[row], end[row], kind[row])


@inner_kernel
def fetch_slot(names: Names, hashed: Any) -> None:
    """Fetch the slot where a name with this hash is looked up first."""
    prefetch(names.slots, np.int64(hashed) & (names.slots.size - 1))


@inner_kernel
def fetch_span(names: Names, hashed: Any) -> None:
    """Fetch the span of the name in that slot, as a rule the one with this hash."""
    entered = names.slots[np.int64(hashed) & (names.slots.size - 1)]
    if entered != 0:
        prefetch(names.span, np.int64(entered & LOW) - 1)


@kernel
def intern_name(data: Array, begin: int, end: int, kind: int, hashed: Any, names: Names) -> Any:
    """The number of a name with this hash, a new one if it is unknown.

    -1 if there is no number, slot or room in the arena for it.
    """
    slots = names.slots
    span = names.span
    counters = names.counters
    mask = slots.size - 1
    length = end - begin
    head = load_head(data, begin, end)
    hashed = np.uint64(hashed)
    slot = np.int64(hashed) & mask
    while slots[slot] != 0:
        if slots[slot] >> HALF == hashed:
            other = np.int64(slots[slot] & LOW) - 1
            if (
                span[other, HEAD] == head
                and span[other, LENGTH] == length
                and span[other, KIND] == kind
                and (
                    length <= 8
                    or equal_spans(names.arena, span[other, START] + 8, data, begin + 8, length - 8)
                )
            ):
                return other
        slot = (slot + 1) & mask
    used = counters[USED]
    if used + length > names.arena.size or 2 * counters[COUNT] >= slots.size:
        return -1
    if counters[FREE] > 0:
        counters[FREE] -= 1
        number = np.int64(names.free[counters[FREE]])
    elif counters[FRESH] < span.shape[0]:
        number = counters[FRESH]
        counters[FRESH] += 1
    else:
        return -1
    slots[slot] = (hashed << HALF) | np.uint64(number + 1)
    for i in range(length):
        names.arena[used + i] = data[begin + i]
    span[number, START] = used
    span[number, LENGTH] = length
    span[number, KIND] = kind
    span[number, HEAD] = head
    names.hash[number] = hashed
    names.order[counters[COUNT]] = number
    counters[USED] = used + length
    counters[COUNT] += 1
    return number


@kernel
def intern_names(
    data: Array, start: Array, end: Array, kind: Array, hashes: Array, names: Names, numbers: Array, row: int
) -> int:
    """Number each name from `row` on; unknown names get a new number.

    Stops at the first row for which there is no number, slot or room in the arena, and returns that row; returns
    the number of rows if all are done. Called with row 0, it first computes the hashes of all rows.
    """
    if row == 0:
        hash_names(data, start, end, kind, hashes)
    while row < start.size:
        if row + AHEAD < start.size:
            fetch_slot(names, hashes[row + AHEAD])
            fetch_span(names, hashes[row + NEAR])
        number = intern_name(data, start[row], end[row], kind[row], hashes[row], names)
        if number < 0:
            return row
        numbers[row] = number
        row += 1
    return row


@kernel
def intern_codes(entries: Entries, code: Array, names: Names, numbers: Array, row: int) -> int:
    """Number each name from `row` on, given as a code into a dictionary; its entries get their numbers.

    Stops, and returns, as `intern_names`.
    """
    while row < code.size:
        if row + AHEAD < code.size:
            entry = code[row + AHEAD]
            if entries.number[entry] < 0:
                fetch_slot(names, entries.hash[entry])
            entry = code[row + NEAR]
            if entries.number[entry] < 0:
                fetch_span(names, entries.hash[entry])
        entry = code[row]
        number = np.int64(entries.number[entry])
        if number < 0:
            begin, end = entries.start[entry], entries.end[entry]
            hashed = entries.hash[entry]
            number = np.int64(intern_name(entries.data, begin, end, entries.kind[entry], hashed, names))
            if number < 0:
                return row
            entries.number[entry] = number
        numbers[row] = number
        row += 1
    return row


@kernel
def encode_names(
    data: Array,
    start: Array,
    end: Array,
    kind: Array,
    hashes: Array,
    slots: Array,
    code: Array,
    distinct: Array,
) -> int:
    """Number equal names alike, from 0 on in the order in which they come; returns how many there are.

    `distinct` gets the first row of each. `slots` is zeroed, a power of two, and more than half of it stays free.
    """
    mask = slots.size - 1
    count = 0
    for row in range(start.size):
        hashed = hashes[row]
        length = end[row] - start[row]
        slot = np.int64(hashed) & mask
        number = np.int64(-1)
        while slots[slot] != 0:
            other = distinct[slots[slot] - 1]
            if (
                hashes[other] == hashed
                and end[other] - start[other] == length
                and kind[other] == kind[row]
                and equal_spans(data, start[other], data, start[row], length)
            ):
                number = np.int64(slots[slot] - 1)
                break
            slot = (slot + 1) & mask
        if number < 0:
            number = np.int64(count)
            distinct[count] = row
            count += 1
            slots[slot] = count
        code[row] = number
    return count


@kernel
def rebuild_slots(names: Names) -> None:
    """Enter every held name into `slots`, whatever it held before."""
    names.slots[:] = 0
    for i in range(names.counters[COUNT]):
        number = names.order[i]
        put_slot(names.slots, names.hash[number], number)


@kernel
def measure_live(names: Names, live: Array) -> int:
    """The bytes that the names of live or pinned numbers take."""
    size = 0
    for i in range(names.counters[COUNT]):
        number = names.order[i]
        if live[number] or names.pinned[number]:
            size += names.span[number, LENGTH]
    return size


@kernel
def sweep_names(names: Names, live: Array, arena: Array) -> None:
    """Keep the live and the pinned, move their bytes into `arena`, and free the numbers of all others."""
    counters = names.counters
    kept = 0
    used = 0
    for i in range(counters[COUNT]):
        number = names.order[i]
        if live[number] or names.pinned[number]:
            begin = names.span[number, START]
            length = names.span[number, LENGTH]
            for j in range(length):
                arena[used + j] = names.arena[begin + j]
            names.span[number, START] = used
            used += length
            names.order[kept] = number
            kept += 1
        else:
            names.free[counters[FREE]] = number
            counters[FREE] += 1
    counters[COUNT] = kept
    counters[USED] = used
    rebuild_slots(names)


@kernel
def locate_names(names: Names, numbers: Array, start: Array, end: Array, kind: Array) -> None:
    """Where in the arena the name of each number stands, and its kind."""
    for row in range(numbers.size):
        span = names.span[numbers[row]]
        start[row] = span[START]
        end[row] = span[START] + span[LENGTH]
        kind[row] = span[KIND]
