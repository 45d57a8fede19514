"""Vertices and values: names outside, dense 32-bit numbers inside.

Everything behind the readers works on numbers, so that a column of vertices is four bytes a row and an array
indexed by vertex is possible. Numbers are given out from the least on, and those that a sweep frees are used
again: `capacity` follows the number of vertices alive at a time, not the length of the stream.

The values of properties that a query binds are numbered alike, so that a value is a key column like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import PATH, CodedText, Names, Text, as_text, frozen, integer_text
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Store
from meander.dataflow.value_names import BOOL_NAMES, float_of, float_text, numbers_of, text_of
from meander.kernels.interning import (
    COUNT,
    FREE,
    FRESH,
    HEAD,
    USED,
    Entries,
    intern_codes,
    intern_names,
    locate_names,
    measure_live,
    rebuild_slots,
    sweep_names,
)
from meander.kernels.interning import (
    Names as NameTable,
)
from meander.kernels.spans import wrapping
from meander.kernels.status import DONE, FULL_TABLE
from meander.syntax.values import ValueType

Array = np.ndarray[Any, Any]

NO_NUMBER = -1
LEAST_CAPACITY = 1024
LEAST_ARENA = 16 * 1024

COLUMNS: dict[str, Any] = {"hash": np.uint32, "pinned": np.bool_, "order": np.int32, "free": np.int32}


class Vertices:
    """The vertices of a dataflow; all state is in the store's arrays."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.least_arena = store.first_capacity(LEAST_ARENA)
        if "vertices.slots" not in store.arrays:
            capacity = store.first_capacity(LEAST_CAPACITY)
            store.array("vertices.span", capacity, np.int64, width=4)
            for column, dtype in COLUMNS.items():
                store.array(f"vertices.{column}", capacity, dtype)
            store.array("vertices.slots", 2 * capacity, np.uint64)
            store.array("vertices.arena", self.least_arena, np.uint8)
            store.array("vertices.counters", 4, np.int64)
        self.bind()

    def bind(self) -> None:
        """Take up the arrays of the store, after growth or a restore; known numbers may be those of other names."""
        self.names = NameTable(*(self.store.arrays[f"vertices.{column}"] for column in NameTable._fields))
        self.arena = frozen(self.names.arena)
        self.numbering = object()

    @property
    def count(self) -> int:
        """How many names have a number."""
        return int(self.names.counters[COUNT])

    @property
    def capacity(self) -> int:
        """All numbers are below this."""
        return int(self.names.span.shape[0])

    def intern(self, text: Names, numbers: Array | None = None) -> Array:
        """The numbers of the names, written to `numbers` if that is given; new names get new numbers."""
        if numbers is None:
            numbers = np.empty(text.rows, np.int32)
        if isinstance(text, CodedText):
            self._intern_codes(text, numbers)
            return numbers
        rows = text.rows
        hashes = np.empty(rows, np.uint64)
        with wrapping():
            reached = intern_names(*text, hashes, self.names, numbers, 0)
        # Most batches have room for their names: what follows would take as long as the names of a small one.
        if reached < rows:
            self._intern_rest(text, hashes, numbers, reached)
        return numbers

    def _intern_codes(self, text: CodedText, numbers: Array) -> None:
        """Number names that are codes: each distinct name once, however many columns and batches have it."""
        dictionary = text.dictionary
        known = dictionary.numbers
        if known is None or dictionary.numbered_by is not self.numbering:
            known = dictionary.numbers = np.full(dictionary.text.rows, NO_NUMBER, np.int32)
            dictionary.numbered_by = self.numbering
        entries = Entries(*dictionary.text, dictionary.hashes, known)
        cursor = np.array([0, 0], np.int64)

        def attempt() -> int:
            cursor[0] = intern_codes(entries, text.code, self.names, numbers, cursor[0])
            return DONE if cursor[0] == text.rows else FULL_TABLE

        def make_room() -> None:
            entry = text.code[cursor[0]]
            self._grow(int(dictionary.text.end[entry] - dictionary.text.start[entry]))

        run_to_end(self.store, cursor, attempt, {FULL_TABLE: make_room})

    def _intern_rest(self, text: Text, hashes: Array, numbers: Array, reached: int) -> None:
        """Go on at row `reached`, for which there was no room."""
        cursor = np.array([reached, 0], np.int64)

        def attempt() -> int:
            cursor[0] = intern_names(*text, hashes, self.names, numbers, cursor[0])
            return DONE if cursor[0] == text.rows else FULL_TABLE

        def make_room() -> None:
            row = cursor[0]
            self._grow(int(text.end[row] - text.start[row]))

        with wrapping():
            run_to_end(self.store, cursor, attempt, {FULL_TABLE: make_room})

    def pin(self, value: str | int) -> int:
        """The number of a constant of the query; it is never freed."""
        number = int(self.intern(as_text([value]))[0])
        self.names.pinned[number] = True
        return number

    def text(self, numbers: Array) -> Text:
        """The names of the numbers, as spans that stay valid whatever happens to the vertices later."""
        start = np.empty(numbers.size, np.int64)
        end = np.empty(numbers.size, np.int64)
        kind = np.empty(numbers.size, np.int8)
        locate_names(self.names, np.ascontiguousarray(numbers), start, end, kind)
        return Text(self.arena, start, end, kind)

    def intern_column(self, column: pa.Array, kind: ValueType | None) -> Array:
        """The numbers of a column of values without nulls; INT is converted if the `kind` is FLOAT."""
        if pa.types.is_dictionary(column.type):
            code = column.indices.to_numpy(zero_copy_only=False)
            # The dictionary may have far more strings than the rows.
            used, code = np.unique(code, return_inverse=True)
            return self.intern(text_of(column.dictionary.take(pa.array(used))))[code]
        if pa.types.is_boolean(column.type):
            return self.intern(BOOL_NAMES)[numbers_of(column).astype(np.intp)]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            names = text_of(column)
            if kind is ValueType.PATH:
                names = names._replace(kind=np.full(names.rows, PATH, np.int8))
            return self.intern(names)
        if kind is ValueType.FLOAT or pa.types.is_floating(column.type):
            return self.intern(float_text(float_of(column)))
        return self.intern(integer_text(numbers_of(column)))

    def intern_times(self, ts: Array) -> Array:
        """The numbers of times in order, each time interned once."""
        first = np.flatnonzero(np.diff(ts, prepend=ts[:1] - 1))
        numbers = self.intern(integer_text(ts[first]))
        return np.repeat(numbers, np.diff(first, append=ts.size))

    def values(self, numbers: Array, kind: ValueType) -> Array | Text:
        """The values of the numbers: int64 for INT and TIME, float64, bool, or names."""
        if kind in (ValueType.STRING, ValueType.VERTEX, ValueType.PATH):
            return self.text(numbers)
        bits: Array = self.names.span[numbers, HEAD]
        if kind is ValueType.FLOAT:
            bits = bits.view(np.float64)
        elif kind is ValueType.BOOL:
            bits = bits != 0
        return bits

    def sweep(self, live: Array) -> None:
        """Free all numbers but the pinned and the `live` (bool, one for each number below `capacity`)."""
        old = self.names
        needed = measure_live(old, live)
        held = old.arena.size
        # Halving only what is mostly empty keeps a steady stream from resizing at every sweep.
        size = max(self.least_arena, held // 2) if needed < held // 4 else held
        arena = self.store.array("vertices.arena", size, np.uint8)
        with wrapping():
            sweep_names(old, live, arena)
        self.bind()

    def _grow(self, length: int) -> None:
        """Make room for one more name of `length` bytes, and for many more like it."""
        numbering = self.numbering
        counters = self.names.counters
        needed = int(counters[USED]) + length
        if needed > self.names.arena.size:
            self.store.grow("vertices.arena", max(2 * self.names.arena.size, needed))
        if counters[FREE] == 0 and counters[FRESH] == self.capacity:
            capacity = 2 * self.capacity
            for column in ("span", *COLUMNS):
                self.store.grow(f"vertices.{column}", capacity)
            self.store.array("vertices.slots", 2 * capacity, np.uint64)
            self.bind()
            rebuild_slots(self.names)
        self.bind()
        self.numbering = numbering
