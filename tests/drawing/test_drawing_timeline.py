"""The timeline of answers, judged by its geometry."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.drawing import Answer, Row, draw_timeline
from picture_geometry import SVG, number, overlap, text_rectangle

HOUR = 3600


def texts(svg: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}text"))


def words(svg: str) -> list[str]:
    return [text.text or "" for text in texts(svg)]


def bars(svg: str) -> list[ET.Element]:
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "bar"]


def ticks(svg: str) -> dict[str, float]:
    """Where each time of the axis is."""
    first = min(number(text, "y") for text in texts(svg) if text.get("font-size") == "11")
    return {text.text or "": number(text, "x") for text in texts(svg) if number(text, "y") == first}


times = st.integers(0, 100) | st.integers(0, 10**7) | st.integers(1_700_000_000, 1_700_100_000)
intervals = st.builds(
    lambda ts, length: (ts, None if length is None else ts + length), times, st.none() | st.integers(1, 10**6)
)
names = st.sampled_from(["ann Notify salad", "a " * 90, "x" * 300, "漢字 follows 漢字", "7 a 8", "<&\x00"])
rows = st.builds(Row, names, st.lists(intervals, min_size=1, max_size=4).map(tuple))
answers = st.builds(
    Answer,
    names,
    st.lists(intervals, min_size=1, max_size=4).map(tuple),
    st.sampled_from(["Notify", "Because"]),
    st.lists(rows, max_size=4).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(answers, max_size=12), st.sampled_from(["s", "ms", "us"]))
def test_texts_of_any_timeline_are_apart_and_within_the_picture(drawn: list[Answer], unit: str) -> None:
    svg = draw_timeline(drawn, "generated", unit=unit)
    root = ET.fromstring(svg)
    rectangles = [text_rectangle(text) for text in texts(svg)]
    assert not any(overlap(first, second) for first, second in combinations(rectangles, 2))
    for left, top, right, bottom in rectangles:
        assert 0 <= left <= right <= number(root, "width")
        assert 0 <= top <= bottom <= number(root, "height")


def test_an_interval_begins_with_a_stroke_at_ts_and_ends_with_a_ring_at_exp() -> None:
    svg = draw_timeline([Answer("x a y", ((6 * HOUR, 24 * HOUR),))])
    axis = ticks(svg)
    [bar] = bars(svg)
    stroke, length = bar.iter(f"{SVG}rect")
    [ring] = bar.iter(f"{SVG}circle")
    assert number(stroke, "x") == pytest.approx(axis["6h"], abs=1.5)
    assert number(length, "x") == pytest.approx(axis["6h"], abs=0.1)
    assert number(length, "x") + number(length, "width") == pytest.approx(axis["24h"], abs=0.2)
    assert number(ring, "cx") == pytest.approx(axis["24h"], abs=0.1)
    assert ring.get("fill") == "#ffffff"
    assert "[6h, 24h)" in words(svg)


def test_an_end_that_is_not_known_is_an_arrow_to_the_edge() -> None:
    svg = draw_timeline([Answer("x a y", ((10, None),)), Answer("x a z", ((10, 20),))])
    open_end, _ = bars(svg)
    assert list(open_end.iter(f"{SVG}polygon"))
    assert not list(open_end.iter(f"{SVG}circle"))
    assert "[10s, …)" in words(svg)


def test_an_answer_has_one_row_and_a_bar_for_each_interval_in_which_it_holds() -> None:
    """Records that overlap or meet extend one another; a gap between them is seen."""
    svg = draw_timeline([Answer("x a y", ((1, 5), (3, 8), (8, 9), (20, 30)))])
    assert words(svg).count("x a y") == 1
    assert [bar.find(f"{SVG}title").text for bar in bars(svg)] == ["[1s, 9s)", "[20s, 30s)"]


def test_the_edges_that_prove_an_answer_are_below_it_with_their_own_bars() -> None:
    proof = (Row("x a z", ((1, 9),)), Row("z a y", ((4, 12),)))
    svg = draw_timeline([Answer("x Answer y", ((4, 9),), "Answer", proof), Answer("x Answer z", ((1, 9),))])
    assert [word for word in words(svg) if word[0] in "xz"] == ["x Answer y", "x a z", "z a y", "x Answer z"]
    assert [bar.find(f"{SVG}title").text for bar in bars(svg)] == [
        "[4s, 9s)", "[1s, 9s)", "[4s, 12s)", "[1s, 9s)"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("interval", "unit", "shown"),
    [
        ((0, 5400), "s", ["0m", "10m", "90m"]),
        ((0, 90_000_000), "ms", ["0h", "3h", "27h"]),
        ((0, 12), "us", ["0us", "2us", "12us"]),
        ((0, 86_400 * 3000), "s", ["0d", "400d", "3200d"]),
    ],
)
def test_times_have_a_unit_that_suits_the_span(
    interval: tuple[int, int], unit: str, shown: list[str]
) -> None:
    labels = list(ticks(draw_timeline([Answer("x a y", (interval,))], unit=unit)))
    assert [*labels[:2], labels[-1]] == shown


def test_a_long_timeline_shows_its_first_answers_and_how_many_there_are() -> None:
    svg = draw_timeline([Answer(f"v{number} a v", ((number, number + 9),)) for number in range(500)], "Chain")
    assert "Chain (the first 60 of 500 answers)" in words(svg)
    assert len(bars(svg)) == 60


def test_a_timeline_without_answers_says_so() -> None:
    assert words(draw_timeline([], "Nothing yet")) == ["Nothing yet", "no answers"]
