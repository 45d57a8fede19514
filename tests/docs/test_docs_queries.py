"""Every query in the documentation is what it says: one that parses, or one that is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import meander
from meander.engine import compile_query
from meander.errors import QueryError
from meander.explain import explain

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(<!-- (?P<mark>[\w ]+) -->\n)?```(?P<language>dl|gcore)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
LANGUAGES = {"dl": "datalog", "gcore": "gcore"}

BLOCKS = [
    pytest.param(block["text"], LANGUAGES[block["language"]], block["mark"], id=f"{page.name}-{number}")
    for page in PAGES
    if page.exists()
    for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), start=1)
]


@pytest.mark.parametrize(("text", "language", "mark"), BLOCKS)
def test_a_query_in_the_documentation_is_accepted_or_refused_as_it_says(
    text: str, language: str, mark: str | None
) -> None:
    if mark == "wrong":
        with pytest.raises(QueryError):
            explain(compile_query(text, language=language))
    else:
        assert "Warnings\n  none" in explain(compile_query(text, language=language))


def test_the_gcore_query_has_the_answers_of_notify_dl_and_those_of_the_empty_path() -> None:
    """As the README says: bob and cem are notified of their own posts; with `+` the answers are the same."""
    [(printed, _, _)] = [block.values for block in BLOCKS if block.id == "README.md-2"]
    assert printed == (ROOT / "examples" / "notify.gcore").read_text(encoding="utf-8")
    datalog = notified((ROOT / "examples" / "notify.dl").read_text(encoding="utf-8"))
    assert notified(printed.replace("*", "+")) == datalog
    more = notified(printed) - datalog
    assert {(src, trg) for src, trg, _, _ in more} == {("bob", "m2"), ("cem", "m1"), ("cem", "m3")}
    assert notified(printed) >= datalog


def notified(query: str) -> set[tuple[str, str, int, int]]:
    records = meander.run(query, str(ROOT / "examples" / "social.tsv"))
    return {(record["src"], record["trg"], record["ts"], record["exp"]) for record in records}
