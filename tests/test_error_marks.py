"""How errors look: the marked place, the hint, what would be accepted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.errors import ArgumentError, MeanderError, QueryError, Span, mark


def carets(text: str, start: int, end: int) -> tuple[str, str]:
    """The shown line and what stands above the carets."""
    line, under = mark(text, Span(start, end)).split("\n")
    return line, line[under.index("^") : under.rindex("^") + 1]


def test_the_line_of_the_span_is_shown_with_its_number() -> None:
    assert mark("one\ntwo three\nfour", Span(8, 13)) == "   2 | two three\n     |     ^^^^^"


def test_a_tab_is_shown_as_spaces_before_and_within_the_span() -> None:
    assert carets("\ta\tbc", 3, 5) == ("   1 |     a    bc", "bc")
    assert carets("a\tb", 0, 3)[1] == "a    b"


def test_a_span_over_several_lines_is_underlined_on_its_first() -> None:
    assert carets("first (\nsecond)\n", 6, 15) == ("   1 | first (", "(")


def test_a_span_at_the_end_has_one_caret_behind_the_text() -> None:
    assert mark("abc", Span(3, 3)) == "   1 | abc\n     |    ^"
    assert mark("abc\n", Span(4, 4)) == "   2 | \n     | ^"
    assert mark("", Span(0, 0)) == "   1 | \n     | ^"


def test_a_span_outside_the_text_is_brought_inside() -> None:
    assert mark("abc", Span(-5, -2)).endswith("| ^")
    assert mark("abc", Span(70, 90)) == "   1 | abc\n     |    ^"


def test_wide_characters_take_two_columns() -> None:
    assert mark("日本 x", Span(3, 4)) == "   1 | 日本 x\n     |      ^"


def test_windows_line_ends_and_control_characters_are_not_printed() -> None:
    assert mark("a\0b\r\nc", Span(1, 2)) == "   1 | a·b\n     |  ^"


def test_a_long_line_is_cut_around_the_span() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    shown, above = carets(text, 500, 504)
    assert above == "HERE"
    assert len(shown) < 120
    assert shown.count("…") == 2


def test_a_span_longer_than_the_shown_line_is_underlined_to_its_end() -> None:
    assert len(max(mark("x" * 100_000, Span(0, 100_000)).split("\n"), key=len)) < 120


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(-5, 310), st.integers(0, 310))
def test_every_span_of_every_text_can_be_marked(text: str, start: int, length: int) -> None:
    line, under = mark(text, Span(start, start + length)).split("\n")
    assert "^" in under
    assert line.isprintable()
    assert len(line) < 120


def test_an_error_says_what_where_what_is_accepted_and_what_to_do() -> None:
    error = QueryError("wrong", text="a b", span=Span(2, 3), accepted=("x", "y"), hint="try x")
    assert str(error) == "wrong\n   1 | a b\n     |   ^\naccepted here: x, y\nhint: try x"
    assert error.exit_status == 2


def test_what_cannot_be_seen_in_a_name_is_written_out() -> None:
    assert str(QueryError("no label a\u2028b")) == "no label a\\u2028b"


@pytest.mark.parametrize("kind", [MeanderError, ArgumentError])
def test_any_error_may_have_a_hint(kind: type[MeanderError]) -> None:
    assert str(kind("wrong")) == "wrong"
    assert str(kind("wrong", hint="try x")) == "wrong\nhint: try x"
