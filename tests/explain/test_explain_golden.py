"""What `explain` prints for the paper's queries, word for word: the summary, then its stages.

`MEANDER_REGENERATE=1 pytest tests/explain` writes the files again; look at the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meander import Session
from meander.explain import EVERY_STAGE, STAGES, as_text, explain, sections
from meander.explain.stages import Explanation
from meander.options import RunOptions
from meander.syntax import parse

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parent / "golden"
QUERIES = [f"q{number}.dl" for number in range(1, 8)] + ["notify.dl", "notify.gcore", "recommend.gcore"]


def query_text(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_the_papers_queries_are_explained_as_agreed(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    text = explain(query_text(name))
    # A list of 64 plans is for nobody to read; the shorter ones show what it looks like.
    stages = (
        STAGES if len(Explanation(query_text(name)).query.plans["Answer"]) < 10 else ("logical", "physical")
    )
    for stage in stages:
        text += f"\n{'-' * 40} --stage {stage}\n\n{explain(query_text(name), stage)}"
    if os.environ.get("MEANDER_REGENERATE"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_the_query_stage_is_datalog_of_the_same_query(name: str) -> None:
    text = query_text(name)
    assert parse(explain(text, "query"), language="datalog") == parse(text)


@pytest.mark.parametrize("name", QUERIES)
def test_the_summary_has_four_sections_and_fits_on_a_screen(name: str) -> None:
    summary = explain(query_text(name))
    titles = [section.title for section in sections(Explanation(query_text(name)))]
    assert titles == ["Query", "Plan", "State", "Warnings"]
    assert summary.count("\n") <= 50
    assert max(map(len, summary.splitlines())) <= 160


@pytest.mark.parametrize("name", QUERIES)
def test_all_stages_are_each_stage_in_turn_and_the_warnings(name: str) -> None:
    explanation = Explanation(query_text(name))
    titles = [section.title for section in sections(explanation, EVERY_STAGE)]
    each = [section.title for stage in STAGES for section in explanation.stage(stage)]
    assert titles == [*each, "Warnings"]


@pytest.mark.parametrize("name", QUERIES)
def test_any_plan_can_be_asked_for_and_is_marked(name: str) -> None:
    last = len(Explanation(query_text(name)).query.plans["Answer"]) - 1
    explanation = Explanation(query_text(name), RunOptions(plan=last))
    marked = [line for line in as_text(sections(explanation, "plans")).splitlines() if line.startswith("  *")]
    assert marked[0].split()[1] == str(last)
    assert marked[1].endswith("as requested") == (last > 0)
    assert explanation.physical.results


def test_a_query_of_a_session_is_explained_as_by_the_command() -> None:
    text = query_text("q4.dl")
    query = Session().query(text, name="q4")  # explaining starts no Spark
    assert query.explain() == explain(text)
    assert query.explain("plans") == explain(text, "plans")
    assert query.explain(cells=3) == explain(text, options=RunOptions(cells=3))
