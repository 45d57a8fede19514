"""What `explain` says about the paper's queries, word for word.

`MEANDER_REGENERATE=1 pytest tests/explain` writes the files anew; look at the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meander.explain import STAGES, as_text, explain, sections
from meander.explain.stages import Explanation
from meander.syntax import parse

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parent / "golden"
QUERIES = [f"q{number}.dl" for number in range(1, 8)] + ["notify.dl", "notify.gcore", "recommend.gcore"]


def query_text(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_the_papers_queries_are_explained_as_agreed(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    found = explain(query_text(name))
    if os.environ.get("MEANDER_REGENERATE"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_the_query_stage_is_datalog_of_the_same_query(name: str) -> None:
    text = query_text(name)
    assert parse(explain(text, "query"), language="datalog") == parse(text)


@pytest.mark.parametrize("name", QUERIES)
def test_each_stage_is_a_part_of_the_whole(name: str) -> None:
    explanation = Explanation(query_text(name))
    titles = [section.title for section in sections(explanation)]
    for stage in STAGES[1:]:
        assert {section.title for section in sections(explanation, stage)} <= set(titles)
    assert titles[-1] == "Warnings"


@pytest.mark.parametrize("name", QUERIES)
def test_any_plan_can_be_asked_for_and_is_marked(name: str) -> None:
    last = len(Explanation(query_text(name)).plans["Answer"]) - 1
    asked = Explanation(query_text(name), plan=last)
    assert f"* plan {last} runs, as asked for" in as_text(sections(asked, "plans"))
    assert asked.physical.results
