"""The log of a scan's arrivals in the arrays of a store: its growth, its index, and what it gives back."""

from __future__ import annotations

import numpy as np

from meander.dataflow.batch import Batch, OutputBuffer, take_rows
from meander.dataflow.encoding import Selection, arrival_names
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Fields, Store
from meander.kernels import arrivals as kernels
from meander.kernels.arrivals import ROWS, index_arrivals, pack_arrivals, process_arrivals
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

LEAST_ARRIVALS = 256

_ROW_COLUMNS = ("key", "exp")


class LogState(Fields):
    packed_rows: int = 0  # that the last packing kept
    indexed: int = 0


class ArrivalLog:
    """The arrivals of a scan that may still be valid.

    It has an index from the first deletion on; that of a table always has one.
    """

    def __init__(self, selection: Selection, store: Store) -> None:
        self.selection, self.store = selection, store
        self.least = store.first_capacity(LEAST_ARRIVALS)
        store.array("arrivals.key", self.least, np.int32, width=selection.width)
        store.array("arrivals.exp", self.least, np.int64)
        for column in ("older_pair", "older_tuple", "pairs", "tuples"):
            store.array(f"arrivals.{column}", 0, np.int32)
        store.array("arrivals.counts", 1, np.int64)
        self.state = LogState(store, "log")
        self.shape = np.array([selection.arity, selection.label_words, selection.table], np.int64)
        self.out = OutputBuffer(store, selection.arity)
        self.bind()

    def bind(self) -> None:
        arrays = self.store.arrays
        columns = {column: arrays[f"arrivals.{column}"] for column in kernels.Arrivals._fields}
        if self.selection.arity == 2:
            columns["older_tuple"] = columns["older_pair"]
        self.log = kernels.Arrivals(**columns)

    @property
    def rows(self) -> int:
        return int(self.log.counts[ROWS])

    @property
    def capacity(self) -> int:
        return int(self.log.exp.size)

    def process(self, batch: Batch) -> Batch:
        """The changes of the tuples that arrivals, each with its expiry, and deletions bring."""
        if not self.state.indexed and not self.selection.table and (batch.op > 0).all():
            return self._append(batch)
        if not self.state.indexed:
            self.state.indexed = 1
            self._index()
        cursor = np.zeros(2, np.int64)

        def make_room() -> None:
            self._pack(int(batch.ts[cursor[NEXT_ROW]]))
            if self.rows > self.capacity // 2:
                self._resize(2 * self.capacity)
            self._index()

        run_to_end(
            self.store,
            cursor,
            lambda: process_arrivals(batch, self.log, self.shape, self.out.batch, cursor),
            {FULL_OUTPUT: self.out.grow, FULL_TABLE: make_room},
        )
        return self.out.rows(cursor[EMITTED])

    def _append(self, batch: Batch) -> Batch:
        """Arrivals without a deletion: all of them are changes."""
        count, more = self.rows, batch.ts.size
        if count + more > self.capacity:
            self._resize(max(2 * self.capacity, count + more))
        self.log.key[count : count + more] = batch.key
        self.log.exp[count : count + more] = batch.exp
        self.log.counts[ROWS] = count + more
        if self.selection.width == self.selection.arity:
            return batch
        return batch._replace(key=np.ascontiguousarray(batch.key[:, : self.selection.arity]))

    def give_back(self, horizon: int) -> None:
        """Drop the arrivals that have expired at `horizon`, once they are the larger part."""
        if self.rows <= 2 * self.state.packed_rows + self.least:
            return
        self._pack(horizon)
        # A steady stream does not resize at every packing.
        if 8 * self.rows < self.capacity and self.capacity > self.least:
            self._resize(max(self.least, 2 * self.rows))
        if self.state.indexed:
            self._index()

    def _pack(self, horizon: int) -> None:
        pack_arrivals(self.log, horizon)
        self.state.packed_rows = self.rows

    def _resize(self, capacity: int) -> None:
        """Room for `capacity` rows, which holds all rows there are; the index is to be rebuilt."""
        rows = self.rows
        for column in _ROW_COLUMNS:
            before = self.store.arrays[f"arrivals.{column}"][:rows].copy()
            if capacity > self.capacity:
                self.store.grow(f"arrivals.{column}", capacity)
            else:
                width = self.selection.width if column == "key" else None
                self.store.array(f"arrivals.{column}", capacity, before.dtype, width=width)[:rows] = before
        self.bind()

    def _index(self) -> None:
        size = 1 << (2 * self.capacity - 1).bit_length()
        wide = self.selection.arity > 2
        for column, length in (
            ("older_pair", self.capacity),
            ("older_tuple", self.capacity if wide else 0),
            ("pairs", size),
            ("tuples", size if wide else 0),
        ):
            if self.store.arrays[f"arrivals.{column}"].size != length:
                self.store.array(f"arrivals.{column}", length, np.int32)
        self.bind()
        index_arrivals(self.log, self.selection.arity)

    def mark(self, horizon: int, live: Array) -> None:
        """Mark the names of the arrivals that are valid after `horizon`."""
        valid = self.log.exp[: self.rows] > horizon
        live[arrival_names(self.selection, self.log.key[: self.rows][valid])] = True


def without_empty_intervals(batch: Batch) -> Batch:
    """The rows but the edges that never become valid."""
    valid = (batch.exp > batch.ts) | (batch.op < 0)
    return batch if valid.all() else take_rows(batch, valid)
