"""FILTER: the tuples that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.predicates import NAMES, BatchColumns, constants_of, satisfying, spellings
from meander.physical.plan import FilterOp
from meander.syntax.values import Predicate


class BatchPredicate:
    """A predicate on the key columns of batches; the names that it states have numbers from the start."""

    def __init__(self, predicate: Predicate | None, context: Context) -> None:
        self.predicate = predicate
        self.vertices = context.vertices
        named = (
            [] if predicate is None else [const for const in constants_of(predicate) if const.type in NAMES]
        )
        self.constants = {
            const: np.array([context.vertices.pin(name) for name in spellings(const)], np.int32)
            for const in named
        }

    def select(self, batch: Batch) -> Batch:
        """The rows on which the predicate is true."""
        if self.predicate is None or batch.ts.size == 0:
            return batch
        columns = BatchColumns(batch, self.vertices, self.constants)
        return take_rows(batch, satisfying(self.predicate, columns))


class Filter(Operator):
    def __init__(self, node: FilterOp, context: Context) -> None:
        self.inputs = node.inputs
        self.store = context.store
        self.predicate = BatchPredicate(node.predicate, context)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        return Ready(self.predicate.select(inputs[0]))
