"""UNION as an operator: one entry for each tuple that any input holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.pattern import LEAST_OUTPUT, AnswerTable, double_output, keyed_rows
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.graph import FULL_OUTPUT, FULL_TABLE
from meander.kernels.pattern import KeyedRows
from meander.kernels.union import pack_union, unite_rows


class UnionOperator:
    def __init__(self, inputs: int, arity: int, store: Store) -> None:
        self.store = store
        self.table = AnswerTable(store, arity)
        self.table.add_column("expiries", np.int64, width=inputs)
        self.out = keyed_rows(store.first_capacity(LEAST_OUTPUT), arity)

    def bind(self) -> None:
        self.table.bind()

    @property
    def rows(self) -> int:
        return int(self.table.answers.counts[0])

    def process(self, batches: Sequence[KeyedRows]) -> KeyedRows:
        """The tuples whose largest expiry over all inputs the batches change."""
        source = np.repeat(np.arange(len(batches), dtype=np.int16), [batch.ts.size for batch in batches])
        merged = KeyedRows(*(np.concatenate(columns) for columns in zip(*batches, strict=True)))
        order = np.argsort(merged.ts, kind="stable")
        rows = KeyedRows(*(np.ascontiguousarray(column[order]) for column in merged))
        source = source[order]
        cursor = np.zeros(2, np.int64)

        def attempt() -> int:
            expiries = self.store.arrays["expiries"]
            return unite_rows(rows, source, self.table.answers, expiries, self.out, cursor)

        def make_room() -> None:
            time = rows.ts[cursor[0]]
            instant = int(np.searchsorted(rows.ts, time, side="right") - cursor[0])
            self.table.make_room(
                lambda: pack_union(self.table.answers, self.store.arrays["expiries"], time - 1), instant
            )

        run_to_end(self.store, cursor, attempt, {FULL_OUTPUT: self._double_output, FULL_TABLE: make_room})
        return KeyedRows(*(column[: cursor[1]] for column in self.out))

    def _double_output(self) -> None:
        self.out = double_output(self.out, self.store)

    def mark(self, horizon: int, live: Array) -> None:
        self.table.mark(horizon, live)
