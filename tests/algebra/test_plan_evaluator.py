"""The measure itself, on cases small enough to be worked out by hand."""

from meander.algebra.nodes import Filter, Path, Pattern, Union, WScan
from meander.syntax.query import Either, Inverse, Label, Repeat, Then
from meander.syntax.values import Comparison, end_point, equals_vertex
from plan_evaluator import evaluate

A, B = WScan("s", ("a",), 10), WScan("s", ("b",), 10)
ZERO, ONE = Label("0"), Label("1")
SNAPSHOT = {("s", "a"): {("u", "v"), ("v", "w")}, ("s", "b"): {("w", "x"), ("y", "y")}}


def path(expr, *inputs):
    return evaluate(Path(inputs, expr, "P"), SNAPSHOT)


def test_scans_filters_and_unions():
    assert evaluate(A, SNAPSHOT) == {("u", "v"), ("v", "w")}
    assert evaluate(WScan("s", ("a", "b"), 10, 1, equals_vertex("trg", "w")), SNAPSHOT) == {("v", "w")}
    assert evaluate(Filter(B, Comparison("=", end_point(0), end_point(1))), SNAPSHOT) == {("y", "y")}
    assert evaluate(Union((A, B), "c"), SNAPSHOT) == SNAPSHOT["s", "a"] | SNAPSHOT["s", "b"]
    assert evaluate(WScan("t", ("a",), 10), SNAPSHOT) == set()


def test_patterns_join_project_and_repeat():
    assert evaluate(Pattern((A, B), ((0, 1), (1, 2)), (0, 2, 0), "c"), SNAPSHOT) == {("v", "x", "v")}
    assert evaluate(Pattern((A,), ((0, 1),), (), "c"), SNAPSHOT) == {()}
    assert evaluate(Pattern((A,), ((0, 0),), (), "c"), SNAPSHOT) == set()


def test_paths_close_repeat_and_turn_round():
    assert path(Repeat(ZERO, 1, None), A) == {("u", "v"), ("v", "w"), ("u", "w")}
    assert path(Repeat(ZERO, 2, 2), A) == {("u", "w")}
    assert path(Then((Inverse(ZERO), ZERO)), A) == {("v", "v"), ("w", "w")}
    assert path(Inverse(Then((ZERO, ZERO))), A) == {("w", "u")}
    assert path(Either((ZERO, Then((ZERO, ONE)))), A, B) == {("u", "v"), ("v", "w"), ("v", "x")}


def test_the_empty_word_joins_the_end_points_of_this_operators_inputs_only():
    assert path(Repeat(ZERO, 0, 1), B) == {("w", "w"), ("x", "x"), ("y", "y"), ("w", "x")}
    assert path(Then((ZERO, Repeat(ONE, 0, None))), A, B) == {("u", "v"), ("v", "w"), ("v", "x")}
