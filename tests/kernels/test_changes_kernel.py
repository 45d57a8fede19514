"""The changes mode against a tracker that looks at every instant."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.batch import Batch, empty_batch
from meander.dataflow.change_tracking import ChangeTracker
from meander.dataflow.state import Store

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
END = 10_000

Row = tuple[int, int, int, int]  # key, ts, exp, op

drawn_rows = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from((0, 0, 1, 2, 6)), st.integers(1, 7), st.sampled_from((1, 1, 1, -1))
    ),
    max_size=12,
)


def as_rows(rows: list[Row]) -> Batch:
    batch = empty_batch(len(rows), 1)
    for row, (key, ts, exp, op) in enumerate(rows):
        batch.key[row, 0], batch.ts[row], batch.exp[row], batch.op[row] = key, ts, exp, op
    return batch


def holding(rows: list[Row], instants: int) -> dict[int, list[bool]]:
    """For each key, at which instants it holds, all rows of an instant taken together."""
    until: dict[int, int] = defaultdict(int)
    held: dict[int, list[bool]] = {key: [] for key, *_ in rows}
    for instant in range(instants):
        for key, ts, exp, op in rows:
            if ts == instant:
                until[key] = max(until[key], exp) if op > 0 else min(until[key], max(exp, ts))
        for key, course in held.items():
            course.append(until[key] > instant)
    return held


def changes_of(course: list[bool]) -> list[tuple[int, int]]:
    """(instant, op) where what holds is not what held at the instant before."""
    return [
        (at, 1 if now else -1) for at, (before, now) in enumerate(pairwise([False, *course])) if before != now
    ]


@given(batches=st.lists(drawn_rows, min_size=1, max_size=5))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_record_when_an_answer_starts_and_one_when_it_stops(batches: list[list[tuple[int, ...]]]) -> None:
    tracker = ChangeTracker(1, Store("result"))
    time, rows, records = 0, [], []
    for batch in batches:
        part = []
        time += 1  # an instant that is cut in two may start and stop what one batch would not show
        for key, gap, length, op in batch:
            time += gap
            part.append((key, time, time + (length if op > 0 else length // 2), op))
        rows += part
        records += listed(tracker.process(as_rows(part), time))
    records += listed(tracker.process(as_rows([]), END))
    assert [ts for _, ts, _ in records] == sorted(ts for _, ts, _ in records)
    for key, course in holding(rows, time + 10).items():
        assert [(ts, op) for pair, ts, op in records if pair == key] == changes_of(course)


def listed(rows: Batch) -> list[tuple[int, int, int]]:
    return list(zip(rows.key[:, 0].tolist(), rows.ts.tolist(), rows.op.tolist(), strict=True))


def test_many_starts_in_an_instant_do_not_let_the_table_grow() -> None:
    """300 answers start at each instant and hold for two: whenever the table is full, starts are waiting."""
    tracker = ChangeTracker(1, Store("result"))
    starts = stops = 0
    sizes = set()
    for instant in range(200):
        rows = as_rows([(300 * instant + i, instant, instant + 2, 1) for i in range(300)])
        ops = tracker.process(rows, instant + 1).op
        starts, stops = starts + int((ops > 0).sum()), stops + int((ops < 0).sum())
        if instant > 20:
            sizes.add(tracker.store.nbytes)
    ops = tracker.process(as_rows([]), END).op
    assert (starts, stops + int((ops < 0).sum())) == (60_000, 60_000)
    assert len(sizes) == 1


def test_an_answer_that_is_extended_again_and_again_has_one_stop_waiting() -> None:
    tracker = ChangeTracker(1, Store("result"))
    for instant in range(400):
        rows = as_rows([(key, instant, instant + 10_000, 1) for key in range(100)])
        assert tracker.process(rows, instant).ts.size == (100 if instant == 0 else 0)
    assert tracker.changes.stop_exp.size < 20 * 256
    assert np.unique(tracker.process(as_rows([]), 20_000).ts).tolist() == [10_399]
