"""The same law for queries that read values: properties of edges and vertices, tables, and paths in order of time.

`make test-slow` draws 20,000 cases in chunks. With `MEANDER_LAW_SEED` set, each chunk draws the same ones again, so
that one can be run alone: `-k many_more_cases_with_values and 7`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings

import meander
from bursts import property_bursts
from case_files import read_case
from law import EXAMPLES, drawn, drawn_bursts, hold_law, hold_law_of_burst, many_more, naming
from meander.physical.path_operators import PATH_OPERATORS
from oracle import expect, reader_of
from strategies import Case, property_cases

CASES = sorted((Path(__file__).parent / "cases" / "values").glob("*.case"))
SLOW_EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "20000"))
CHUNKS = 20
SEED = os.environ.get("MEANDER_LAW_SEED")

# A drawn stream may have no value of a property at all, which is worth a warning to a user.
pytestmark = pytest.mark.filterwarnings("ignore:no edge of the stream")


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=property_cases())
@drawn
def test_every_answer_with_values_is_that_of_the_snapshot(path_operator: str, case: Case) -> None:
    with naming(case):
        hold_law(case, path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=property_bursts())
@settings(drawn_bursts, max_examples=max(1, EXAMPLES // len(PATH_OPERATORS) // 6))
def test_every_answer_with_values_is_that_of_the_snapshot_in_a_burst(path_operator: str, case: Case) -> None:
    hold_law_of_burst(case, path_operator)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_answer_with_values_is_that_of_the_snapshot_in_many_more_cases_with_values(chunk: int) -> None:
    """Each chunk by the next of the path operators."""
    path_operator = tuple(PATH_OPERATORS)[chunk % len(PATH_OPERATORS)]

    @given(case=property_cases())
    @settings(many_more, max_examples=max(1, SLOW_EXAMPLES // CHUNKS))
    def hold(case: Case) -> None:
        with naming(case):
            hold_law(case, path_operator)

    (hold if SEED is None else seed(f"{SEED}, {chunk}")(hold))()


@pytest.mark.parametrize("batch_rows", [1, 65536])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_with_values_holds(file: Path, path_operator: str, mode: str, batch_rows: int) -> None:
    for paths in (False, True):
        hold_law(replace(read_case(file), paths=paths, mode=mode, batch_rows=batch_rows), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_with_values_holds_with_the_smallest_tables(file: Path, path_operator: str) -> None:
    for mode in ("intervals", "changes"):
        hold_law(replace(read_case(file), paths=True, mode=mode, capacity=1), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_with_values_holds_by_plans_of_all_kinds(file: Path, path_operator: str) -> None:
    case = read_case(file)
    count = len(meander.plans(case.text))
    for plan in range(0, count, 1 + count // 8):
        hold_law(replace(case, paths=True, batch_rows=2, plan=plan, threads=2), path_operator)


@given(case=property_cases())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_bad_value_is_told_by_the_name_of_its_property(case: Case) -> None:
    rejects: list[dict[str, str]] = []
    for _ in meander.run(case.text, case.streams, lateness=10**6, rejects=rejects):
        pass
    told = Counter(reject["reason"] for reject in rejects if reject["reason"].startswith("bad value"))
    wanted: Counter[str] = Counter()
    for name, rows in expect(case.query, case.streams, 10**6).rejected.items():
        [stream] = [each for each in case.query.streams if each.name == name]
        faults = (reader_of(case.query, stream).fault(row) for row in rows)
        wanted.update(fault for fault in faults if fault is not None and fault.startswith("bad value"))
    assert told == wanted
