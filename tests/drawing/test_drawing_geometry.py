"""Pictures of plans, judged by their geometry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_plans import PLANS

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.drawing import draw_plan
from meander.drawing.boxes import Box, draw_boxes
from meander.syntax.query import Either, Label, Repeat, Then
from meander.syntax.values import And, equals_vertex
from picture_geometry import SVG, boxes_of, check_picture


@pytest.mark.parametrize("name", sorted(PLANS))
def test_the_papers_plans_are_drawn_without_overlaps(name: str) -> None:
    check_picture(draw_plan(PLANS[name], f"{name}: the canonical plan"))


scans = st.builds(
    WScan,
    st.sampled_from(["s", "social_stream"]),
    st.sampled_from([("a",), ("b",), ("c", "d")]),
    st.just(86_400),
)


def larger(inner: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
    some = st.lists(inner, min_size=1, max_size=4, unique=True).map(tuple)
    repeated = st.lists(inner, min_size=1, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Filter, inner, st.just(And((equals_vertex(0, "alice"), equals_vertex(1, 7))))),
        st.builds(Union, some, st.just("union")),
        repeated.map(
            lambda inputs: Pattern(inputs, tuple((n, n + 1) for n in range(len(inputs))), (0, 1), "chain")
        ),
        repeated.map(lambda inputs: Pattern(inputs, ((0, 1),) * len(inputs), (1, 0), "parallel")),
        some.map(
            lambda inputs: Path(
                inputs,
                Then(
                    (
                        Label("0"),
                        Repeat(Either((*(Label(str(n)) for n in range(len(inputs))), Label("0"))), 2, 5),
                    )
                ),
                "path",
            )
        ),
    )


plans = st.recursive(scans, larger, max_leaves=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(plans, min_size=1, max_size=3))
def test_any_plan_is_drawn_without_overlaps(drawn: list[Plan]) -> None:
    check_picture(draw_plan({f"Answer{number}": plan for number, plan in enumerate(drawn)}, "generated"))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_graph_of_boxes_is_drawn_without_overlaps(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    words = st.text("abc/| mW{}()漢é", min_size=1, max_size=90)
    boxes = [
        Box(
            "⋈ PATTERN",
            data.draw(words),
            tuple(data.draw(st.lists(words, max_size=2))),
            numbered=data.draw(st.booleans()),
        )
        for _ in range(count)
    ]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
        lambda pair: pair[0] > pair[1]
    )
    edges = data.draw(st.lists(pairs, max_size=24)) if count > 1 else []
    check_picture(draw_boxes(boxes, edges, data.draw(words)))


def test_a_shared_subplan_is_drawn_once_with_an_arrow_for_each_use() -> None:
    svg = draw_plan(PLANS["q7"])
    names = [text.text for group, _ in boxes_of(svg) for text in group.iter(f"{SVG}text")]
    assert names.count("c") == 1
    assert svg.count('class="arrow"') == 8


def test_labels_that_xml_cannot_hold_are_shown_all_the_same() -> None:
    scan = WScan("s", ("a\x00<&\"'\ud800",), 10)
    check_picture(draw_plan({"Answer": Union((scan,), "]]>")}, "a < b & c\x07"))


def test_a_label_of_megabytes_is_cut() -> None:
    svg = draw_plan({"Answer": WScan("s", ("x" * 10_000_000,), 10)}, "long")
    check_picture(svg)
    assert len(svg) < 10_000
