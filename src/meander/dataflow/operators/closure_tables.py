"""The tables of one share of the closure: declared by what they grow with, kept in the operator's store.

All of them follow from the window's graph: they count as memory and are in no snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from meander.dataflow.operator import KnownPaths
from meander.dataflow.state import Array, Store
from meander.kernels.closure.levels import forget_levels
from meander.kernels.closure.tables import (
    BLOCK_ROOTS,
    CHUNK,
    WORDS,
    AutomatonInfo,
    Bits,
    ClosureState,
    Cursor,
    Demand,
    DemandCounts,
    DemandStamp,
    Edge,
    LevelCounts,
    LevelEdge,
    LevelNode,
    LevelPaths,
    Levels,
    Move,
    Moves,
    Node,
    OutEdge,
    Request,
    RequestOptions,
    Segment,
    SegmentCounts,
    Staged,
    StagedAnswer,
    StepCounts,
    Subgraph,
    SubgraphCounts,
    SubgraphEdge,
    VertexEnd,
)
from meander.kernels.forest import Automaton
from meander.kernels.record import Record, layout
from meander.kernels.steps import Steps

MIN_NODES = 256
MIN_EDGES = 256
MIN_STAGED = 1024
MIN_STEPS = 1024
MOST_REMEMBERED = 1 << 30  # as a number of a step, which fits 32 bits with those of one batch

# The tables by name: the type of an item, or that and the number of items per row.
Types = Mapping[str, Any]
_SINGLE_RECORDS: Types = {
    "segment.counts": layout(SegmentCounts),
    "demand.counts": layout(DemandCounts),
    "subgraph.counts": layout(SubgraphCounts),
    "levels.counts": layout(LevelCounts),
    "paths.counts": layout(StepCounts),
    "cursor": layout(Cursor),
}
PER_ROW: Types = {
    "segment.edge": layout(Edge),
    "segment.change": np.uint8,
    "segment.changed": np.int32,
    "demand.valid": np.int32,
    "demand.added": np.int32,
    "subgraph.first_edge": np.int32,
}
_ROW_LISTS = ("segment.by_expiry", "segment.sorting")  # two of each, all rows long
PER_NODE: Types = {
    "subgraph.node": layout(Node),
    "subgraph.queue": np.int32,
    "subgraph.touched": np.int32,
    "subgraph.root": np.int32,
    "bits.reached": (np.uint64, 2 * WORDS),
    "bits.fresh": (np.uint64, 2 * WORDS),
    "bits.settled": (np.uint64, WORDS),
    "bits.known": (np.uint64, WORDS),
    "bits.since": (np.uint16, BLOCK_ROOTS),
}
_PER_NODE_OF_DEMAND: Types = {"bits.demanded": (np.uint64, WORDS), "bits.added": (np.uint64, WORDS)}
PER_EDGE: Types = {
    "subgraph.edge": layout(SubgraphEdge),
    "subgraph.out": layout(OutEdge),
    "subgraph.out_edges": np.int32,
    "subgraph.in_edges": np.int32,
    "subgraph.lowered": np.int32,
}
_MATRICES = ("levels.level", "levels.before", "levels.since")
_PATH_MATRICES = ("levels.via", "levels.early_via", "levels.step")
_STEP_COLUMNS = (*(f"paths.{column}" for column in Steps._fields), "paths.since")
_PER_LEVEL_NODE: Types = {
    "levels.node": layout(LevelNode),
    "levels.queue": np.int32,
    "levels.touched": np.int32,
}


def bytes_per_item(types: Types) -> int:
    """The size of one row of all these tables."""
    return sum(np.dtype(kind).itemsize for kind in types.values())


def make_record(kind: type[Record], *values: int) -> Any:
    """A record on its own."""
    table = np.zeros(1, layout(kind))
    table[0] = values
    return table[0]


def make_moves(automaton: Automaton) -> Moves:
    """The automaton as the closure reads it."""
    move: Any = np.zeros(automaton.relation_to.size, layout(Move))
    move["inverse"] = automaton.relation_inverse
    move["source"] = automaton.relation_from
    move["target"] = automaton.relation_to
    info = make_record(AutomatonInfo, *automaton.settings.tolist(), int(automaton.finals[0]))
    return Moves(automaton.relation_begin, move, automaton.accepting, info)


def moves_by_state(automaton: Automaton) -> Array:
    """By move as the closure reads it, by relation, its number among the moves by state."""
    numbers = np.empty(automaton.relation_to.size, np.int32)
    by_state = {}
    for state in range(automaton.out_begin.size - 1):
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            read = automaton.out_relation[move], automaton.out_inverse[move]
            by_state[(state, *map(int, read), int(automaton.out_to[move]))] = move
    for relation in range(automaton.relation_begin.size - 1):
        for move in range(automaton.relation_begin[relation], automaton.relation_begin[relation + 1]):
            ends = (
                automaton.relation_from[move],
                automaton.relation_inverse[move],
                automaton.relation_to[move],
            )
            state, inverse, to = map(int, ends)
            numbers[move] = by_state[state, relation, inverse, to]
    return numbers


def make_request(roots: Array, share: int, shares: int, *, expiries: bool, paths: bool) -> Request:
    return Request(roots, make_record(RequestOptions, share, shares, expiries, paths))


class ClosureTables:
    """The tables of one share, grown by what is short. After growth `bind` refreshes `state`."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        automaton: Moves,
        request: Request,
        demanded: int,
        out_move: Array | None = None,
    ) -> None:
        """With `out_move` (see `moves_by_state`) answers come with their paths."""
        self.out_move, self.finds_paths = (
            np.zeros(0, np.int32) if out_move is None else out_move,
            out_move is not None,
        )
        self.store, self.prefix = store, prefix
        self.automaton, self.request = automaton, request
        self.per_node = PER_NODE if demanded < 0 else {**PER_NODE, **_PER_NODE_OF_DEMAND}
        nodes, edges = store.first_capacity(MIN_NODES), store.first_capacity(MIN_EDGES)
        moves = max(1, int(np.diff(automaton.begin).max(initial=0)))
        self._add(_SINGLE_RECORDS, 1)
        self._add({**PER_ROW, "levels.edge_of": (np.int32, moves)}, 0)
        self._add(_PER_NODE_OF_DEMAND, 0)
        self._add(self.per_node, nodes)
        self._add(PER_EDGE, edges)
        self._add({"staged.answer": layout(StagedAnswer)}, store.first_capacity(MIN_STAGED))
        self._add({"staged.offset": np.int64}, 1)
        self._add({"demand.stamp": layout(DemandStamp), "vertex_end": layout(VertexEnd)}, 0)
        self._add({"subgraph.number": np.int32, "levels.number": np.int32, "levels.column_of": np.int32}, 0)
        for name in _ROW_LISTS:
            self._add({name: (np.int32, 0)}, 2)
        self._add_empty_matrix()
        self._add(
            dict.fromkeys(_STEP_COLUMNS, np.int32), store.first_capacity(MIN_STEPS) if self.finds_paths else 0
        )
        self._add({"paths.last": np.int32}, 0)
        # No number that a pair may remember is 0.
        self.get("paths.counts")["first"] = 1
        self.demand_row = self.demand_begin = np.zeros(0, np.int64)
        self.bind()
        self.state.demand.counts.relation = demanded

    def _add(self, types: Types, length: int) -> None:
        for name, kind in types.items():
            dtype, width = kind if isinstance(kind, tuple) else (kind, None)
            self.store.array(self.prefix + name, length, dtype, width=width, scratch=True)
        self.is_bound = False

    def _add_empty_matrix(self) -> None:
        self._add(dict.fromkeys(_MATRICES, (np.uint16, 0)), 0)
        self._add(dict.fromkeys(_PATH_MATRICES, (np.int32, 0)), 0)
        self._add({**_PER_LEVEL_NODE, "levels.root": np.int32, "levels.edge": layout(LevelEdge)}, 0)

    def get(self, name: str) -> Array:
        return self.store.arrays[self.prefix + name]

    def grow(self, names: str | Types, length: int, fill: int = 0) -> None:
        for name in [names] if isinstance(names, str) else names:
            if length > self.get(name).shape[0]:
                self.store.grow(self.prefix + name, length, fill)
                self.is_bound = False

    def bind(self) -> None:
        """Read the store's arrays again, after growth or restoring."""
        self.is_bound = True
        self.cursor: Cursor = self.get("cursor")[0]
        self.state = ClosureState(
            self.automaton,
            self.request,
            Segment(*self._fields("segment", Segment._fields)),
            Demand(self.demand_row, self.demand_begin, *self._fields("demand", Demand._fields[2:])),
            self.get("vertex_end"),  # type: ignore[arg-type]  # mypy sees no records in arrays
            Subgraph(*self._fields("subgraph", Subgraph._fields)),
            Bits(*self._fields("bits", Bits._fields)),
            Levels(*self._fields("levels", Levels._fields)),
            Staged(*self._fields("staged", Staged._fields)),
            LevelPaths(
                Steps(*map(self.get, _STEP_COLUMNS[:-1])),
                self.get("paths.since"),
                self.get("paths.last"),
                self.out_move,
                self.get("paths.counts")[0],
            ),
        )

    def set_demand(self, row: Array, begin: Array) -> None:
        """The demanded pairs: see `Demand`."""
        self.demand_row, self.demand_begin = row, begin
        self.is_bound = False

    def _fields(self, group: str, names: tuple[str, ...]) -> list[Any]:
        arrays = {name: self.get(f"{group}.{name}") for name in names}
        return [array[0] if name == "counts" else array for name, array in arrays.items()]

    def reserve_vertices(self, capacity: int) -> None:
        states = self.automaton.info.states
        self.grow("subgraph.number", capacity * states, -1)
        self.grow("levels.number", capacity * states, -1)
        self.grow("levels.column_of", capacity, -1)
        if self.automaton.info.empty_state >= 0:
            self.grow("vertex_end", capacity, -1)
        if self.state.demand.counts.relation >= 0:
            self.grow("demand.stamp", capacity)

    def reserve_rows(self, rows: int) -> None:
        """Make room for rows of the window's graph."""
        held = self.state.segment.edge.size
        if rows <= held:
            return
        self.grow(PER_ROW, 2 * rows)
        self.grow("levels.edge_of", 2 * rows, -1)
        for name in _ROW_LISTS:
            old = self.get(name)
            self._add({name: (np.int32, 2 * rows)}, 2)
            self.get(name)[:, :held] = old

    def grow_subgraph(self) -> None:
        """Nodes and edges at once: either may have been short."""
        self.grow(self.per_node, 2 * self.state.subgraph.node.size)
        self.grow(PER_EDGE, 2 * self.state.subgraph.edge.size)
        self.bind()

    def grow_staged(self, rows: int) -> None:
        self.grow("staged.answer", 2 * self.state.staged.answer.size + 2 * rows)
        self.bind()

    def grow_steps(self) -> None:
        for name in _STEP_COLUMNS:
            self.grow(name, 2 * self.get(name).size)
        self.bind()

    def begin_paths(self, output: int) -> None:
        """Start a batch, with room for `output` answers: its steps are numbered from 0."""
        if not self.finds_paths:
            return
        counts = self.get("paths.counts")[0]
        counts.first += counts.count
        if counts.first > MOST_REMEMBERED:
            counts.first = 1
            self.get("levels.step")[:] = 0
        counts.count = counts.segment = 0
        self.grow("paths.last", output)

    def known_paths(self) -> KnownPaths:
        """The paths of the answers that the last batch has emitted."""
        count, emitted = int(self.state.paths.counts.count), int(self.cursor.emitted)
        steps = Steps(*(column[:count] for column in self.state.paths.steps))
        return KnownPaths(self.state.paths.last[:emitted], steps)

    def grow_levels(self, max_levels: int) -> bool:
        """Make room for what is short. False: that would be too much, and the matrix is dropped."""
        levels = self.state.levels
        held_nodes, held_columns = levels.level.shape
        nodes, columns = held_nodes, held_columns
        if levels.counts.short_nodes:
            nodes = max(2 * held_nodes, self.store.first_capacity(MIN_NODES))
        if levels.counts.short_columns:
            # Rows that end soon after their columns share the caches better, so there are not many to spare.
            columns += max(held_columns // 4, CHUNK)
            columns = -(-columns // CHUNK) * CHUNK
        level_bytes = 2 * len(_MATRICES) + (4 * len(_PATH_MATRICES) if self.finds_paths else 0)
        added = level_bytes * (nodes * columns - held_nodes * held_columns)
        if nodes * columns > max_levels or not self.store.budget.has_room(2 * added):
            self._drop_levels()
            return False
        if nodes > held_nodes or columns > held_columns:
            self._add(dict.fromkeys(_MATRICES, (np.uint16, columns)), nodes)
            self.get("levels.level")[:held_nodes, :held_columns] = levels.level
            if self.finds_paths:
                self._add(dict.fromkeys(_PATH_MATRICES, (np.int32, columns)), nodes)
                self.get("levels.via")[:held_nodes, :held_columns] = levels.via
                self.get("levels.step")[:held_nodes, :held_columns] = levels.step
            self.grow("levels.root", columns)
            self.grow(_PER_LEVEL_NODE, nodes)
        if levels.counts.short_edges:
            self.grow("levels.edge", max(2 * levels.edge.size, self.store.first_capacity(MIN_EDGES)))
        self.bind()
        return True

    def _drop_levels(self) -> None:
        """Work without the matrix, and release its memory."""
        forget_levels(self.state.levels)
        self.state.levels.counts.is_off = 1
        self._add_empty_matrix()
        self.bind()
