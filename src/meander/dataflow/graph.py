"""The window's graph as the operators share it: one table for all indexed streams, grown and packed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.graph import (
    FULL_GRAPH,
    UNDONE,
    Graph,
    Rows,
    begin_batch,
    count_rows,
    mark_vertices,
    pack_rows,
    relink_rows,
    update_relation,
)
from meander.kernels.graph import ROWS as ROWS_AT
from meander.kernels.merging import merge_rows
from meander.physical.plan import Links

LEAST_ROWS = 1024
KEPT = 2  # in `counts`: how many rows the last packing kept

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
_PLACE_COLUMNS = {"first_out": -1, "first_in": -1, "degree_out": 0, "degree_in": 0}
_UNDO_COLUMNS = {"undo_row": np.int32, "undo_exp": np.int64, "undo_stamp": np.int64, "undo_older": np.int32}


def empty_rows(length: int) -> Rows:
    """Room for `length` tuples."""
    return Rows(
        np.empty(length, np.int32),
        np.empty(length, np.int32),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int8),
    )


def slice_rows(rows: Rows, at: slice) -> Rows:
    return Rows(*(column[at] for column in rows))


def first_rows(rows: Rows, count: int) -> Rows:
    return slice_rows(rows, slice(count))


def more_rows(rows: Rows, length: int, store: Store, name: str) -> Rows:
    """The same tuples with room for `length`, which counts as memory of the store under `name`."""
    store.count_buffer(name, length * sum(column.itemsize for column in rows))
    grown = empty_rows(length)
    for column, old in zip(grown, rows, strict=True):
        column[: old.size] = old
    return grown


NO_ROWS = empty_rows(0)


def merge_parts(parts: Sequence[Rows]) -> Rows:
    """Several outputs, each in order of time, as one."""
    merged, *rest = [part for part in parts if part.ts.size] or [NO_ROWS]
    for part in rest:
        out = empty_rows(merged.ts.size + part.ts.size)
        merge_rows(merged, part, out)
        merged = out
    return merged


def pieces_of_time(first: Rows, second: Rows, count: int) -> Iterator[tuple[slice, slice, slice]]:
    """So many pieces that can be merged on their own: of the first, of the second, and of both merged."""
    times = first.ts[first.ts.size * np.arange(1, count) // count] if first.ts.size else NO_ROWS.ts
    ends = [[0, *np.searchsorted(rows.ts, times), rows.ts.size] for rows in (first, second)]
    for (i, j), (k, m) in pairwise(zip(*ends, strict=True)):
        yield slice(i, k), slice(j, m), slice(i + j, k + m)


class WindowGraph:
    """The tuples of every indexed operator; relation i is the i-th of `links`."""

    def __init__(self, store: Store, links: Sequence[Links]) -> None:
        self.store = store
        self.relations = len(links)
        self.packed = 0  # how often rows have got other numbers
        self.least_rows = store.first_capacity(LEAST_ROWS)
        for column, dtype in _ROW_COLUMNS.items():
            store.array(column, self.least_rows, dtype)
        for column in _PLACE_COLUMNS:
            store.array(column, 0, np.int32)
        for column, undo in _UNDO_COLUMNS.items():
            store.array(column, self.least_rows, undo)
        store.array("pair", 2 * self.least_rows, np.int32, -1)
        store.array("linked_out", self.relations, np.bool_)[:] = [one.out for one in links]
        store.array("linked_in", self.relations, np.bool_)[:] = [one.into for one in links]
        store.array("counts", 3, np.int64)
        self.bind()

    def bind(self) -> None:
        """Take up the store's arrays, after growth or restoring."""
        self.graph = Graph(*(self.store.arrays[column] for column in Graph._fields))

    def begin(self, horizon: int) -> None:
        """A new batch: older expiries are forgotten, and expired rows too once they are the larger part."""
        begin_batch(self.graph)
        counts = self.graph.counts
        if counts[ROWS_AT] > 2 * counts[KEPT] + self.least_rows:
            pack_rows(self.graph, horizon)
            self.packed += 1
            counts[KEPT] = counts[ROWS_AT]

    def reserve_vertices(self, capacity: int) -> None:
        """Make room for all vertex numbers below `capacity`."""
        places = capacity * self.relations
        if places > self.graph.first_out.size:
            for column, fill in _PLACE_COLUMNS.items():
                self.store.grow(column, places, fill)
            self.bind()

    def update(self, relation: int, rows: Rows) -> Rows:
        """Apply tuples to a relation; what they changed, once an edge and instant."""
        out = empty_rows(rows.ts.size)
        cursor = np.zeros(2, np.int64)
        run_to_end(
            self.store,
            cursor,
            lambda: update_relation(self.graph, relation, rows, out, cursor),
            {FULL_GRAPH: lambda: self._reserve_rows(rows.ts.size - int(cursor[0]))},
        )
        return first_rows(out, int(cursor[1]))

    def _reserve_rows(self, more: int) -> None:
        counts = self.graph.counts
        needed = max(int(counts[ROWS_AT]) + more, 2 * int(counts[ROWS_AT]))
        if int(counts[ROWS_AT]) + more > self.graph.src.size:
            for column in _ROW_COLUMNS:
                self.store.grow(column, needed)
            self.store.array("pair", 1 << (2 * needed - 1).bit_length(), np.int32, -1)
            self.bind()
            relink_rows(self.graph)
        for column in _UNDO_COLUMNS:
            self.store.grow(column, max(int(counts[UNDONE]) + more, self.graph.undo_row.size))
        self.bind()

    def link_both_ways(self, relations: Sequence[int]) -> None:
        """From now on, list these relations by source and by target."""
        self.graph.linked_out[list(relations)] = True
        self.graph.linked_in[list(relations)] = True
        relink_rows(self.graph)

    def mark(self, horizon: int, live: Array) -> None:
        mark_vertices(self.graph, horizon, live)

    def valid_rows(self, horizon: int) -> Array:
        """How many rows are valid after `horizon`, by relation."""
        rows = np.zeros(self.relations, np.int64)
        count_rows(self.graph, horizon, rows)
        return rows
