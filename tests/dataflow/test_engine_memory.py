"""Memory follows the window, not the length of the stream; and a budget for it is kept to.

Sizes of arrays are what is looked at, not times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import meander
from engine_runs import dataflow_of, edges_of, processed
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, Text, frozen, integer_text
from meander.errors import MemoryBudgetError

EDGES = 2_000_000
BATCH = 8_000
WINDOW = 10_000
CHAIN = 4

CLOSURE = "Answer(x, y) <- a+(x, y)."
PATTERN = "Answer(x, y, z) <- a(x, y), a(y, z)."
UNION = "D(x, y) <- a(x, y).\nD(x, y) <- (a/a)(x, y).\nAnswer(x, y) <- D(x, y), a(y, z)."


def chains(total: int) -> Iterator[Edges]:
    """One edge per instant, in chains of a few edges whose vertices never come back."""
    name = frozen(np.frombuffer(b"a", np.uint8))
    begin, end = np.zeros(BATCH, np.int64), np.ones(BATCH, np.int64)
    label = Text(name, begin, end, np.zeros(BATCH, np.int8))
    for first in range(0, total, BATCH):
        at = np.arange(first, first + BATCH, dtype=np.int64)
        src = at // CHAIN * (CHAIN + 1) + at % CHAIN
        yield Edges(integer_text(src), label, integer_text(src + 1), at, np.ones(BATCH, np.int8))


def sizes(dataflow: Dataflow) -> dict[str, int]:
    held = {
        f"{owner}/{name}": array.nbytes for owner, store in dataflow.stores.items() for name, array in store
    }
    return held | {owner: store.nbytes for owner, store in dataflow.stores.items()}


@pytest.mark.parametrize(
    ("total", "rules", "options", "records"),
    [
        (EDGES, CLOSURE, {}, 5_000_000),
        (EDGES, CLOSURE, {"mode": "changes"}, None),
        (EDGES, PATTERN, {}, 1_500_000),
        (EDGES // 10, PATTERN, {"mode": "changes"}, None),
        (EDGES // 10, CLOSURE, {"path_operator": "negative-tuple"}, 500_000),
        (EDGES // 10, CLOSURE, {"paths": True}, 500_000),
        (EDGES // 10, UNION, {}, None),
    ],
    ids=["closure", "changes", "pattern", "pattern-changes", "negative-tuple", "paths", "union"],
)
def test_sizes_stay_as_they_are_after_the_first_windows(
    total: int, rules: str, options: dict[str, Any], records: int | None
) -> None:
    dataflow = dataflow_of(f"STREAM s WINDOW {WINDOW}\n{rules}", **options)
    settled: dict[str, int] = {}
    given = 0
    for number, edges in enumerate(chains(total)):
        given += sum(answers.rows for _, answers in dataflow.process({"s": edges}, int(edges.ts[-1])))
        if number == 10:
            settled = sizes(dataflow)
        assert number <= 10 or sizes(dataflow) == settled
    assert records is None or given == records


def test_deletions_leave_nothing_behind() -> None:
    """Each edge is deleted soon after it came; the window, longer than the run, would keep them all."""
    dataflow = dataflow_of("STREAM s WINDOW 1000000\nAnswer(x, y) <- (a/a)(x, y).", paths=True)
    settled: dict[str, int] = {}
    for number in range(400):
        came = [(f"{number}.{i}", "a", f"{number}.{i + 1}", 2 * number) for i in range(10)]
        gone = [(*edge[:3], 2 * number + 1, "-") for edge in came]
        records = processed(dataflow, {"s": edges_of(*came, *gone)}, 2 * number + 1)
        assert [record["op"] for record in records] == ["+"] * 9 + ["-"] * 9
        if number == 250:
            settled = sizes(dataflow)
        assert number <= 250 or sizes(dataflow) == settled


# ---------------------------------------------------------------------------------------------------------
# The budget


def test_the_budget_ends_the_run_and_says_who_holds_what_and_what_would_help() -> None:
    edges = [(i, "a", i + 1, i) for i in range(400)]
    run = meander.run(
        f"STREAM s WINDOW 1000\n{CLOSURE}", edges, memory=600_000, batch_rows=10, path_operator="s-path"
    )
    records: list[Any] = []
    with pytest.raises(MemoryBudgetError) as refused:
        records.extend(run)
    message = str(refused.value)
    assert "the memory budget of 585.9 KB is reached: #1 PATH a+: a+ would hold" in message
    assert "hint: a larger --memory, a shorter window" in message
    assert refused.value.exit_status == 1
    # All that the earlier batches brought was emitted: every pair of a chain, up to a whole batch.
    last = max(record["trg"] for record in records)
    assert last % 10 == 0
    assert len(records) == last * (last + 1) // 2


def test_within_the_budget_nothing_changes() -> None:
    edges = [(i, "a", i + 1, i) for i in range(60)]
    text = f"STREAM s WINDOW 100\n{CLOSURE}"
    assert list(meander.run(text, edges, memory=4 << 20)) == list(meander.run(text, edges))


def test_a_budget_too_small_to_begin_with_is_refused_at_once() -> None:
    with pytest.raises(MemoryBudgetError, match="1000 B is reached: vertices would hold"):
        meander.run(f"STREAM s WINDOW 100\n{CLOSURE}", [], memory=1000)


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        (CLOSURE, {}),
        (PATTERN, {}),
        (UNION, {"mode": "changes"}),
        (CLOSURE, {"paths": True}),
        (CLOSURE, {"path_operator": "negative-tuple"}),
    ],
)
def test_what_is_counted_is_what_is_there(rules: str, options: dict[str, Any]) -> None:
    dataflow = dataflow_of(f"STREAM s WINDOW 100\n{rules}", **options)
    edges = edges_of(*((i % 37, "a", i % 36 + 1, i // 9) for i in range(300)))
    assert processed(dataflow, {"s": edges}, 100)
    held = sum(array.nbytes for store in dataflow.stores.values() for _, array in store)
    buffers = sum(size for store in dataflow.stores.values() for size in store.buffers.values())
    assert buffers > 0
    assert dataflow.state_bytes == held + buffers
    assert sum(operator.state_bytes for operator in dataflow.figures()) <= dataflow.state_bytes


def test_auto_stays_with_trees_where_the_closure_does_not_fit() -> None:
    draw = np.random.default_rng(7)
    ends = draw.integers(0, 120, (6000, 2)).tolist()
    edges = [(src, "a", trg, at // 3) for at, (src, trg) in enumerate(ends)]
    text = f"STREAM s WINDOW 40 SLIDE 20\n{CLOSURE}"

    def peak(path_operator: str, memory: int | None = None) -> tuple[int, str]:
        dataflow = dataflow_of(text, path_operator=path_operator, memory=memory)
        most = 0
        for begin in range(0, len(edges), 1000):
            batch = edges[begin : begin + 1000]
            processed(dataflow, {"s": edges_of(*batch)}, batch[-1][3])
            most = max(most, dataflow.state_bytes)
        return most, dataflow.figures()[-1].choice

    trees, _ = peak("s-path")
    without_limit, choice = peak("auto")
    assert choice.startswith("closure")
    limit = (trees + without_limit) // 2
    held, choice = peak("auto", limit)
    assert held <= limit
    assert choice.startswith("s-path")
