"""FILTER: the tuples that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.operator import Context, Operator, Ready
from meander.kernels.batch import SRC, TRG
from meander.physical.plan import FilterOp
from meander.syntax.values import Predicate, bound_vertex, conjuncts, equal_refs


class EndPoints:
    """The terms of a predicate on a tuple's ends: equal to vertices, or to each other."""

    def __init__(self, predicate: Predicate | None, context: Context) -> None:
        self.vertices: list[tuple[int, list[int]]] = []
        self.loop = False
        for term in conjuncts(predicate):
            bound = bound_vertex(term)
            if bound is not None:
                self.vertices.append((_COLUMNS[bound[0]], context.pin(bound[1])))
            elif equal_refs(term) is not None:
                self.loop = True
            else:
                raise NotImplementedError(f"a comparison that is not of end points: {term}")

    def select(self, batch: Batch) -> Batch:
        if not self.vertices and not self.loop:
            return batch
        mask = np.ones(batch.ts.size, np.bool_)
        for column, vertices in self.vertices:
            mask &= np.isin(batch.key[:, column], vertices)
        if self.loop:
            mask &= batch.key[:, SRC] == batch.key[:, TRG]
        return take_rows(batch, mask)


_COLUMNS = {"src": SRC, "trg": TRG, 0: SRC, 1: TRG}


class Filter(Operator):
    def __init__(self, node: FilterOp, context: Context) -> None:
        self.inputs = node.inputs
        self.store = context.store
        self.predicate = EndPoints(node.predicate, context)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        return Ready(self.predicate.select(inputs[0]))
