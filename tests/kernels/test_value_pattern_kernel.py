"""Joins with values and comparisons against nested loops: at every instant the same answers and expiries."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.graph import WindowGraph
from meander.dataflow.operators.pattern import Pattern
from meander.dataflow.state import FIRST_CAPACITY, Store
from meander.dataflow.vertices import Vertices
from meander.physical.plan import Links, PatternOp
from meander.physical.programs import lists_walked, plan_programs
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
    ValueType,
    conjuncts,
    refs,
)
from operator_context import context_of, rows_of
from value_rows import Value, intern_values, truth, wide_batch

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "150"))

# What the columns of each relation hold.
NAMES: tuple[Value, ...] = ("a", "b", 7)
INTS: tuple[Value, ...] = (1, 2, 5)
COLUMNS: tuple[tuple[tuple[Value, ...], ...], ...] = (
    (NAMES, NAMES, INTS),
    (NAMES, NAMES, INTS, INTS),
    (NAMES, NAMES),
    (NAMES, NAMES, ("p", "pq"), (-1.5, 0.0, 2.0)),
)
TYPES = {"a": ValueType.VERTEX, 1: ValueType.INT, "p": ValueType.STRING, -1.5: ValueType.FLOAT}
# 2 and 2.0 are two values.
POOL = list({repr(value): value for columns in COLUMNS for pool in columns for value in pool}.values())


def compare(op: str, left: int, right: int) -> Comparison:
    return Comparison(op, Ref(left), Ref(right))


@dataclass(frozen=True)
class Case:
    relations: tuple[int, ...]
    ends: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    predicate: Predicate | None = None
    types: tuple[ValueType, ...] = field(init=False)

    def __post_init__(self) -> None:
        types: dict[int, ValueType] = {}
        for relation, columns in zip(self.relations, self.ends, strict=True):
            for pool, variable in zip(COLUMNS[relation], columns, strict=True):
                types[variable] = TYPES[pool[0]]
        object.__setattr__(self, "types", tuple(types[variable] for variable in range(len(types))))


def plus(variable: int, number: int) -> Arithmetic:
    return Arithmetic("+", Ref(variable), Const(number, ValueType.INT))


CASES = (
    Case((0,), ((0, 1, 2),), (0, 1)),
    Case((0,), ((0, 0, 1),), (1,)),
    Case((1,), ((0, 1, 2, 2),), (0, 1)),
    Case((1,), ((0, 1, 2, 3),), (0, 3), compare("<", 2, 3)),
    # x → z → y, each more than the one before.
    Case((0, 0), ((0, 1, 2), (1, 3, 4)), (0, 3), compare("<", 2, 4)),
    Case((0, 0), ((0, 1, 2), (1, 3, 4)), (0, 3, 4), And((compare("<=", 2, 4), compare("!=", 0, 3)))),
    # Joined by a value: alone, and beside a vertex.
    Case((1, 1), ((0, 1, 2, 3), (4, 5, 6, 3)), (0, 4)),
    Case((3, 3, 2), ((0, 1, 2, 3), (4, 5, 2, 6), (0, 4)), (1, 5, 2)),
    Case((0, 1), ((0, 1, 2), (1, 3, 2, 4)), (0, 3, 4)),
    Case((0, 0), ((0, 1, 2), (3, 4, 2)), (0, 3), compare("!=", 0, 3)),
    # A variable in two columns of an atom that is walked.
    Case((0, 1), ((0, 1, 2), (1, 3, 4, 4)), (0, 3, 4)),
    Case((0, 0), ((0, 1, 2), (3, 3, 2)), (0, 3)),
    # Several rows between two ends that are bound.
    Case((0, 1, 2), ((0, 1, 2), (0, 1, 3, 4), (0, 1)), (0, 1, 4), Comparison("=", plus(2, 1), Ref(3))),
    Case((1, 1), ((0, 1, 2, 3), (0, 1, 3, 4)), (0, 2, 4)),
    Case((1, 2, 1), ((0, 1, 2, 3), (1, 4), (5, 1, 3, 6)), (5, 4, 6)),
    Case((1, 2, 2), ((0, 1, 2, 3), (0, 4), (4, 1)), (2, 3)),
    # A ring.
    Case((0, 0, 0), ((0, 1, 2), (1, 3, 4), (3, 0, 5)), (0,), And((compare("<", 2, 4), compare("<", 4, 5)))),
    Case((0, 1), ((0, 0, 1), (0, 2, 3, 4)), (0, 3), Not(compare("=", 1, 3))),
    # Only a comparison connects the atoms.
    Case((0, 0), ((0, 1, 2), (3, 4, 5)), (2, 5), Comparison("=", plus(2, 1), Ref(5))),
    Case(
        (3, 3),
        ((0, 1, 2, 3), (1, 4, 5, 6)),
        (0, 4, 2),
        Or((compare("<", 2, 5), Comparison(">", Arithmetic("*", Ref(3), Ref(3)), Ref(6)))),
    ),
    Case(
        (3,),
        ((0, 1, 2, 3),),
        (3,),
        Membership(Ref(0), (Const(7, ValueType.VERTEX), Const("a", ValueType.VERTEX))),
    ),
    # Predicates over plain pairs.
    Case((2, 2), ((0, 1), (1, 2)), (0, 2), compare("!=", 0, 2)),
    Case((2, 2, 0), ((0, 1), (1, 2), (0, 2, 3)), (), compare("!=", 0, 2)),
)

drawn_changes = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.tuples(*[st.integers(0, 2)] * 4),
        st.sampled_from((0, 0, 1, 1, 3)),
        st.integers(0, 9),
        st.sampled_from((False, False, False, True)),
    ),
    max_size=14,
)

Row = tuple[int, ...]
Tables = list[dict[Row, int]]


class Join:
    """A pattern over a graph, both of which may be restored into others."""

    def __init__(self, case: Case, closures: tuple[bool, ...]) -> None:
        compared = [frozenset(int(ref.name) for ref in refs(part)) for part in conjuncts(case.predicate)]
        programs = plan_programs(case.ends, case.output, closures[: len(case.ends)], compared)
        walked = [(case.relations[atom], side) for atom, side in lists_walked(programs)]
        self.vertices = Vertices(Store("vertices"))
        numbers = intern_values(self.vertices, POOL)
        self.number = dict(zip(map(repr, POOL), numbers, strict=True))
        self.value = dict(zip(numbers, POOL, strict=True))
        self.graph = WindowGraph(
            Store("graph"),
            [
                Links(
                    out=(relation, "src") in walked,
                    into=(relation, "trg") in walked,
                    values=tuple(
                        side
                        for at, side in sorted(walked, key=repr)
                        if at == relation and isinstance(side, int)
                    ),
                    width=len(columns) - 2,
                )
                for relation, columns in enumerate(COLUMNS)
            ],
        )
        node = PatternOp(case.relations, case.ends, case.output, programs, case.predicate, case.types)
        self.operator = Pattern(node, context_of(self.graph, "pattern", self.vertices))
        self.graph.reserve_vertices(self.vertices.capacity)

    def restore(self, other: Join) -> None:
        for mine, held in (
            (self.vertices.store, other.vertices.store),
            (self.graph.store, other.graph.store),
            (self.operator.store, other.operator.store),
        ):
            mine.restore(held.snapshot())
        self.vertices.bind()
        self.graph.bind()
        self.operator.bind()


def matches(
    case: Case, tables: Tables, time: int, value: dict[int, Value]
) -> Iterator[tuple[dict[int, int], int]]:
    """All ways to bind the variables, by nested loops over the atoms' tuples, each with its expiry."""
    atoms = [[(row, exp) for row, exp in tables[at].items() if exp > time] for at in case.relations]
    for chosen in product(*atoms):
        bound: dict[int, int] = {}
        if all(
            bound.setdefault(variable, number) == number
            for columns, (row, _) in zip(case.ends, chosen, strict=True)
            for variable, number in zip(columns, row, strict=True)
        ):
            named = {variable: value[number] for variable, number in bound.items()}
            if case.predicate is None or truth(case.predicate, named) is True:
                yield bound, min(exp for _, exp in chosen)


