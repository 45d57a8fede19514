"""UNION: one entry for each tuple that any input has; it holds as long as the longest of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.answer_table import AnswerTable
from meander.dataflow.batch import Batch, OutputBuffer, merge_inputs
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW
from meander.kernels.union import unite_rows
from meander.physical.plan import UnionOp


class Union(Operator):
    def __init__(self, node: UnionOp, context: Context) -> None:
        self.inputs = node.inputs
        self.store: Store = context.store
        store = self.store
        self.table = AnswerTable(store, node.arity)
        self.table.add_column("expiries", np.int64, width=len(node.inputs))
        self.out = OutputBuffer(store, node.arity)

    def bind(self) -> None:
        self.table.bind()

    @property
    def state_rows(self) -> int:
        return self.table.entries

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        batch = merge_inputs(inputs, range(len(inputs)))
        cursor = np.zeros(2, np.int64)
        arrays = self.store.arrays

        def attempt() -> int:
            return unite_rows(batch, self.table.answers, arrays["expiries"], self.out.batch, cursor)

        def make_room() -> None:
            time = int(batch.ts[cursor[NEXT_ROW]])
            rows_of_instant = int(np.searchsorted(batch.ts, time, side="right") - cursor[NEXT_ROW])
            self.table.make_room(lambda: self.table.outlasts(time - 1), rows_of_instant)

        run_to_end(self.store, cursor, attempt, {FULL_OUTPUT: self.out.grow, FULL_TABLE: make_room})
        return Ready(self.out.rows(cursor[EMITTED]))

    def mark(self, horizon: int, live: Array) -> None:
        self.table.mark(horizon, live)
