"""The standing records of a result: how deletions retract them or replace their paths."""

from __future__ import annotations

import numpy as np

from meander.dataflow.batch import Batch, concat_batches, empty_batch, take_rows
from meander.dataflow.graph import WindowGraph
from meander.dataflow.state import Array, Store
from meander.kernels.answers import AnswerTable
from meander.kernels.graph import FIRST_VALUE
from meander.kernels.standing import (
    EDGES,
    NO_VALUE,
    RECORDS,
    UNKNOWN,
    ProvedEdges,
    Standing,
    add_records,
    break_paths,
    find_broken,
    find_replaced,
    pack_records,
    touch_ends,
)

LEAST_RECORDS = 256
LEAST_EDGES = 1024

_RECORD_COLUMNS = {"exp": np.int64, "older": np.int32}


class StandingRecords:
    """The emitted records with their paths or proofs, for as long as a deletion can break these.

    A record has `width` columns, and the edges of its path or proof have at most `values`.
    """

    def __init__(self, graph: WindowGraph, store: Store, width: int, values: int = 1) -> None:
        self.graph = graph
        self.store = store
        records, edges = store.first_capacity(LEAST_RECORDS), store.first_capacity(LEAST_EDGES)
        for column, record in _RECORD_COLUMNS.items():
            store.array(f"standing.{column}", records, record)
        store.array("standing.key", records, np.int32, width=width)
        store.array("standing.edge_relation", edges, np.int16)
        store.array("standing.edge_key", edges, np.int32, width=FIRST_VALUE + values)
        store.array("standing.begin", records + 1, np.int64)
        store.array("standing.slots", 2 * records, np.int32, -1)
        store.array("standing.counts", 2, np.int64)
        self.bind()

    def bind(self) -> None:
        self.standing = Standing(*(self.store.arrays[f"standing.{column}"] for column in Standing._fields))

    def retract_paths(self, batch: Batch, deletion: int, vertices: int) -> Batch:
        """The batch, and before it a retraction of each answer whose path loses an edge at time `deletion`, at which
        all deletions of the batch are; no row of the batch is earlier."""
        touched = np.zeros(vertices, np.bool_)
        if touch_ends(self.graph.graph, deletion, touched) == 0:
            return batch
        if self._unknown_records().size:
            touched[:] = True
        out = self._output()
        return put_before(
            out,
            find_broken(self.graph.graph, self.graph.values, self.standing, batch, deletion, touched, out),
            batch,
        )

    def replace_paths(self, batch: Batch, time: int, answers: AnswerTable, vertices: int) -> Batch:
        """The changes of a batch, all of it at `time`, and before them a retraction of each answer that an earlier
        batch of the same instant emitted, and that still holds by another path."""
        count = int(self.standing.counts[RECORDS])
        exp = self.standing.exp[:count]
        touched = np.zeros(vertices, np.bool_)
        deleted = touch_ends(self.graph.graph, time, touched)
        # An unknown path may have lost an edge only if there was a deletion.
        hidden = np.zeros(0, np.int64) if deleted else self._unknown_records()
        before = exp[hidden]
        exp[hidden] = 0
        out = self._output()
        replaced = find_replaced(
            self.graph.graph, self.graph.values, self.standing, answers, time, touched, out
        )
        exp[hidden] = before
        return put_before(out, replaced, batch)

    def add_last(self, batch: Batch, proved: ProvedEdges, upto: int) -> None:
        """Add the records of the instant `upto` alone, for that instant."""
        first = int(np.searchsorted(batch.ts, upto))
        last = take_rows(batch, slice(first, None))
        proved = ProvedEdges(proved.begin[first:], proved.row, proved.empty[first:])
        self.add(last._replace(exp=last.ts + 1), proved, upto)

    def add(self, batch: Batch, proved: ProvedEdges, upto: int) -> None:
        """Add the records that are emitted, with the rows of the graph that are their paths."""
        self._reserve(batch.ts.size, proved.row.size + int(proved.empty.sum()), upto)
        add_records(self.graph.graph, self.graph.values, self.standing, batch, proved)

    def clear(self) -> None:
        """Drop all records."""
        self.standing.counts[:] = 0
        self.standing.slots[:] = -1

    def forget_paths(self) -> None:
        """The paths of the records are not known here: the next deletion retracts all of them."""
        self.standing.edge_relation[: int(self.standing.counts[EDGES])] = UNKNOWN

    def break_paths(self, answers: AnswerTable, time: int) -> None:
        """An answer that was emitted at `time` and no longer holds needs another path to hold again."""
        break_paths(self.standing, answers, time)

    def _output(self) -> Batch:
        """Room for a retraction of each record."""
        return empty_batch(int(self.standing.counts[RECORDS]), self.standing.key.shape[1])

    def _unknown_records(self) -> Array:
        """The records whose path is not known here."""
        count = int(self.standing.counts[RECORDS])
        begin, end = self.standing.begin[:count], self.standing.begin[1 : count + 1]
        records = np.flatnonzero((end > begin) & (self.standing.exp[:count] > 0))
        unknown: Array = records[self.standing.edge_relation[begin[records]] == UNKNOWN]
        return unknown

    def mark(self, live: Array) -> None:
        """Mark the vertices and times of the paths: another edge must not be mistaken for one that is gone."""
        key = self.standing.edge_key[: int(self.standing.counts[EDGES])]
        live[key[key != NO_VALUE]] = True

    def _reserve(self, records: int, edges: int, upto: int) -> None:
        """Make room: drop what has expired at `upto`, then double a table that is still half full."""
        counts = self.standing.counts
        if self._fits(records, edges):
            return
        pack_records(self.standing, upto)
        most_records, most_edges = self.standing.exp.size, self.standing.edge_relation.size
        needed = max(int(counts[RECORDS]) + records, 2 * int(counts[RECORDS]))
        if needed > most_records:
            for column in _RECORD_COLUMNS:
                self.store.grow(f"standing.{column}", 2 * needed)
            self.store.grow("standing.key", 2 * needed)
            self.store.grow("standing.begin", 2 * needed + 1)
            self.store.array("standing.slots", 1 << (4 * needed - 1).bit_length(), np.int32, -1)
        needed = max(int(counts[EDGES]) + edges, 2 * int(counts[EDGES]))
        if needed > most_edges:
            self.store.grow("standing.edge_relation", 2 * needed)
            self.store.grow("standing.edge_key", 2 * needed)
        self.bind()
        pack_records(self.standing, upto)

    def _fits(self, records: int, edges: int) -> bool:
        counts = self.standing.counts
        return bool(
            counts[RECORDS] + records <= self.standing.exp.size
            and counts[EDGES] + edges <= self.standing.edge_relation.size
        )


def put_before(first: Batch, count: int, batch: Batch) -> Batch:
    """The first `count` rows of one batch, then the other."""
    return concat_batches([take_rows(first, slice(count)), batch]) if count else batch
