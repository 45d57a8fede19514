"""Each vertex has one owner, owners have about the same number of vertices, and edges go to those who read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.algebra.nodes import Share, Slice
from meander.dataflow.edges import INFINITY, as_text
from meander.dataflow.tabular import edges_of
from meander.physical.stages import Delivery
from meander.spark.cell.exchange import Sender
from meander.spark.cell.routing import owners
from meander.spark.cell.scatter import Scatter, Summary
from meander.spark.edge_codec import decode_edges, edges_chunk
from meander.spark.messages import CHUNK_ROWS, Kind

NAMES = st.one_of(st.text(), st.integers(-5, 5))


@settings(deadline=None)
@given(st.lists(NAMES, max_size=30), st.integers(1, 8))
def test_each_vertex_has_one_owner_whatever_else_is_in_the_batch(names, cells) -> None:
    numbers = owners(as_text(names), cells).tolist()
    assert all(0 <= number < cells for number in numbers)
    assert numbers == [int(owners(as_text([name]), cells)[0]) for name in names]


@pytest.mark.parametrize("cells", [2, 3, 8])
def test_owners_have_about_the_same_number_of_vertices(cells) -> None:
    for names in ([f"v{number}" for number in range(4000)], list(range(4000))):
        sizes = np.bincount(owners(as_text(names), cells).astype(int), minlength=cells)
        assert max(sizes) < 1.2 * 4000 / cells


def by(side, cells) -> Share:
    """The share of edges whose vertex on a side the cell owns."""
    return Share(cells, (Slice(side, cells),))


def sent_to(edges, deliveries, cells) -> tuple[set[Any], Mapping[str, int]]:
    """What each cell of each stage is sent, as sets of (stage, cell, stream, src, label, trg, ts)."""
    rows = set()
    keys = list(range(10, 10 + cells))
    scatter = Scatter(tuple(keys), tuple(deliveries))
    messages = list(scatter.send(edges_chunk(name, of_stream) for name, of_stream in edges.items()))
    for message in messages:
        if message.kind != Kind.EDGES:
            continue
        part = decode_edges(message.data)
        columns = (part.src.values(), part.label.values(), part.trg.values(), part.ts.tolist())
        rows |= {
            (message.stage, message.cell - 10, message.stream, *edge) for edge in zip(*columns, strict=True)
        }
    summaries = [message.data for message in messages if message.kind == Kind.SUMMARY]
    return rows, Summary.from_bytes(summaries[0])._asdict() if summaries else Counter()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("uvwxy"), st.sampled_from("abcd"), st.sampled_from("uvwxy")), max_size=30
    ),
    st.sampled_from([2, 3, 8]),
)
def test_an_edge_goes_to_all_cells_or_to_owners_of_its_ends_and_unasked_labels_go_nowhere(
    pairs, cells
) -> None:
    rows = [(src, label, trg, ts) for ts, (src, label, trg) in enumerate(pairs)]
    deliveries = [
        Delivery(1, "s", "a", True),
        Delivery(1, "s", "b", False, (by("src", cells),)),
        Delivery(2, "s", "b", False, (by("trg", cells),)),
        Delivery(1, "s", "c", False, (by("src", cells), by("trg", cells))),
    ]

    def owner(name) -> int:
        return int(owners(as_text([name]), cells)[0])

    expected = set()
    for src, label, trg, ts in rows:
        edge = (src, label, trg, ts)
        if label == "a":
            expected |= {(1, cell, "s", *edge) for cell in range(cells)}
        if label in "bc":
            expected.add((1, owner(src), "s", *edge))
        if label == "c":
            expected.add((1, owner(trg), "s", *edge))
        if label == "b":
            expected.add((2, owner(trg), "s", *edge))
    received, counts = sent_to({"s": edges_of(rows)}, deliveries, cells)
    assert received == expected
    assert counts["sent_rows"] == len(expected)
    to_all = sum(label == "a" for _, label, _, _ in rows)
    assert to_all <= counts["sent_to_all"] <= to_all + sum(label == "c" for _, label, _, _ in rows)


def test_what_is_sent_is_cut_into_chunks_and_keeps_its_order() -> None:
    rows = [(f"v{at}", "a", "w", at) for at in range(CHUNK_ROWS + 10)]
    derived = edges_of(rows)._replace(exp=np.full(len(rows), INFINITY))
    messages = list(Sender([Delivery(2, "@1", None, True)], [5, 6], 3).send({"@1": derived}))
    assert [message.cell for message in messages] == [5, 6, 5, 6]
    assert messages[0].data == messages[1].data
    assert messages[0].position < messages[2].position
    assert decode_edges(messages[2].data).rows == 10
