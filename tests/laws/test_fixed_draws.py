"""A newcomer's first `make test` draws the cases that everybody's draws, and a case survives being printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from case_files import case_text, read_case, reduced
from oracle import Edge
from querytext import read_query
from strategies import Case, cases, property_cases

TESTS = Path(__file__).parents[1]

PROGRAM = """
import conftest
from hypothesis import HealthCheck, Phase, given, settings
from bursts import bursts
from case_files import case_text
from strategies import cases, property_cases

for strategy in (cases(), property_cases(), bursts()):
    @given(strategy)
    @settings(max_examples=20, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    def show(case):
        print(case_text(case))

    show()
"""


def drawn_cases(hash_seed: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": str(TESTS), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_same_cases_are_drawn_in_every_process() -> None:
    first = drawn_cases("1")
    assert first.count("Say here why") >= 60
    assert drawn_cases("2") == first


@given(case=cases() | property_cases())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_printed_case_reads_back_as_it_was(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("cases") / "drawn.case"
    file.write_text(case_text(case), encoding="utf-8")
    again = read_case(file)
    assert again.text == case.text
    assert repr(again.streams) == repr({name: [*edges] for name, edges in case.streams.items()})
    assert case_text(again) == case_text(case)


def test_a_failing_case_is_reduced_to_the_edges_that_make_it_fail() -> None:
    edges: list[Edge] = [(i, "a", i + 1, 1) for i in range(1000)]
    case = Case(read_query("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y)."), {"s": edges})
    fewer = reduced(case, lambda case: {7, 640} <= {edge[0] for edge in case.streams["s"]})
    assert fewer.streams["s"] == [edges[7], edges[640]]
