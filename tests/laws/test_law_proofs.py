"""Every answer record has a proof that a checker accepts, which shares no code with the program: whatever the query,
the stream, the path operator, the mode and the cut into batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bursts import bursts, property_bursts
from case_files import read_case
from engine_runs import Run, planned, steps_of
from judge import judge
from law import EXAMPLES, MANY_EXAMPLES, drawn, drawn_bursts, hold_law, hold_law_of_burst, many_more, naming
from meander.physical.path_operators import PATH_OPERATORS
from oracle import TooLarge, expect
from strategies import Case, cases, path_value_cases, property_cases, tables_of

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


@pytest.mark.slow
@given(case=cases() | property_cases() | path_value_cases())
@many_more
def test_every_answer_is_proved_in_many_more_cases(case: Case) -> None:
    try:
        with naming(case := replace(case, proofs=True)):
            hold_law(case, *PATH_OPERATORS)
    except TooLarge:
        assume(False)


@given(case=bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // 48))
def test_every_answer_is_proved_in_a_burst(case: Case) -> None:
    hold_law_of_burst(replace(case, proofs=True), "auto")


@given(case=property_bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // 48))
def test_every_answer_with_values_is_proved_in_a_burst(case: Case) -> None:
    hold_law_of_burst(replace(case, proofs=True), "auto")


@pytest.mark.slow
@given(case=bursts() | property_bursts())
@settings(drawn_bursts, max_examples=max(1, MANY_EXAMPLES // 100), derandomize=False)
def test_every_answer_is_proved_in_many_more_bursts(case: Case) -> None:
    hold_law_of_burst(replace(case, proofs=True), "auto")


@pytest.mark.parametrize(
    ("number", "file"), list(enumerate(CASES)), ids=lambda value: getattr(value, "stem", "")
)
def test_every_answer_of_a_named_case_is_proved(number: int, file: Path) -> None:
    """Each case by the next of the path operators; draws combine cases with all of them."""
    path_operator = tuple(PATH_OPERATORS)[number % len(PATH_OPERATORS)]
    for mode, batch_rows in (("intervals", 1), ("changes", 65536), ("changes", 1), ("intervals", 65536)):
        case = replace(read_case(file), proofs=True, mode=mode, batch_rows=batch_rows)
        hold_law(replace(case, paths=True, capacity=1) if batch_rows == 1 else case, path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=cases() | property_cases(), batch_rows=st.sampled_from((1, 2, 3)))
@settings(drawn, max_examples=max(1, EXAMPLES // 16))
def test_every_answer_is_proved_by_a_run_that_is_restored_after_every_batch(
    path_operator: str, case: Case, batch_rows: int
) -> None:
    plan = planned(case.text, proofs=True, path_operator=path_operator)
    records = []
    snapshot = None
    with naming(case), tables_of(case.capacity):
        for step in steps_of(case.streams, batch_rows, plan.schemas):
            run = Run(plan, tuple(case.streams), lateness=case.lateness, mode=case.mode, proofs=True)
            if snapshot is not None:
                run.restore(snapshot)
            records += run.feed(step)
            snapshot = run.snapshot()
        first_path = path_operator == "negative-tuple"
        expected = expect(case.query, case.streams, case.lateness)
        judge(records, expected, mode=case.mode, proofs=True, first_path=first_path)
