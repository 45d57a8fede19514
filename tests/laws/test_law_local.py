"""Snapshot reducibility: whatever the query, the stream, the plan, the path operator and the cut into batches, at
every instant the persistent query's answer is that of the same query asked once on the snapshot.

`MEANDER_LAW_EXAMPLES` says how many cases are drawn, shared out over the path operators. What has once gone wrong,
and what is easily got wrong, stands in `cases/`, one file each: why it is there, the query, its edges as JSON.

`auto` chooses by what it has counted over thousands of edges; here it is made to move every other row or so.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import meander
from judge import judge
from oracle import expect
from querytext import read_query
from strategies import Case, cases, restless

PATH_OPERATORS = ("s-path", "negative-tuple", "closure", "auto")
EXAMPLES = int(os.environ.get("MEANDER_LAW_EXAMPLES", "240"))
CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))

drawn = settings(
    max_examples=max(1, EXAMPLES // len(PATH_OPERATORS)),
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def hold_law(case: Case, path_operator: str) -> None:
    """Run the case and judge its answers and its rejects."""
    with restless(case.moves):
        judge_case(case, path_operator)


def judge_case(case: Case, path_operator: str) -> None:
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
    expected = expect(case.query, case.streams, case.lateness)
    first_path = path_operator == "negative-tuple"
    judge(records, expected, mode=case.mode, paths=case.paths, first_path=first_path)
    rejected = Counter({name: len(edges) for name, edges in expected.rejected.items() if edges})
    assert Counter(reject["stream"] for reject in rejects) == rejected


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=cases())
@drawn
def test_every_answer_is_that_of_the_snapshot(path_operator: str, case: Case) -> None:
    hold_law(case, path_operator)


@pytest.mark.slow
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@given(case=cases())
@settings(drawn, max_examples=20_000 // len(PATH_OPERATORS))
def test_every_answer_is_that_of_the_snapshot_in_many_more_cases(path_operator: str, case: Case) -> None:
    hold_law(case, path_operator)


def read_case(file: Path) -> Case:
    """A named case: comments (`#! lateness 3` counts), the query, and for each stream `--- name` and edges."""
    text, *parts = file.read_text(encoding="utf-8").split("\n--- ")
    streams = {}
    for part in parts:
        name, *lines = part.splitlines()
        streams[name.strip()] = [tuple(json.loads(line)) for line in lines if line.strip()]
    options = dict(line[2:].split() for line in text.splitlines() if line.startswith("#!"))
    return Case(read_query(text), streams, lateness=int(options.get("lateness", 0)))


@pytest.mark.parametrize("batch_rows", [1, 65536])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("paths", [False, True], ids=["bare", "paths"])
@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds(file: Path, path_operator: str, paths: bool, mode: str, batch_rows: int) -> None:
    hold_law(replace(read_case(file), paths=paths, mode=mode, batch_rows=batch_rows), path_operator)


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_by_plans_of_all_kinds(file: Path, path_operator: str) -> None:
    case = read_case(file)
    count = len(meander.plans(case.text))
    for plan in range(0, count, 1 + count // 8):
        hold_law(replace(case, paths=True, batch_rows=2, plan=plan), path_operator)