@given(
    case=st.sampled_from(CASES),
    batches=st.lists(drawn_changes, min_size=1, max_size=4),
    closures=st.tuples(*[st.sampled_from((False, False, True))] * 3),
    restored=st.sets(st.integers(0, 3)),
    tiny=st.booleans(),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_join_with_values_finds_what_nested_loops_find(
    case: Case,
    batches: list[list[tuple[int, Row, int, int, bool]]],
    closures: tuple[bool, ...],
    restored: set[int],
    tiny: bool,
) -> None:
    with patch.dict(os.environ, {FIRST_CAPACITY: "1"} if tiny else {}):
        check_join(case, batches, closures, restored)


def check_join(
    case: Case,
    batches: list[list[tuple[int, Row, int, int, bool]]],
    closures: tuple[bool, ...],
    restored: set[int],
) -> None:
    join = Join(case, closures)
    tables: Tables = [{} for _ in COLUMNS]
    answers: dict[Row, int] = {}
    time = 0
    for at, batch in enumerate(batches):
        if at in restored:
            earlier, join = join, Join(case, closures)
            join.restore(earlier)
        join.graph.begin(time)
        by_relation: list[list[tuple[Row, int, int, int]]] = [[] for _ in COLUMNS]
        for relation, choice, gap, length, cut in batch:
            time += gap
            pools = COLUMNS[relation]
            key = tuple(
                join.number[repr(pool[at % len(pool)])] for pool, at in zip(pools, choice, strict=False)
            )
            by_relation[relation].append(
                (key, time, time + length // 4 if cut else time + length, -1 if cut else 1)
            )
        changed = [
            join.graph.update(relation, wide_batch(changes, len(COLUMNS[relation])))
            for relation, changes in enumerate(by_relation)
        ]
        batch_out = join.operator.start(
            [changed[int(number)] for number in join.operator.inputs], time
        ).result()
        emitted = [(tuple(row[:-3]), *row[-3:]) for row in rows_of(batch_out)]
        for instant in sorted({ts for changes in by_relation for _, ts, _, _ in changes}):
            for relation, changes in enumerate(by_relation):
                for key, ts, exp, op in changes:
                    if ts == instant:
                        held = tables[relation].get(key, 0)
                        tables[relation][key] = max(held, exp) if op > 0 else min(held, exp)
            for key, ts, exp, op in emitted:
                if ts == instant:
                    assert (exp > answers.get(key, 0)) if op > 0 else (exp < answers[key])
                    answers[key] = exp
            wanted: defaultdict[Row, int] = defaultdict(int)
            for bound, exp in matches(case, tables, instant, join.value):
                key = tuple(bound[variable] for variable in case.output)
                wanted[key] = max(wanted[key], exp)
            assert {key: exp for key, exp in answers.items() if exp > instant} == wanted
