"""PATH that chooses between S-PATH and the slide-batched closure by what it has just measured.

Both hand out each pair's largest expiry whenever it grows, and both can start from the window's graph: the closure
keeps nothing else, and the forest of S-PATH is built by walking the valid edges once. So the operator moves from one
to the other between two instants, and no answer is left out. None is said twice either, but where the closure heeds a
demand and S-PATH, which does not, takes over: it says all that holds. Where batches are started ahead, what the
closure has handed out is weighed when its batch is finished, and S-PATH goes on after the last one that was started.

What is measured are counts, never seconds: the same stream, cut into the same batches and with as many threads, takes
the same turns. S-PATH pays for every pair that it hands out; the closure pays for every valid edge in every segment
and for every batch, whatever comes of it. Its price is low where a slide brings many edges and those join many pairs,
and lower where what it knows from one segment to the next is small enough to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meander.dataflow.closure import ClosureOperator
from meander.dataflow.graph import NO_ROWS, WindowGraph, merge_parts
from meander.dataflow.path import TreePathOperator
from meander.dataflow.state import Array, Store
from meander.dataflow.threads import Team
from meander.kernels.forest import NODES, relink_nodes
from meander.kernels.graph import ROWS, Rows
from meander.kernels.pattern import MergedRows
from meander.physical.plan import PathOp

# What a valid edge costs the closure in a segment, counted in pairs that S-PATH hands out: where the closure starts
# from nothing, and where it keeps what it knew before. Then what a batch costs it.
EDGE_PRICE = 0.4
KEPT_PRICE = 0.04
BATCH_PRICE = 2000
# Where it keeps what it knew, the roots that make a row of the input cost as much as a pair.
ROOTS_PRICE = 50
# How much both must have cost together before they are weighed: small batches add up until then.
ENOUGH = 20_000
# The other operator must be this many times cheaper.
MARGIN = 1.5

# How many rows S-PATH takes before they are weighed: the closure may take over within a batch. Each time that S-PATH
# is found cheaper by half, or hands out fewer pairs than it takes rows, they double, up to eight times as many.
PART = 2048
MOST_DOUBLINGS = 3

TREES, CLOSURE = 0, 1


class AutoPathOperator:
    """S-PATH or the closure, whichever the latest batches say is cheaper."""

    def __init__(
        self,
        operator: PathOp,
        graph: WindowGraph,
        relations: Sequence[int],
        store: Store,
        *,
        roots: Sequence[int],
        proved: bool,
        demanded: int,
        team: Team,
        ahead: int = 0,
    ) -> None:
        self.demanded = demanded
        self.graph = graph
        self.store = store
        self.tree = TreePathOperator(operator, graph, relations, store, first_path=False, roots=roots)
        self.closure = ClosureOperator(
            operator,
            graph,
            relations,
            store,
            roots=roots,
            proved=proved,
            demanded=demanded,
            team=team,
            ahead=ahead,
        )
        # [which, how often it has moved; since they were last weighed the pairs, the segments (of trees) or edges
        # walked (by the closure), the batches and the rows; the pairs and edges that were weighed; how often S-PATH
        # was found far cheaper of late]
        self.chosen = store.array("chosen", 9, np.int64)

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
        which, moved, _, _, _, _, pairs, edges, _ = (int(one) for one in self.chosen)
        name = "closure" if which == CLOSURE else "s-path"
        if pairs + edges == 0:
            return f"{name}: too little seen to choose"
        return f"{name}: {pairs} pairs against {edges} edges in all segments, moved {moved} times"

    def reserve_vertices(self, capacity: int) -> None:
        # The closure gets its room when it is its turn.
        self.tree.reserve_vertices(capacity)

    def process(self, rows: MergedRows, upto: int) -> Rows:
        """The pairs whose largest expiry the changes of the inputs move."""
        made = self.start(rows, upto)
        return merge_parts(made()) if callable(made) else made

    def start(self, rows: MergedRows, upto: int) -> Rows | Callable[[], list[Rows]]:
        """As `process`, or what will hand that out in parts: see `ClosureOperator.start`."""
        out = NO_ROWS
        begin = 0
        self.chosen[4] += 1
        while self.chosen[0] == TREES and begin < rows.ts.size:
            end = self._part(rows.ts, begin)
            part = _between(rows, begin, end)
            reached = upto if end == rows.ts.size else int(part.ts[-1])
            edges = self._edges(part)
            before = out.ts.size
            out = self.tree.process(edges, reached, before)
            begin = end
            self._weigh(edges.ts.size, count_segments(edges), out.ts.size - before, reached)
        if self.chosen[0] == CLOSURE and (begin < rows.ts.size or begin == 0):
            rest = _between(rows, begin, rows.ts.size)
            self.closure.reserve_vertices(self.tree.capacity)
            made = self.closure.start(rest, upto, _between(rows, 0, begin))
            edges = self._edges(rest)
            walked = count_segments(edges) * self.closure.measure(upto).rows if edges.ts.size else 0
            return partial(self._finish, out, made, edges.ts.size, walked)
        self.closure.clock[0] = upto
        return out

    def _finish(self, out: Rows, made: Rows | Callable[[], list[Rows]], rows: int, walked: int) -> list[Rows]:
        """What S-PATH and then the closure have made of a batch; `walked` are valid edges in all segments."""
        parts = made() if callable(made) else [made]
        said = NO_ROWS
        if self.chosen[0] == CLOSURE:
            pairs = sum(part.ts.size for part in parts) + self.closure.undemanded_pairs
            said = self._weigh(rows, walked, pairs, int(self.closure.clock[0]))
        if out.ts.size == 0 and said.ts.size == 0:
            return parts
        return [
            Rows(*(np.concatenate(columns) for columns in zip(out, merge_parts(parts), said, strict=True)))
        ]

    def _part(self, ts: Array, begin: int) -> int:
        """Where the part of a batch that S-PATH takes at a time ends: between two instants."""
        last = begin + (PART << int(self.chosen[8])) - 1
        return int(np.searchsorted(ts, ts[last], side="right")) if last < ts.size else int(ts.size)

    def _edges(self, rows: MergedRows) -> MergedRows:
        """The rows without those of the demand."""
        if self.demanded < 0:
            return rows
        edges = rows.relation != self.demanded
        return MergedRows(*(column[edges] for column in rows))

    def _weigh(self, rows: int, walked: int, pairs: int, upto: int) -> Rows:
        """Choose for what comes next, and move there; what is to be handed out for that.

        `walked` are segments, or valid edges in all segments, as `chosen` counts them.
        """
        if rows == 0:
            return NO_ROWS
        self.chosen[2] += pairs
        self.chosen[3] += walked
        self.chosen[5] += rows
        wanted = self._wanted(upto)
        if wanted == self.chosen[0]:
            return NO_ROWS
        self.chosen[0] = wanted
        self.chosen[1] += 1
        return self._move(upto)

    def _wanted(self, upto: int) -> int:
        """The cheaper operator for more of the same; the one at hand where there is little between them."""
        pairs, edges = int(self.chosen[2]), int(self.chosen[3])
        if self.chosen[0] == TREES:
            if pairs < ENOUGH / 2:
                if pairs < self.chosen[5]:
                    self._take_more()
                return TREES
            held = self.closure.measure(upto)
            edges *= held.rows
            roots = self.closure.roots_to_cache(held, upto)
        else:
            roots = self.closure.cached_roots
        trees, closure = float(pairs), float(BATCH_PRICE * self.chosen[4])
        if roots > 0:
            closure += KEPT_PRICE * edges + roots / ROOTS_PRICE * int(self.chosen[5])
        else:
            closure += EDGE_PRICE * edges
        if trees + closure < ENOUGH:
            return int(self.chosen[0])
        self.chosen[2:8] = 0, 0, 0, 0, pairs, edges
        if self.chosen[0] == TREES:
            if closure * MARGIN < trees and self.closure.has_room(held, pairs):
                self.chosen[8] = 0
                return CLOSURE
            if 2 * trees < closure:
                self._take_more()
            else:
                self.chosen[8] = 0
            return TREES
        return TREES if trees * MARGIN < closure else CLOSURE

    def _take_more(self) -> None:
        self.chosen[8] = min(self.chosen[8] + 1, MOST_DOUBLINGS)

    def _move(self, upto: int) -> Rows:
        """Empty the forest; for S-PATH, fill it anew from the edges that are valid.

        Nothing is said of that, but where the closure kept to a demand: S-PATH does not, and hands out all pairs.
        """
        forest = self.tree.forest
        forest.counts[NODES] = 0
        relink_nodes(forest, int(self.tree.automaton.settings[0]))
        if self.chosen[0] == CLOSURE:
            self.closure.forget()
            return NO_ROWS
        graph = self.graph.graph
        total = int(graph.counts[ROWS])
        read = self.tree.automaton.reads[graph.relation[:total]] != 0
        valid = np.flatnonzero(read & (graph.exp[:total] > upto) & (graph.stamp[:total] <= upto))
        held = MergedRows(
            graph.relation[valid],
            graph.src[valid],
            graph.trg[valid],
            np.full(valid.size, upto, np.int64),
            graph.exp[valid],
            np.ones(valid.size, np.int8),
        )
        # What the tree emitted before may wait to be read.
        self.tree.empty_output()
        out = self.tree.process(held, upto)
        self.tree.empty_output()
        return NO_ROWS if self.demanded < 0 else out

    def mark(self, horizon: int, live: Array) -> None:
        """The vertices of valid paths are those of valid edges: the graph marks them."""


def count_segments(rows: MergedRows) -> int:
    """A slide begins with the first edge that lasts longer than all before; each instant of deletions is its own."""
    if rows.ts.size == 0:
        return 0
    segments = 1 + np.count_nonzero(np.diff(np.maximum.accumulate(rows.exp)))
    if rows.op.min() < 0:
        segments += np.unique(rows.ts[rows.op < 0]).size
    return int(segments)


def _between(rows: MergedRows, begin: int, end: int) -> MergedRows:
    return MergedRows(*(column[begin:end] for column in rows))
