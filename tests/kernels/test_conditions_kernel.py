"""Comparisons of a join as instructions, against the definition of a predicate's truth."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meander.dataflow.conditions import CompiledConditions
from meander.dataflow.state import Store
from meander.dataflow.vertices import Vertices
from meander.kernels.conditions import are_true
from meander.kernels.spans import wrapping
from meander.syntax.values import (
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    ValueType,
)
from value_rows import Value, intern_values, truth

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "300"))
INT, FLOAT, STRING = ValueType.INT, ValueType.FLOAT, ValueType.STRING
BOOL, TIME, VERTEX = ValueType.BOOL, ValueType.TIME, ValueType.VERTEX

# Two variables of each type.
TYPES = (INT, INT, FLOAT, FLOAT, STRING, STRING, BOOL, BOOL, TIME, TIME, VERTEX, VERTEX)

integers = st.one_of(
    st.integers(-3, 3), st.sampled_from((2**63 - 1, -(2**63), 2**62, 2**32, -(2**31), 3_037_000_500))
)
# Negative zero is interned as zero, and NaN is a missing value.
reals = st.one_of(
    st.sampled_from((0.0, 1.0, -2.5, 2.0**53, 1e308, -1e308, 5e-324, float("inf"), float("-inf"))),
    st.floats(allow_nan=False).filter(lambda value: value != 0.0),
)
strings = st.one_of(
    st.sampled_from(("", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "é", "z", "\U0001f600", "\uffff")),
    st.text(max_size=10),
)
vertices = st.one_of(st.integers(0, 3), st.sampled_from(("0", "1", "x")))
VALUES: dict[ValueType, st.SearchStrategy[Value]] = {
    INT: integers,
    TIME: st.integers(0, 2**62),
    FLOAT: reals,
    STRING: strings,
    BOOL: st.booleans(),
    VERTEX: vertices,
}


def leaves(*types: ValueType) -> st.SearchStrategy[Scalar]:
    variables = [number for number, kind in enumerate(TYPES) if kind in types]
    constants = [VALUES[kind].map(lambda value, kind=kind: Const(value, kind)) for kind in types]
    return st.one_of(st.sampled_from(variables).map(Ref), *constants)


numbers = st.recursive(
    leaves(INT, TIME, FLOAT),
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=4,
)
ALL = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
comparisons = st.one_of(
    st.builds(Comparison, ALL, numbers, numbers),
    st.builds(Comparison, ALL, leaves(STRING), leaves(STRING)),
    st.builds(Comparison, ALL, leaves(BOOL), leaves(BOOL)),
    st.builds(Comparison, st.sampled_from(("=", "!=")), st.sampled_from((10, 11)).map(Ref), leaves(VERTEX)),
    *(
        st.builds(
            Membership,
            leaves(kind) if kind is not VERTEX else st.sampled_from((10, 11)).map(Ref),
            st.lists(VALUES[kind].map(lambda value, kind=kind: Const(value, kind)), max_size=3).map(tuple),
        )
        for kind in (INT, FLOAT, STRING, BOOL, VERTEX)
    ),
)
predicates = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        *(st.builds(kind, st.lists(inner, min_size=2, max_size=3).map(tuple)) for kind in (And, Or)),
    ),
    max_leaves=5,
)


def decide(places: list[list[Predicate]], values: list[Value]) -> list[bool]:
    """What is true at each place."""
    names = Vertices(Store("vertices"))

    def pin(constant: str | int) -> list[int]:
        spellings = [constant, str(constant)] if isinstance(constant, int) else [constant]
        return [names.pin(spelling) for spelling in spellings]

    compiled = CompiledConditions(places, TYPES, pin)
    bound = np.array(intern_values(names, values), np.int32)
    conditions = compiled.arrays(names.names)
    with wrapping():
        return [are_true(conditions, place, bound) for place in range(len(places))]


@given(
    predicate=predicates,
    values=st.tuples(*[VALUES[kind] for kind in TYPES]).map(list),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_predicate_is_true_where_its_definition_says(predicate: Predicate, values: list[Value]) -> None:
    assert decide([[predicate]], values) == [truth(predicate, dict(enumerate(values))) is True]


@given(
    places=st.lists(st.lists(comparisons, max_size=3), max_size=3),
    values=st.tuples(*[VALUES[kind] for kind in TYPES]).map(list),
)
@settings(max_examples=EXAMPLES // 5, deadline=None)
def test_every_place_decides_its_own_predicates(places: list[list[Predicate]], values: list[Value]) -> None:
    assume(places)
    named = dict(enumerate(values))
    assert decide(places, values) == [all(truth(part, named) is True for part in parts) for parts in places]


UNKNOWN = Arithmetic("/", Ref(2), Const(0.0, FLOAT))
VALUE_OF_EACH: list[Value] = [3, -4, 0.5, 2.0, "a", "b", True, False, 10, 20, "x", 7]


@pytest.mark.parametrize(
    ("predicate", "is_true"),
    [
        (Comparison("=", Arithmetic("/", Ref(0), Const(0, INT)), Ref(0)), False),
        (Not(Comparison("=", Arithmetic("/", Ref(0), Const(0, INT)), Ref(0))), False),
        (Or((Comparison("=", Arithmetic("/", Ref(2), Ref(0)), Ref(0)), Comparison("=", Ref(0), Ref(0)))), True),
        (Or((Comparison("=", UNKNOWN, Ref(0)), Comparison("=", Ref(0), Ref(0)))), True),
        (Comparison(">", Arithmetic("+", Const(2**63 - 1, INT), Ref(0)), Ref(0)), False),
        (Comparison("<", Arithmetic("*", Const(-(2**63), INT), Const(-1, INT)), Ref(0)), False),
        (Comparison("<", Ref(0), Const(2**63, INT)), False),
        (Comparison("=", Arithmetic("/", Ref(0), Const(2, INT)), Const(1.5, FLOAT)), True),
        (Comparison("=", Ref(11), Const(7, VERTEX)), True),
        (Comparison("!=", Ref(11), Const("7", VERTEX)), True),
        (Comparison(">=", Arithmetic("-", Ref(9), Ref(8)), Const(10, TIME)), True),
        (Membership(Ref(4), ()), False),
        (Comparison("<", Ref(7), Ref(6)), True),
    ],
)  # fmt: skip
def test_unknown_is_neither_true_nor_false(predicate: Predicate, is_true: bool) -> None:
    """A division by zero, an integer beyond 64 bits; and vertices by number."""
    assert decide([[predicate]], VALUE_OF_EACH) == [is_true]


def test_what_does_not_compare_is_refused() -> None:
    for predicate in (
        Comparison("<", Ref(10), Ref(11)),
        Comparison("=", Ref(0), Ref(4)),
        Comparison("=", Arithmetic("+", Ref(4), Ref(5)), Ref(4)),
    ):
        with pytest.raises(TypeError):
            decide([[predicate]], VALUE_OF_EACH)
