"""The window's graph against a dict of histories: its state as of any instant, the changes it emits, its lists."""

from __future__ import annotations

import os
from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.batch import Batch
from meander.dataflow.graph import WindowGraph
from meander.dataflow.state import Store
from meander.kernels.graph import ROWS, expiry_at, expiry_before, find_row, pack_rows
from meander.kernels.hashing import mix
from meander.physical.plan import Links
from operator_context import batch_of, rows_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
VERTICES = 4
RELATIONS = 2

Edge = tuple[int, int, int]  # relation, src, trg
Change = tuple[int, int, int, int, int]  # src, trg, ts, exp, op

# relation, src, trg, gap in time, length or new expiry, whether it is a cut
drawn_changes = st.lists(
    st.tuples(
        st.integers(0, RELATIONS - 1),
        st.integers(0, VERTICES - 1),
        st.integers(0, VERTICES - 1),
        st.sampled_from((0, 0, 1, 2, 5)),
        st.integers(0, 8),
        st.sampled_from((False, False, False, True)),
    ),
    max_size=14,
)


class Histories:
    """For each edge, its expiry after each instant at which it changed."""

    def __init__(self) -> None:
        self.changes: defaultdict[Edge, dict[int, int]] = defaultdict(dict)

    def at(self, edge: Edge, time: int) -> int:
        """Until when the edge is valid, once all changes up to `time` are made; `time` where it is not."""
        return max(
            [time, *(exp for when, exp in self.changes[edge].items() if when == self.last(edge, time))]
        )

    def last(self, edge: Edge, time: int) -> int:
        return max((when for when in self.changes[edge] if when <= time), default=-1)

    def apply(self, relation: int, change: Change) -> None:
        src, trg, time, exp, op = change
        edge = (relation, src, trg)
        held = self.at(edge, time)
        self.changes[edge][time] = max(held, exp) if op > 0 else min(held, max(exp, time))


@given(batches=st.lists(drawn_changes, min_size=1, max_size=5), packed=st.sets(st.integers(0, 4)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_graph_answers_as_of_any_instant(batches: list[list[tuple[int, ...]]], packed: set[int]) -> None:
    graph = WindowGraph(Store("graph"), [Links(out=True, into=True)] * RELATIONS)
    graph.reserve_vertices(VERTICES)
    naive = Histories()
    time = 0
    for number, batch in enumerate(batches):
        begun = time
        graph.begin(begun)
        if number in packed:
            pack_rows(graph.graph, graph.values, begun)
        by_relation: list[list[Change]] = [[] for _ in range(RELATIONS)]
        for relation, src, trg, gap, length, cut in batch:
            time += gap
            by_relation[relation].append((src, trg, time, time + length, -1 if cut else 1))
        for relation, changes in enumerate(by_relation):
            before = {edge: dict(history) for edge, history in naive.changes.items()}
            for change in changes:
                naive.apply(relation, change)
            emitted = graph.update(relation, batch_of(changes))
            assert as_set(emitted) == net_changes(naive, before, relation, changes)
            assert (np.diff(emitted.ts) >= 0).all()
        check_reads(graph, naive, begun, time)
        check_lists(graph)


def as_set(batch: Batch) -> set[tuple[int, ...]]:
    rows = rows_of(batch)
    assert len(set(rows)) == len(rows)
    return set(rows)


def net_changes(
    naive: Histories, before: dict[Edge, dict[int, int]], relation: int, changes: list[Change]
) -> set[tuple[int, ...]]:
    """What each instant changed of each edge, once."""
    net = set()
    for src, trg, time in {change[:3] for change in changes}:
        edge = (relation, src, trg)
        earlier = Histories()
        earlier.changes[edge] = before.get(edge, {}) | {
            when: exp for when, exp in naive.changes[edge].items() if when < time
        }
        was, now = earlier.at(edge, time), naive.at(edge, time)
        if was != now:
            net.add((src, trg, time, now, 1 if now > was else -1))
    return net


def check_reads(graph: WindowGraph, naive: Histories, begun: int, ended: int) -> None:
    for edge in naive.changes:
        row = find_row(graph.graph, *edge)
        for time in range(begun, ended + 2):
            got = expiry_at(graph.graph, row, time) if row >= 0 else 0
            assert max(got, time) == naive.at(edge, time)
            if time > begun:
                got = expiry_before(graph.graph, row, time) if row >= 0 else 0
                assert max(got, time) == max(naive.at(edge, time - 1), time)


def check_lists(graph: WindowGraph) -> None:
    """Every row is found by its pair, and stands once in the list of its source and of its target."""
    table = graph.graph
    rows = range(int(table.counts[ROWS]))
    for row in rows:
        assert find_row(table, table.relation[row], table.src[row], table.trg[row]) == row
    for first, following, degree, end in (
        (table.first_out, table.next_out, table.degree_out, table.src),
        (table.first_in, table.next_in, table.degree_in, table.trg),
    ):
        for vertex in range(VERTICES):
            for relation in range(RELATIONS):
                bucket = vertex * RELATIONS + relation
                listed = []
                row = int(first[bucket])
                while row >= 0:
                    listed.append(row)
                    row = int(following[row])
                wanted = [row for row in rows if end[row] == vertex and table.relation[row] == relation]
                assert sorted(listed) == wanted
                assert degree[bucket] == len(wanted)


def test_a_table_that_is_full_grows_within_a_batch() -> None:
    count = 5000
    graph = WindowGraph(Store("graph"), [Links(out=True)])
    graph.reserve_vertices(count + 1)
    changes = [(i, i + 1, i // 7, i // 7 + 10, 1) for i in range(count)]
    assert graph.update(0, batch_of(changes)).ts.size == count
    assert all(find_row(graph.graph, 0, i, i + 1) == i for i in range(0, count, 37))
    assert graph.valid_rows(count // 7).tolist() == [sum(exp > count // 7 for *_, exp, _ in changes)]


@given(st.lists(st.tuples(*[st.integers(0, 2**31 - 1)] * 3), min_size=2, max_size=50, unique=True))
@settings(max_examples=50, deadline=None)
def test_numbers_up_to_31_bits_are_spread_without_overflow(keys: list[tuple[int, int, int]]) -> None:
    spread = {mix(*key) for key in keys}
    assert all(0 <= value < 2**63 for value in spread)
    assert len(spread) == len(keys)
