"""The `changes` mode of a result: a record when an answer starts to hold, and one when it stops."""

from __future__ import annotations

import numpy as np

from meander.dataflow.answer_table import AnswerTable
from meander.dataflow.batch import Batch, OutputBuffer, empty_batch, take_rows
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.changes import (
    NO_LIST,
    OPEN,
    STARTING,
    Changes,
    mark_open,
    rebuild_changes,
    restart_changes,
    track_changes,
)
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

RECENT_LISTS = 256
BY_ENTRY = {
    "status": np.int8,
    "starts": np.int32,
    "next_stop": np.int32,
    "stop_exp": np.int64,
    "stop_entry": np.int32,
}


class ChangeTracker:
    """The `changes` mode of one result."""

    def __init__(self, arity: int, store: Store) -> None:
        self.store = store
        self.table = AnswerTable(store, arity)
        for column, dtype in BY_ENTRY.items():
            self.table.add_column(f"changes.{column}", dtype)
        recent = store.first_capacity(RECENT_LISTS)
        store.array("changes.recent_exp", recent, np.int64, NO_LIST)
        store.array("changes.recent_entry", recent, np.int32)
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

        def attempt() -> int:
            return track_changes(batch, upto, self.table.answers, self.changes, self.out.batch, cursor)

        run_to_end(self.store, cursor, attempt, {FULL_OUTPUT: self.out.grow, FULL_TABLE: self._drop_closed})
        return self.out.rows(cursor[EMITTED])

    def _drop_closed(self) -> None:
        """Drop the answers that neither hold nor start."""
        self.table.make_room(self._is_live)
        self.bind()
        rebuild_changes(self.table.answers, self.changes)

    def _is_live(self) -> Array:
        status = self.changes.status[: self.table.entries]
        live: Array = (status == OPEN) | (status == STARTING)
        return live

    def restart(self, time: int) -> Batch:
        """The answers that hold at `time`, as if none had been emitted before."""
        out = empty_batch(self.table.entries, self.table.answers.key.shape[1])
        count = restart_changes(self.table.answers, self.changes, time, out)
        return take_rows(out, slice(count))

    def mark(self, live: Array) -> None:
        mark_open(self.table.answers, self.changes, live)
