"""How work spreads over cells, as it is measured."""

from __future__ import annotations

import pytest

from meander.bench.data import load
from meander.bench.measures.cells import evenness, measure_cells
from meander.bench.workloads import DATA_SETS, Workload


def test_evenness_is_the_largest_over_the_mean() -> None:
    assert evenness([5, 5, 5]) == 1
    assert evenness([9, 0, 0]) == 3
    assert evenness([6, 3]) == pytest.approx(4 / 3)
    assert evenness([0, 0]) == 1


def test_edges_go_where_the_plan_says() -> None:
    by_query = {}
    for query in ("Q1", "Q2", "Q7"):
        workload = Workload(DATA_SETS["trees"], query)
        graph = load(workload.data).of(workload.labels).prefix(3_000, 86_400)
        by_query[query] = measure_cells(workload, graph, [2, 3], window=30 * 86_400, slide=86_400)
    for some in by_query.values():
        assert [spread.cells for spread in some] == [1, 2, 3]
        assert all(1 <= spread.answers_even <= spread.cells for spread in some)
    assert [spread.broadcast for spread in by_query["Q1"]] == [0, 1, 1]
    assert [round(spread.rows_per_edge, 6) for spread in by_query["Q1"]] == [0, 2, 3]
    assert 0 < by_query["Q2"][1].broadcast < 1
    assert [spread.stages for spread in by_query["Q7"]] == [1, 2, 2]
    assert by_query["Q7"][0].derived == 0 < by_query["Q7"][1].derived
