"""PATH that chooses between S-PATH and the slide-batched closure by what it has just measured.

Both hand out the same thing, each pair's largest expiry whenever it grows, and both can start from the window's
graph: the closure keeps nothing else, and the forest of S-PATH is built by walking the valid edges once. So the
operator moves from one to the other between two batches, and no answer is said twice or left out.

What is measured are counts, never seconds: the same stream cut into the same batches takes the same turns, after
a restart too. S-PATH pays for every pair that it hands out; the closure pays for every valid edge in every
segment, whatever comes of it. Its price is low where a slide brings many edges and those join many pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.closure import ClosureOperator
from meander.dataflow.graph import WindowGraph, empty_rows
from meander.dataflow.path import LEAST_OUTPUT, TreePathOperator
from meander.dataflow.state import Array, Store
from meander.kernels.forest import NODES, relink_nodes
from meander.kernels.graph import ROWS, Rows
from meander.kernels.pattern import MergedRows
from meander.physical.plan import PathOp

# What a valid edge costs the closure in a segment, counted in pairs that S-PATH hands out.
EDGE_PRICE = 0.2
# How much both must have cost together before they are weighed: small batches add up until then.
ENOUGH = 20_000
# The other operator must be this many times cheaper.
MARGIN = 1.5

TREES, CLOSURE = 0, 1


class AutoPathOperator:
    """S-PATH or the closure, whichever the last batch says is cheaper."""

    def __init__(
        self,
        operator: PathOp,
        graph: WindowGraph,
        relations: Sequence[int],
        store: Store,
        *,
        roots: Sequence[int],
        proved: bool,
        threads: int,
    ) -> None:
        self.graph = graph
        self.store = store
        self.tree = TreePathOperator(operator, graph, relations, store, first_path=False, roots=roots)
        self.closure = ClosureOperator(
            operator, graph, relations, store, roots=roots, proved=proved, threads=threads
        )
        # [which, how often it has moved; pairs and edges walked so far; both when they were last weighed]
        self.chosen = store.array("chosen", 6, np.int64)

    def bind(self) -> None:
        self.tree.bind()
        self.closure.bind()
        self.chosen = self.store.arrays["chosen"]

    @property
    def rows(self) -> int:
        return self.tree.rows

    @property
    def choice(self) -> str:
        """What it has chosen, and why."""
        which, moved, _, _, pairs, edges = (int(one) for one in self.chosen)
        name = "closure" if which == CLOSURE else "s-path"
        if pairs + edges == 0:
            return f"{name}: too little seen to choose"
        return f"{name}: {pairs} pairs against {edges} edges in all segments, moved {moved} times"

    def reserve_vertices(self, capacity: int) -> None:
        self.tree.reserve_vertices(capacity)
        self.closure.reserve_vertices(capacity)

    def process(self, rows: MergedRows, upto: int) -> Rows:
        """The pairs whose largest expiry the changes of the inputs move."""
        if self.chosen[0] == CLOSURE:
            out = self.closure.process(rows, upto)
        else:
            out = self.tree.process(rows, upto)
            self.closure.clock[0] = upto
        if rows.ts.size:
            self._measure(rows, out, upto)
            wanted = self._wanted()
            if wanted != self.chosen[0]:
                self.chosen[0] = wanted
                self.chosen[1] += 1
                self._move(upto)
        return out

    def _measure(self, rows: MergedRows, out: Rows, upto: int) -> None:
        segments = np.unique(rows.exp[rows.op > 0]).size + np.unique(rows.ts[rows.op < 0]).size
        self.chosen[2] += out.ts.size
        self.chosen[3] += segments * np.count_nonzero(self._valid(upto))

    def _wanted(self) -> int:
        """The cheaper operator for more of the same; the one at hand where there is little between them."""
        pairs, edges = int(self.chosen[2]), int(self.chosen[3])
        trees, closure = float(pairs), EDGE_PRICE * edges
        if trees + closure < ENOUGH:
            return int(self.chosen[0])
        self.chosen[2:] = 0, 0, pairs, edges
        if self.chosen[0] == TREES:
            return CLOSURE if closure * MARGIN < trees else TREES
        return TREES if trees * MARGIN < closure else CLOSURE

    def _valid(self, horizon: int) -> Array:
        """Which rows of the window's graph are valid input edges after `horizon`."""
        graph = self.graph.graph
        total = int(graph.counts[ROWS])
        valid: Array = (graph.exp[:total] > horizon) & (
            self.tree.automaton.reads[graph.relation[:total]] != 0
        )
        return valid

    def _move(self, upto: int) -> None:
        """Empty the forest; for S-PATH, fill it anew from the edges that are valid, and say nothing of that."""
        forest = self.tree.forest
        forest.counts[NODES] = 0
        relink_nodes(forest, int(self.tree.automaton.settings[0]))
        if self.chosen[0] == CLOSURE:
            return
        graph = self.graph.graph
        valid = np.flatnonzero(self._valid(upto))
        held = MergedRows(
            graph.relation[valid],
            graph.src[valid],
            graph.trg[valid],
            np.full(valid.size, upto, np.int64),
            graph.exp[valid],
            np.ones(valid.size, np.int8),
        )
        self.tree.process(held, upto)
        self.tree.out = empty_rows(LEAST_OUTPUT)

    def mark(self, horizon: int, live: Array) -> None:
        """The vertices of valid paths are those of valid edges: the graph marks them."""
