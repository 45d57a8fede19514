"""PATH by slide-batched closure (`kernels.closure`): all state except the clock is derived, and may be dropped.

Which pairs are answers, and until when, follows from the window's graph (see `kernels.closure`), so that only the
clock is in a snapshot. With several threads each walks the whole batch for its share of the roots, with tables of its
own, and waits for no other: `start` copies what the walks need of the window's graph, so that the next batches can be
started meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from meander.dataflow.automaton import automaton_arrays
from meander.dataflow.batch import (
    NO_PAIRS,
    Batch,
    empty_batch,
    grow_batch,
    merge_inputs,
    merge_outputs,
    take_rows,
)
from meander.dataflow.operator import (
    NO_KNOWN_PATHS,
    Context,
    KnownPaths,
    Operator,
    Pending,
    Ready,
    merge_paths,
)
from meander.dataflow.operators.closure_tables import (
    PER_EDGE,
    PER_NODE,
    PER_ROW,
    ClosureTables,
    bytes_per_item,
    make_moves,
    make_request,
    moves_by_state,
)
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.dataflow.threads import Task
from meander.kernels.closure.extent import AT_SOURCE, AT_TARGET, Extent, measure_graph
from meander.kernels.closure.levels import MAX_LEVEL
from meander.kernels.closure.segment import find_rows
from meander.kernels.closure.tables import CHUNK as CHUNK
from meander.kernels.closure.tables import MAX_SEGMENT_ROWS, Edge, Input, StagedAnswer
from meander.kernels.closure.walk import walk_batch
from meander.kernels.forest import STATES
from meander.kernels.graph import ROWS, UNDONE
from meander.kernels.record import layout
from meander.kernels.status import FULL_MATRIX, FULL_OUTPUT, FULL_SCRATCH, FULL_STEPS, FULL_TABLE
from meander.physical.plan import PathOp

MIN_OUTPUT = 1024
USUAL_OUTPUT = 1 << 17  # answers of one share to one part of a batch: few parts have more
ANSWER_BYTES = sum(column.itemsize * column[:1].size for column in empty_batch(1))
MOST_LEVELS = 1 << 24  # by node and root: a larger matrix is not kept


class WalkInput(NamedTuple):
    """A batch as the walks read it. Nothing of it is changed later."""

    changes: Input
    rows_seen: int  # leading rows of the window's graph that the walk of the batch before has copied
    edges: Array  # the rows after those: as in `Segment.edge`, with their expiries before the batch
    valid: Array  # if no rows were seen: those that are input edges, by expiry
    demanded: Array  # if no rows were seen: those of the demand, by source
    upto: int
    capacity: int  # all vertices are below
    version: int  # of the caches: see `PathClosure.version`
    slot: int  # which of the outputs to write to


class WalkResult(NamedTuple):
    answers: Batch
    undemanded: int  # number of pairs that were found and not demanded
    roots: int  # number of roots in the matrix after the last segment; -1: there is no matrix


class ClosureShare:
    """The walk over one share of the roots; up to `slots` outputs are in use at once."""

    def __init__(self, tables: ClosureTables, slots: int, max_levels: int) -> None:
        self.tables, self.store, self.max_levels = tables, tables.store, max_levels
        self.capacity = 0
        self.version = 0
        self.valid_edges = 0  # when the walk began
        self.too_many_edges = (
            0  # number of valid edges that needed too large a matrix; 0: it was not too large
        )
        self.outputs = [empty_batch(self.store.first_capacity(MIN_OUTPUT)) for _ in range(slots)]

    def reserve_output(self, slot: int) -> None:
        """Make room for as many answers as any batch had so far, if the budget has it to spare."""
        most = max(output.ts.size for output in self.outputs)
        if self.outputs[slot].ts.size < most and self._can_spare(most):
            self._grow_output(slot, most, NO_PAIRS)

    def _can_spare(self, answers: int) -> bool:
        """Whether room for these answers is little compared with what the budget has left."""
        return self.store.budget.has_room(10 * answers * ANSWER_BYTES)

    def _grow_output(self, slot: int, length: int, content: Batch) -> None:
        self.outputs[slot] = grow_batch(content, length, self.store, f"{self.tables.prefix}output {slot}")
        if self.tables.finds_paths:
            self.tables.grow("paths.last", length)
            self.tables.bind()

    def _double_output(self, slot: int) -> None:
        output, usual = self.outputs[slot], self.store.first_capacity(USUAL_OUTPUT)
        least = usual if self._can_spare(usual) else 0
        staged = self.tables.state.staged.answer.size
        self._grow_output(slot, max(2 * output.ts.size, least) + staged, output)

    def walk(self, work: WalkInput) -> WalkResult:
        """What the batch changes for this share's roots."""
        tables, rows = self.tables, work.changes.batch.ts.size
        self._begin(work)

        def grow_levels() -> None:
            if not tables.grow_levels(self.max_levels):
                self.too_many_edges = self.valid_edges + rows

        run_to_end(
            self.store,
            tables.get("cursor")[0],
            lambda: walk_batch(work.changes, tables.state, self.outputs[work.slot], tables.cursor),
            {
                FULL_OUTPUT: lambda: self._double_output(work.slot),
                FULL_SCRATCH: tables.grow_subgraph,
                FULL_MATRIX: grow_levels,
                FULL_TABLE: lambda: tables.grow_staged(rows),
                FULL_STEPS: tables.grow_steps,
            },
        )
        levels = tables.state.levels.counts
        self.answers = take_rows(self.outputs[work.slot], slice(int(tables.cursor.emitted)))
        return WalkResult(
            self.answers,
            int(tables.state.demand.counts.undemanded),
            int(levels.columns) if levels.is_ready else -1,
        )

    def _begin(self, work: WalkInput) -> None:
        """Copy the edges of the window's graph: all, or those that are new since the last walk."""
        tables = self.tables
        if work.capacity > self.capacity:
            self.capacity = work.capacity
            tables.reserve_vertices(work.capacity)
        total = work.rows_seen + work.edges.size
        tables.reserve_rows(total)
        tables.begin_paths(self.outputs[work.slot].ts.size)
        tables.grow("staged.offset", min(work.changes.batch.ts.size, MAX_SEGMENT_ROWS) + 2)
        edges = tables.get("segment.edge")
        edges[work.rows_seen : total] = work.edges
        if work.rows_seen == 0:
            sources, vertices = edges["src"][work.demanded], tables.get("demand.stamp").size
            tables.set_demand(work.demanded, np.searchsorted(sources, np.arange(vertices + 1)))
        if not tables.is_bound:
            tables.bind()
        segment, demand, levels = tables.state.segment, tables.state.demand, tables.state.levels
        if work.rows_seen == 0:
            counts = segment.counts
            segment.by_expiry[0, : work.valid.size] = work.valid
            counts.current, counts.begin, counts.end = 0, 0, work.valid.size
            valid = work.demanded[work.edges["hi"][work.demanded] > 0]
            demand.valid[: valid.size] = valid
            demand.counts.valid = valid.size
        demand.counts.undemanded = 0
        tables.get("cursor")[0] = 0
        tables.cursor.upto = work.upto
        tables.cursor.deleted_at = -1
        self.valid_edges = int(segment.counts.end - segment.counts.begin)
        if work.version != self.version:
            self.version = work.version
            levels.counts.is_ready = segment.counts.has_vertex_ends = 0
        if self.valid_edges <= self.too_many_edges // 2:
            levels.counts.is_off = self.too_many_edges = 0


