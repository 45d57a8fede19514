"""The pictures that `explain --svg` draws of the paper's queries, each stage and every plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from meander.drawing import draw_plan
from meander.explain.stages import Explanation
from picture_geometry import check_picture

EXAMPLES = Path(__file__).parents[2] / "examples"
QUERIES = [f"q{number}.dl" for number in range(1, 8)] + ["notify.dl", "notify.gcore", "recommend.gcore"]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("stage", ["logical", "plans", "physical"])
def test_nothing_overlaps_in_the_picture_of_a_stage(name: str, stage: str) -> None:
    explanation = Explanation((EXAMPLES / name).read_text(encoding="utf-8"))
    check_picture(explanation.draw(stage, name))


@pytest.mark.parametrize("name", QUERIES)
def test_nothing_overlaps_in_the_picture_of_any_plan(name: str) -> None:
    explanation = Explanation((EXAMPLES / name).read_text(encoding="utf-8"))
    for number, plan in enumerate(explanation.plans["Answer"]):
        check_picture(draw_plan({"Answer": plan}, f"{name}: plan {number}"))
