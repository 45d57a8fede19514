"""The delta join against nested loops: at every instant the same answers, with the same expiries."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.graph import WindowGraph
from meander.dataflow.operators.pattern import Pattern
from meander.dataflow.state import Store
from meander.physical.plan import Links, PatternOp
from meander.physical.programs import plan_programs
from operator_context import applied, context_of, rows_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
VERTICES = 4

Ends = tuple[tuple[int, int], ...]
Tables = list[dict[tuple[int, int], int]]

PATTERNS: tuple[tuple[Ends, tuple[int, ...], tuple[int, ...]], ...] = (
    # ends of the atoms as variables, the output, which relation each atom reads
    (((0, 1), (1, 2)), (0, 2), (0, 1)),
    (((0, 1), (1, 2), (0, 2)), (0, 2), (0, 1, 0)),
    (((0, 1), (1, 2), (2, 0)), (0, 1, 2), (0, 0, 0)),
    (((0, 1), (2, 0), (3, 1), (3, 2)), (2, 3), (0, 1, 1, 0)),
    (((0, 0), (0, 1)), (1,), (0, 1)),
    (((0, 1), (2, 3)), (0, 3), (0, 1)),
    (((0, 1), (0, 1)), (), (0, 1)),
    (((0, 1),), (1, 1), (0,)),
)

drawn_changes = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, VERTICES - 1),
        st.integers(0, VERTICES - 1),
        st.sampled_from((0, 0, 1, 1, 3)),
        st.integers(1, 9),
        st.sampled_from((False, False, False, True)),
    ),
    max_size=12,
)


def matches(
    ends: Ends, relations: tuple[int, ...], tables: Tables, time: int
) -> Iterator[tuple[dict[int, int], int]]:
    """All ways to bind the variables, by nested loops over the atoms' tuples, each with its expiry."""
    atoms = [[(pair, exp) for pair, exp in tables[relation].items() if exp > time] for relation in relations]
    for chosen in product(*atoms):
        values: dict[int, int] = {}
        if all(
            values.setdefault(variable, vertex) == vertex
            for pair, (tuple_, _) in zip(ends, chosen, strict=True)
            for variable, vertex in zip(pair, tuple_, strict=True)
        ):
            yield values, min(exp for _, exp in chosen)


@given(
    pattern=st.sampled_from(PATTERNS),
    batches=st.lists(drawn_changes, min_size=1, max_size=4),
    closures=st.tuples(*[st.booleans()] * 4),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_join_finds_what_nested_loops_find(
    pattern: tuple[Ends, tuple[int, ...], tuple[int, ...]],
    batches: list[list[tuple[int, ...]]],
    closures: tuple[bool, ...],
) -> None:
    ends, output, relations = pattern
    graph = WindowGraph(Store("graph"), [Links(out=True, into=True)] * 2)
    graph.reserve_vertices(VERTICES)
    programs = plan_programs(ends, output, closures[: len(ends)])
    operator = Pattern(PatternOp(relations, ends, output, programs), context_of(graph, "pattern"))
    tables: Tables = [{}, {}]
    answers: dict[tuple[int, ...], int] = {}
    time = 0
    for batch in batches:
        graph.begin(time)
        by_instant: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
        for relation, src, trg, gap, length, cut in batch:
            time += gap
            by_instant[time].append(
                (relation, src, trg, time, time if cut else time + length, -1 if cut else 1)
            )
        batches_in = applied(graph, [change for changes in by_instant.values() for change in changes])
        batch_out = operator.start([batches_in[number] for number in operator.inputs], time).result()
        emitted = [(tuple(row[:-3]), *row[-3:]) for row in rows_of(batch_out)]
        for instant, changes in by_instant.items():
            for relation, src, trg, _, exp, op in changes:
                held = tables[relation].get((src, trg), 0)
                tables[relation][src, trg] = max(held, exp) if op > 0 else min(held, exp)
            for key, ts, exp, op in emitted:
                if ts == instant:
                    assert (exp > answers.get(key, 0)) if op > 0 else (exp < answers[key])
                    answers[key] = exp
            wanted: defaultdict[tuple[int, ...], int] = defaultdict(int)
            for values, exp in matches(ends, relations, tables, instant):
                key = tuple(values[variable] for variable in output)
                wanted[key] = max(wanted[key], exp)
            assert {key: exp for key, exp in answers.items() if exp > instant} == wanted


def test_tables_and_outputs_that_are_full_grow_and_nothing_is_emitted_twice() -> None:
    """A star of 60 edges in and 60 out: 3600 answers from one new tuple's instant, in tables made for 256."""
    ends, output, relations = ((0, 1), (1, 2)), (0, 2), (0, 1)
    graph = WindowGraph(Store("graph"), [Links(out=True, into=True)] * 2)
    graph.reserve_vertices(200)
    programs = plan_programs(ends, output, (False, False))
    operator = Pattern(PatternOp(relations, ends, output, programs), context_of(graph, "pattern"))
    changes = [(0, i, 100, 1, 10, 1) for i in range(60)] + [(1, 100, 120 + i, 1, 12, 1) for i in range(60)]
    emitted = operator.start(applied(graph, changes), 1).result()
    assert sorted(map(tuple, emitted.key.tolist())) == sorted(product(range(60), range(120, 180)))
    assert set(emitted.exp.tolist()) == {10}
    graph.begin(1)
    gone = operator.start(applied(graph, [(0, i, 100, 3, 3, -1) for i in range(60)]), 3).result()
    assert sorted(map(tuple, gone.key.tolist())) == sorted(product(range(60), range(120, 180)))
    assert set(gone.op.tolist()) == {-1}
