"""The pictures that `explain --svg` draws of the paper's queries, each stage and every plan."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from command import meander
from meander.drawing import draw_plan
from meander.explain.stages import Explanation
from meander.options import RunOptions
from picture_geometry import SVG, check_picture

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
    for number, plan in enumerate(explanation.query.plans["Answer"]):
        check_picture(draw_plan({"Answer": plan}, f"{name}: plan {number}"))


@pytest.mark.parametrize("options", [[], ["--stage", "physical"]])
def test_the_picture_is_of_the_plan_that_will_run(options: list[str], tmp_path: Path) -> None:
    """Plan 1 of the notification query is a path over RL and posts; as written it is a join of RL+ and posts."""
    picture = tmp_path / "plan.svg"
    assert meander("explain", str(EXAMPLES / "notify.dl"), *options, "--svg", str(picture)).returncode == 0
    assert "Notify: RL+/posts" in picture.read_text(encoding="utf-8")


def test_a_plan_that_is_requested_is_drawn() -> None:
    text = (EXAMPLES / "q4.dl").read_text(encoding="utf-8")
    assert "P: (a/b/c)+" in Explanation(text, RunOptions(plan=1)).draw()
    assert "P: D+" in Explanation(text, RunOptions(plan=0)).draw()


def test_the_operators_of_the_picture_are_those_of_the_physical_plan() -> None:
    explanation = Explanation((EXAMPLES / "q7.dl").read_text(encoding="utf-8"))
    drawn = [text.text for text in ET.fromstring(explanation.draw()).iter(f"{SVG}text")]
    for number, name in enumerate(explanation.physical.names):
        assert f"#{number} {name.partition(' ')[0]}" in drawn
