"""Chunks: what goes in comes out, and keys spread over Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import Edges, Reject, as_text
from meander.errors import InputError
from meander.spark.edge_codec import decode_edges, decode_rejects, encode_edges, encode_rejects
from meander.spark.input.reader import prefetch
from meander.spark.messages import Chunk, Kind, cell_keys, chunk_rows, murmur3

NAMES = st.one_of(st.text(max_size=6), st.integers(-(2**63), 2**63 - 1))
ROWS = st.lists(
    st.tuples(NAMES, st.text(max_size=3), NAMES, st.integers(0, 2**61), st.sampled_from([1, -1])), max_size=8
)


def make(rows, lines=None) -> Edges:
    src, label, trg, ts, op = zip(*rows, strict=True) if rows else ((),) * 5
    return Edges(
        as_text(src), as_text(label), as_text(trg), np.array(ts, np.int64), np.array(op, np.int8), lines
    )


def tuples(edges) -> list[tuple[Any, ...]]:
    return list(
        zip(
            edges.src.values(),
            edges.label.values(),
            edges.trg.values(),
            edges.ts.tolist(),
            edges.op.tolist(),
            strict=True,
        )
    )


@settings(deadline=None)
@given(ROWS)
def test_edges_come_out_of_a_chunk_as_they_went_in(rows) -> None:
    assert tuples(decode_edges(encode_edges(make(rows), lines=False))) == rows


@settings(deadline=None)
@given(ROWS.filter(bool), st.data())
def test_a_chunk_of_chosen_edges_holds_these_alone(rows, data) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    edges = make(rows).take(np.array(chosen, np.int64))
    assert tuples(decode_edges(encode_edges(edges, lines=False))) == [rows[row] for row in chosen]


def test_lines_travel_where_they_are_asked_for() -> None:
    edges = make([("a", "k", "b", 1, 1)], as_text(["a k b 1"]))
    assert decode_edges(encode_edges(edges, lines=True)).line.values() == ["a k b 1"]
    assert decode_edges(encode_edges(edges, lines=False)).line is None


def test_rejects_come_out_as_they_went_in() -> None:
    rejects = [Reject("s", "too late", "a\tb\t\\xff"), Reject("t", "missing field", "")]
    assert decode_rejects(encode_rejects(rejects)) == rejects


def test_all_chunks_go_to_the_cell_that_puts_them_in_order() -> None:
    rows = chunk_rows(
        [Chunk(Kind.EDGES, "s", 0, b"e"), Chunk(Kind.REJECTS, "s", 1, b"r"), Chunk(Kind.TICK, "s", 2, b"")], 4
    )
    assert [(row["cell"], row["stage"], row["kind"]) for row in rows.to_pylist()] == [
        (4, 0, Kind.EDGES),
        (4, 0, Kind.REJECTS),
        (4, 0, Kind.TICK),
    ]
    assert chunk_rows([], 0).num_rows == 0


def test_derived_tuples_keep_their_expiry_and_have_no_label() -> None:
    edges = make([("a", "", "b", 1, 1), (7, "", "b", 2, -1)])._replace(exp=np.array([9, 3]))
    back = decode_edges(encode_edges(edges, lines=False))
    assert (back.src.values(), back.trg.values()) == (["a", 7], ["b", "b"])
    assert (back.exp.tolist(), back.op.tolist()) == ([9, 3], [1, -1])
    assert back.label.values() == ["", ""]


@given(st.integers(1, 40))
def test_as_many_cells_as_partitions_each_get_their_own(cells) -> None:
    keys = cell_keys(cells, cells)
    assert sorted(murmur3(key) % cells for key in keys) == list(range(cells))


@given(st.integers(1, 20), st.integers(1, 8))
def test_more_cells_than_partitions_still_have_distinct_keys(cells, partitions) -> None:
    assert len(set(cell_keys(cells, partitions))) == cells


def test_chunks_are_read_ahead_in_their_order_up_to_what_goes_wrong() -> None:
    read = []

    def chunks() -> Iterator[Chunk]:
        for position in range(3):
            read.append(position)
            yield Chunk(Kind.EDGES, "s", position, b"")
        raise InputError("the disk is gone")

    ahead = prefetch(chunks())
    assert next(ahead).position == 0
    assert [next(ahead).position, next(ahead).position] == [1, 2]
    with pytest.raises(InputError, match="the disk is gone"):
        next(ahead)
    assert read == [0, 1, 2]
