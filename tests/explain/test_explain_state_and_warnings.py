"""What a query will hold, and what is odd about it."""

from __future__ import annotations

import pytest

from meander.errors import ArgumentError, QueryError
from meander.explain import explain, warnings_of
from meander.explain.stages import Explanation
from meander.explain.state import state_held
from meander.options import RunOptions
from meander.syntax import parse


def messages(text: str, unit: str = "s") -> list[str]:
    return [warning.message for warning in warnings_of(parse(text, unit=unit), unit)]


def state(text: str) -> list[str]:
    return state_held(Explanation(text).physical)


def test_a_plain_query_has_no_warning() -> None:
    assert messages("STREAM s WINDOW 24h SLIDE 1h Answer(x, y) <- a+(x, z), b(z, y).") == []


def test_a_slide_that_does_not_divide_the_window_is_fine() -> None:
    assert messages("STREAM s WINDOW 24h SLIDE 7h Answer(x, y) <- a(x, y).") == []


def test_a_slide_longer_than_the_window_loses_edges() -> None:
    assert messages("STREAM s WINDOW 1h SLIDE 4h Answer(x, y) <- a(x, y).") == [
        "the slide of s (4h) is longer than its window (1h): edges in the last 3h of each slide never become valid, "
        "75% of all times"
    ]


@pytest.mark.parametrize(("window", "unit"), [("3650d", "s"), ("3650d", "us"), ("400000000", "s")])
def test_a_window_of_decades_bounds_nothing(window: str, unit: str) -> None:
    warnings = messages(f"STREAM s WINDOW {window} Answer(x, y) <- a(x, y).", unit)
    assert len(warnings) == 1
    assert "almost no edge will expire" in warnings[0]


def test_a_body_in_two_parts_is_a_cross_product() -> None:
    assert messages("STREAM s WINDOW 9 Answer(x, u) <- a(x, y), (b/c)(u, v), d+(v, w).") == [
        "the body of Answer is a cross product: no variable ties a(x, y) to (b/c)(u, v) and d+(v, w), "
        "so every match of one meets every match of the other"
    ]


def test_a_later_atom_may_tie_earlier_ones_together() -> None:
    assert messages("STREAM s WINDOW 9 Answer(x, u) <- a(x, y), b(u, v), c(y, v).") == []


def test_a_vertex_does_not_tie_atoms_together() -> None:
    assert len(messages('STREAM s WINDOW 9 Answer(x, y) <- a("alice", x), a("alice", y).')) == 1


def test_a_fact_between_two_vertices_multiplies_nothing() -> None:
    assert messages('STREAM s WINDOW 9 Answer(x, y) <- a(x, y), b("alice", "bob").') == []


def test_an_unused_stream_and_an_unread_rule_are_named() -> None:
    text = "STREAM s WINDOW 9\nSTREAM t WINDOW 9\nD(x, y) <- s.a(x, y).\nAnswer(x, y) <- s.b(x, y)."
    assert messages(text) == [
        "the stream t is declared and read by no rule",
        "D is read by nothing: the result is Answer, and does not build on it",
    ]


def test_a_label_that_looks_like_a_wildcard_is_named_once_and_a_blank_variable_is_not() -> None:
    [message] = messages("STREAM s WINDOW 10 Answer(x, y) <- a(x, _), _(x, z), (b|_)+(z, y), b(_, y).")
    assert message.startswith("_ is a label like any other, not a wildcard")
    assert messages("STREAM s WINDOW 10 Answer(x, y) <- a(x, _), b(_, z), c(x, z), d(z, y).") == []


def test_a_warning_marks_its_position() -> None:
    text = "STREAM s WINDOW 9\nSTREAM t WINDOW 9\nAnswer(x, y) <- s.b(x, y)."
    [warning] = warnings_of(parse(text))
    assert warning.show(text).splitlines()[1:] == ["   2 | STREAM t WINDOW 9", "     | ^^^^^^^^^^^^^^^^^"]


