"""FILTER: the tuples that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.predicates import NAMES, BatchColumns, constants_of, satisfying, spellings
from meander.physical.plan import FilterOp
from meander.syntax.values import Predicate, Ref, ValueType, map_refs


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


def with_types(predicate: Predicate, types: Sequence[ValueType]) -> Predicate:
    """The predicate, in which each column has the type that it has in `types`, if it is there."""
    known = dict(enumerate(types))
    return map_refs(predicate, lambda ref: Ref(ref.name, known.get(cast(int, ref.name), ref.type), ref.span))


class Filter(Operator):
    def __init__(self, node: FilterOp, context: Context) -> None:
        self.inputs = node.inputs
        self.store = context.store
        self.predicate = BatchPredicate(with_types(node.predicate, node.types), context)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        return Ready(self.predicate.select(inputs[0]))