@dataclass(frozen=True, slots=True)
class PendingWalks:
    """The answers of one batch, while the shares may still compute them."""

    operator: PathClosure
    walks: Sequence[Task[WalkResult]]
    is_ready: bool = False

    def result(self) -> Batch:
        return self.operator.finish(self.walks)


class PathClosure(Operator):
    """PATH for all roots at once, batched by slide."""

    def __init__(self, node: PathOp, context: Context) -> None:
        inputs = tuple(dict.fromkeys(node.inputs))
        self.inputs, self.relations = inputs, context.relations_of(inputs)
        self.demanded = -1 if node.demand is None else context.relations[node.demand]
        self.graph, self.vertices, self.pool = context.graph, context.vertices, context.pool
        self.store: Store = context.store
        relations = context.relations_of(node.edges)
        self.automaton = automaton_arrays(node, relations, self.graph.relations)
        self.begins = np.zeros(self.graph.relations, np.int8)
        for state, source, inverse, _ in node.moves:
            if state == 0:
                self.begins[relations[source]] |= AT_TARGET if inverse else AT_SOURCE
        # If nobody needs expiries, only starts (until FOREVER) and stops (retractions) are emitted.
        self.expiries = (
            context.mode == "intervals" or context.paths or context.is_read or node.operator == "auto"
        )
        self.clock = self.store.array("clock", 1, np.int64, -1)
        roots = np.array(sorted(context.pin(node.root)), np.int32)
        self.proves = context.proves and self.demanded < 0
        out_move = moves_by_state(self.automaton)
        self.shares = []
        for share in range(self.pool.threads):
            request = make_request(
                roots, share, self.pool.threads, expiries=self.expiries, paths=context.paths
            )
            moves = make_moves(self.automaton)
            tables = ClosureTables(
                self.store,
                f"share {share} ",
                moves,
                request,
                self.demanded,
                out_move if self.proves else None,
            )
            self.shares.append(ClosureShare(tables, context.ahead + 1, MOST_LEVELS))
        self.version = 0  # of the caches: those of a share are dropped if theirs is another
        self.packed = self.graph.packed
        self.rows_seen = 0  # rows of the window's graph that the last walk has copied
        self.rows_seen_version = 0
        self.slot = 0
        self.walked = False  # whether the last batch had anything to walk
        self.undemanded_pairs = 0  # of the last batch: found and not demanded
        self.cached_roots = 0  # number of roots in the matrices after the last batch; 0: there are none

    def bind(self) -> None:
        """Read the store's arrays again, after restoring."""
        self.clock = self.store.arrays["clock"]
        for share in self.shares:
            share.tables.bind()
        self.forget()

    def forget(self) -> None:
        """Drop the caches: state was restored, or another operator has processed rows."""
        self.version += 1

    def measure(self, time: int) -> Extent:
        """The extent of the input that is valid after `time`; within a batch without what changes later."""
        graph = self.graph.graph
        seen = np.zeros(graph.first_out.size // self.graph.relations, np.int8)
        return Extent(*measure_graph(graph, self.automaton.reads, self.begins, time, seen))

    def roots_to_cache(self, held: Extent, time: int) -> int:
        """An upper estimate of the roots in the matrix of such a graph; 0 if that would be too large to keep."""
        if held.roots * held.ends * int(self.automaton.settings[STATES]) > MOST_LEVELS:
            return 0
        return held.roots if (held.latest - time) // held.unit < MAX_LEVEL else 0

    def has_room(self, held: Extent, pairs: int) -> bool:
        """Whether the budget has room to walk a graph of this extent and emit this many pairs."""
        nodes = held.ends * int(self.automaton.settings[STATES])
        rows = bytes_per_item(PER_ROW) + bytes_per_item(PER_EDGE)
        walked = rows * held.rows + bytes_per_item(PER_NODE) * nodes
        # Tables are doubled, and each thread has its own; a pair is staged, and then emitted.
        emitted = (layout(StagedAnswer).itemsize + ANSWER_BYTES) * pairs
        return self.store.budget.has_room(2 * len(self.shares) * walked + 2 * emitted)

    def start(self, inputs: Sequence[Batch], upto: int) -> Pending:
        return self.start_merged(merge_inputs(inputs, self.relations), upto)

    def start_merged(self, batch: Batch, upto: int, done: Batch | None = None) -> Pending:
        """Start a batch whose inputs are merged: the pairs whose expiry (or validity) its changes, and time, change.

        `done` are rows of the same batch, before these, whose answers are emitted already. Results must be awaited
        in the order of their batches, and before `ahead` more batches are started.
        """
        horizon = int(self.clock[0])
        self.clock[0] = upto
        self.walked = batch.ts.size > 0 or not self.expiries
        if not self.walked:
            return Ready(NO_PAIRS)
        work = self._prepare(batch, horizon, upto, done)
        for share in self.shares:
            share.reserve_output(work.slot)
        return PendingWalks(
            self, [self.pool.submit(partial(share.walk, work), lane=share) for share in self.shares]
        )

    @property
    def known_paths(self) -> KnownPaths | None:
        if not self.proves:
            return None
        if not self.walked:
            return NO_KNOWN_PATHS
        return merge_paths([(share.answers, share.tables.known_paths()) for share in self.shares])

    def finish(self, walks: Sequence[Task[WalkResult]]) -> Batch:
        """Await the shares of a batch."""
        results = self.pool.results(walks)
        self.undemanded_pairs = sum(result.undemanded for result in results)
        roots = [result.roots for result in results]
        self.cached_roots = sum(roots) if min(roots) >= 0 else 0
        return merge_outputs([result.answers for result in results])

    def _prepare(self, batch: Batch, horizon: int, upto: int, done: Batch | None) -> WalkInput:
        """Copy what the walks need of the window's graph."""
        graph = self.graph.graph
        changes = self._find_changes(batch)
        if self.graph.packed != self.packed:
            self.packed = self.graph.packed
            self.forget()
        total = int(graph.counts[ROWS])
        # With a demand all rows are copied again: the walks do not track which demanded pairs are left.
        is_same = self.version == self.rows_seen_version and self.demanded < 0
        seen = self.rows_seen if is_same else 0
        edges = np.zeros(total - seen, layout(Edge))
        for column, values in (("relation", graph.relation), ("src", graph.src), ("trg", graph.trg)):
            edges[column] = values[seen:total]
        edges["since"] = -1
        valid = demanded = np.zeros(0, np.int64)
        if seen == 0:
            expiries = self._expiries(horizon, done)
            edges["lo"] = edges["hi"] = expiries
            valid = np.flatnonzero((expiries > 0) & (self.automaton.reads[edges["relation"]] != 0))
            valid = valid[np.argsort(expiries[valid], kind="stable")]
            demanded = np.flatnonzero(edges["relation"] == self.demanded)
            demanded = demanded[np.argsort(edges["src"][demanded], kind="stable")]
        self.slot = (self.slot + 1) % len(self.shares[0].outputs)
        copied = (*batch, changes.row, changes.has_deletion, edges, valid, demanded)
        self.store.count_buffer(f"batch {self.slot}", sum(array.nbytes for array in copied))
        self.rows_seen, self.rows_seen_version = total, self.version
        return WalkInput(
            changes, seen, edges, valid, demanded, upto, self.vertices.capacity, self.version, self.slot
        )

    def _find_changes(self, batch: Batch) -> Input:
        row = np.empty(batch.ts.size, np.int32)
        find_rows(self.graph.graph, batch, row)
        deletes = (batch.op < 0) & (batch.source != self.demanded)
        has_deletion = np.isin(batch.ts, batch.ts[deletes]) if deletes.any() else deletes
        return Input(batch, row, has_deletion)

    def _expiries(self, horizon: int, done: Batch | None) -> Array:
        """The expiry of each row of the graph before the batch, or after what is `done` of it; expired: 0."""
        graph = self.graph.graph
        total, undone = int(graph.counts[ROWS]), int(graph.counts[UNDONE])
        expiries = graph.exp[:total].copy()
        # The oldest expiry of a row comes last, and so prevails.
        expiries[graph.undo_row[:undone][::-1]] = graph.undo_exp[:undone][::-1]
        if done is not None:
            row = self._find_changes(done).row
            expiries[row] = np.where(done.op > 0, done.exp, np.where(done.exp > done.ts, done.exp, 0))
            horizon = max([horizon, *done.ts[-1:].tolist()])
        expiries[expiries <= horizon] = 0
        return expiries
