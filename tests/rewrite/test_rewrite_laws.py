"""Every law keeps the meaning: on its fixtures, and on generated plans and snapshots."""

from __future__ import annotations

from pathlib import Path as File

import plan_text
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_strategies import SHAPES, make_snapshots

from meander.algebra.nodes import Plan
from meander.algebra.trees import walk
from meander.rewrite.laws import EXPLORING, LAWS, NORMALIZING, PLAN_WIDE, Law
from plan_evaluator import evaluate

FIXTURES = File(__file__).parent / "fixtures"
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


def fixture_cases(name: str) -> list[tuple[str, list[str]]]:
    """Blocks of a plan and, after `=`, all that the law makes of it; lines that start with # are comments."""
    cases = []
    for block in (FIXTURES / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        before, *after = "\n".join(lines).split("\n= ")
        cases.append((before, [] if after == ["nothing"] else after))
    return cases


def test_every_law_has_a_fixture_and_a_shape_and_every_fixture_and_shape_a_law() -> None:
    names = [law.__name__ for law in LAWS]
    assert sorted(names) == sorted(file.stem for file in FIXTURES.glob("*"))
    assert sorted(names) == sorted(SHAPES)
    assert len(set(names)) == len(names)
    assert (*NORMALIZING, *PLAN_WIDE, *EXPLORING) == LAWS


@each_law
def test_a_law_says_what_it_does(law: Law) -> None:
    first_line = (law.__doc__ or "").strip().partition("\n")[0]
    assert first_line.startswith("`")
    assert "=" in first_line


@each_law
def test_a_law_does_what_its_fixture_says(law: Law) -> None:
    cases = fixture_cases(law.__name__)
    for before, after in cases:
        derived = [plan_text.write(plan) for plan in law(plan_text.read(before))]
        assert derived == [plan_text.write(plan_text.read(text)) for text in after], before
    assert any(after for _, after in cases)


@each_law
def test_a_law_keeps_meaning_label_and_arity(law: Law) -> None:
    fired = 0

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(SHAPES[law.__name__], st.integers(0, 1000))
    def check(plan: Plan, seed: int) -> None:
        nonlocal fired
        for before in walk(plan):
            for after in law(before):
                fired += 1
                assert after != before
                assert (after.label, after.arity) == (before.label, before.arity)
                for snapshot in make_snapshots(before, seed, 10):
                    assert evaluate(after, snapshot) == evaluate(before, snapshot), plan_text.write(after)

    check()
    assert fired >= 3
