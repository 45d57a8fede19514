"""PATH as an operator over spanning trees (S-PATH and negative tuples): its automaton and forest as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.graph import WindowGraph, empty_rows, first_rows, more_rows
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.forest import NODES, Automaton, Forest, Queue, pack_nodes, relink_nodes
from meander.kernels.graph import FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, NEEDS_LINKS, Rows
from meander.kernels.paths import BEGIN, EXTEND, HEAD, MOVE, NODE, OUT, PHASE, Walk, walk_insertions
from meander.kernels.pattern import MergedRows
from meander.kernels.repair import collect_expiries, walk_paths
from meander.physical.plan import PathOp

LEAST_NODES = 256
LEAST_OUTPUT = 1024

_NODE_COLUMNS = {
    "root": np.int32,
    "vertex": np.int32,
    "state": np.int32,
    "exp": np.int64,
    "parent": np.int32,
    "next_node": np.int32,
    "was": np.int64,
}
_QUEUE_COLUMNS = {
    "root": np.int32,
    "vertex": np.int32,
    "state": np.int32,
    "parent": np.int32,
    "exp": np.int64,
    "heap": np.int32,
    "stack": np.int32,
}


def automaton_arrays(operator: PathOp, relations: Sequence[int], total: int) -> Automaton:
    """An automaton whose inputs are `relations` of a graph of `total`, as the kernels read it.

    Where it accepts the empty word, the empty path has a state of its own, after all others. The moves out of
    states stand in the operator's own order, which is by state.
    """
    nullable = 0 in operator.accepting
    places = operator.states + nullable
    # The start state as such is never a node's: only the empty path reaches it, and that has its own state,
    # unless a longer path leads back to it.
    accepting = np.zeros(places, np.int8)
    accepting[list(operator.accepting)] = 1
    if nullable:
        accepting[operator.states] = 1
    reads = np.zeros(total, np.int8)
    reads[list(relations)] = 1
    moves = [(state, relations[source], inverse, to) for state, source, inverse, to in operator.moves]

    def grouped(key: int, groups: int) -> tuple[Array, Array]:
        ordered = sorted(moves, key=lambda move: move[key])
        begin = np.searchsorted([move[key] for move in ordered], np.arange(groups + 1)).astype(np.int32)
        return begin, np.array(ordered, np.int32).reshape(len(ordered), 4)

    by_relation, relation_moves = grouped(1, total)
    by_source, source_moves = grouped(0, places)
    by_target, target_moves = grouped(3, places)

    def column(table: Array, position: int) -> Array:
        return np.ascontiguousarray(table[:, position])

    return Automaton(
        accepting=accepting,
        finals=np.flatnonzero(accepting).astype(np.int32),
        reads=reads,
        relation_begin=by_relation,
        relation_inverse=column(relation_moves, 2),
        relation_from=column(relation_moves, 0),
        relation_to=column(relation_moves, 3),
        out_begin=by_source,
        out_relation=column(source_moves, 1),
        out_inverse=column(source_moves, 2),
        out_to=column(source_moves, 3),
        in_begin=by_target,
        in_relation=column(target_moves, 1),
        in_inverse=column(target_moves, 2),
        in_from=column(target_moves, 0),
        settings=np.array([places, operator.states if nullable else -1], np.int64),
    )


class TreePathOperator:
    """S-PATH, or with `first_path` the negative-tuple algorithm."""

    def __init__(
        self,
        operator: PathOp,
        graph: WindowGraph,
        relations: Sequence[int],
        store: Store,
        *,
        first_path: bool,
        roots: Sequence[int],
    ) -> None:
        self.graph = graph
        self.relations = relations
        self.store = store
        self.automaton = automaton_arrays(operator, relations, graph.relations)
        self.first_path = first_path
        self.roots = np.array(sorted(roots), np.int32)
        nodes = store.first_capacity(LEAST_NODES)
        for column, dtype in _NODE_COLUMNS.items():
            store.array(column, nodes, dtype)
        store.array("slots", 2 * nodes, np.int32, -1)
        store.array("first_node", 0, np.int32)
        store.array("counts", 1, np.int64)
        store.array("cursor", 8, np.int64)
        for column, dtype in _QUEUE_COLUMNS.items():
            store.array(f"queue.{column}", nodes, dtype, scratch=True)
        store.array("queue.counts", 4, np.int64, scratch=True)[3] = -1
        store.array("marked", nodes, np.int32, scratch=True)
        expiries = nodes if first_path else 0
        store.array("expiry_exp", expiries, np.int64)
        store.array("expiry_node", expiries, np.int32)
        store.array("expiry_count", 1, np.int64)
        self.empty_output()
        self.bind()

    def empty_output(self) -> None:
        """Write to new output from now on: the one before may wait to be read."""
        self.out = empty_rows(self.store.first_capacity(LEAST_OUTPUT))

    def bind(self) -> None:
        arrays = self.store.arrays
        self.forest = Forest(*(arrays[column] for column in Forest._fields))
        self.walk = Walk(
            queue=Queue(*(arrays[f"queue.{column}"] for column in Queue._fields)),
            marked=arrays["marked"],
            expiry_exp=arrays["expiry_exp"],
            expiry_node=arrays["expiry_node"],
            expiry_count=arrays["expiry_count"],
            roots=self.roots,
            settings=np.array([self.first_path], np.int64),
            cursor=arrays["cursor"],
        )

    @property
    def rows(self) -> int:
        return int(self.forest.counts[NODES])

    @property
    def capacity(self) -> int:
        """There is room for all vertex numbers below this."""
        return int(self.forest.first_node.size // self.automaton.settings[0])

    def reserve_vertices(self, capacity: int) -> None:
        places = capacity * int(self.automaton.settings[0])
        if places > self.forest.first_node.size:
            self.store.grow("first_node", places, -1)
            self.bind()

    def process(self, rows: MergedRows, upto: int, kept: int = 0) -> Rows:
        """The pairs whose largest expiry the changes of the inputs, and time up to `upto`, move; before them, as many
        of those that were handed out the last time as are to be kept."""
        cursor = self.walk.cursor
        cursor[BEGIN], cursor[OUT] = 0, kept
        repairs = self.first_path or bool((rows.op < 0).any())

        def attempt() -> int:
            state = (self.graph.graph, self.automaton, self.forest, rows)
            if repairs:
                return walk_paths(*state, upto, self.walk, self.out)
            return walk_insertions(*state, self.walk, self.out)

        make_room = {
            FULL_OUTPUT: self._double_output,
            FULL_TABLE: lambda: self._make_room(rows),
            FULL_SCRATCH: self._grow_scratch,
            NEEDS_LINKS: lambda: self.graph.link_both_ways(self.relations),
        }
        run_to_end(self.store, cursor, attempt, make_room)
        return first_rows(self.out, int(cursor[OUT]))

    def _double_output(self) -> None:
        self.out = more_rows(self.out, 2 * self.out.ts.size, self.store, "output")

    def switch(self, first_path: bool, time: int) -> None:
        """Go on by the other algorithm, between two batches, with `time` reached."""
        self.first_path = first_path
        if first_path:
            pack_nodes(self.forest, time, int(self.automaton.settings[0]), self.walk.queue)
            self._collect_expiries()
        else:
            self.bind()

    def _make_room(self, rows: MergedRows) -> None:
        """Drop expired nodes where the walk stands between two of them; where many are left, double the table."""
        cursor = self.walk.cursor
        states = int(self.automaton.settings[0])
        packing = cursor[PHASE] == EXTEND
        if packing:
            pack_nodes(self.forest, int(rows.ts[cursor[BEGIN]]), states, self.walk.queue)
            if cursor[MOVE] >= 0:
                cursor[NODE] = HEAD
        capacity = self.forest.root.size
        if not packing or self.forest.counts[NODES] > capacity // 2:
            for column in _NODE_COLUMNS:
                self.store.grow(column, 2 * capacity)
            self.store.array("slots", 4 * capacity, np.int32, -1)
            self.bind()
            relink_nodes(self.forest, states)
        if self.first_path and packing:
            self._collect_expiries()

    def _collect_expiries(self) -> None:
        for column in ("expiry_exp", "expiry_node"):
            self.store.grow(column, int(self.forest.counts[NODES]))
        self.bind()
        collect_expiries(self.forest, self.walk)

    def _grow_scratch(self) -> None:
        for column in _QUEUE_COLUMNS:
            self.store.grow(f"queue.{column}", 2 * self.walk.queue.exp.size)
        self.store.grow("marked", max(2 * self.walk.marked.size, int(self.forest.counts[NODES])))
        if self.first_path:
            for column in ("expiry_exp", "expiry_node"):
                self.store.grow(column, 2 * self.store.arrays[column].size)
        self.bind()

    def mark(self, horizon: int, live: Array) -> None:
        """The vertices of valid paths are those of valid edges: the graph marks them."""
