"""Snapshot reducibility: whatever the query, the stream, the plan, the path operator and the cut into batches, at
every instant the persistent query's answer is that of the same query asked once on the snapshot.

Cases are small, so that edges meet, or bursts, so that tables fill; in both, every table may start with room for one
row. `make test` draws the same cases every time, `make test-slow` new ones: what they find is printed as a
named case for `cases/`, one file each: why it is there, the query, its edges as JSON.

`auto` chooses by counts over thousands of edges; here it is made to switch every other row or so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

import meander
from bursts import bursts
from case_files import read_case
from law import EXAMPLES, drawn, drawn_bursts, hold_law, hold_law_of_burst, many_more, naming
from meander.physical.path_operators import PATH_OPERATORS
from strategies import Case, cases

CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=cases())
@drawn
def test_every_answer_is_that_of_the_snapshot(path_operator: str, case: Case) -> None:
    with naming(case):
        hold_law(case, path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // len(PATH_OPERATORS) // 4))
def test_every_answer_is_that_of_the_snapshot_in_a_burst(path_operator: str, case: Case) -> None:
    hold_law_of_burst(case, path_operator)


@pytest.mark.slow
@given(case=cases())
@many_more
def test_every_answer_is_that_of_the_snapshot_in_many_more_cases(case: Case) -> None:
    with naming(case):
        hold_law(case, *PATH_OPERATORS)


@pytest.mark.slow
@given(case=bursts())
@settings(many_more, phases=[Phase.explicit, Phase.generate])
def test_every_answer_is_that_of_the_snapshot_in_many_more_bursts(case: Case) -> None:
    hold_law_of_burst(case, *PATH_OPERATORS)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_as_it_was_found(file: Path, path_operator: str) -> None:
    hold_law(read_case(file), path_operator)


@pytest.mark.parametrize("batch_rows", [1, 65536])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("paths", [False, True], ids=["bare", "paths"])
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds(file: Path, path_operator: str, paths: bool, mode: str, batch_rows: int) -> None:
    hold_law(replace(read_case(file), paths=paths, mode=mode, batch_rows=batch_rows), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_with_the_smallest_tables(file: Path, path_operator: str) -> None:
    for mode in ("intervals", "changes"):
        hold_law(replace(read_case(file), paths=True, mode=mode, capacity=1), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_by_plans_of_all_kinds(file: Path, path_operator: str) -> None:
    case = read_case(file)
    count = len(meander.plans(case.text))
    for plan in range(0, count, 1 + count // 8):
        hold_law(replace(case, paths=True, batch_rows=2, plan=plan), path_operator)
