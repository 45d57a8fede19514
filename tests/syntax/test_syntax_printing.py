"""What is printed as Datalog parses to the same query."""

from __future__ import annotations

import pytest
from generate_queries import path_expressions, regular_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.syntax import parse, to_datalog
from meander.syntax.checks import check_query
from meander.syntax.printing import expression_text, name_text
from meander.syntax.query import Label, PathExpr, RegularQuery


@settings(deadline=None)
@given(regular_queries())
def test_a_printed_query_parses_to_itself(query: RegularQuery) -> None:
    check_query(query)
    assert parse(to_datalog(query)) == query


@settings(deadline=None)
@given(path_expressions(st.sampled_from([Label("a", "s"), Label("b", "s"), Label("has-tag", "s")])))
def test_a_printed_expression_keeps_its_structure(expr: PathExpr) -> None:
    text = f"STREAM s WINDOW 1 Answer(x, y) <- ({expression_text(expr)})(x, y)."
    assert parse(text).rules[0].body[0].expr == expr


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a/b/c",
        "(a/b)/c",
        "a|b/c*",
        "(a|b)/c",
        "a|b/a",
        "(a/b)+",
        "^(a*)",
        "(^a)*",
        "(a+)?",
        "a/(b|a)*/^b",
        "^(a/b)",
        "^(^a)",
        "(a*)*",
        "a?",
        "a{2}",
        "a{2,}",
        "a{2,4}",
        "a{0}",
        "`has-tag`+",
    ],
)
def test_an_expression_is_printed_with_parentheses_around_compound_operands_only(text: str) -> None:
    [rule] = parse(f"STREAM s WINDOW 1 Answer(x, y) <- ({text})(x, y).").rules
    assert expression_text(rule.body[0].expr, lambda label: name_text(label.name)) == text


def test_a_label_spelled_like_a_head_is_printed_with_its_stream() -> None:
    text = "STREAM s WINDOW 5\nfollows(x, y) <- s.follows(x, z), likes(z, y).\n"
    assert to_datalog(parse(text)) == text
