"""How the law is held: a case is run by each path operator, and its answers and rejects are judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, settings

import meander
from case_files import named, reduced
from judge import judge
from meander.physical.path_operators import PATH_OPERATORS
from meander.rewrite import enumerate_plans
from oracle import Expected, TooLarge, expect
from strategies import Case, restless

EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "160"))
MANY_EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "10000"))

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
    plan = None if case.plan is None or case.proofs else case.plan % len(meander.plans(case.text))
    rejects: list[Any] = []
    records = meander.run(
        case.text,
        case.streams,
        lateness=case.lateness,
        mode=case.mode,
        paths=case.paths,
        proofs=case.proofs,
        batch_rows=case.batch_rows,
        plan=plan,
        path_operator=path_operator,
        demand=case.demand,
        threads=case.threads,
        rejects=rejects,
    )
    first_path = path_operator == "negative-tuple"
    judge(
        records,
        expected,
        mode=case.mode,
        paths=case.paths,
        proofs=case.proofs,
        first_path=first_path,
        some_paths=not plan and case.paths,
    )
    rejected = Counter({name: len(edges) for name, edges in expected.rejected.items() if edges})
    assert Counter(reject["stream"] for reject in rejects) == rejected
