"""FILTER: the tuples that satisfy a condition on their ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.algebra.nodes import Condition
from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.kernels.batch import SRC, TRG
from meander.physical.plan import FilterOp


class Predicate:
    """A condition whose constants are vertex numbers."""

    def __init__(self, condition: Condition, context: Context) -> None:
        self.is_trivial = condition == Condition()
        self.constants = {SRC: context.pin(condition.src), TRG: context.pin(condition.trg)}
        self.loop = condition.loop

    def select(self, batch: Batch) -> Batch:
        if self.is_trivial:
            return batch
        mask = np.ones(batch.ts.size, np.bool_)
        for column, vertices in self.constants.items():
            if vertices:
                mask &= np.isin(batch.key[:, column], vertices)
        if self.loop:
            mask &= batch.key[:, SRC] == batch.key[:, TRG]
        return take_rows(batch, mask)


class Filter(Operator):
    def __init__(self, node: FilterOp, context: Context) -> None:
        self.inputs = node.inputs
        self.store = context.store
        self.predicate = Predicate(node.condition, context)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        return Ready(self.predicate.select(inputs[0]))
