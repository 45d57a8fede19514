"""The tables of PATH over time-respecting paths, in the arrays of a store."""

from __future__ import annotations

import numpy as np

from meander.dataflow.state import Array, Store
from meander.kernels.ascending.arrivals import ARRIVALS, Arrivals, mark_arrivals, pack_arrivals
from meander.kernels.ascending.instants import CHANGED_AT, INSTANT_COUNTS, Instant
from meander.kernels.ascending.repair import REPAIR_COUNTS, Repair
from meander.kernels.ascending.rows import HEADER, LEAST_WIDTH, MOST_WIDTH, Rows, copy_rows, count_slots
from meander.kernels.status import FOREVER

LEAST_SLOTS = 1024
LEAST_ARRIVALS = 1024
LEAST_QUEUE = 256

_LOG_COLUMNS = {
    "src": np.int32,
    "trg": np.int32,
    "source": np.int16,
    "time": np.int64,
    "exp": np.int64,
    "next_out": np.int32,
    "next_in": np.int32,
}
_CHANGE_COLUMNS = {"changed_bucket": np.int32, "changed_root": np.int32, "changed_exp": np.int64}


class RowTable:
    """Rows in the arrays of a store, under names with a prefix."""

    def __init__(self, store: Store, prefix: str, *, scratch: bool) -> None:
        self.store, self.prefix, self.scratch = store, prefix, scratch
        self.least = max(1 << LEAST_WIDTH, store.first_capacity(LEAST_SLOTS))
        store.array(f"{prefix}header", 0, np.int32, width=HEADER, scratch=scratch)
        store.array(f"{prefix}free", MOST_WIDTH + 1, np.int32, -1, scratch=scratch)
        store.array(f"{prefix}counts", 1, np.int64, scratch=scratch)
        self._new_arena(self.least)
        self.bind()

    def _new_arena(self, slots: int) -> None:
        self.store.array(f"{self.prefix}root", slots, np.int32, -1, scratch=self.scratch)
        self.store.array(f"{self.prefix}exp", slots, np.int64, scratch=self.scratch)

    def bind(self) -> None:
        self.rows = Rows(*(self.store.arrays[f"{self.prefix}{column}"] for column in Rows._fields))

    def reserve(self, buckets: int) -> None:
        self.store.grow(f"{self.prefix}header", buckets)
        self.bind()

    def make_room(self, horizon: int, *, again: bool) -> None:
        """Drop what is expired; if that was not enough (`again`), or most of the arena is valid, take a larger one.

        A row that moves needs up to twice its slots beside those that it has.
        """
        slots, capacity = count_slots(self.rows, horizon), self.rows.root.size
        if again or 3 * slots > capacity:
            capacity = max(4 * slots, capacity + capacity // 2)
        elif 12 * slots < capacity:
            capacity = max(4 * slots, self.least)
        old = self.rows
        self._new_arena(capacity)
        self.bind()
        copy_rows(old._replace(header=self.rows.header), self.rows, horizon)


class ArrivalLog:
    """The log of arrivals."""

    def __init__(self, store: Store) -> None:
        self.store = store
        rows = store.first_capacity(LEAST_ARRIVALS)
        for column, dtype in _LOG_COLUMNS.items():
            store.array(f"log.{column}", rows, dtype)
        for column in ("log.first_out", "log.first_in"):
            store.array(column, 0, np.int32, -1)
        store.array("log.counts", 1, np.int64)
        self.bind()

    def bind(self) -> None:
        self.arrivals = Arrivals(*(self.store.arrays[f"log.{column}"] for column in Arrivals._fields))

    @property
    def rows(self) -> int:
        return int(self.arrivals.counts[ARRIVALS])

    def reserve_vertices(self, vertices: int) -> None:
        for column in ("log.first_out", "log.first_in"):
            self.store.grow(column, vertices, -1)
        self.bind()

    def reserve(self, more: int, horizon: int) -> None:
        """Make room for more arrivals: drop what is expired at `horizon`, then grow if half or more is left."""
        capacity = self.arrivals.src.size
        if self.rows + more <= capacity:
            return
        pack_arrivals(self.arrivals, horizon)
        if 2 * (self.rows + more) > capacity:
            for column in _LOG_COLUMNS:
                self.store.grow(f"log.{column}", 2 * (self.rows + more))
            self.bind()

    def valid_at(self, time: int) -> Array:
        """The rows of the arrivals of an instant that are valid at it."""
        total = self.rows
        if total == 0 or self.arrivals.time[total - 1] != time:
            return np.zeros(0, np.int64)
        first = int(np.searchsorted(self.arrivals.time[:total], time))
        rows: Array = first + np.flatnonzero(self.arrivals.exp[first:total] > time)
        return rows

    def mark(self, horizon: int, live: Array) -> None:
        mark_arrivals(self.arrivals, horizon, live)


class InstantTable:
    """The edges of an instant, the queue of candidates, and the log of changes under a name with a prefix.

    Two of them share all but the log: only one is walked at a time.
    """

    def __init__(self, store: Store, prefix: str, *, scratch: bool) -> None:
        self.store, self.prefix = store, prefix
        least = store.first_capacity(LEAST_QUEUE)
        if "instant.first_out" not in store.arrays:
            for column in ("first_out", "first_in"):
                store.array(f"instant.{column}", 0, np.int32, -1, scratch=True)
            for column in ("next_out", "next_in"):
                store.array(f"instant.{column}", 0, np.int32, scratch=True)
            for column in ("key", "node"):
                store.array(f"instant.{column}", least, np.int64, scratch=True)
        for column, dtype in _CHANGE_COLUMNS.items():
            store.array(f"{prefix}{column}", least, dtype, scratch=scratch)
        store.array(f"{prefix}counts", INSTANT_COUNTS, np.int64, scratch=scratch)[CHANGED_AT] = -1
        self.bind()

    def bind(self) -> None:
        arrays = self.store.arrays
        own = (*_CHANGE_COLUMNS, "counts")
        self.instant = Instant(
            *(arrays[f"{self.prefix if column in own else 'instant.'}{column}"] for column in Instant._fields)
        )

    def reserve(self, vertices: int, steps: int) -> None:
        for column in ("first_out", "first_in"):
            self.store.grow(f"instant.{column}", vertices, -1)
        if steps > self.store.arrays["instant.next_out"].size:
            for column in ("next_out", "next_in"):
                self.store.grow(f"instant.{column}", 2 * steps)
        self.bind()

    def grow(self) -> None:
        """Double the queue and the log of changes."""
        for column in ("key", "node"):
            self.store.grow(f"instant.{column}", 2 * self.instant.key.size)
        for column in _CHANGE_COLUMNS:
            self.store.grow(f"{self.prefix}{column}", 2 * self.instant.changed_exp.size)
        self.bind()


class RepairTable:
    """What a retraction needs, all of it empty between two of them; made when there is one for the first time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.table = RowTable(store, "repair.rows.", scratch=True)
        self.instants = InstantTable(store, "repair.instant.", scratch=True)
        store.array("repair.marked", 0, np.bool_, scratch=True)
        store.array("repair.root", 0, np.int32, scratch=True)
        store.array("repair.earliest", 0, np.int64, FOREVER, scratch=True)
        store.array("repair.bucket", 0, np.int32, scratch=True)
        store.array("repair.used", 0, np.bool_, scratch=True)
        store.array("repair.lost", 0, np.int32, scratch=True)
        store.array("repair.lost_exp", 0, np.int64, scratch=True)
        queue = store.first_capacity(LEAST_QUEUE)
        store.array("repair.key", queue, np.int64, scratch=True)
        store.array("repair.node", queue, np.int32, scratch=True)
        store.array("repair.counts", REPAIR_COUNTS, np.int64, scratch=True)
        self.bind()

    def bind(self) -> None:
        self.table.bind()
        self.instants.bind()
        self.repair = Repair(*(self.store.arrays[f"repair.{column}"] for column in Repair._fields))

    def reserve(self, vertices: int, states: int, arrivals: int) -> None:
        store = self.store
        for column in ("marked", "root"):
            store.grow(f"repair.{column}", vertices)
        store.grow("repair.earliest", vertices * states, FOREVER)
        store.grow("repair.bucket", vertices * states)
        self.table.reserve(vertices * states)
        for column in ("used", "lost", "lost_exp"):
            store.grow(f"repair.{column}", arrivals)
        self.bind()

    def grow_queue(self) -> None:
        for column in ("key", "node"):
            self.store.grow(f"repair.{column}", 2 * self.repair.key.size)
        self.bind()
