"""WSCAN: the edges of a stream with one label, each with its validity interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import NO_PAIRS, Batch, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.operators.filter import Predicate
from meander.physical.plan import ScanOp


class Scan(Operator):
    def __init__(self, node: ScanOp, context: Context) -> None:
        self.inputs = (node.stream,)
        self.store = context.store
        self.node = node
        labels = context.labels[node.stream]
        self.label = labels.index(node.label) if len(labels) > 1 else None
        self.predicate = Predicate(node.condition, context)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        (edges,) = inputs
        if self.label is not None:
            edges = take_rows(edges, edges.source == self.label)
        if edges.ts.size == 0:
            return Ready(NO_PAIRS)
        begin = edges.ts // self.node.slide * self.node.slide
        exp = np.where(edges.op > 0, begin + self.node.window, edges.ts)
        return Ready(self.predicate.select(Batch(edges.key, edges.ts, exp, edges.op, edges.source)))
