"""PATH by S-PATH, the paper's operator: a spanning tree per root (`kernels.paths`, `kernels.repair`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.automaton import automaton_arrays
from meander.dataflow.batch import Batch, OutputBuffer, merge_inputs
from meander.dataflow.operator import Context, KnownPaths, Operator, Ready
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Store
from meander.kernels.forest import LEVEL, NODES, STATES, Forest, Queue, pack_nodes, relink_nodes
from meander.kernels.paths import CURSOR, EXTEND, LIST_HEAD, MOVE, NODE, PHASE, Walk, walk_insertions
from meander.kernels.repair import collect_expiries, walk_changes
from meander.kernels.status import (
    EMITTED,
    FULL_OUTPUT,
    FULL_SCRATCH,
    FULL_STEPS,
    FULL_TABLE,
    NEEDS_LINKS,
    NEXT_ROW,
)
from meander.kernels.steps import NO_STEP, Steps
from meander.kernels.tree_paths import COUNT, FIRST, TreePaths, forget_steps
from meander.physical.plan import PathOp

LEAST_NODES = 256
MOST_REMEMBERED = 1 << 30  # as a number of a step, which fits 32 bits with those of one batch

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
    "level": np.int32,
}


class PathTrees(Operator):
    """S-PATH: of all paths of a pair, its tree keeps one that lasts longest."""

    first_path = False
    """Whether a tree keeps the first path found, and searches for another when that expires."""

    def __init__(self, node: PathOp, context: Context) -> None:
        self.inputs = node.edges
        self.relations = context.relations_of(node.edges)
        self.graph = context.graph
        self.vertices = context.vertices
        self.store: Store = context.store
        store = self.store
        self.automaton = automaton_arrays(node, self.relations, self.graph.relations)
        self.roots = np.array(sorted(context.pin(node.root)), np.int32)
        self.keeps_first_path = self.first_path
        nodes = store.first_capacity(LEAST_NODES)
        for column, dtype in _NODE_COLUMNS.items():
            store.array(column, nodes, dtype)
        store.array("slots", 2 * nodes, np.int32, -1)
        store.array("first_node", 0, np.int32)
        store.array("counts", 1, np.int64)
        store.array("cursor", CURSOR, np.int64)
        for column, dtype in _QUEUE_COLUMNS.items():
            store.array(f"queue.{column}", nodes, dtype, scratch=True)
        store.array("queue.counts", 5, np.int64, scratch=True)[LEVEL] = -1
        store.array("marked", nodes, np.int32, scratch=True)
        self.proves = context.proves
        steps = nodes if self.proves else 0
        store.array("step", steps, np.int32, scratch=True)
        for column in Steps._fields:
            store.array(f"steps.{column}", steps, np.int32, scratch=True)
        # No number that a node may remember is 0.
        store.array("steps.counts", 3, np.int64, scratch=True)[FIRST] = 1
        expiries = nodes if self.keeps_first_path else 0
        store.array("expiry_exp", expiries, np.int64)
        store.array("expiry_node", expiries, np.int32)
        store.array("expiry_count", 1, np.int64)
        self.new_output()

    def new_output(self) -> None:
        """Write to a new output buffer from now on: the old one may not be read yet."""
        self.out = OutputBuffer(self.store)
        self.last = np.zeros(self.out.batch.ts.size if self.proves else 0, np.int32)
        self.bind()

    def bind(self) -> None:
        arrays = self.store.arrays
        if self.proves:
            # Not in a snapshot.
            self.store.grow("step", arrays["root"].size)
        self.forest = Forest(*(arrays[column] for column in Forest._fields))
        self.walk = Walk(
            queue=Queue(*(arrays[f"queue.{column}"] for column in Queue._fields)),
            marked=arrays["marked"],
            expiry_exp=arrays["expiry_exp"],
            expiry_node=arrays["expiry_node"],
            expiry_count=arrays["expiry_count"],
            roots=self.roots,
            paths=self._paths(),
            settings=np.array([self.keeps_first_path], np.int64),
            cursor=arrays["cursor"],
        )

    def _paths(self) -> TreePaths:
        arrays = self.store.arrays
        steps = Steps(*(arrays[f"steps.{column}"] for column in Steps._fields))
        return TreePaths(steps, self.last, arrays["steps.counts"])

    def begin_paths(self) -> None:
        """Start a batch whose output has paths: their steps are numbered from 0."""
        counts = self.store.arrays["steps.counts"]
        counts[FIRST] += counts[COUNT]
        if counts[FIRST] > MOST_REMEMBERED:
            counts[FIRST] = 1
            self.forest.step[:] = NO_STEP
        counts[COUNT] = 0
        forget_steps(self.walk.paths)

    @property
    def known_paths(self) -> KnownPaths | None:
        """The paths of all output since `begin_paths`."""
        if not self.proves:
            return None
        count, emitted = int(self.walk.paths.counts[COUNT]), int(self.walk.cursor[EMITTED])
        return KnownPaths(self.last[:emitted], Steps(*(column[:count] for column in self.walk.paths.steps)))

    @property
    def state_rows(self) -> int:
        return int(self.forest.counts[NODES])

    @property
    def states(self) -> int:
        return int(self.automaton.settings[STATES])

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        self.begin_paths()
        return Ready(self.process(merge_inputs(inputs, self.relations), upto))

    def process(self, batch: Batch, upto: int, emitted: int = 0) -> Batch:
        """The pairs whose largest expiry the changes of the inputs, and time up to `upto`, change; before them the
        first `emitted` pairs of the output so far."""
        self._reserve_vertices()
        cursor = self.walk.cursor
        cursor[NEXT_ROW], cursor[EMITTED] = 0, emitted
        repairs = self.keeps_first_path or bool((batch.op < 0).any())

        def attempt() -> int:
            state = (self.graph.graph, self.automaton, self.forest, batch)
            if repairs:
                return walk_changes(*state, upto, self.walk, self.out.batch)
            return walk_insertions(*state, self.walk, self.out.batch)

        remedies = {
            FULL_OUTPUT: self._grow_output,
            FULL_STEPS: self._grow_steps,
            FULL_TABLE: lambda: self._make_room(batch),
            FULL_SCRATCH: self._grow_scratch,
            NEEDS_LINKS: lambda: self.graph.link_both_ways(self.relations),
        }
        run_to_end(self.store, cursor, attempt, remedies)
        return self.out.rows(cursor[EMITTED])

    def _grow_output(self) -> None:
        self.out.grow()
        if self.proves:
            self.last = np.concatenate([self.last, np.zeros_like(self.last)])
            self.store.count_buffer("last steps", self.last.nbytes)
            self.walk = self.walk._replace(paths=self._paths())

    def _grow_steps(self) -> None:
        for column in Steps._fields:
            self.store.grow(f"steps.{column}", 2 * self.walk.paths.steps.before.size)
        self.walk = self.walk._replace(paths=self._paths())

    def _reserve_vertices(self) -> None:
        buckets = self.vertices.capacity * self.states
        if buckets > self.forest.first_node.size:
            self.store.grow("first_node", buckets, -1)
            self.bind()

    def empty_forest(self) -> None:
        self.forest.counts[NODES] = 0
        relink_nodes(self.forest, self.states)

    def _make_room(self, batch: Batch) -> None:
        """Drop expired nodes where the walk stands between two of them; where many are left, double the table."""
        cursor = self.walk.cursor
        packing = cursor[PHASE] == EXTEND
        if packing:
            pack_nodes(self.forest, int(batch.ts[cursor[NEXT_ROW]]), self.states, self.walk.queue)
            if cursor[MOVE] >= 0:
                cursor[NODE] = LIST_HEAD
        capacity = self.forest.root.size
        if not packing or self.forest.counts[NODES] > capacity // 2:
            for column in _NODE_COLUMNS:
                self.store.grow(column, 2 * capacity)
            if self.proves:
                self.store.grow("step", 2 * capacity)
            self.store.array("slots", 4 * capacity, np.int32, -1)
            self.bind()
            relink_nodes(self.forest, self.states)
        if self.keeps_first_path and packing:
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
        if self.keeps_first_path:
            for column in ("expiry_exp", "expiry_node"):
                self.store.grow(column, 2 * self.store.arrays[column].size)
        self.bind()
