"""The log of arrivals against a list of arrivals, row by row, with every table full again and again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.arrivals import ArrivalLog
from meander.dataflow.batch import Batch, empty_batch
from meander.dataflow.encoding import Selection
from meander.dataflow.state import Store
from meander.kernels.arrivals import ARRIVE, REPLACE_ONLY
from meander.physical.streams import LabelClass
from meander.syntax.values import Property, ValueType
from operator_context import rows_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "150"))
WINDOW = 3


class Row(NamedTuple):
    src: int
    trg: int
    value: int  # a column of the tuple, in logs that have one
    named: int | None
    ts: int
    op: int
    source: int


def batch_of(rows: Sequence[Row], values: int) -> Batch:
    batch = empty_batch(len(rows), 2 + values + 3)
    for i, row in enumerate(rows):
        given = (0, 0, 0) if row.named is None else (1, row.named, -row.named)
        batch.key[i] = (row.src, row.trg, *[row.value] * values, *given)
        batch.ts[i], batch.op[i], batch.source[i] = row.ts, row.op, row.source
        batch.exp[i] = row.ts + WINDOW if row.op > 0 else row.ts
    return batch


class ListOfArrivals:
    """The twin: every arrival that is valid, with its expiry."""

    def __init__(self, values: int, table: bool) -> None:
        self.values, self.table = values, table
        self.valid: list[tuple[Row, int]] = []

    def key(self, row: Row) -> tuple[int, ...]:
        return (row.src, row.trg, *[row.value] * self.values)

    def expiries(self, time: int) -> dict[tuple[int, ...], int]:
        found: dict[tuple[int, ...], int] = {}
        for row, exp in self.valid:
            if exp > time:
                found[self.key(row)] = max(found.get(self.key(row), 0), exp)
        return found

    def process(self, row: Row) -> list[tuple[int, ...]]:
        """The changes, each (key…, ts, exp, op); those of one row in no order."""
        changes = []
        if row.op < 0 or self.table:
            before = self.expiries(row.ts)
            matches_all = row.op > 0 or row.named is None
            self.valid = [
                (other, exp)
                for other, exp in self.valid
                if (other.src, other.trg) != (row.src, row.trg)
                or not (matches_all or other.named == row.named)
            ]
            after = self.expiries(row.ts)
            for key, exp in before.items():
                if after.get(key, row.ts) < exp:
                    changes.append((*key, row.ts, after.get(key, row.ts), -1))
        if row.op > 0 and row.source == ARRIVE:
            self.valid.append((row, row.ts + WINDOW))
            changes.append((*self.key(row), row.ts, row.ts + WINDOW, 1))
        return changes


row_lists = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(5, 6),
        st.sampled_from([None, 1, 2]),
        st.integers(0, 2),  # until the next row
        st.sampled_from([1, 1, 1, -1]),
        st.sampled_from([ARRIVE, ARRIVE, REPLACE_ONLY]),
    ),
    max_size=40,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(row_lists, st.booleans(), st.booleans(), st.lists(st.integers(1, 40), max_size=5))
def test_a_log_answers_deletions_as_a_list_of_arrivals_does(
    drawn: list[tuple[int, ...]], has_value: bool, table: bool, cuts: list[int]
) -> None:
    times = np.cumsum([row[4] for row in drawn]).tolist()
    rows = [
        Row(*row[:4], time, row[5], row[6] if table else ARRIVE)
        for row, time in zip(drawn, times, strict=True)
    ]
    amount = (Property("amount", ValueType.INT),)
    selection = Selection("s", LabelClass("a"), None, amount if has_value else (), amount, table)
    twin = ListOfArrivals(int(has_value), table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEANDER_FIRST_CAPACITY", "2")
        log = ArrivalLog(selection, Store("log"))
    bounds = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    for begin, end in itertools.pairwise(bounds):
        part = rows[begin:end]
        log.give_back(part[0].ts)
        emitted = rows_of(log.process(batch_of(part, int(has_value))))
        for row in part:
            expected = twin.process(row)
            assert sorted(emitted[: len(expected)]) == sorted(expected)
            emitted = emitted[len(expected) :]
        assert emitted == []
