"""The `changes` mode of a result: a record when an answer starts to hold, and one when it stops."""

from __future__ import annotations

import numpy as np

from meander.dataflow.answer_table import AnswerTable
from meander.dataflow.batch import Batch, OutputBuffer, empty_batch, take_rows
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.changes import (
    CLOSED,
    STOPS,
    Changes,
    mark_open,
    rebuild_changes,
    restart_changes,
    track_changes,
)
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW


class ChangeTracker:
    """The `changes` mode of one result."""

    def __init__(self, arity: int, store: Store) -> None:
        self.store = store
        self.table = AnswerTable(store, arity)
        self.table.add_column("changes.status", np.int8)
        self.table.add_column("changes.starts", np.int32)
        store.array("changes.stop_exp", self.table.capacity, np.int64)
        store.array("changes.stop_entry", self.table.capacity, np.int32)
        store.array("changes.counts", 2, np.int64)
        store.array("cursor", 3, np.int64)  # [next row, output rows, current instant]
        self.out = OutputBuffer(store, arity)
        self.bind()

    def bind(self) -> None:
        self.table.bind()
        self.changes = Changes(*(self.store.arrays[f"changes.{column}"] for column in Changes._fields))

    def process(self, batch: Batch, upto: int) -> Batch:
        """The starts and stops that the changes of the answers, and time up to `upto`, bring."""
        cursor = self.store.arrays["cursor"]
        cursor[NEXT_ROW] = cursor[EMITTED] = 0
        self._reserve_stops(batch.ts.size)

        def attempt() -> int:
            return track_changes(batch, upto, self.table.answers, self.changes, self.out.batch, cursor)

        def make_room() -> None:
            self._drop_closed()
            self._reserve_stops(batch.ts.size)

        run_to_end(self.store, cursor, attempt, {FULL_OUTPUT: self.out.grow, FULL_TABLE: make_room})
        return self.out.rows(cursor[EMITTED])

    def _drop_closed(self) -> None:
        """Drop the answers that neither hold nor start."""
        self.table.make_room(lambda: self.changes.status[: self.table.entries] != CLOSED)
        self.bind()
        rebuild_changes(self.table.answers, self.changes)

    def _reserve_stops(self, more: int) -> None:
        """Make room for the stops of all entries and of `more` rows."""
        entries = self.table.capacity
        if self.changes.counts[STOPS] + more + entries > self.changes.stop_exp.size:
            # Most of the heap may be expiries that answers have outlived.
            rebuild_changes(self.table.answers, self.changes)
            stops = int(self.changes.counts[STOPS]) + more + entries
            if stops > self.changes.stop_exp.size:
                self.store.grow("changes.stop_exp", 2 * stops)
                self.store.grow("changes.stop_entry", 2 * stops)
                self.bind()

    def restart(self, time: int) -> Batch:
        """The answers that hold at `time`, as if none had been emitted before."""
        out = empty_batch(self.table.entries, self.table.answers.key.shape[1])
        count = restart_changes(self.table.answers, self.changes, time, out)
        return take_rows(out, slice(count))

    def mark(self, live: Array) -> None:
        mark_open(self.table.answers, self.changes, live)
