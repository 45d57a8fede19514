"""PATH as an operator by slide-batched closure: of its state only the time that it has reached is no cache.

What answers hold, and until when, follows from the window's graph (see `kernels.closure`), so all arrays but the
clock are scratch: they count as memory and are in no snapshot. With several threads each walks the whole batch
for its share of the roots, with scratch of its own, and waits for no other: `start` copies what the walks need of
the window's graph, so that the next batches can be started meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from meander.dataflow.operator import Context, Operator, Pending, Ready
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.dataflow.threads import Task
from meander.kernels.closure import (
    COUNTS,
    CURRENT,
    DEMANDED,
    EDGE_COLUMNS,
    END,
    ENDS_KNOWN,
    FIRST,
    HELD_ASKED,
    HI,
    LISTS,
    LO,
    MOST_SEGMENT_ROWS,
    PLACE_COLUMNS,
    RELATION,
    ROOTS,
    ROW_COLUMNS,
    SINCE,
    SRC,
    STILL_ASKED,
    TRG,
    UNASKED,
    Demand,
    Extent,
    Moves,
    Places,
    Segment,
    find_rows,
    measure_graph,
)
from meander.kernels.closure_flow import BOTH, HAVE_COLUMNS, STAGED_COLUMNS, Bits
from meander.kernels.closure_matrix import (
    CHUNK,
    COLUMNS,
    LATEST,
    MATRIX_COUNTS,
    MATRIX_EDGE,
    MATRIX_PLACE,
    OFF,
    READY,
    SHORT,
    SHORT_COLUMNS,
    SHORT_EDGES,
    SHORT_PLACES,
    Matrix,
    forget_matrix,
)
from meander.kernels.closure_walk import (
    CURSOR,
    CUT_TIME,
    END_COLUMNS,
    OUT,
    Asked,
    walk_segments,
)
from meander.kernels.forest import Automaton
from meander.kernels.graph import ROWS, UNDONE
from meander.kernels.status import FULL_MATRIX, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE
from meander.physical.plan import PathOp

LEAST_PLACES = 256
LEAST_EDGES = 256
LEAST_STAGED = 1024
PLENTY = 1 << 17  # answers of one share to one part, of those that are usual
MOST_LEVELS = 1 << 24  # by place and root; each takes six bytes

# By name: type, columns.
_BY_PLACE: dict[str, tuple[type, int]] = {
    "place": (np.int32, PLACE_COLUMNS),
    "have": (np.uint64, HAVE_COLUMNS),
    "fresh": (np.uint64, BOTH),
    "timed": (np.uint16, ROOTS),
    "asked": (np.uint64, BOTH),
}


def closure_moves(automaton: Automaton) -> Moves:
    """The automaton as the closure reads it."""
    moves = (automaton.relation_inverse, automaton.relation_from, automaton.relation_to)
    return Moves(
        automaton.relation_begin,
        np.ascontiguousarray(np.stack(moves, axis=1)),
        automaton.accepting,
        np.array([*automaton.settings, *automaton.finals[:1]], np.int64),
    )


class Changed(NamedTuple):
    """A batch as the walk takes it: nothing of it is changed later."""

    rows: Batch
    found: Array  # by row: the row of the window's graph
    cut_instant: Array  # by row: whether something is deleted at its instant
    known: int  # of so many rows of the window's graph the walk of the batch before knows all
    edges: Array  # the rows of the window's graph after those: as in `Segment.row`
    expiries: Array  # of the same: the expiry before the batch
    valid: Array  # where nothing is known: the rows among these that are input edges, by expiry
    asked: Array  # where nothing is known: the rows of the demand, by source
    upto: int
    capacity: int  # all vertices are below
    version: int  # of what may be known from before: see `ClosureOperator.version`
    slot: int  # which of the outputs to write to


class Walked(NamedTuple):
    """What a walk has made."""

    rows: Batch
    unasked: int  # how many pairs nobody asked for
    roots: int  # there are so many in what is kept of the last segment; -1 where nothing is


class ClosureShare:
    """The walk over one share of the roots."""

    def __init__(
        self,
        store: Store,
        moves: Moves,
        asked: Asked,
        demanded: int,
        name: str,
        slots: int,
    ) -> None:
        self.store, self.moves, self.asked = store, moves, asked
        self.by_place = {one: of for one, of in _BY_PLACE.items() if one != "asked" or demanded >= 0}
        self.prefix = f"{name} "
        self._array("row", 0, np.int32, ROW_COLUMNS)
        self._array("exp", 0, np.int64, 2)
        self._array("marked", 0, np.uint8)
        self._array("lists", LISTS, np.int32, 0)
        self._array("counts", COUNTS, np.int64)
        self._array("number", 0, np.int32)
        self._array("asked", 0, np.uint64, BOTH)
        for name, (dtype, width) in self.by_place.items():
            self._array(name, store.first_capacity(LEAST_PLACES), dtype, width)
        self._array("stamp", 0, np.int64, 2)
        self._array("demand", 3, np.int64)
        self._get("demand")[DEMANDED] = demanded
        self._array("edge", store.first_capacity(LEAST_EDGES), np.int64, EDGE_COLUMNS)
        self._array("out", store.first_capacity(LEAST_EDGES), np.int64, 4)
        self._array("staged", store.first_capacity(LEAST_STAGED), np.int64, STAGED_COLUMNS)
        self._array("ends", 0, np.int64, END_COLUMNS)
        self._array("slots", 1, np.int64)
        self._array("cursor", CURSOR, np.int64)
        self._empty_matrix()
        self._array("edge_of", 0, np.int32, max(1, int(np.diff(moves.begin).max(initial=0))))
        self._array("matrix number", 0, np.int32)
        self._array("column_of", 0, np.int32)
        self._array("matrix", MATRIX_COUNTS, np.int64)
        self.capacity = 0
        self.version = 0
        self.valid = 0  # edges, when the walk began
        self.most_edges = 0  # so many valid edges were too many for the matrix
        self.outs = [empty_batch(store.first_capacity(LEAST_STAGED)) for _ in range(slots)]
        self.bind()

    def _array(self, name: str, length: int, dtype: type, width: int | None = None) -> None:
        self.store.array(self.prefix + name, length, dtype, width=width, scratch=True)
        self.is_bound = False

    def _get(self, name: str) -> Array:
        return self.store.arrays[self.prefix + name]

    def _grow(self, name: str, length: int, fill: int = 0) -> None:
        if length > self._get(name).shape[0]:
            self.store.grow(self.prefix + name, length, fill)
            self.is_bound = False

    def bind(self) -> None:
        """Take up the store's arrays, after growth or restoring."""
        get = self._get
        self.is_bound = True
        self.segment = Segment(get("row"), get("exp"), get("marked"), get("lists"), get("counts"))
        self.places = Places(get("number"), get("place"), get("edge"), get("out"))
        self.bits = Bits(get("have"), get("fresh"), get("timed"), get("asked"))
        self.matrix = Matrix(
            get("level"),
            get("before"),
            get("since"),
            get("matrix place"),
            get("dirty"),
            get("matrix edge"),
            get("edge_of"),
            get("matrix number"),
            get("column"),
            get("column_of"),
            get("matrix"),
        )

    def _reserve_vertices(self, capacity: int) -> None:
        self.capacity = capacity
        states = int(self.moves.settings[0])
        self._grow("number", capacity * states, -1)
        self._grow("matrix number", capacity * states, -1)
        self._grow("column_of", capacity, -1)
        if self.moves.settings[1] >= 0:
            self._grow("ends", capacity, -1)
        if self._get("demand")[DEMANDED] >= 0:
            self._grow("stamp", capacity)

    def reserve_output(self, slot: int) -> None:
        """Room for as much as any batch has needed so far, where the budget has it to spare."""
        most = max(out.ts.size for out in self.outs)
        if self.outs[slot].ts.size < most and self._may_spare(most):
            self.outs[slot] = grow_batch(NO_PAIRS, most, self.store, f"{self.prefix}output {slot}")

    def _may_spare(self, answers: int) -> bool:
        """Whether room for so many answers is little beside what the budget has left."""
        return self.store.budget.has_room(10 * answers * sum(column.itemsize for column in NO_PAIRS))

    def walk(self, changed: Changed) -> Walked:
        """What the batch changes for this share's roots."""
        self._begin(changed)
        cursor = self._get("cursor")
        sources = self.segment.row[changed.asked, SRC]
        begin = np.searchsorted(sources, np.arange(self._get("stamp").shape[0] + 1))
        demand = Demand(changed.asked, begin, self._get("stamp"), self._get("demand"))

        def attempt() -> int:
            return walk_segments(
                changed.rows,
                changed.found,
                changed.cut_instant,
                changed.upto,
                self.segment,
                self.places,
                self.bits,
                self.matrix,
                self._get("staged"),
                self._get("ends"),
                self._get("slots"),
                self.moves,
                self.asked,
                demand,
                self.outs[changed.slot],
                cursor,
            )

        make_room = {
            FULL_OUTPUT: lambda: self._grow_output(changed.slot),
            FULL_SCRATCH: self._grow_places,
            FULL_MATRIX: lambda: self._grow_matrix(self.valid + changed.rows.ts.size),
            FULL_TABLE: lambda: self._grow(
                "staged", 2 * self._get("staged").shape[0] + 2 * changed.rows.ts.size
            ),
        }
        run_to_end(self.store, cursor, attempt, make_room)
        counts = self.matrix.counts
        roots = int(counts[COLUMNS]) if counts[READY] else -1
        rows = take_rows(self.outs[changed.slot], slice(int(cursor[OUT])))
        return Walked(rows, int(self.segment.counts[UNASKED]), roots)

    def _grow_output(self, slot: int) -> None:
        out = self.outs[slot]
        plenty = self.store.first_capacity(PLENTY)
        least = plenty if self._may_spare(plenty) else 0
        length = max(2 * out.ts.size, least) + self._get("staged").shape[0]
        self.outs[slot] = grow_batch(out, length, self.store, f"{self.prefix}output {slot}")

    def _begin(self, changed: Changed) -> None:
        """The edges that are valid before the batch, by expiry: all, or those that are not known from before."""
        if changed.capacity > self.capacity:
            self._reserve_vertices(changed.capacity)
        known, total = changed.known, changed.known + changed.expiries.size
        held = self.segment.row.shape[0]
        if total > held:
            lists = self.segment.lists
            self._grow("row", 2 * total)
            self._grow("exp", 2 * total)
            self._grow("marked", 2 * total)
            self._array("lists", LISTS, np.int32, 2 * total)
            self._get("lists")[:, :held] = lists
            self._grow("edge_of", 2 * total, -1)
        self._grow("slots", min(changed.rows.ts.size, MOST_SEGMENT_ROWS) + 2)
        if not self.is_bound:
            self.bind()
        row, exp, _, lists, counts = self.segment
        row[known:total] = changed.edges
        exp[known:total, LO] = changed.expiries
        exp[known:total, HI] = changed.expiries
        if known == 0:
            lists[0, : changed.valid.size] = changed.valid
            counts[[CURRENT, FIRST, END]] = 0, 0, changed.valid.size
            still_asked = changed.asked[changed.expiries[changed.asked] > 0]
            lists[STILL_ASKED, : still_asked.size] = still_asked
            counts[HELD_ASKED] = still_asked.size
        counts[UNASKED] = 0
        self.valid = int(counts[END] - counts[FIRST])
        cursor = self._get("cursor")
        cursor[:] = 0
        cursor[CUT_TIME] = -1
        if changed.version != self.version:
            self.version = changed.version
            self.matrix.counts[READY] = counts[ENDS_KNOWN] = 0
        if self.valid <= self.most_edges // 2:
            self.matrix.counts[OFF] = self.most_edges = 0

    def _grow_matrix(self, edges: int) -> None:
        """Room for what is short, with what is there; no matrix at all where that would be too large."""
        counts = self.matrix.counts
        short = int(counts[SHORT])
        held_places, held_columns = self.matrix.level.shape
        places = (
            max(2 * held_places, self.store.first_capacity(LEAST_PLACES))
            if short & SHORT_PLACES
            else held_places
        )
        # Rows that end where their columns do share the caches better, so there are not many to spare.
        columns = held_columns + max(held_columns // 4, CHUNK) if short & SHORT_COLUMNS else held_columns
        columns = -(-columns // CHUNK) * CHUNK
        more = 6 * (places * columns - held_places * held_columns)
        if places * columns > MOST_LEVELS or not self.store.budget.has_room(2 * more):
            self._give_up_matrix()
            self.most_edges = edges
            return
        if places > held_places or columns > held_columns:
            level = self.matrix.level
            for table in ("level", "before", "since"):
                self._array(table, places, np.uint16, columns)
            self._get("level")[:held_places, :held_columns] = level
            self._grow("column", columns)
            self._grow("matrix place", places)
            self._grow("dirty", places)
        if short & SHORT_EDGES:
            least = self.store.first_capacity(LEAST_EDGES)
            self._grow("matrix edge", max(2 * self.matrix.edge.shape[0], least))
        self.bind()

    def _give_up_matrix(self) -> None:
        """Do without it, and leave its memory to others."""
        forget_matrix(self.matrix)
        self.matrix.counts[OFF] = 1
        self._empty_matrix()
        self.bind()

    def _empty_matrix(self) -> None:
        """The tables that grow with the matrix, without any room."""
        for table in ("level", "before", "since"):
            self._array(table, 0, np.uint16, 0)
        self._array("matrix place", 0, np.int32, MATRIX_PLACE)
        self._array("dirty", 0, np.int64, 2)
        self._array("matrix edge", 0, np.int32, MATRIX_EDGE)
        self._array("column", 0, np.int32)

    def _grow_places(self) -> None:
        """Places and edges at once: either may have been what was short."""
        for name in self.by_place:
            self._grow(name, 2 * self.places.place.shape[0])
        for name in ("edge", "out"):
            self._grow(name, 2 * self.places.edge.shape[0])
        self.bind()


class ClosurePending(NamedTuple):
    """The output of the shares of one batch."""

    operator: PathClosure
    tasks: Sequence[Task[Walked]]

    @property
    def is_ready(self) -> bool:
        return False

    def result(self) -> Batch:
        return self.operator.finish(self.tasks)


class PathClosure(Operator):
    """PATH, bit-parallel over 512 roots at a time and batched by slide."""

    def __init__(self, node: PathOp, context: Context) -> None:
        self.inputs = tuple(dict.fromkeys(node.inputs))
        self.relations = context.relations_of(dict.fromkeys(node.inputs))
        self.demanded = -1 if node.demand is None else context.relations[node.demand]
        self.graph = context.graph
        self.vertices = context.vertices
        self.store: Store = context.store
        self.automaton = automaton_arrays(node, context.relations_of(node.edges), self.graph.relations)
        # Without expiries only starts (until FOREVER) and stops (as retractions) of answers are emitted.
        self.expiries = (
            context.mode == "intervals" or context.paths or context.is_read or node.operator == "auto"
        )
        self.clock = self.store.array("clock", 1, np.int64, -1)
        settings = np.array([self.expiries, context.paths], np.int64)
        roots = np.array(sorted(context.pin(node.root)), np.int32)
        self.pool = context.pool
        self.shares = [
            ClosureShare(
                self.store,
                closure_moves(self.automaton),
                Asked(roots, np.array([share, self.pool.threads], np.int64), settings),
                self.demanded,
                f"share {share}",
                context.ahead + 1,
            )
            for share in range(self.pool.threads)
        ]
        self.version = 0  # of what shares may know from before
        self.packed = self.graph.packed
        self.known = 0  # rows of the window's graph that the last walk knows
        self.known_version = 0
        self.slot = 0
        self.unasked = 0  # how many pairs of the last batch nobody asked for
        self.roots_kept = (
            0  # how many roots there are in what is kept of the last segment; 0 where nothing is
        )

    def bind(self) -> None:
        self.clock = self.store.arrays["clock"]
        for share in self.shares:
            share.bind()
        self.forget()

    def forget(self) -> None:
        """What was known is not so any more: state was restored, or another operator took rows in."""
        self.version += 1

    def measure(self, time: int) -> Extent:
        """The extent of the input that is valid after `time`; within a batch without what it changes later."""
        graph = self.graph.graph
        seen = np.zeros(graph.first_out.size // self.graph.relations, np.int8)
        return Extent(*measure_graph(graph, self.automaton.reads, time, seen))

    def roots_to_keep(self, held: Extent, time: int) -> int:
        """How many roots there would be, rather too many, with a graph like this; 0 where it is too large to keep."""
        if held.sources * held.ends * int(self.automaton.settings[0]) > MOST_LEVELS:
            return 0
        return held.sources if (held.latest - time) // held.unit < LATEST else 0

    def has_room(self, held: Extent, pairs: int) -> bool:
        """Whether the budget has room for a walk over a graph like this that hands out so many pairs."""
        place = sum(np.dtype(dtype).itemsize * width for dtype, width in _BY_PLACE.values())
        walked = 8 * (EDGE_COLUMNS + ROW_COLUMNS) * held.rows + place * held.ends * int(
            self.automaton.settings[0]
        )
        # Tables are doubled, and each thread has its own; a pair is staged, and then handed out.
        return self.store.budget.has_room(
            2 * len(self.shares) * walked + 2 * 8 * (STAGED_COLUMNS + 4) * pairs
        )

    def start(self, inputs: Sequence[Batch], upto: int) -> Pending:
        return self.start_merged(merge_inputs(inputs, self.relations), upto)

    def start_merged(self, rows: Batch, upto: int, done: Batch | None = None) -> Pending:
        """Start a batch whose inputs are merged; `done` are earlier rows of it, whose answers are emitted already.

        The result must be awaited before `ahead` more batches are started.
        """
        horizon = int(self.clock[0])
        self.clock[0] = upto
        if rows.ts.size == 0 and self.expiries:
            return Ready(NO_PAIRS)
        changed = self._changed(rows, horizon, upto, done)
        for share in self.shares:
            share.reserve_output(changed.slot)
        tasks = [self.pool.submit(partial(share.walk, changed), lane=share) for share in self.shares]
        self.known, self.known_version = changed.known + changed.expiries.size, changed.version
        return ClosurePending(self, tasks)

    def finish(self, tasks: Sequence[Task[Walked]]) -> Batch:
        walked = self.pool.results(tasks)
        self.unasked = sum(one.unasked for one in walked)
        kept = [one.roots for one in walked]
        self.roots_kept = sum(kept) if min(kept) >= 0 else 0
        return merge_outputs([one.rows for one in walked])

    def _changed(self, rows: Batch, horizon: int, upto: int, done: Batch | None) -> Changed:
        graph = self.graph.graph
        rows = Batch(*(np.ascontiguousarray(column) for column in rows))
        found = np.empty(rows.ts.size, np.int32)
        find_rows(graph, rows, found)
        cuts = (rows.op < 0) & (rows.source != self.demanded)
        cut_instant = np.isin(rows.ts, rows.ts[cuts]) if cuts.any() else cuts
        if self.graph.packed != self.packed:
            self.packed = self.graph.packed
            self.forget()
        total = int(graph.counts[ROWS])
        # With a demand all is said anew: what is asked for no more is not told to a walk.
        known = self.known if self.version == self.known_version and self.demanded < 0 else 0
        expiries = np.zeros(total - known, np.int64)
        valid = asked = np.zeros(0, np.int64)
        if known == 0:
            expiries, horizon = self._expiries(horizon, done)
            relation = graph.relation[:total]
            expiries[expiries <= horizon] = 0
            valid = np.flatnonzero((expiries > 0) & (self.automaton.reads[relation] != 0))
            valid = valid[np.argsort(expiries[valid], kind="stable")]
            asked = np.flatnonzero(relation == self.demanded)
            asked = asked[np.argsort(graph.src[asked], kind="stable")]
        edges = np.empty((total - known, ROW_COLUMNS), np.int32)
        for column, values in ((RELATION, graph.relation), (SRC, graph.src), (TRG, graph.trg)):
            edges[:, column] = values[known:total]
        edges[:, SINCE] = -1
        self.slot = (self.slot + 1) % len(self.shares[0].outs)
        copied = (*rows, found, cut_instant, edges, expiries, valid, asked)
        self.store.count_buffer(f"batch {self.slot}", sum(array.nbytes for array in copied))
        return Changed(
            rows,
            found,
            cut_instant,
            known,
            edges,
            expiries,
            valid,
            asked,
            upto,
            self.vertices.capacity,
            self.version,
            self.slot,
        )

    def _expiries(self, horizon: int, done: Batch | None) -> tuple[Array, int]:
        """Of all rows of the window's graph, after what is `done`; and the time that is reached then."""
        graph = self.graph.graph
        total, undone = int(graph.counts[ROWS]), int(graph.counts[UNDONE])
        expiries = graph.exp[:total].copy()
        # The oldest comes last, and so is what stays.
        expiries[graph.undo_row[:undone][::-1]] = graph.undo_exp[:undone][::-1]
        if done is not None:
            before = np.empty(done.ts.size, np.int32)
            find_rows(graph, Batch(*(np.ascontiguousarray(column) for column in done)), before)
            expiries[before] = np.where(done.op > 0, done.exp, np.where(done.exp > done.ts, done.exp, 0))
            horizon = max([horizon, *done.ts[-1:].tolist()])
        return expiries, horizon
