"""The same law for queries that return paths as values: each is of a match that holds throughout its record."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from case_files import read_case
from law import drawn, hold_law, many_more, naming
from meander.physical.path_operators import PATH_OPERATORS
from oracle import TooLarge
from strategies import Case, path_value_cases

CASES = sorted((Path(__file__).parent / "cases" / "path_values").glob("*.case"))
SLOW_EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "10000"))

# A drawn stream may have no value of a property at all, which is worth a warning to a user.
pytestmark = pytest.mark.filterwarnings("ignore:no edge of the stream")


def hold_law_of_drawn(case: Case, *path_operators: str) -> None:
    """The oracle tells answers by their paths, and may find too many to judge."""
    try:
        with naming(case):
            hold_law(case, *path_operators)
    except TooLarge:
        assume(False)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=path_value_cases())
@drawn
def test_every_answer_has_paths_that_prove_it(path_operator: str, case: Case) -> None:
    hold_law_of_drawn(case, path_operator)


@pytest.mark.slow
@given(case=path_value_cases())
@settings(many_more, max_examples=max(1, SLOW_EXAMPLES // len(PATH_OPERATORS)))
def test_every_answer_has_paths_that_prove_it_in_many_more_cases(case: Case) -> None:
    hold_law_of_drawn(case, *PATH_OPERATORS)


@pytest.mark.parametrize("batch_rows", [1, 65536])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_with_path_values_holds(
    file: Path, path_operator: str, mode: str, batch_rows: int
) -> None:
    for paths in (False, True):
        hold_law(replace(read_case(file), paths=paths, mode=mode, batch_rows=batch_rows), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_with_path_values_holds_with_the_smallest_tables(file: Path, path_operator: str) -> None:
    for mode in ("intervals", "changes"):
        hold_law(replace(read_case(file), paths=True, mode=mode, capacity=1, threads=2), path_operator)
