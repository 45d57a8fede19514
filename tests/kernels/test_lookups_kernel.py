"""What proofs look up, against what follows from the changes one by one: since when a row is valid as of any instant,
rows by their tuples, and the text of a tree."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import as_text
from meander.dataflow.graph import WindowGraph
from meander.dataflow.proofs.texts import ProofTexts
from meander.dataflow.proofs.trees import ProofTrees
from meander.dataflow.state import Store
from meander.dataflow.vertices import Vertices
from meander.kernels.lookups import find_tuples, read_expiries, read_validity
from meander.physical.plan import Links
from meander.physical.proofs import ForwardRule, HeadNode, LeafNode, ProofPlan
from meander.syntax.values import Property, ValueType
from operator_context import batch_of

EXAMPLES = int(os.environ.get("MEANDER_KERNEL_EXAMPLES", "100"))
VERTICES = 3

Pair = tuple[int, int]

# src, trg, gap in time, length or new expiry, whether it is a cut
drawn_changes = st.lists(
    st.tuples(
        st.integers(0, VERTICES - 1),
        st.integers(0, VERTICES - 1),
        st.sampled_from((0, 0, 1, 2, 5)),
        st.integers(0, 8),
        st.sampled_from((False, False, True)),
    ),
    max_size=14,
)


class Validities:
    """For each edge what is known after each change: (instant, since when it is valid, until when)."""

    def __init__(self) -> None:
        self.known: defaultdict[Pair, list[tuple[int, int, int]]] = defaultdict(lambda: [(-1, 0, 0)])

    def apply(self, batch: list[tuple[int, ...]]) -> None:
        for time, edge in sorted({(change[2], change[:2]) for change in batch}):
            _, since, before = self.known[edge][-1]
            after = before
            for src, trg, when, exp, op in batch:
                if (src, trg, when) == (*edge, time):
                    after = max(after, exp) if op > 0 else min(after, max(exp, time))
            if after > time:
                self.known[edge].append((time, since if before > time else time, after))
            else:
                self.known[edge].append((time, since, after))

    def at(self, edge: Pair, time: int) -> tuple[int, int]:
        """Since when and until when an edge is valid, as of the end of an instant."""
        _, since, until = [known for known in self.known[edge] if known[0] <= time][-1]
        return since, until


@given(batches=st.lists(drawn_changes, min_size=1, max_size=5), packed=st.sets(st.integers(0, 4)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_beginning_of_validity_is_known_as_of_any_instant(
    batches: list[list[tuple[int, ...]]], packed: set[int]
) -> None:
    graph = WindowGraph(Store("graph"), [Links()], validity=True)
    graph.reserve_vertices(VERTICES)
    naive = Validities()
    time = 0
    for number, batch in enumerate(batches):
        begun = time
        graph.begin(begun)
        if number in packed:
            graph.pack(begun)
        changes = []
        for src, trg, gap, length, cut in batch:
            time += gap
            changes.append((src, trg, time, time + length, -1 if cut else 1))
        naive.apply(changes)
        graph.update(0, batch_of(changes))
        pairs = list(naive.known)
        if not pairs:
            continue
        rows = np.empty(len(pairs), np.int64)
        find_tuples(graph.graph, graph.values, 0, np.array(pairs, np.int32), rows)
        for edge, row in zip(pairs, rows.tolist(), strict=True):
            for instant in range(begun, time + 1):
                since, until = naive.at(edge, instant)
                one, at = np.array([row]), np.array([instant])
                begin, end, expiry = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
                read_expiries(graph.graph, one, at, expiry)
                assert max(int(expiry[0]), instant) == max(until, instant)
                if until > instant:
                    read_validity(graph.graph, graph.since, one, at, begin, end)
                    assert (int(begin[0]), int(end[0])) == (since, until)


NAMES = ["u", 'a "quote"', "tab\t\x01", "é", 7, -(2**63)]
VALUES = (Property("b", ValueType.BOOL), Property("f", ValueType.FLOAT), Property("i", ValueType.INT))
PLAN = ProofPlan(
    (
        HeadNode(0, "Answer", 3, (), (ForwardRule(1, 1),)),
        HeadNode(1, "D", 2, VALUES, (ForwardRule(2, 2),)),
        LeafNode(2, None, (Property("label", ValueType.STRING), Property("w", ValueType.INT))),
        LeafNode(3, "vertex", (), vertex=True),
    ),
    1,
)


def test_a_tree_is_written_as_json() -> None:
    vertices = Vertices(Store("vertices"))
    u, quoted, tab, accent, seven, least = vertices.intern(as_text(NAMES)).tolist()
    (true,) = vertices.intern_column(pa.array([True]), ValueType.BOOL).tolist()
    (half,) = vertices.intern_column(pa.array([0.5]), ValueType.FLOAT).tolist()
    trees = ProofTrees(
        root=np.array([0, -1, 1]),
        kind=np.array([0, 1, 2, 3], np.int16),
        rule=np.zeros(4, np.int16),
        row=np.array([-1, 5, 6, 7]),
        column=np.array([0, 3, 8, 12, 14]),
        columns=np.array(
            [u, quoted, least, u, tab, true, half, seven, tab, seven, accent, seven, u, u], np.int32
        ),
        begin=np.array([0, 2, 4, 4, 4]),
        child=np.array([1, 1, 2, 3]),
        since=np.array([0, 0, 3, 4]),
        until=np.array([0, 0, 1 << 62, 9]),
    )
    texts = ProofTexts(PLAN, Store("texts"))
    times = np.array([10, 11, 12]), np.array([20, -1, -1])
    written = texts.write(trees, *times, vertices)
    data, offsets = written.packed()
    found = [json.loads(data[start:end].tobytes()) for start, end in pairwise(offsets)]

    def derived(ts: int, exp: int | None) -> dict[str, Any]:
        leaf = {"edge": ["tab\t\x01", "é", 7], "ts": 3, "exp": None, "properties": {"w": 7}}
        return {
            "edge": ["u", "D", "tab\t\x01"],
            "ts": ts,
            "exp": exp,
            "properties": {"b": True, "f": 0.5, "i": 7},
            "because": [leaf, {"vertex": ["u", "vertex"], "ts": 4, "exp": 9}],
        }

    answer = {
        "answer": ["u", 'a "quote"', -(2**63)],
        "label": "Answer",
        "ts": 10,
        "exp": 20,
        "because": [derived(10, 20)] * 2,
    }
    assert found == [answer, None, derived(12, None)]
    rests_on = texts.standing_edges(trees)
    assert rests_on.begin.tolist() == [0, 2, 2, 4]
    assert rests_on.row.tolist() == [6, 7, 6, 7]


def test_rows_of_many_proofs_are_listed_where_room_runs_out() -> None:
    count = 5000
    trees = ProofTrees(
        root=np.arange(count),
        kind=np.concatenate([np.full(count, 1), np.full(count, 3)]).astype(np.int16),
        rule=np.zeros(2 * count, np.int16),
        row=np.arange(2 * count),
        column=np.arange(2 * count + 1),
        columns=np.zeros(2 * count, np.int32),
        begin=np.minimum(np.arange(2 * count + 1), count),
        child=np.arange(count, 2 * count),
        since=np.zeros(2 * count, np.int64),
        until=np.zeros(2 * count, np.int64),
    )
    rests_on = ProofTexts(PLAN, Store("texts")).standing_edges(trees)
    assert rests_on.begin.tolist() == list(range(count + 1))
    assert rests_on.row.tolist() == list(range(count, 2 * count))
