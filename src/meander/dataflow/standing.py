"""The records of a result that stand with their paths, and what a deletion makes of them."""

from __future__ import annotations

import numpy as np

from meander.dataflow.graph import WindowGraph
from meander.dataflow.pattern import keyed_rows
from meander.dataflow.state import Array, Store
from meander.kernels.pattern import Answers, KeyedRows
from meander.kernels.standing import (
    EDGES,
    RECORDS,
    UNKNOWN,
    ProvedEdges,
    Standing,
    break_paths,
    find_cuts,
    find_replaced,
    keep_records,
    pack_records,
    touch_ends,
)

LEAST_RECORDS = 256
LEAST_EDGES = 1024

_RECORD_COLUMNS = {"src": np.int32, "trg": np.int32, "exp": np.int64, "older": np.int32}
_EDGE_COLUMNS = {"edge_relation": np.int16, "edge_src": np.int32, "edge_trg": np.int32}


class StandingRecords:
    """Keeps what was handed out with a path, for as long as a deletion can make the path untrue."""

    def __init__(self, graph: WindowGraph, store: Store) -> None:
        self.graph = graph
        self.store = store
        records, edges = store.first_capacity(LEAST_RECORDS), store.first_capacity(LEAST_EDGES)
        for column, record in _RECORD_COLUMNS.items():
            store.array(f"standing.{column}", records, record)
        for column, edge in _EDGE_COLUMNS.items():
            store.array(f"standing.{column}", edges, edge)
        store.array("standing.begin", records + 1, np.int64)
        store.array("standing.slots", 2 * records, np.int32, -1)
        store.array("standing.counts", 2, np.int64)
        self.bind()

    def bind(self) -> None:
        self.standing = Standing(*(self.store.arrays[f"standing.{column}"] for column in Standing._fields))

    def cut_paths(self, rows: KeyedRows, deletion: int, vertices: int) -> KeyedRows:
        """The batch's rows, and before them a cut of each answer whose path loses an edge at time `deletion`,
        where all of the batch's cuts are; no row is earlier."""
        touched = np.zeros(vertices, np.bool_)
        if touch_ends(self.graph.graph, deletion, touched) == 0:
            return rows
        if self._unknown_records().size:
            touched[:] = True
        cut = keyed_rows(int(self.standing.counts[RECORDS]), 2)
        return put_before(cut, find_cuts(self.graph.graph, self.standing, rows, deletion, touched, cut), rows)

    def replace_paths(self, rows: KeyedRows, time: int, answers: Answers, vertices: int) -> KeyedRows:
        """The changes of a batch, all of it at `time`, and before them a cut of each answer that an earlier batch of
        the same instant handed out, and that holds on by another path."""
        count = int(self.standing.counts[RECORDS])
        exp = self.standing.exp[:count]
        touched = np.zeros(vertices, np.bool_)
        deleted = touch_ends(self.graph.graph, time, touched)
        # A path that is not known may have lost an edge only where there was a deletion.
        hidden = np.zeros(0, np.int64) if deleted else self._unknown_records()
        before = exp[hidden]
        exp[hidden] = 0
        cut = keyed_rows(count, 2)
        found = find_replaced(self.graph.graph, self.standing, answers, time, touched, cut)
        exp[hidden] = before
        return put_before(cut, found, rows)

    def keep_last(self, rows: KeyedRows, proved: ProvedEdges, upto: int) -> None:
        """Take the records of the instant `upto` alone, and for that instant."""
        first = int(np.searchsorted(rows.ts, upto))
        last = KeyedRows(*(column[first:] for column in rows))
        proved = ProvedEdges(proved.begin[first:], proved.row, proved.empty[first:])
        self.keep(last._replace(exp=last.ts + 1), proved, upto)

    def keep(self, rows: KeyedRows, proved: ProvedEdges, upto: int) -> None:
        """Take the records that are handed out, with the rows of the graph that are their paths."""
        self._reserve(rows.ts.size, proved.row.size + int(proved.empty.sum()), upto)
        keep_records(self.graph.graph, self.standing, rows, proved)

    def clear(self) -> None:
        """No record stands."""
        self.standing.counts[:] = 0
        self.standing.slots[:] = -1

    def forget_paths(self) -> None:
        """The records stand by paths that are not known here: the next deletion cuts them all."""
        self.standing.edge_relation[: int(self.standing.counts[EDGES])] = UNKNOWN

    def break_paths(self, answers: Answers, time: int) -> None:
        """The answers that were emitted at `time` and do not hold any more need another path to hold again."""
        break_paths(self.standing, answers, time, keyed_rows(1, 2).key[0])

    def _unknown_records(self) -> Array:
        """The records that stand by a path which is not known here."""
        count = int(self.standing.counts[RECORDS])
        begin, end = self.standing.begin[:count], self.standing.begin[1 : count + 1]
        records = np.flatnonzero((end > begin) & (self.standing.exp[:count] > 0))
        unknown: Array = records[self.standing.edge_relation[begin[records]] == UNKNOWN]
        return unknown

    def mark(self, live: Array) -> None:
        """Mark the vertices of the paths: an edge that is gone must not be taken for another."""
        edges = int(self.standing.counts[EDGES])
        live[self.standing.edge_src[:edges]] = True
        live[self.standing.edge_trg[:edges]] = True

    def _reserve(self, records: int, edges: int, upto: int) -> None:
        """Make room: what has expired at `upto` goes first, and a table that is half full after that is doubled."""
        counts = self.standing.counts
        if self._fits(records, edges):
            return
        pack_records(self.standing, upto)
        most_records, most_edges = self.standing.src.size, self.standing.edge_src.size
        needed = max(int(counts[RECORDS]) + records, 2 * int(counts[RECORDS]))
        if needed > most_records:
            for column in _RECORD_COLUMNS:
                self.store.grow(f"standing.{column}", 2 * needed)
            self.store.grow("standing.begin", 2 * needed + 1)
            self.store.array("standing.slots", 1 << (4 * needed - 1).bit_length(), np.int32, -1)
        needed = max(int(counts[EDGES]) + edges, 2 * int(counts[EDGES]))
        if needed > most_edges:
            for column in _EDGE_COLUMNS:
                self.store.grow(f"standing.{column}", 2 * needed)
        self.bind()
        pack_records(self.standing, upto)

    def _fits(self, records: int, edges: int) -> bool:
        counts = self.standing.counts
        return bool(
            counts[RECORDS] + records <= self.standing.src.size
            and counts[EDGES] + edges <= self.standing.edge_src.size
        )


def put_before(new: KeyedRows, count: int, rows: KeyedRows) -> KeyedRows:
    """The first `count` of the new rows, then the others."""
    if count == 0:
        return rows
    return KeyedRows(*(np.concatenate([first[:count], then]) for first, then in zip(new, rows, strict=True)))
