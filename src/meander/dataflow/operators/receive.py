"""RECEIVE: the tuples that another stage has derived, each with the interval that it brings."""

from __future__ import annotations

from collections.abc import Sequence

from meander.dataflow.batch import Batch, empty_batch
from meander.dataflow.operator import Context, Operator, Ready
from meander.physical.plan import ReceiveOp


class Receive(Operator):
    def __init__(self, node: ReceiveOp, context: Context) -> None:
        self.inputs = (node.stream,)
        self.store = context.store
        self.arity = 2 + len(node.values)

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        (batch,) = inputs
        return Ready(batch if batch.ts.size else empty_batch(0, self.arity))
