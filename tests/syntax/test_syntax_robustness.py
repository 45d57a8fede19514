"""Whatever the text, `parse` returns a query or raises `QueryError`, and is quick about it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.errors import QueryError
from meander.syntax import parse, to_datalog

FOLDER = Path(__file__).parent
VALID = {
    "datalog": """STREAM social WINDOW 24h SLIDE 1h
STREAM shop WINDOW 30 days
RL(u1, u2) <- social.likes(u1, m), (social.follows+|^social.`has-tag`{2,4})(u1, u2) as FP, social.posts(u2, m).
because(u, v) as P <- RL*(u, v) as P, shop.buys(v, "a\\"b").
Notify(u, m) <- RL+(u, v), shop.buys(v, m), shop.buys(_, 7). % comment
RESULT Notify, because
""",
    "gcore": (FOLDER / "figures" / "notification.gcore").read_text()
    + "WHERE (u) = 'x' AND (v = m)\n"
    + "% comment\n",
    "view": (FOLDER / "figures" / "recommendation.gcore").read_text()
    + "CONSTRUCT (a)-/@q:r/->(b) MATCH (a)-/q<(:recommendation|:recommendation-){1,2}>/->(b) ON rec_stream",
}
PIECES = sorted(
    {word for text in VALID.values() for word in text.split()}
    | set("()[]{}<>/|*+?^~:@=.,-_`'\"%# \n\t\0é日")
    | {"<-", "-[", "]->", "-/", "/->", "24h", "STREAM s WINDOW 5\n", "A(x, y) <- a(x, y).", "\\u12"}
)
VIEWS = {"v": parse("STREAM s WINDOW 5 A(x, y) <- a(x, y)."), "social": parse(VALID["datalog"])}
languages = st.sampled_from((None, "datalog", "gcore"))


def accept_or_refuse(text: str, language: str | None) -> None:
    """Any other exception than `QueryError` fails; what is accepted can be printed and read again."""
    try:
        query = parse(text, language=language, views=VIEWS)
    except QueryError as error:
        message, hint = str(error), error.hint
    else:
        message, hint = "", "fine"
        assert parse(to_datalog(query), language="datalog") == query
    assert hint
    assert all(line.isprintable() for line in message.split("\n"))


@pytest.mark.parametrize("name", VALID)
def test_the_texts_to_mutate_are_valid(name: str) -> None:
    parse(VALID[name])


@settings(deadline=None)
@given(st.text(), languages)
def test_any_text(text: str, language: str | None) -> None:
    accept_or_refuse(text, language)


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(("", " ")), languages)
def test_any_soup_of_pieces(pieces: list[str], glue: str, language: str | None) -> None:
    accept_or_refuse(glue.join(pieces), language)


@settings(deadline=None)
@given(st.sampled_from(sorted(VALID)), st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_mutation_of_a_valid_query(name: str, choice: random.Random, times: int) -> None:
    text = VALID[name]
    for _ in range(times):
        start = choice.randrange(len(text) + 1)
        end = min(len(text), start + choice.choice((0, 0, 1, 1, 2, 8)))
        text = text[:start] + choice.choice(("", "", choice.choice(PIECES))) + text[end:]
    accept_or_refuse(text, None)


@pytest.mark.parametrize("name", VALID)
def test_every_beginning_of_a_valid_query(name: str) -> None:
    for end in range(0, len(VALID[name]), 7):
        accept_or_refuse(VALID[name][:end], "datalog" if name == "datalog" else "gcore")


HEAD = "STREAM s WINDOW 5\nA(x, y) <- "
MATCH = "CONSTRUCT (a)-[:x]->(b) MATCH (a)-/<"
DEEP = {
    "parentheses": HEAD + "(" * 4_000 + "a" + ")" * 4_000 + "(x, y).",
    "unclosed parentheses": HEAD + "(" * 8_000,
    "stars": HEAD + "a" + "*" * 8_000 + "(x, y).",
    "carets": HEAD + "^" * 8_000 + "a(x, y).",
    "rules in a chain": HEAD + "a(x, y)." + "".join(f"A{n + 1}(x,y)<-A{n}(x,y).\n" for n in range(1_200)),
    "rules in a cycle": "".join(f"A{n + 1}(x,y)<-A{n}(x,y).\n" for n in range(1_200)) + "A0(x,y)<-A9(x,y).",
    "backslashes": HEAD + 'a(x, "' + "\\" * 8_000,
    "digits": "STREAM s WINDOW " + "9" * 8_000,
    "digits of a vertex": HEAD + "a(x, " + "9" * 8_000 + ").",
    "G-CORE parentheses": f"{MATCH}{'(' * 4_000}:a{')' * 4_000}>/->(b) ON s WINDOW(5)",
    "parentheses in WHERE": f"{MATCH}:x>/->(b) ON s WINDOW(5) WHERE {'(' * 4_000}a = b{')' * 4_000}",
    "PATH clauses in a chain": "".join(f"PATH P{n}=(a)-/<~P{n + 1}>/->(b)\n" for n in range(1_100))
    + f"PATH P1100=(a)-[:x]->(b) {MATCH}~P0>/->(b) ON s WINDOW(5)",
    "views in a chain": "GRAPH VIEW v0 AS (CONSTRUCT (a)-[:x]->(b) MATCH (a)-[:x]->(b) ON s WINDOW(5))"
    + "".join(
        f"GRAPH VIEW v{n} AS (CONSTRUCT (a)-[:x]->(b) MATCH (a)-[:x]->(b) ON v{n - 1})" for n in range(1, 500)
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_nothing_is_too_deep(name: str) -> None:
    accept_or_refuse(DEEP[name], None)


WIDE = {
    "elements": "CONSTRUCT "
    + ",".join(f"(a)-[:p{n}]->(b)" for n in range(2_000))
    + " MATCH (a)-[:x]->(b) ON s WINDOW(5)",
    "steps": HEAD + "a/" * 24_000 + "a(x, y).",
    "PATH clauses on many streams": "PATH W=(a)"
    + "".join(f"-/<~P{n}>/->(b)" for n in range(400))
    + "".join(f"PATH P{n}=(a)-[:x]->(b)\n" for n in range(400))
    + "CONSTRUCT (a)-[:x]->(b)"
    + "".join(f"MATCH (a)-/<~W>/->(b) ON s{n} WINDOW(5)\n" for n in range(400)),
    "a million characters of one rule": HEAD + "a(x, y), " * 111_000 + "a(x, y).",
    "a million characters of garbage": "\x01(]" * 333_334,
}


@pytest.mark.parametrize("name", WIDE)
def test_a_huge_text_is_refused_within_seconds(name: str) -> None:
    begun = time.process_time()
    with pytest.raises(QueryError, match=r"the most is|needs more than"):
        parse(WIDE[name])
    assert time.process_time() - begun < 15


def test_a_query_of_a_million_characters_says_how_long_it_may_be() -> None:
    with pytest.raises(QueryError) as caught:
        parse(" " * 1_000_000)
    assert str(caught.value).startswith("the query has 1,000,000 characters; the most is 50,000\nhint: ")
