"""How work spreads over cells, as it is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meander.bench.__main__ import main
from meander.bench.cells import evenness, measure_cells, table
from meander.bench.workloads import choose
from meander.errors import ArgumentError


def test_evenness_is_the_largest_over_the_mean() -> None:
    assert evenness([5, 5, 5]) == 1
    assert evenness([9, 0, 0]) == 3
    assert evenness([6, 3]) == pytest.approx(4 / 3)
    assert evenness([0, 0]) == 1


def test_edges_go_where_the_plan_says() -> None:
    workloads = choose(["trees"], ["Q1", "Q2", "Q7"])
    spreads = measure_cells(workloads, [2, 3], window=30 * 86_400, slide=86_400, prefix=3_000)
    by_query = {name: [spread for spread in spreads if spread.query == name] for name in ("Q1", "Q2", "Q7")}
    for some in by_query.values():
        assert [spread.cells for spread in some] == [1, 2, 3]
        assert all(1 <= spread.answers_even <= spread.cells for spread in some)
    assert [spread.broadcast for spread in by_query["Q1"]] == [0, 1, 1]
    assert [round(spread.rows_per_edge, 6) for spread in by_query["Q1"]] == [0, 2, 3]
    assert 0 < by_query["Q2"][1].broadcast < 1
    assert [spread.stages for spread in by_query["Q7"]] == [1, 2, 2]
    assert by_query["Q7"][0].derived == 0 < by_query["Q7"][1].derived
    assert len(table(spreads)) == 1 + 6


def test_the_command_prints_a_table_and_writes_it_into_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, figures = tmp_path / "cells.md", tmp_path / "cells.json"
    options = ["--data", "trees", "--queries", "Q2", "--cells", "2", "--prefix", "2500"]
    assert main([*options, "--write", str(page), "--json", str(figures)]) == 0
    printed = capsys.readouterr().out
    assert "| Q2 | 2 | 1 |" in printed
    assert "| Q2 | 2 | 1 |" in page.read_text(encoding="utf-8")
    assert [row["cells"] for row in json.loads(figures.read_text())["cells"]] == [1, 2]


@pytest.mark.parametrize("cells", ["0", "two", "", "2,-1"])
def test_numbers_that_are_none_are_refused(cells: str) -> None:
    from meander.bench import run

    with pytest.raises(ArgumentError, match="--cells"):
        run(data="trees", queries="Q1", cells=cells)
