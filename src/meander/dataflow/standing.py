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
    INDEXED,
    NO_VALUE,
    RECORDS,
    STEPS,
    UNKNOWN,
    ProvedSteps,
    Standing,
    add_records,
    break_empty_paths,
    break_paths,
    find_broken,
    find_replaced,
    link_records,
    measure_edges,
    measure_steps,
    pack_records,
    touch_ends,
)

LEAST_RECORDS = 256
LEAST_STEPS = 512
LEAST_EDGES = 512

_RECORD_COLUMNS = {"exp": np.int64, "older": np.int32, "last": np.int32}
_STEP_COLUMNS = {"before": np.int32, "edge": np.int32}


class StandingRecords:
    """The emitted records with their paths or proofs, for as long as a deletion can break these.

    A record has `width` columns, and the edges of its path or proof have at most `values`.
    """

    def __init__(self, graph: WindowGraph, store: Store, width: int, values: int = 1) -> None:
        self.graph = graph
        self.store = store
        records, steps = store.first_capacity(LEAST_RECORDS), store.first_capacity(LEAST_STEPS)
        edges = store.first_capacity(LEAST_EDGES)
        for columns, length in ((_RECORD_COLUMNS, records), (_STEP_COLUMNS, steps)):
            for column, dtype in columns.items():
                store.array(f"standing.{column}", length, dtype)
        store.array("standing.key", records, np.int32, width=width)
        store.array("standing.edge_relation", edges, np.int16)
        store.array("standing.edge_key", edges, np.int32, width=FIRST_VALUE + values)
        store.array("standing.slots", 0, np.int32)
        store.array("standing.counts", 4, np.int64)
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
        break_empty_paths(self.standing, touched)
        lasts = self._measure(deletion, touched)
        self._index()
        out = self._output()
        return put_before(out, find_broken(self.standing, batch, deletion, lasts, out), batch)

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
        break_empty_paths(self.standing, touched)
        touched[:] = True
        lasts = self._measure(time, touched)
        self._index()
        out = self._output()
        replaced = find_replaced(self.standing, answers, time, lasts, out)
        exp[hidden] = before
        return put_before(out, replaced, batch)

    def _measure(self, time: int, touched: Array) -> Array:
        """By step: until when the path up to it lasts."""
        # As large as the tables: how many rows they have differs from deletion to deletion.
        edges = np.empty(self.standing.edge_relation.size, np.int64)
        steps = np.empty(self.standing.before.size, np.int64)
        self.store.count_buffer("lasts", edges.nbytes + steps.nbytes)
        measure_edges(self.graph.graph, self.graph.values, self.standing, time, touched, edges)
        measure_steps(self.standing, edges, steps)
        return steps

    def add_last(self, batch: Batch, proved: ProvedSteps, upto: int) -> None:
        """Add the records of the instant `upto` alone, for that instant."""
        first = int(np.searchsorted(batch.ts, upto))
        if first == batch.ts.size:
            return
        last = take_rows(batch, slice(first, None))
        proved = proved._replace(last=proved.last[first:], empty=proved.empty[first:])
        self.add(last._replace(exp=last.ts + 1), proved, upto)

    def add(self, batch: Batch, proved: ProvedSteps, upto: int) -> None:
        """Add the records that are emitted, with the rows of the graph that are their paths."""
        if batch.op.min(initial=1) < 0:
            self._index()
        empty = int(proved.empty.sum())
        self._reserve(batch.ts.size, proved.before.size + empty, proved.row.size + empty, upto)
        add_records(self.graph.graph, self.graph.values, self.standing, batch, proved)

    def clear(self) -> None:
        """Drop all records."""
        self.standing.counts[:] = 0

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
        records = np.flatnonzero((self.standing.last[:count] >= 0) & (self.standing.exp[:count] > 0))
        first_edge = self.standing.edge[self.standing.last[records]]
        unknown: Array = records[self.standing.edge_relation[first_edge] == UNKNOWN]
        return unknown

    def mark(self, live: Array) -> None:
        """Mark the vertices and times of the paths: another edge must not be mistaken for one that is gone."""
        key = self.standing.edge_key[: int(self.standing.counts[EDGES])]
        live[key[key != NO_VALUE]] = True

    def _index(self) -> None:
        """Index the records by their answers, from now on."""
        if not self.standing.counts[INDEXED]:
            slots = 1 << (2 * self.standing.exp.size - 1).bit_length()
            if slots > self.standing.slots.size:
                self.store.array("standing.slots", slots, np.int32)
                self.bind()
            link_records(self.standing)

    def _reserve(self, records: int, steps: int, edges: int, upto: int) -> None:
        """Make room: drop what has expired at `upto`, then double a table that is still half full."""
        standing = self.standing
        counts, room = standing.counts, (standing.exp.size, standing.before.size, standing.edge_relation.size)
        if (counts[: EDGES + 1] + np.array([records, steps, edges]) <= room).all():
            return
        is_indexed = counts[INDEXED]
        pack_records(
            standing,
            upto,
            np.zeros(int(counts[STEPS]), np.int32),
            np.zeros(int(counts[EDGES]), np.int32),
        )
        columns = (
            (*_RECORD_COLUMNS, "key"),
            tuple(_STEP_COLUMNS),
            ("edge_relation", "edge_key"),
        )
        for names, held, added, most in zip(
            columns, counts[: EDGES + 1].tolist(), (records, steps, edges), room, strict=True
        ):
            needed = max(held + added, 2 * held)
            if needed > most:
                for name in names:
                    self.store.grow(f"standing.{name}", 2 * needed)
        self.bind()
        if is_indexed:
            self._index()


def put_before(first: Batch, count: int, batch: Batch) -> Batch:
    """The first `count` rows of one batch, then the other."""
    return concat_batches([take_rows(first, slice(count)), batch]) if count else batch
