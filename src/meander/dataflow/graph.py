"""The window's graph as the operators share it: one table for all indexed streams, grown and packed here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch, empty_batch, take_rows
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.graph import (
    ROWS,
    UNDONE,
    Graph,
    Values,
    begin_batch,
    count_rows,
    mark_vertices,
    pack_rows,
    relink_rows,
    update_relation,
)
from meander.kernels.lookups import settle_since
from meander.kernels.status import EMITTED, FULL_GRAPH, NEXT_ROW
from meander.physical.plan import Links
from meander.physical.programs import Side

LEAST_ROWS = 1024
KEPT = 2  # in `counts`: the number of rows that the last packing kept

_ROW_COLUMNS = {
    "relation": np.int16,
    "src": np.int32,
    "trg": np.int32,
    "exp": np.int64,
    "stamp": np.int64,
    "older": np.int32,
    "next_out": np.int32,
    "next_in": np.int32,
}
_BUCKET_COLUMNS = {"first_out": -1, "first_in": -1, "degree_out": 0, "degree_in": 0}
_VALUE_BUCKETS = {"first": -1, "degree": 0}
_UNDO_COLUMNS = {"undo_row": np.int32, "undo_exp": np.int64, "undo_stamp": np.int64, "undo_older": np.int32}


class WindowGraph:
    """The tuples of every indexed operator; relation i is the i-th of `links`.

    With `validity` it also has, in `since`, the beginning of each row's validity (see `kernels.lookups`).
    """

    def __init__(self, store: Store, links: Sequence[Links], *, validity: bool = False) -> None:
        self.store = store
        self.validity = validity
        self.relations = len(links)
        self.packed = 0  # how often rows were renumbered
        self.least_rows = store.first_capacity(LEAST_ROWS)
        for column, dtype in _ROW_COLUMNS.items():
            store.array(column, self.least_rows, dtype)
        if validity:
            store.array("since", self.least_rows, np.int64)
        for column in _BUCKET_COLUMNS:
            store.array(column, 0, np.int32)
        for column, undo in _UNDO_COLUMNS.items():
            store.array(column, self.least_rows, undo)
        store.array("pair", 2 * self.least_rows, np.int32, -1)
        store.array("linked_out", self.relations, np.bool_)[:] = [link.out for link in links]
        store.array("linked_in", self.relations, np.bool_)[:] = [link.into for link in links]
        store.array("counts", 3, np.int64)
        self.width = max((link.width for link in links), default=0)
        if self.width:
            self._add_values(links)
        self.bind()

    def _add_values(self, links: Sequence[Links]) -> None:
        """The arrays of `Values`, each as `values.` and its name."""
        listed = [(relation, column) for relation, link in enumerate(links) for column in link.values]
        linked_columns = 1 + max((column for _, column in listed), default=-1)
        store = self.store
        store.array("values.value", self.least_rows, np.int32, width=self.width)
        store.array("values.width", self.relations, np.int32)[:] = [link.width for link in links]
        lists = store.array("values.lists", self.relations, np.int32, -1, width=self.width)
        for number, (relation, column) in enumerate(listed):
            lists[relation, column] = number
        store.array("values.listed", len(listed), np.int32)[:] = [column for _, column in listed]
        store.array("values.next", self.least_rows, np.int32, width=linked_columns)
        for column_name in _VALUE_BUCKETS:
            store.array(f"values.{column_name}", 0, np.int32)

    def bind(self) -> None:
        """Use the store's arrays, after growth or restoring."""
        self.graph = Graph(*(self.store.arrays[column] for column in Graph._fields))
        self.since = self.store.arrays["since"] if self.validity else np.zeros(0, np.int64)
        self.values = (
            Values(*(self.store.arrays[f"values.{column}"] for column in Values._fields))
            if self.width
            else None
        )

    def value_columns(self) -> Values:
        """The value columns of all relations, if none has any too."""
        if self.values is not None:
            return self.values
        table, column = np.zeros((0, 0), np.int32), np.zeros(0, np.int32)
        return Values(
            value=table,
            width=np.zeros(self.relations, np.int32),
            lists=table,
            listed=column,
            next=table,
            first=column,
            degree=column,
        )

    def list_by_value(self, relation: int, column: Side) -> int:
        """The number of a relation's list by value of a column, or -1 for what is no value column."""
        if self.values is None or not isinstance(column, int):
            return -1
        return int(self.values.lists[relation, column])

    def begin(self, horizon: int) -> None:
        """Start a batch: forget older expiries, and drop expired rows once they are the larger part."""
        if self.validity:
            settle_since(self.graph, self.since)
        begin_batch(self.graph)
        counts = self.graph.counts
        if counts[ROWS] > 2 * counts[KEPT] + self.least_rows:
            self.pack(horizon)
            counts[KEPT] = counts[ROWS]

    def pack(self, horizon: int) -> None:
        """Drop the rows that are expired at `horizon`. Only between two batches."""
        if self.validity:
            rows = slice(int(self.graph.counts[ROWS]))
            since = self.since[rows][self.graph.exp[rows] > horizon]
            self.since[: since.size] = since
            self.since[since.size :] = 0
        pack_rows(self.graph, self.values, horizon)
        self.packed += 1

    def reserve_vertices(self, capacity: int) -> None:
        """Make room for all numbers of vertices and values below `capacity`."""
        buckets = capacity * self.relations
        if buckets > self.graph.first_out.size:
            for column, fill in _BUCKET_COLUMNS.items():
                self.store.grow(column, buckets, fill)
            if self.values is not None:
                for column, fill in _VALUE_BUCKETS.items():
                    self.store.grow(f"values.{column}", capacity * self.values.listed.size, fill)
            self.bind()

    def update(self, relation: int, batch: Batch) -> Batch:
        """Apply tuples to a relation; the changes that they make, one per tuple and instant."""
        if batch.ts.size == 0:
            return batch
        out = empty_batch(batch.ts.size, batch.key.shape[1])
        cursor = np.zeros(2, np.int64)
        run_to_end(
            self.store,
            cursor,
            lambda: update_relation(self.graph, self.values, relation, batch, out, cursor),
            {FULL_GRAPH: lambda: self._reserve_rows(batch.ts.size - int(cursor[NEXT_ROW]))},
        )
        return take_rows(out, slice(int(cursor[EMITTED])))

    def _reserve_rows(self, more: int) -> None:
        counts = self.graph.counts
        needed = max(int(counts[ROWS]) + more, 2 * int(counts[ROWS]))
        if int(counts[ROWS]) + more > self.graph.src.size:
            for column in _ROW_COLUMNS:
                self.store.grow(column, needed)
            if self.validity:
                self.store.grow("since", needed)
            if self.width:
                self.store.grow("values.value", needed)
                self.store.grow("values.next", needed)
            self.store.array("pair", 1 << (2 * needed - 1).bit_length(), np.int32, -1)
            self.bind()
            relink_rows(self.graph, self.values)
        for column in _UNDO_COLUMNS:
            self.store.grow(column, max(int(counts[UNDONE]) + more, self.graph.undo_row.size))
        self.bind()

    def link_both_ways(self, relations: Sequence[int]) -> None:
        """From now on, list these relations by source and by target."""
        self.graph.linked_out[list(relations)] = True
        self.graph.linked_in[list(relations)] = True
        relink_rows(self.graph, self.values)

    def mark(self, horizon: int, live: Array) -> None:
        mark_vertices(self.graph, self.values, horizon, live)

    def valid_rows(self, horizon: int) -> Array:
        """The number of rows that are valid after `horizon`, by relation."""
        rows = np.zeros(self.relations, np.int64)
        count_rows(self.graph, horizon, rows)
        return rows
