"""Every answer record has a proof that a checker accepts, which shares no code with the program: whatever the query,
the stream, the path operator, the mode and the cut into batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from bursts import bursts, property_bursts
from case_files import read_case
from law import EXAMPLES, drawn, drawn_bursts, hold_law, hold_law_of_burst, naming
from meander.physical.path_operators import PATH_OPERATORS
from strategies import Case, cases, property_cases

CASES = sorted((Path(__file__).parent / "cases").rglob("*.case"))

pytestmark = pytest.mark.filterwarnings("ignore:no edge of the stream")


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=cases())
@drawn
def test_every_answer_is_proved(path_operator: str, case: Case) -> None:
    with naming(case := replace(case, proofs=True)):
        hold_law(case, path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=property_cases())
@drawn
def test_every_answer_with_values_is_proved(path_operator: str, case: Case) -> None:
    with naming(case := replace(case, proofs=True)):
        hold_law(case, path_operator)


@given(case=bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // 16))
def test_every_answer_is_proved_in_a_burst(case: Case) -> None:
    hold_law_of_burst(replace(case, proofs=True), "auto")


@given(case=property_bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // 16))
def test_every_answer_with_values_is_proved_in_a_burst(case: Case) -> None:
    hold_law_of_burst(replace(case, proofs=True), "auto")


@pytest.mark.parametrize("batch_rows", [1, 65536])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_every_answer_of_a_named_case_is_proved(
    file: Path, path_operator: str, mode: str, batch_rows: int
) -> None:
    case = replace(read_case(file), proofs=True, mode=mode, batch_rows=batch_rows)
    hold_law(case, path_operator)
    hold_law(replace(case, paths=True, capacity=1), path_operator)
