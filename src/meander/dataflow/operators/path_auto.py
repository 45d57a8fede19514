"""PATH that switches between S-PATH and the closure at run time, by estimated cost.

Both emit each pair's largest expiry whenever it grows, and both can start from the window's graph: the closure has
no other state, and the forest of S-PATH is rebuilt from the valid edges. So the operator switches between two
instants, and loses no answer. It repeats answers in one case only: if the closure obeys a demand and S-PATH, which
does not, takes over, all pairs are emitted. If batches are started ahead, the output of the closure is
weighed when its batch is finished, and S-PATH takes over after the last batch that was started.

Costs are estimated from counts, never from seconds: the same stream, cut into the same batches and with as many
threads, makes the same choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meander.dataflow.batch import NO_PAIRS, Batch, concat_batches, empty_batch, merge_inputs, take_rows
from meander.dataflow.operator import (
    NO_KNOWN_PATHS,
    Context,
    KnownPaths,
    Operator,
    Pending,
    Ready,
    concat_paths,
)
from meander.dataflow.operators.path_closure import PathClosure
from meander.dataflow.operators.path_trees import PathTrees
from meander.dataflow.state import Array, Fields, Store
from meander.kernels.batch import SRC, TRG
from meander.kernels.graph import ROWS
from meander.kernels.segments import count_steps
from meander.physical.plan import PathOp

STEADY_DOUBLINGS, MOST_DOUBLINGS = 3, 6

TREES, CLOSURE = 0, 1


class Work(NamedTuple):
    """Counts of the work since costs were last compared."""

    pairs: int  # emitted
    edges: int  # valid edges, summed over all segments
    rows: int  # of the input
    batches: int
    roots: int  # of the levels that the closure caches between segments; 0 if it caches none
    states: int = 1  # in which a vertex can be reached


@dataclass(frozen=True, slots=True)
class CostModel:
    """Prices, in pairs that S-PATH emits.

    S-PATH pays for every pair in every state of the automaton: it has a node for each. The closure pays for every
    valid edge in every segment and for every batch; an edge is cheap if the levels of the segment before are cached,
    but then every input row pays for all roots.
    """

    edge: float = 0.4
    cached_edge: float = 0.04
    root: float = 1 / 50  # per input row
    batch: float = 2000
    least_work: float = 10_000  # what both must cost together before they are compared
    margin: float = 1.5  # how many times cheaper the other operator must be

    def trees(self, work: Work) -> float:
        return float(work.pairs * work.states)

    def closure(self, work: Work) -> float:
        batches = self.batch * work.batches
        if work.roots > 0:
            return batches + self.cached_edge * work.edges + self.root * work.roots * work.rows
        return batches + self.edge * work.edges

    def decide(self, current: int, work: Work) -> int | None:
        """The cheaper operator for more of the same work; None if there is too little work to tell."""
        trees, closure = self.trees(work), self.closure(work)
        if trees + closure < self.least_work:
            return None
        if current == TREES:
            return CLOSURE if closure * self.margin < trees else TREES
        return TREES if trees * self.margin < closure else CLOSURE

    def is_far_cheaper(self, work: Work) -> bool:
        """Whether S-PATH costs less than half of the closure."""
        return 2 * self.trees(work) < self.closure(work)


class AutoState(Fields):
    operator: int = TREES
    switches: int = 0
    # Since costs were last compared; `walked` are segments for S-PATH, edges in all segments for the closure.
    pairs: int = 0
    walked: int = 0
    batches: int = 0
    rows: int = 0
    # When costs were last compared.
    compared_pairs: int = 0
    compared_edges: int = 0
    doublings: int = 0  # of the rows that S-PATH processes at a time


@dataclass(frozen=True, slots=True)
class AutoPending:
    """The pairs of S-PATH for the first part of a batch, then those of the closure for the rest."""

    first: Batch
    rest: Pending
    finish: Callable[
        [Batch], Batch
    ]  # takes the pairs of the closure; returns those to emit because of a switch
    is_ready: bool = False

    def result(self) -> Batch:
        pairs = self.rest.result()
        parts = [part for part in (self.first, pairs, self.finish(pairs)) if part.ts.size]
        return concat_batches(parts) if len(parts) > 1 else (parts or [NO_PAIRS])[0]


class PathAuto(Operator):
    costs = CostModel()
    part_rows = 256
    """S-PATH processes a batch in parts, and costs are compared after each: the closure may take over within a batch.
    A part has this many rows when S-PATH starts, so that little is lost if it was the wrong operator. Parts double up
    to `STEADY_DOUBLINGS` times, and up to `MOST_DOUBLINGS` times while S-PATH is far cheaper."""

    def __init__(self, node: PathOp, context: Context) -> None:
        self.inputs = tuple(dict.fromkeys(node.inputs))
        self.relations = context.relations_of(dict.fromkeys(node.inputs))
        self.demand = -1 if node.demand is None else context.relations[node.demand]
        self.graph = context.graph
        self.store: Store = context.store
        self.trees = PathTrees(node, context)
        self.closure = PathClosure(node, context)
        self.state = AutoState(self.store, "auto")
        self.states = len({target for _, _, _, target in node.moves})

    def bind(self) -> None:
        self.trees.bind()
        self.closure.bind()

    @property
    def state_rows(self) -> int:
        return self.trees.state_rows

    @property
    def choice(self) -> str:
        state = self.state
        name = "closure" if state.operator == CLOSURE else "s-path"
        if state.compared_pairs + state.compared_edges == 0:
            return f"{name}: too little seen to choose"
        return (
            f"{name}: {state.compared_pairs} pairs against {state.compared_edges} edges in all segments, "
            f"switched {state.switches} times"
        )

    def start(self, inputs: Sequence[Batch], upto: int) -> Pending:
        batch = merge_inputs(inputs, self.relations)
        self.trees.begin_paths()
        self.known: list[KnownPaths] = []
        state = self.state
        state.batches += 1
        self.has_closure = False
        out, begin, size = NO_PAIRS, 0, batch.ts.size
        while state.operator == TREES and begin < size:
            end = self._end_of_part(batch.ts, begin)
            part = take_rows(batch, slice(begin, end))
            reached = upto if end == size else int(part.ts[-1])
            edges = self._without_demand(part)
            before = out.ts.size
            out = self.trees.process(edges, reached, before)
            if self.trees.known_paths is not None:
                self.known = [self.trees.known_paths]
            begin = end
            self._count(edges.ts.size, count_segments(edges), out.ts.size - before, reached)
        if state.operator == CLOSURE and (begin < size or begin == 0):
            self.has_closure = True
            rest = take_rows(batch, slice(begin, size))
            pending = self.closure.start_merged(rest, upto, take_rows(batch, slice(begin)))
            edges = self._without_demand(rest)
            walked = count_segments(edges) * self.closure.measure(upto).rows if edges.ts.size else 0
            return AutoPending(out, pending, lambda pairs: self._finish(pairs, edges.ts.size, walked))
        self.closure.clock[0] = upto
        return Ready(out)

    @property
    def known_paths(self) -> KnownPaths | None:
        if not self.trees.proves or not self.closure.proves:
            return None
        closure = self.closure.known_paths if self.has_closure else None
        return concat_paths([*self.known, *([closure] if closure else [])] or [NO_KNOWN_PATHS])

    def _finish(self, pairs: Batch, rows: int, walked: int) -> Batch:
        """Compare costs after a batch of the closure; the pairs to emit because of a switch."""
        if self.state.operator != CLOSURE:
            return NO_PAIRS
        return self._count(
            rows, walked, pairs.ts.size + self.closure.undemanded_pairs, int(self.closure.clock[0])
        )

    def _end_of_part(self, ts: Array, begin: int) -> int:
        """The end of the next part for S-PATH: between two instants."""
        last = begin + (self.part_rows << self.state.doublings) - 1
        return int(np.searchsorted(ts, ts[last], side="right")) if last < ts.size else int(ts.size)

    def _without_demand(self, batch: Batch) -> Batch:
        return batch if self.demand < 0 else take_rows(batch, batch.source != self.demand)

    def _count(self, rows: int, walked: int, pairs: int, upto: int) -> Batch:
        """Count work, and switch if the other operator is cheaper; the pairs to emit because of a switch."""
        if rows == 0:
            return NO_PAIRS
        state = self.state
        state.pairs += pairs
        state.walked += walked
        state.rows += rows
        wanted = self._decide(upto)
        if wanted == state.operator:
            return NO_PAIRS
        state.operator = wanted
        state.switches += 1
        return self._switch(upto)

    def _decide(self, upto: int) -> int:
        state = self.state
        if state.operator == TREES:
            # Measuring the graph takes a pass over it: only once that can matter.
            if state.pairs < self.costs.least_work / 2:
                self._lengthen_parts(MOST_DOUBLINGS if state.pairs < state.rows else STEADY_DOUBLINGS)
                return TREES
            extent = self.closure.measure(upto)
            roots = self.closure.roots_to_cache(extent, upto)
            work = Work(
                state.pairs, state.walked * extent.rows, state.rows, state.batches, roots, self.states
            )
        else:
            cached = self.closure.cached_roots
            work = Work(state.pairs, state.walked, state.rows, state.batches, cached, self.states)
        wanted = self.costs.decide(state.operator, work)
        if wanted is None:
            return state.operator
        state.pairs = state.walked = state.batches = state.rows = 0
        state.compared_pairs, state.compared_edges = work.pairs, work.edges
        if wanted == CLOSURE and state.operator == TREES:
            # The first parts are short: the closure needs room for the pairs of a steady one.
            rows = max(work.rows, self.part_rows << STEADY_DOUBLINGS)
            if not self.closure.has_room(extent, work.pairs * rows // work.rows):
                wanted = TREES
        if wanted == CLOSURE:
            state.doublings = 0
        elif state.operator == TREES:
            self._lengthen_parts(MOST_DOUBLINGS if self.costs.is_far_cheaper(work) else STEADY_DOUBLINGS)
        return wanted

    def _lengthen_parts(self, most: int) -> None:
        self.state.doublings = min(self.state.doublings + 1, most)

    def _switch(self, upto: int) -> Batch:
        """Empty the forest; for S-PATH, rebuild it from the valid edges.

        That emits nothing, unless the closure obeyed a demand: S-PATH does not, and emits all pairs.
        """
        self.trees.empty_forest()
        if self.state.operator == CLOSURE:
            self.closure.forget()
            return NO_PAIRS
        # Earlier output of the trees may not be read yet.
        self.trees.new_output()
        pairs = self.trees.process(self._valid_edges(upto), upto)
        self.trees.new_output()
        return NO_PAIRS if self.demand < 0 else pairs

    def _valid_edges(self, time: int) -> Batch:
        graph = self.graph.graph
        total = int(graph.counts[ROWS])
        is_read = self.trees.automaton.reads[graph.relation[:total]] != 0
        rows = np.flatnonzero(is_read & (graph.exp[:total] > time) & (graph.stamp[:total] <= time))
        batch = empty_batch(rows.size)
        batch.key[:, SRC], batch.key[:, TRG] = graph.src[rows], graph.trg[rows]
        batch.ts[:], batch.op[:] = time, 1
        batch.exp[:], batch.source[:] = graph.exp[rows], graph.relation[rows]
        return batch


def count_segments(batch: Batch) -> int:
    """A slide begins with the first edge that lasts longer than all before; each instant of deletions is its own."""
    return int(count_steps(batch.ts, batch.exp, batch.op))
