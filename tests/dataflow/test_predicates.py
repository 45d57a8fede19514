"""Predicates over columns agree with a plain evaluation of each row, on edges as read and on interned batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.answers import ARROW_TYPES
from meander.dataflow.batch import Batch
from meander.dataflow.edges import Edges, as_text
from meander.dataflow.graph import WindowGraph
from meander.dataflow.operators.filter import BatchPredicate
from meander.dataflow.predicates import EdgeColumns, satisfying
from meander.dataflow.state import Store
from meander.dataflow.vertices import Vertices
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
    map_refs,
)
from operator_context import context_of

Row = Mapping[str, Any]

VERTEX, INT, FLOAT, STRING, BOOL, TIME = (
    ValueType.VERTEX,
    ValueType.INT,
    ValueType.FLOAT,
    ValueType.STRING,
    ValueType.BOOL,
    ValueType.TIME,
)
PROPERTIES = {"i": INT, "j": INT, "f": FLOAT, "g": FLOAT, "s": STRING, "t": STRING, "b": BOOL, "c": BOOL}
COLUMNS = ("src", "trg", *PROPERTIES, "ts")

# ---------------------------------------------------------------------------------------------------------
# The plain evaluation


def value_of(scalar: Scalar, row: Row) -> Any:
    """The value of a scalar; None if it is missing."""
    if isinstance(scalar, Const):
        return float(scalar.value) if scalar.type is FLOAT else scalar.value
    if isinstance(scalar, Ref):
        return row[str(scalar.name)]
    left, right = value_of(scalar.left, row), value_of(scalar.right, row)
    if left is None or right is None:
        return None
    if scalar.op == "/":
        left, right = float(left), float(right)
        return None if right == 0 else known(left / right)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    result = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[scalar.op]()
    if isinstance(result, float):
        return known(result)
    return result if -(2**63) <= result < 2**63 else None


def known(number: float) -> float | None:
    return None if math.isnan(number) else number


def compare(op: str, left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode(), right.encode()
    if op in ("=", "!="):
        return (type(left) is type(right) and left == right) == (op == "=")
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]


def is_vertex(scalar: Scalar) -> bool:
    return isinstance(scalar, Const | Ref) and scalar.type is VERTEX


def truth(predicate: Predicate, row: Row) -> bool | None:
    match predicate:
        case Comparison(op, left, right):
            first, second = value_of(left, row), value_of(right, row)
            if first is None or second is None:
                return None
            if is_vertex(left) and isinstance(right, Const) and isinstance(second, int):
                return (first in (second, str(second))) == (op == "=")
            return compare(op, first, second)
        case Membership(operand, values):
            value = value_of(operand, row)
            if value is None:
                return None
            return any(truth(Comparison("=", operand, const), row) for const in values)
        case Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case And(parts) | Or(parts):
            truths = [truth(part, row) for part in parts]
            decisive = isinstance(predicate, Or)
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
    raise AssertionError


# ---------------------------------------------------------------------------------------------------------
# Drawing

small = st.integers(-3, 3)
integers = small | st.sampled_from([2**63 - 1, -(2**63), 2**62, 2**32, 2**53 + 1])
floats = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 1e308, -1e308, math.inf, 2.0**53]) | small.map(float)
strings = st.sampled_from(["", "a", "b", "aa", "ab", "é", "\U0001f600", "\ufffd", "z" * 20])
vertices = st.sampled_from(["a", "1", "2", 1, 2, -1])
OF_TYPE: Mapping[ValueType, st.SearchStrategy[Any]] = {
    INT: integers,
    FLOAT: floats,
    STRING: strings,
    BOOL: st.booleans(),
    VERTEX: vertices,
    TIME: st.integers(0, 5),
}


@st.composite
def rows(draw: st.DrawFn) -> Row:
    values = {
        name: draw(OF_TYPE[kind] if name in "jgtc" else st.none() | OF_TYPE[kind])
        for name, kind in PROPERTIES.items()
    }
    return {"src": draw(vertices), "trg": draw(vertices), "ts": draw(OF_TYPE[TIME]), **values}


def refs_of(*kinds: ValueType) -> st.SearchStrategy[Ref]:
    types = {**PROPERTIES, "ts": TIME, "src": VERTEX, "trg": VERTEX}
    return st.sampled_from([Ref(name, kind) for name, kind in types.items() if kind in kinds])


def constants(*kinds: ValueType) -> st.SearchStrategy[Const]:
    return st.sampled_from(kinds).flatmap(lambda kind: OF_TYPE[kind].map(lambda value: Const(value, kind)))


numbers: st.SearchStrategy[Scalar] = st.recursive(
    refs_of(INT, FLOAT, TIME) | constants(INT, FLOAT),
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=4,
)
texts = refs_of(STRING) | constants(STRING)
truths = refs_of(BOOL) | constants(BOOL)
ends: st.SearchStrategy[Scalar] = refs_of(VERTEX) | constants(VERTEX)
orders = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
equalities = st.sampled_from(["=", "!="])
predicates: st.SearchStrategy[Predicate] = st.recursive(
    st.builds(Comparison, orders, numbers, numbers)
    | st.builds(Comparison, orders, texts, texts)
    | st.builds(Comparison, equalities, truths, truths)
    | st.builds(Comparison, equalities, refs_of(VERTEX), ends)
    | st.builds(Membership, numbers, st.lists(constants(INT, FLOAT), max_size=4).map(tuple))
    | st.builds(Membership, texts, st.lists(constants(STRING), max_size=4).map(tuple))
    | st.builds(Membership, refs_of(VERTEX), st.lists(constants(VERTEX), max_size=3).map(tuple)),
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=4,
)


def edges_of(drawn: Sequence[Row], encoded: bool) -> Edges:
    """The rows as edges; the columns begin after one row of another chunk."""
    before = dict.fromkeys(COLUMNS) | {"src": "before", "trg": "before", "ts": 0}
    all_rows = [before, *drawn]
    columns = {
        name: pa.array([row[name] for row in all_rows], ARROW_TYPES[kind])
        for name, kind in PROPERTIES.items()
        # A property that no edge has may have no column.
        if any(row[name] is not None for row in drawn)
    }
    if encoded:
        columns |= {name: columns[name].dictionary_encode() for name in ("s", "t") if name in columns}
    names = {name: as_text([row[name] for row in all_rows]) for name in ("src", "trg")}
    edges = Edges(
        src=names["src"],
        label=as_text(["l"] * len(all_rows)),
        trg=names["trg"],
        ts=np.array([row["ts"] for row in all_rows], np.int64),
        op=np.ones(len(all_rows), np.int8),
        properties=columns,
    )
    return edges.take(slice(1, None))


@settings(max_examples=300, deadline=None)
@given(predicates, st.lists(rows(), max_size=8), st.booleans())
def test_edges_are_selected_as_row_by_row(predicate: Predicate, drawn: list[Row], encoded: bool) -> None:
    selected = satisfying(predicate, EdgeColumns(edges_of(drawn, encoded)))
    assert selected.tolist() == [truth(predicate, row) is True for row in drawn]


def on_columns(predicate: Predicate) -> Predicate:
    """The predicate with columns by number, as a filter has it; the ends keep their names."""

    def by_number(ref: Ref) -> Ref:
        return ref if ref.type is VERTEX else Ref(COLUMNS.index(str(ref.name)), ref.type)

    return map_refs(predicate, by_number)


@settings(max_examples=200, deadline=None)
@given(predicates, st.lists(rows(), max_size=8))
def test_interned_rows_are_selected_as_row_by_row(predicate: Predicate, drawn: list[Row]) -> None:
    drawn = [row for row in drawn if None not in row.values()]
    names = Vertices(Store("vertices"))
    select = BatchPredicate(
        on_columns(predicate), context_of(WindowGraph(Store("graph"), []), "filter", names)
    )
    key = np.zeros((len(drawn), len(COLUMNS)), np.int32)
    for position, name in enumerate(COLUMNS):
        values = [row[name] for row in drawn]
        if name in ("src", "trg"):
            key[:, position] = names.intern(as_text(values))
        else:
            kind = PROPERTIES.get(name, TIME)
            key[:, position] = names.intern_column(pa.array(values, ARROW_TYPES[kind]), kind)
    ts = np.arange(len(drawn))
    batch = Batch(key, ts, ts + 1, np.ones(ts.size, np.int8), np.zeros(ts.size, np.int16))
    assert select.select(batch).ts.tolist() == [
        number for number, row in enumerate(drawn) if truth(predicate, row) is True
    ]


def test_a_product_beyond_64_bits_is_missing() -> None:
    values = [
        (2**62, 2),
        (2**62, -2),
        (-(2**63), -1),
        (-1, -(2**63)),
        (2**32, 2**31),
        (3_037_000_500, 3_037_000_500),
    ]
    table = {"i": pa.array([a for a, _ in values]), "j": pa.array([b for _, b in values])}
    edges = edges_of([dict.fromkeys(COLUMNS) | {"src": 1, "trg": 1, "ts": 0}] * len(values), False)
    product = Arithmetic("*", Ref("i", INT), Ref("j", INT))
    exists = satisfying(Comparison("=", product, product), EdgeColumns(edges._replace(properties=table)))
    assert exists.tolist() == [-(2**63) <= a * b < 2**63 for a, b in values]


def test_a_number_is_not_compared_with_a_string() -> None:
    wrong = Comparison("<", Const(1, INT), Const("a", STRING))
    with pytest.raises(TypeError, match="a number is compared with a name"):
        satisfying(wrong, EdgeColumns(edges_of([], False)))
