"""Trees of paths against Dijkstra over the product of graph and automaton, at every instant."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.graph import WindowGraph
from meander.dataflow.operators.path_negative import PathNegativeTuples
from meander.dataflow.operators.path_trees import PathTrees
from meander.dataflow.state import Store
from meander.dataflow.vertices import Vertices
from meander.physical.plan import Links, PathOp
from operator_context import applied, context_of, rows_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
VERTICES = 5

Move = tuple[int, int, bool, int]

# states, accepting, moves (state, relation, inverse, next state)
AUTOMATA: dict[str, tuple[int, tuple[int, ...], tuple[Move, ...]]] = {
    "a+": (2, (1,), ((0, 0, False, 1), (1, 0, False, 1))),
    "a*": (1, (0,), ((0, 0, False, 0),)),
    "a/b*": (2, (1,), ((0, 0, False, 1), (1, 1, False, 1))),
    "(a|^b)+": (2, (1,), ((0, 0, False, 1), (0, 1, True, 1), (1, 0, False, 1), (1, 1, True, 1))),
    "a?/b": (3, (2,), ((0, 0, False, 1), (0, 1, False, 2), (1, 1, False, 2))),
    "(a/b)*": (2, (0,), ((0, 0, False, 1), (1, 1, False, 0))),
    "a|a/b": (3, (1, 2), ((0, 0, False, 1), (1, 1, False, 2))),
}

drawn_changes = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, VERTICES - 1),
        st.integers(0, VERTICES - 1),
        st.sampled_from((0, 0, 1, 1, 3)),
        st.integers(1, 9),
        st.sampled_from((False, False, False, True)),
    ),
    max_size=14,
)


def widest(automaton: str, edges: dict[tuple[int, int, int], int], root: int, time: int) -> dict[int, int]:
    """For each vertex the largest expiry over all paths from `root` that the automaton accepts.

    Dijkstra's way: settle what lasts longest, follow its edges.
    """
    _, accepting, moves = AUTOMATA[automaton]
    touching = [exp for (_, src, trg), exp in edges.items() if root in (src, trg) and exp > time]
    best = {root: max(touching)} if 0 in accepting and touching else {}
    waiting = {(root, 0): 2**62}
    settled: set[tuple[int, int]] = set()
    while waiting:
        vertex, state = place = max(waiting, key=waiting.__getitem__)
        lasts = waiting.pop(place)
        settled.add(place)
        for before, relation, inverse, after in moves:
            for (of, src, trg), exp in edges.items():
                tail, head = (trg, src) if inverse else (src, trg)
                until = min(lasts, exp)
                if of != relation or before != state or tail != vertex or until <= time:
                    continue
                if after in accepting:
                    best[head] = max(best.get(head, 0), until)
                if (head, after) not in settled:
                    waiting[head, after] = max(waiting.get((head, after), 0), until)
    return best


@pytest.mark.parametrize("first_path", [False, True], ids=["s-path", "negative-tuple"])
@given(
    automaton=st.sampled_from(sorted(AUTOMATA)),
    batches=st.lists(drawn_changes, min_size=1, max_size=4),
    roots=st.sampled_from(((), (), (0,), (1, 2))),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_trees_hold_what_dijkstra_finds(
    first_path: bool, automaton: str, batches: list[list[tuple[int, ...]]], roots: tuple[int, ...]
) -> None:
    graph, operator = open_operator(automaton, first_path, roots)
    edges: dict[tuple[int, int, int], int] = {}
    pairs: dict[tuple[int, int], int] = {}
    time = 0
    for batch in batches:
        begun = time
        graph.begin(begun)
        by_instant: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
        for relation, src, trg, gap, length, cut in batch:
            time += gap
            by_instant[time].append(
                (relation, src, trg, time, time if cut else time + length, -1 if cut else 1)
            )
        changes = [change for changes in by_instant.values() for change in changes]
        emitted = rows_of(operator.start(applied(graph, changes), time).result())
        assert [row[2] for row in emitted] == sorted(row[2] for row in emitted)
        for instant in range(begun, time + 1):
            for relation, src, trg, _, exp, op in by_instant[instant]:
                held = edges.get((relation, src, trg), 0)
                edges[relation, src, trg] = max(held, exp) if op > 0 else min(held, exp)
            for src, trg, ts, exp, _ in emitted:
                if ts == instant:
                    pairs[src, trg] = exp
            wanted = {
                (root, vertex): exp
                for root in roots or range(VERTICES)
                for vertex, exp in widest(automaton, edges, root, instant).items()
            }
            valid = {pair: exp for pair, exp in pairs.items() if exp > instant}
            if first_path:
                assert set(valid) == set(wanted)
                assert all(exp <= wanted[pair] for pair, exp in valid.items())
            else:
                assert valid == wanted


def open_operator(automaton: str, first_path: bool, roots: tuple[int, ...]) -> tuple[WindowGraph, PathTrees]:
    """The roots are none, one name, or a number, which has two spellings."""
    states, accepting, moves = AUTOMATA[automaton]
    graph = WindowGraph(Store("graph"), [Links(out=True, into=True)] * 2)
    graph.reserve_vertices(VERTICES)
    vertices = Vertices(Store("vertices"))
    if roots == (1, 2):
        vertices.pin("something else")
    root = {(): None, (0,): "root", (1, 2): 7}[roots]
    operator = PathNegativeTuples if first_path else PathTrees
    node = PathOp((0, 1), states, accepting, moves, "s-path", root)
    return graph, operator(node, context_of(graph, "path", vertices))


@pytest.mark.parametrize("first_path", [False, True], ids=["s-path", "negative-tuple"])
def test_a_chain_that_outgrows_every_table_is_followed_to_its_end(first_path: bool) -> None:
    """The last edge joins two chains of 60: 3600 new pairs in one instant, in tables made for 256."""
    graph, operator = open_operator("a+", first_path, ())
    graph.reserve_vertices(200)
    chain = [(0, i, i + 1, 1, 20 + i % 5, 1) for i in range(120) if i != 60]
    batch = operator.start(applied(graph, [*chain, (0, 60, 61, 2, 40, 1)]), 2).result()
    assert batch.ts.size == 2 * (60 * 61 // 2) - 60 + 61 * 60
    graph.begin(2)
    rows = operator.start(applied(graph, [(0, 60, 61, 3, 3, -1)]), 3).result()
    assert rows.ts.size == 61 * 60
    assert set(rows.op.tolist()) == {-1}
