"""Answers over tables hold for ever, by every operator and in both modes, until a row is replaced or deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine_runs import edges_of, planned, processed
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY
from meander.physical.plan import ScanOp

CHAIN = [(f"n{i}", "a", f"n{i + 1}", i) for i in range(4, 20)]
ROWS = [("u", "a", "v", 1), ("v", "a", "w", 2), ("w", "a", "u", 2), ("u", "b", "w", 3), *CHAIN]
DELETIONS = [("n7", "a", "n8", 40, "-"), ("u", "a", "v", 45, "-")]
EDGES = {("v", "w"), ("w", "u"), *((f"n{i}", f"n{i + 1}") for i in range(4, 20) if i != 7)}


def closure(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    reached = set(edges)
    while True:
        more = reached | {(x, z) for x, y in reached for other, z in edges if y == other}
        if more == reached:
            return reached
        reached = more


def joined(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(x, z) for x, y in edges for other, z in edges if y == other}


QUERIES = {
    "Answer(x, y) <- a+(x, y) as P.": closure(EDGES),
    "Answer(x, y) <- a(x, z), a(z, y).": joined(EDGES),
    "Answer(x, y) <- a(x, y).\nAnswer(x, y) <- b(x, y).": EDGES | {("u", "w")},
    "D(x, y) <- a(x, z), a(z, y).\nAnswer(x, y) <- D+(x, y) as P.": closure(joined(EDGES)),
}


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize(
    ("operator", "paths"), [("s-path", True), ("negative-tuple", False), ("closure", True), ("auto", False)]
)
@pytest.mark.parametrize("query", QUERIES)
def test_answers_over_a_table_never_end_by_themselves(
    query: str, paths: bool, operator: str, mode: str
) -> None:
    options = {"path_operator": operator, "paths": paths, "mode": mode}
    plan = planned(f"STREAM s WINDOW 10 SLIDE 2\n{query}\n", **options)
    tables = [replace(node, table=True) if isinstance(node, ScanOp) else node for node in plan.operators]
    dataflow = Dataflow(replace(plan, operators=tuple(tables)), mode=mode, paths=paths)
    records = [
        *processed(dataflow, {"s": edges_of(*ROWS[:10])}, 9),
        *processed(dataflow, {"s": edges_of(*ROWS[10:], *DELETIONS)}, 46),
    ]
    assert processed(dataflow, {}, INFINITY) == []
    holds = {}
    for record in records:
        assert record["exp"] is None
        holds[record["src"], record["trg"]] = record["op"] == "+"
    assert {pair for pair, does in holds.items() if does} == QUERIES[query]