def test_a_type_that_only_the_input_decides_is_pointed_out() -> None:
    text = "STREAM s (kind, amount FLOAT) WINDOW 9\nAnswer(x, y, k: m) <- a(x, y, kind: m, amount: n), n > 5."
    sentence = (
        "the type of kind is not known until the input of s is: Parquet and DataFrames bring it; for other input, "
        "declare it: s (kind FLOAT)"
    )
    assert messages(text) == [sentence]
    assert sentence in explain(text)
    assert warnings_of(parse(text), input_known=True) == []
    assert messages(text.replace("kind,", "kind STRING,")) == []


def test_warnings_stand_in_the_explanation() -> None:
    assert "declared and read by no rule" in explain(
        "STREAM s WINDOW 9 STREAM t WINDOW 9 Answer(x, y) <- s.b(x, y)."
    )


def test_state_names_streams_labels_and_how_long_edges_stay() -> None:
    [edges, *_] = state("STREAM s WINDOW 24h SLIDE 1h Answer(x, y) <- likes(x, z), posts(z, y).")
    assert edges == "edges of s (likes, posts), each for 23h to 1d, until it leaves the window"


def test_a_slide_of_one_keeps_every_edge_for_the_whole_window() -> None:
    assert state("STREAM s WINDOW 30 Answer(x, y) <- a(x, y).") == [
        "edges of s (a), each for 30s, until it leaves the window"
    ]


def test_edges_that_no_operator_looks_into_are_no_state() -> None:
    held = state("STREAM s WINDOW 9 Answer(x, y) <- a(x, y). Answer(x, y) <- b(x, z), c(z, y).")
    assert held[0].startswith("edges of s (b, c)")
    assert held[-1] == "#4 UNION Answer: its distinct tuples"


def test_state_shows_what_a_closure_is_over() -> None:
    held = state("STREAM s WINDOW 9 D(x, y) <- a(x, z), b(z, y), c(x, y). Answer(x, y) <- D+(x, y) as P.")
    assert held[1] == "#3 PATTERN D: its distinct matches; no intermediate join results"
    assert held[2] == (
        "#4 PATH P: for each source vertex, the vertices that it reaches by D+ (2 automaton states)"
    )


def test_a_closure_from_a_given_vertex_holds_what_that_vertex_reaches() -> None:
    held = state('STREAM s WINDOW 9 Answer(x) <- a+("alice", x) as P.')
    assert any('the vertices that "alice" reaches by a+' in line for line in held)


def test_state_that_several_results_share_is_listed_once() -> None:
    text = """
    PATH RL = (u1)-/ <:follows^*> /->(u2), (u1)-[:likes]->(m1)<-[:posts]-(u2)
    CONSTRUCT (u)-[:notify]->(m), (u)-/@p:because/->(v)
    MATCH (u)-/ p<~RL*> /->(v), (v)-[:posts]->(m)
    ON social_stream WINDOW(24h) SLIDE(1h)
    """
    held = state(text)
    assert len([line for line in held if "reaches by RL*" in line]) == 1
    numbers = [line.split()[0] for line in held[1:]]
    assert len(numbers) == len(set(numbers))


def test_plans_that_share_everything_twice_are_explained_all_the_same() -> None:
    rules = ["D0(x, y) <- a(x, y), b(x, y)."]
    rules += [f"D{n}(x, y) <- D{n - 1}(x, z), D{n - 1}(z, y)." for n in range(1, 25)]
    text = "STREAM s WINDOW 9\n" + "\n".join(rules) + "\nAnswer(x, y) <- D24(x, y)."
    assert "too long for one line" in explain(text, "logical")


def test_an_unknown_stage_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ArgumentError, match="stages are query, logical, plans, physical, all"):
        explain("STREAM s WINDOW 9 Answer(x, y) <- a(x, y).", "final")


def test_an_unknown_plan_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ArgumentError, match="its plans are 0 to"):
        explain("STREAM s WINDOW 9 Answer(x, y) <- a(x, y).", "plans", RunOptions(plan=99))


def test_a_bad_query_is_refused_as_anywhere() -> None:
    with pytest.raises(QueryError):
        explain("STREAM s WINDOW 0 Answer(x, y) <- a(x, y).")
