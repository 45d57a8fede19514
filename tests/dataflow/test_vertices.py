"""Interning is a bijection between live names and their numbers, and memory follows the live ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.answers import ARROW_TYPES
from meander.dataflow.edges import Text, as_text
from meander.dataflow.state import Budget, Store
from meander.dataflow.vertices import Vertices
from meander.errors import MemoryBudgetError
from meander.syntax.values import ValueType

Name = str | int

LONG = 100_000 if numba.config.DISABLE_JIT else 10_000_000

names = st.one_of(
    st.integers(0, 30).map(str),
    st.integers(0, 30),
    st.integers(-(2**63), 2**63 - 1),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
)


def fresh() -> Vertices:
    return Vertices(Store("vertices"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(names, max_size=30), st.sets(st.integers(0, 40))), max_size=6))
def test_numbers_and_names_are_a_bijection_through_sweeps(steps: list[tuple[list[Name], set[int]]]) -> None:
    vertices = fresh()
    pinned = vertices.pin("constant")
    model: dict[Name, int] = {"constant": pinned}
    for values, dropped in steps:
        for name, number in zip(values, vertices.intern(as_text(values)).tolist(), strict=True):
            assert model.setdefault(name, number) == number
        assert len(set(model.values())) == len(model) == vertices.count
        assert all(0 <= number < vertices.capacity for number in model.values())
        numbers = np.array(list(model.values()), np.int32)
        assert vertices.text(numbers).values() == list(model)

        live = np.zeros(vertices.capacity, np.bool_)
        live[numbers] = True
        live[[number for number in dropped if number != pinned]] = False
        model = {name: number for name, number in model.items() if live[number] or number == pinned}
        if pinned in dropped:
            live[pinned] = False
        vertices.sweep(live)
        assert vertices.count == len(model)


def test_a_string_and_an_integer_that_look_alike_are_two_vertices() -> None:
    vertices = fresh()
    eight_bytes = (7).to_bytes(8, "little").decode()
    numbers = vertices.intern(as_text(["7", 7, eight_bytes, -7]))
    assert len(set(numbers.tolist())) == 4
    assert vertices.text(numbers).values() == ["7", 7, eight_bytes, -7]


def test_names_of_every_length_around_the_word_size_are_distinct() -> None:
    values: list[Name] = ["", "\0", "\0\0", *("a" * length for length in range(1, 30))]
    values += ["a" * length + "b" for length in range(30)] + ["12345678x", "12345678y", "x" * LONG]
    vertices = fresh()
    numbers = vertices.intern(as_text(values))
    assert len(set(numbers.tolist())) == len(values)
    assert vertices.text(numbers[::-1]).values() == values[::-1]


def test_spans_that_were_handed_out_outlive_growth_and_sweeps() -> None:
    vertices = fresh()
    names = vertices.text(vertices.intern(as_text([f"v{i}" for i in range(100)])))
    vertices.sweep(np.zeros(vertices.capacity, np.bool_))
    vertices.intern(as_text([f"other{i}" for i in range(5000)]))
    assert names.values() == [f"v{i}" for i in range(100)]


def test_memory_follows_the_live_vertices_not_the_stream() -> None:
    vertices = fresh()
    sizes = []
    for batch in range(40):
        numbers = vertices.intern(as_text([f"vertex-{batch}-{i}" for i in range(1000)]))
        live = np.zeros(vertices.capacity, np.bool_)
        live[numbers] = True
        vertices.sweep(live)
        sizes.append(vertices.store.nbytes)
    assert len(set(sizes[3:])) == 1
    assert vertices.count == 1000


def test_a_snapshot_has_the_same_future() -> None:
    first = fresh()
    numbers = first.intern(as_text([f"v{i}" for i in range(3000)] + list(range(500))))
    live = np.zeros(first.capacity, np.bool_)
    live[numbers[::3]] = True
    first.sweep(live)
    second = fresh()
    second.store.restore(first.store.snapshot())
    second.bind()
    later = as_text([f"w{i}" for i in range(2000)] + [f"v{i}" for i in range(3000)])
    assert np.array_equal(first.intern(later), second.intern(later))
    for name, array in first.store:
        assert np.array_equal(array, second.store.arrays[name]), name


def test_arrays_in_files_work_alike(tmp_path: Path) -> None:
    vertices = Vertices(Store("vertices", folder=tmp_path))
    values = [f"v{i}" for i in range(5000)]
    numbers = vertices.intern(as_text(values))
    vertices.sweep(np.ones(vertices.capacity, np.bool_))
    assert vertices.text(numbers).values() == values


def test_growth_past_the_budget_is_an_error_that_names_the_owner() -> None:
    vertices = Vertices(Store("the vertices", Budget(300_000)))
    with pytest.raises(MemoryBudgetError, match="the vertices would hold"):
        vertices.intern(as_text([f"v{i}" for i in range(100_000)]))


values_by_type = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda drawn: (ValueType.INT, drawn)),
    st.lists(st.floats(allow_nan=False)).map(lambda drawn: (ValueType.FLOAT, drawn)),
    st.lists(st.booleans()).map(lambda drawn: (ValueType.BOOL, drawn)),
    st.lists(st.text(alphabet="aé\U0001f600", max_size=12)).map(lambda drawn: (ValueType.STRING, drawn)),
)


@settings(max_examples=100, deadline=None)
@given(values_by_type, st.booleans(), st.integers(0, 3))
def test_values_have_a_number_each_and_come_back(
    drawn: tuple[ValueType, list[Any]], encoded: bool, skipped: int
) -> None:
    kind, values = drawn
    column = pa.array(values, ARROW_TYPES[kind])
    if encoded and kind is ValueType.STRING:
        column = column.dictionary_encode()
    # A part of a chunk: a slice of its columns.
    column, values = column.slice(skipped), values[skipped:]
    vertices = fresh()
    vertices.intern(as_text(["a", 0, 1]))
    numbers = vertices.intern_column(column, kind)
    assert len(set(numbers.tolist())) == len(set(values))
    back = vertices.values(numbers, kind)
    assert (back.values() if isinstance(back, Text) else back.tolist()) == values


def test_values_of_two_types_and_vertices_are_different_names() -> None:
    vertices = fresh()
    numbers = [
        *vertices.intern(as_text([1, "1"])),
        *vertices.intern_column(pa.array([1.0]), ValueType.FLOAT),
        *vertices.intern_column(pa.array([True]), ValueType.BOOL),
    ]
    assert len(set(numbers)) == 4
    assert vertices.intern_column(pa.array([1]), ValueType.FLOAT)[0] == numbers[2]
    assert vertices.intern_column(pa.array([-0.0]), None) == vertices.intern_column(pa.array([0.0]), None)
    assert vertices.intern_column(pa.array([1]), ValueType.TIME)[0] == numbers[0]


def test_times_in_order_are_interned_once_each() -> None:
    vertices = fresh()
    times = np.array([3, 3, 3, 4, 9, 9])
    numbers = vertices.intern_times(times)
    assert list(vertices.values(numbers, ValueType.TIME)) == times.tolist()
    assert vertices.count == 3
