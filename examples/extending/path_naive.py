"""PATH by definition: at every instant of change, all pairs again, by the widest path over (expiry, min)."""

from __future__ import annotations

from collections.abc import Sequence

from meander.dataflow.batch import Batch, empty_batch, merge_inputs
from meander.dataflow.operator import Context, Operator, Ready
from meander.kernels.batch import SRC, TRG
from meander.physical.plan import PathOp

Pair = tuple[int, int]


class PathNaive(Operator):
    """Pairs are found again from all valid edges whenever one of these changes."""

    def __init__(self, node: PathOp, context: Context) -> None:
        self.node = node
        self.inputs = node.edges
        self.store = context.store
        self.roots = set(context.pin(node.root))
        self.edges: dict[tuple[int, int, int], int] = {}  # (input, source, target): expiry
        self.known: dict[Pair, int] = {}  # the pairs that hold, with their expiries

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        changes = merge_inputs(inputs, range(len(inputs)))
        rows: list[tuple[Pair, int, int, int]] = []
        for row, time in enumerate(changes.ts.tolist()):
            src, trg = changes.key[row].tolist()
            self.edges[int(changes.source[row]), src, trg] = int(changes.exp[row])
            if row + 1 == changes.ts.size or changes.ts[row + 1] > time:
                rows += self.changes_at(time)
        return Ready(as_batch(rows))

    def changes_at(self, time: int) -> list[tuple[Pair, int, int, int]]:
        """The pairs whose expiry has changed at this instant, and not by the mere passing of time."""
        self.edges = {edge: exp for edge, exp in self.edges.items() if exp > time}
        before = {pair: exp for pair, exp in self.known.items() if exp > time}
        self.known = self.widest_paths()
        grown = [(pair, time, exp, 1) for pair, exp in self.known.items() if exp > before.get(pair, 0)]
        shrunk = [
            (pair, time, self.known.get(pair, time), -1)
            for pair, exp in before.items()
            if self.known.get(pair, time) < exp
        ]
        return grown + shrunk

    def widest_paths(self) -> dict[Pair, int]:
        """For each pair the expiry of the path that lasts longest; the first edge to expire ends a path."""
        steps = [
            (state, trg if inverse else src, target, src if inverse else trg, exp)
            for state, number, inverse, target in self.node.moves
            for (source, src, trg), exp in self.edges.items()
            if source == number
        ]
        reached: dict[tuple[int, int, int], int] = {}  # (root, vertex, state): expiry
        for (_, src, trg), exp in self.edges.items():
            for root in {src, trg} if not self.roots else {src, trg} & self.roots:
                reached[root, root, 0] = max(exp, reached.get((root, root, 0), 0))
        pairs: dict[Pair, int] = {}
        frontier = dict(reached)
        while frontier:
            ahead: dict[tuple[int, int, int], int] = {}
            for (root, vertex, state), width in frontier.items():
                for at, begin, target, end, exp in steps:
                    node, wide = (root, end, target), min(width, exp)
                    if (at, begin) == (state, vertex) and wide > reached.get(node, 0):
                        reached[node] = ahead[node] = wide
            frontier = ahead
        for (root, vertex, state), exp in reached.items():
            if state in self.node.accepting:
                pairs[root, vertex] = max(exp, pairs.get((root, vertex), 0))
        return pairs


def as_batch(rows: Sequence[tuple[Pair, int, int, int]]) -> Batch:
    batch = empty_batch(len(rows))
    for row, (pair, ts, exp, op) in enumerate(rows):
        batch.key[row, SRC], batch.key[row, TRG] = pair
        batch.ts[row], batch.exp[row], batch.op[row], batch.source[row] = ts, exp, op, 0
    return batch
