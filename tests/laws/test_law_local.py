"""Snapshot reducibility: whatever the query, the stream, the plan, the path operator and the cut into batches, at
every instant the persistent query's answer is that of the same query asked once on the snapshot.

Cases are small, so that edges meet, or bursts, so that tables fill; in both, every table may start with room for one
row. `make test` draws the same cases every time, `make test-slow` new ones: what they find is printed as a
named case for `cases/`, one file each: why it is there, the query, its edges as JSON.

`auto` chooses by counts over thousands of edges; here it is made to switch every other row or so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

import meander
from bursts import bursts
from case_files import named, read_case, reduced
from judge import judge
from meander.physical.path_operators import PATH_OPERATORS
from meander.rewrite import enumerate_plans
from oracle import Expected, TooLarge, expect
from strategies import Case, cases, restless

EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "240"))
MANY_EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "10000"))
CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))

drawn = settings(
    max_examples=max(1, EXAMPLES // len(PATH_OPERATORS)),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
# A burst is made smaller here, edge by edge, and not by Hypothesis, which draws a seed for it.
drawn_bursts = settings(drawn, phases=[Phase.explicit, Phase.generate])
many_more = settings(
    drawn,
    max_examples=max(1, MANY_EXAMPLES // len(PATH_OPERATORS)),
    derandomize=False,
    report_multiple_bugs=False,
)


def hold_law(case: Case, *path_operators: str) -> None:
    """Run the case by each operator, and judge its answers and its rejects."""
    expected = expect(case.query, case.streams, case.lateness)
    with plans_enumerated_once():
        for path_operator in path_operators:
            with restless(case.moves, case.capacity):
                judge_case(case, path_operator, expected)


@contextmanager
def plans_enumerated_once() -> Iterator[None]:
    """While the equivalent plans of a query, which cost more than all else here, are found but once."""
    once = cache(enumerate_plans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meander.engine.enumerate_plans", once)
        yield


def hold_law_of_burst(case: Case, *path_operators: str) -> None:
    """The same; what fails is made smaller first."""
    try:
        hold_law(case, *path_operators)
    except TooLarge:
        assume(False)
    except Exception as error:
        failure = type(error)

        def fails(fewer: Case) -> bool:
            try:
                hold_law(fewer, *path_operators)
            except Exception as found:
                return type(found) is failure
            return False

        with naming(case := reduced(case, fails)):
            hold_law(case, *path_operators)
        raise


@contextmanager
def naming(case: Case) -> Iterator[None]:
    """Whatever is wrong shows the case as a file for `cases/`."""
    try:
        yield
    except Exception as error:
        named(error, case)
        raise


def judge_case(case: Case, path_operator: str, expected: Expected) -> None:
    plan = None if case.plan is None else case.plan % len(meander.plans(case.text))
    rejects: list[Any] = []
    records = meander.run(
        case.text,
        case.streams,
        lateness=case.lateness,
        mode=case.mode,
        paths=case.paths,
        batch_rows=case.batch_rows,
        plan=plan,
        path_operator=path_operator,
        demand=case.demand,
        threads=case.threads,
        rejects=rejects,
    )
    first_path = path_operator == "negative-tuple"
    judge(records, expected, mode=case.mode, paths=case.paths, first_path=first_path)
    rejected = Counter({name: len(edges) for name, edges in expected.rejected.items() if edges})
    assert Counter(reject["stream"] for reject in rejects) == rejected


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
