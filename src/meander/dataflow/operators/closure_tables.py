"""The tables of one share of the closure: declared by what they grow with, kept in the operator's store.

All of them follow from the window's graph: they count as memory and are in no snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
    Subgraph,
    SubgraphCounts,
    SubgraphEdge,
    VertexEnd,
)
from meander.kernels.forest import Automaton
from meander.kernels.record import Record, layout

MIN_NODES = 256
MIN_EDGES = 256
MIN_STAGED = 1024

# The tables by name: the type of an item, or that and the number of items per row.
Types = Mapping[str, Any]
_SINGLE_RECORDS: Types = {
    "segment.counts": layout(SegmentCounts),
    "demand.counts": layout(DemandCounts),
    "subgraph.counts": layout(SubgraphCounts),
    "levels.counts": layout(LevelCounts),
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
LEVEL_BYTES = 2 * len(_MATRICES)  # per node and column
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


def make_request(roots: Array, share: int, shares: int, *, expiries: bool, paths: bool) -> Request:
    return Request(roots, make_record(RequestOptions, share, shares, expiries, paths))


class ClosureTables:
    """The tables of one share, grown by what is short. After growth `bind` refreshes `state`."""

    def __init__(self, store: Store, prefix: str, automaton: Moves, request: Request, demanded: int) -> None:
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
        added = LEVEL_BYTES * (nodes * columns - held_nodes * held_columns)
        if nodes * columns > max_levels or not self.store.budget.has_room(2 * added):
            self._drop_levels()
            return False
        if nodes > held_nodes or columns > held_columns:
            self._add(dict.fromkeys(_MATRICES, (np.uint16, columns)), nodes)
            self.get("levels.level")[:held_nodes, :held_columns] = levels.level
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
