"""PATH over time-respecting paths (`kernels.ascending`): edges in order of time, ties included or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from meander.dataflow.automaton import automaton_arrays
from meander.dataflow.batch import NO_PAIRS, Batch, OutputBuffer, empty_batch, merge_inputs, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.operators.ascending_tables import ArrivalLog, InstantTable, RepairTable, RowTable
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.ascending.arrivals import add_arrivals
from meander.kernels.ascending.instants import CHANGED_AT, CURSOR, PHASE, SEED, State, Steps, walk_steps
from meander.kernels.ascending.repair import (
    BUCKETS,
    LOST,
    ROOTS,
    Retractions,
    clear_repair,
    emit_losses,
    find_loops,
    find_lost,
    find_used,
    shorten_lost,
    take_over,
    take_over_changes,
)
from meander.kernels.ascending.rows import USED, clear_rows
from meander.kernels.batch import SRC, TRG
from meander.kernels.forest import EMPTY, STATES, Automaton
from meander.kernels.interning import HEAD
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, NEXT_ROW
from meander.physical.plan import PathOp
from meander.syntax.query import PathOrder

NO_ROWS = np.zeros(0, np.int64)
OWN_TIME = 2  # the key column with the number of an edge's own time


class PathAscending(Operator):
    """Time-respecting paths: a new edge extends the paths that end at its source, and nothing else."""

    def __init__(self, node: PathOp, context: Context) -> None:
        self.inputs = node.edges
        self.vertices = context.vertices
        self.store: Store = context.store
        store, count = self.store, len(node.edges)
        self.automaton = automaton_arrays(node, range(count), count)
        # Rows that are derived again are compared with those before; what they extend is not emitted.
        self.silent = self.automaton._replace(
            accepting=np.zeros_like(self.automaton.accepting),
            settings=np.array([self.states, -1], np.int64),
        )
        self.strict = node.order is PathOrder.STRICTLY_ASCENDING
        self.two_way = len({inverse for _, _, inverse, _ in node.moves}) > 1
        self.pinned = sorted(context.pin(node.root))
        self.table = RowTable(store, "rows.", scratch=False)
        self.log = ArrivalLog(store)
        self.instants = InstantTable(store, "instant.", scratch=False)
        store.array("empty", 0, np.int64)
        self.cursor = store.array("cursor", CURSOR, np.int64, scratch=True)
        self.repairs: RepairTable | None = None
        self.out = OutputBuffer(store)

    def bind(self) -> None:
        self.table.bind()
        self.log.bind()
        self.instants.bind()

    @property
    def states(self) -> int:
        return int(self.automaton.settings[STATES])

    @property
    def is_nullable(self) -> bool:
        return bool(self.automaton.settings[EMPTY] >= 0)

    @property
    def state_rows(self) -> int:
        return int(self.table.rows.header[:, USED].sum())

    def mark(self, horizon: int, live: Array) -> None:
        # Whatever a valid row refers to is an end of a valid arrival.
        self.log.mark(horizon, live)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        batch = merge_inputs(inputs, range(len(inputs)))
        return Ready(self.process(batch) if batch.ts.size else NO_PAIRS)

    def process(self, batch: Batch) -> Batch:
        """The pairs whose largest expiry the changes of the inputs change."""
        self._reserve(batch)
        self.cursor[EMITTED] = 0
        if (batch.op < 0).any():
            batch = retractions_first(batch, self._own_times(batch))
        for part in parts_by_op(batch):
            if part.op[0] > 0:
                self._insert(part)
            else:
                self._retract(part)
        return self.out.rows(self.cursor[EMITTED])

    def _reserve(self, batch: Batch) -> None:
        """Make room for all vertices, and for the arrivals of a batch."""
        vertices = self.vertices.capacity
        self.table.reserve(vertices * self.states)
        if self.is_nullable:
            self.store.grow("empty", vertices)
        self.log.reserve_vertices(vertices)
        self.log.reserve(batch.ts.size, int(batch.ts[0]) - 1)
        self.instants.reserve(vertices, 0)
        self.roots = np.zeros(vertices if self.pinned else 0, np.bool_)
        self.roots[self.pinned] = True

    # -----------------------------------------------------------------------------------------------------
    # Insertions

    def _insert(self, batch: Batch) -> None:
        valid = batch.exp > batch.ts
        if not valid.all():
            batch = take_rows(batch, valid)
        if batch.ts.size == 0:
            return
        columns = [np.ascontiguousarray(batch.key[:, column]) for column in (SRC, TRG)]
        columns += [np.ascontiguousarray(column) for column in (batch.ts, batch.exp, batch.source)]
        # What arrived in an earlier part of the first instant can be continued by its later part.
        again = self.log.valid_at(int(batch.ts[0])) if not self.strict else NO_ROWS
        earlier = self._steps_of(again) if again.size else None
        add_arrivals(self.log.arrivals, *columns)
        if earlier is not None:
            columns = [np.concatenate(both) for both in zip(earlier, columns, strict=True)]
        steps = self._steps(columns, self.roots, again.size)
        self._walk(steps, self.automaton, self.table, self.instants)

    def _steps_of(self, rows: Array) -> list[Array]:
        """Rows of the log as columns of `Steps`."""
        log = self.log.arrivals
        return [column[rows] for column in (log.src, log.trg, log.time, log.exp, log.source)]

    def _steps(self, columns: Sequence[Array], roots: Array, again: int) -> Steps:
        settings = np.array([self.strict, again, self.two_way], np.int64)
        return Steps(*[*columns, roots, settings])

    def _walk(self, steps: Steps, automaton: Automaton, table: RowTable, instants: InstantTable) -> None:
        """Take steps to the rows of a table, and emit what they extend."""
        self.cursor[NEXT_ROW], self.cursor[PHASE] = 0, SEED
        instants.reserve(0, steps.ts.size)
        empty = self.store.arrays["empty"]
        packed_at = -1, -1

        def attempt() -> int:
            state = State(table.rows, empty)
            return walk_steps(steps, automaton, state, instants.instant, self.out.batch, self.cursor)

        def make_room() -> None:
            nonlocal packed_at
            stop = int(self.cursor[NEXT_ROW]), int(self.cursor[EMITTED])
            table.make_room(int(steps.ts[stop[0]]), again=stop == packed_at)
            packed_at = stop

        remedies = {FULL_OUTPUT: self.out.grow, FULL_TABLE: make_room, FULL_SCRATCH: instants.grow}
        run_to_end(self.store, self.cursor, attempt, remedies)

    # -----------------------------------------------------------------------------------------------------
    # Retractions

    def _retract(self, batch: Batch) -> None:
        """Apply the retractions of one instant."""
        now = int(batch.ts[0])
        if self.repairs is None:
            self.repairs = RepairTable(self.store)
        tables, log = self.repairs, self.log.arrivals
        tables.reserve(self.vertices.capacity, self.states, self.log.rows)
        repair = tables.repair
        find_lost(log, self._retractions(batch), self.automaton, self.table.rows, repair, now)
        lost = repair.lost[: repair.counts[LOST]]
        if lost.size == 0:
            return
        ends = np.unique(np.concatenate([log.src[lost], log.trg[lost], repair.root[: repair.counts[ROOTS]]]))
        self._find_used(now)
        repair = tables.repair
        buckets = repair.bucket[: repair.counts[BUCKETS]]
        used = np.flatnonzero(repair.used[: self.log.rows])
        repair.used[used] = False
        shorten_lost(log, repair)
        steps = self._steps(self._steps_of(used[log.exp[used] > now]), repair.marked, 0)
        emitted = int(self.cursor[EMITTED])
        tables.instants.instant.counts[CHANGED_AT] = -1
        self._walk(steps, self.silent, tables.table, tables.instants)
        assert self.cursor[EMITTED] == emitted
        self._emit_losses(now)
        if self.is_nullable:
            self._emit_loops(ends, now)
        take_over(self.table.rows, tables.table.rows, repair)
        if self.strict and self.instants.instant.counts[CHANGED_AT] == now:
            run_to_end(
                self.store,
                self.cursor,
                lambda: take_over_changes(self.instants.instant, tables.instants.instant, repair),
                {FULL_SCRATCH: self.instants.grow},
            )
        clear_rows(tables.table.rows, buckets)
        clear_repair(repair)

    def _own_times(self, batch: Batch) -> Array:
        times: Array = self.vertices.names.span[batch.key[:, OWN_TIME], HEAD]
        return times

    def _retractions(self, batch: Batch) -> Retractions:
        """Each arrival once, with the least expiry that is left to it."""
        time = self._own_times(batch)
        exp = np.maximum(batch.exp, batch.ts)
        columns = (batch.key[:, SRC], batch.key[:, TRG], batch.source, time)
        order = np.lexsort((exp, *columns))
        sorted_columns = [column[order] for column in columns]
        first = np.ones(order.size, np.bool_)
        if order.size > 1:
            first[1:] = np.any([column[1:] != column[:-1] for column in sorted_columns], axis=0)
        return Retractions(*(column[first] for column in (*sorted_columns, exp[order])))

    def _find_used(self, now: int) -> None:
        """Find what the roots reach, and over which arrivals."""
        assert self.repairs is not None
        tables, strict = self.repairs, self.strict
        cursor = np.zeros(2, np.int64)
        run_to_end(
            self.store,
            cursor,
            lambda: find_used(self.log.arrivals, self.automaton, tables.repair, strict, now),
            {FULL_SCRATCH: tables.grow_queue},
        )

    def _emit_losses(self, now: int) -> None:
        assert self.repairs is not None
        tables, empty = self.repairs, self.store.arrays["empty"]
        old, new = State(self.table.rows, empty), State(tables.table.rows, empty)
        self.cursor[NEXT_ROW] = 0
        run_to_end(
            self.store,
            self.cursor,
            lambda: emit_losses(self.automaton, old, new, tables.repair, self.out.batch, self.cursor, now),
            {FULL_OUTPUT: self.out.grow},
        )

    def _emit_loops(self, vertices: Array, now: int) -> None:
        """Emit how (x, x) changes, where the empty path joins x to itself."""
        assert self.repairs is not None
        tables, empty = self.repairs, self.store.arrays["empty"]
        loops = empty_batch(vertices.size)
        old, new = State(self.table.rows, empty), State(tables.table.rows, empty)
        find_loops(self.log.arrivals, self.automaton, old, new, tables.repair, vertices, loops)
        before, after = np.maximum(loops.ts, now), np.maximum(loops.exp, now)
        changed = before != after
        if self.pinned:
            changed &= self.roots[vertices]
        begin, count = int(self.cursor[EMITTED]), int(changed.sum())
        while begin + count > self.out.batch.ts.size:
            self.out.grow()
        out = take_rows(self.out.batch, slice(begin, begin + count))
        out.key[:] = vertices[changed, None]
        out.ts[:], out.exp[:] = now, after[changed]
        out.op[:] = np.sign(after - before)[changed]
        self.cursor[EMITTED] += count


def retractions_first(batch: Batch, own_time: Array) -> Batch:
    """The batch with the retractions of each instant first, but for those of edges that it inserts before.

    So no answer is extended over an edge that the same instant retracts.
    """
    lost = batch.op < 0
    late = np.zeros(lost.size, np.bool_)
    new = lost & (own_time == batch.ts)
    if new.any():
        keys = np.column_stack([batch.source, batch.key[:, SRC], batch.key[:, TRG], batch.ts])
        groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        first = np.full(lost.size, lost.size)
        np.minimum.at(first, groups[~lost], np.flatnonzero(~lost))
        late = new & (first[groups] < np.arange(lost.size))
    return take_rows(batch, np.lexsort((~lost | late, batch.ts)))


def parts_by_op(batch: Batch) -> Iterator[Batch]:
    """The batch in parts, each with insertions alone, or with retractions of one instant alone."""
    inserts = batch.op > 0
    if inserts.all():
        yield batch
        return
    cut = inserts[1:] != inserts[:-1]
    cut |= ~inserts[1:] & (batch.ts[1:] != batch.ts[:-1])
    bounds = [0, *(np.flatnonzero(cut) + 1).tolist(), batch.ts.size]
    for begin, end in pairwise(bounds):
        yield take_rows(batch, slice(begin, end))
