"""Relations with value columns in the window's graph, against a dict of tuples; lists by value; parallel edges."""

from __future__ import annotations

import os
from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.graph import WindowGraph
from meander.dataflow.state import Store
from meander.kernels.graph import ROWS, expiry_at, expiry_before, find_row, find_wide_row, pack_rows
from meander.physical.plan import Links
from operator_context import rows_of
from value_rows import wide_batch

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
NUMBERS = 4
# A plain relation between two with values; one column of the first and both of the last have lists by value.
LINKS = (
    Links(out=True, into=True, values=(1,), width=2),
    Links(out=True, into=True),
    Links(into=True, values=(0, 1), width=2),
    Links(width=1),
)

Key = tuple[int, ...]

drawn_changes = st.lists(
    st.tuples(
        st.integers(0, len(LINKS) - 1),
        st.tuples(*[st.integers(0, NUMBERS - 1)] * 4),
        st.sampled_from((0, 0, 1, 2)),
        st.integers(0, 8),
        st.sampled_from((False, False, False, True)),
    ),
    max_size=16,
)


def new_graph() -> WindowGraph:
    graph = WindowGraph(Store("graph"), LINKS)
    graph.reserve_vertices(NUMBERS)
    return graph


@given(
    batches=st.lists(drawn_changes, min_size=1, max_size=4),
    packed=st.sets(st.integers(0, 3)),
    restored=st.sets(st.integers(0, 3)),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_graph_with_values_answers_as_of_any_instant(
    batches: list[list[tuple[int, Key, int, int, bool]]], packed: set[int], restored: set[int]
) -> None:
    graph = new_graph()
    held: list[dict[Key, int]] = [{} for _ in LINKS]
    time = 0
    for number, batch in enumerate(batches):
        if number in restored:
            earlier, graph = graph, new_graph()
            graph.store.restore(earlier.store.snapshot())
            graph.bind()
        graph.begin(time)
        if number in packed:
            pack_rows(graph.graph, graph.values, time)
        by_relation: defaultdict[int, list[tuple[Key, int, int, int]]] = defaultdict(list)
        for relation, numbers, gap, length, cut in batch:
            time += gap
            key = numbers[: 2 + LINKS[relation].width]
            by_relation[relation].append((key, time, time + length, -1 if cut else 1))
        for relation, changes in by_relation.items():
            emitted = rows_of(graph.update(relation, wide_batch(changes, 2 + LINKS[relation].width)))
            assert sorted(emitted) == sorted(apply_changes(graph, relation, held[relation], changes))
        check_lists(graph)
        live = np.zeros(NUMBERS, np.bool_)
        graph.mark(time, live)
        valid = [key for tuples in held for key, exp in tuples.items() if exp > time]
        assert set(np.flatnonzero(live)) == {number for key in valid for number in key}


def find(graph: WindowGraph, relation: int, key: Key) -> int:
    if LINKS[relation].width == 0:
        assert graph.values is not None
        assert find_row(graph.graph, relation, *key) == find_wide_row(
            graph.graph, graph.values, relation, np.array(key, np.int32)
        )
        return find_row(graph.graph, relation, *key)
    assert graph.values is not None
    return find_wide_row(graph.graph, graph.values, relation, np.array(key, np.int32))


def apply_changes(
    graph: WindowGraph, relation: int, held: dict[Key, int], changes: list[tuple[Key, int, int, int]]
) -> list[tuple[int, ...]]:
    """What each instant changes of each tuple, once; checks each against the graph as of before and after it."""
    net = []
    for instant in sorted({ts for _, ts, _, _ in changes}):
        before = {key: max(held.get(key, 0), instant) for key, ts, _, _ in changes if ts == instant}
        for key, ts, exp, op in changes:
            if ts == instant:
                now = max(held.get(key, 0), instant)
                held[key] = max(now, exp) if op > 0 else min(now, max(exp, instant))
        for key, was in before.items():
            row = find(graph, relation, key)
            reads = (
                (expiry_before(graph.graph, row, instant), expiry_at(graph.graph, row, instant))
                if row >= 0
                else (0, 0)
            )
            assert [max(exp, instant) for exp in reads] == [was, held[key]]
            if held[key] != was:
                net.append((*key, instant, held[key], 1 if held[key] > was else -1))
    return net


def check_lists(graph: WindowGraph) -> None:
    """Every row is found by all of its columns, and stands once in each of its lists."""
    table, values = graph.graph, graph.values
    assert values is not None
    wanted: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row in range(int(table.counts[ROWS])):
        relation = int(table.relation[row])
        columns = values.value[row, : LINKS[relation].width].tolist()
        assert find(graph, relation, (int(table.src[row]), int(table.trg[row]), *columns)) == row
        for column in LINKS[relation].values:
            wanted[graph.list_by_value(relation, column), columns[column]].append(row)
    lists = values.listed.size
    assert lists == 3
    for number, column in enumerate(values.listed.tolist()):
        for value in range(NUMBERS):
            listed = []
            row = int(values.first[value * lists + number])
            while row >= 0:
                listed.append(row)
                row = int(values.next[row, column])
            assert sorted(listed) == wanted[number, value]
            assert values.degree[value * lists + number] == len(listed)


def test_thousands_of_parallel_edges_share_no_slot() -> None:
    """The index hashes all columns: its longest run of taken slots stays short."""
    count = 20_000
    graph = WindowGraph(Store("graph"), [Links(out=True, width=1)])
    graph.reserve_vertices(count)
    changes = [((1, 2, value), 1, 10, 1) for value in range(count)]
    assert graph.update(0, wide_batch(changes, 3)).ts.size == count
    assert graph.values is not None
    for value in range(0, count, 97):
        row = find_wide_row(graph.graph, graph.values, 0, np.array((1, 2, value), np.int32))
        assert graph.values.value[row, 0] == value
    taken = np.concatenate(([False], graph.graph.pair >= 0, [False]))
    free = np.flatnonzero(~taken)
    assert np.diff(free).max() < 100


def test_a_graph_of_plain_relations_has_no_arrays_for_values() -> None:
    graph = WindowGraph(Store("graph"), [Links(out=True)] * 2)
    assert graph.values is None
    assert not [name for name in graph.store.arrays if name.startswith("values")]
