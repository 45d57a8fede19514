"""Routing: which cells read which edges, and what a cell reads of the edges that it has.

A cell owns the vertices whose hash is its number. Edges are broadcast, or go to the owners of an end, as the
deliveries of a staged plan say. Only hashes of names are looked at, so whoever has hashed a name once (per chunk, per
dictionary) routes all edges that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from meander.algebra.nodes import Side
from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.edges import Array, Edges, Text, match_labels
from meander.kernels.interning import hash_names
from meander.kernels.spans import wrapping
from meander.physical.stages import Delivery
from meander.physical.streams import SIDES, StreamRef

MIX = np.uint64(0x9E3779B97F4A7C15)

Hashes = Callable[[Side], Array]
"""The hash of each edge's name on a side, as `name_hashes` computes it; called at most once per side."""


def name_hashes(text: Text) -> Array:
    """The hash of each name."""
    hashes = np.empty(text.rows, np.uint64)
    with wrapping():
        hash_names(*text, hashes)
    return hashes


def cells_of(hashes: Array, cells: int) -> Array:
    """For each hash of a name the number of the cell that owns its vertex."""
    # The tables of a cell are indexed by the hash as it is: mixed once more, or a cell would fill few of its slots.
    with wrapping():
        numbers: Array = (hashes * MIX >> np.uint64(32)) % np.uint64(cells)
    return numbers


def owners(text: Text, cells: int) -> Array:
    """For each name the number of the cell that owns its vertex."""
    return cells_of(name_hashes(text), cells)


def end_hashes(edges: Edges) -> Hashes:
    """The hashes of the ends of edges."""
    return lambda side: name_hashes(getattr(edges, side))


# ---------------------------------------------------------------------------------------------------------
# From a stream's edges to cells


@dataclass(frozen=True, slots=True)
class Part:
    """Edges, by number, and the cells that read them; `rows` is a slice if they are all, `count` how many."""

    cells: Sequence[int]
    rows: Array | slice
    count: int


@dataclass(frozen=True, slots=True)
class Routed:
    """The parts in which edges go to cells: a cell gets each edge that it reads in exactly one part.

    `read` is how many of the edges are read by any cell.
    """

    parts: Sequence[Part]
    read: int


def route(edges: Edges, hashes: Hashes, deliveries: Sequence[Delivery], cells: int) -> Routed:
    """The parts of a stream's edges, by the deliveries of this stream to one stage, with the cells that read them."""
    of_all = [delivery for delivery in deliveries if delivery.label is None]
    of_label = [delivery for delivery in deliveries if delivery.label is not None]
    label = match_labels(edges.label, [str(delivery.label).encode() for delivery in of_label])

    def having(is_so: Callable[[Delivery], bool]) -> Array:
        # The last flag is that of labels that nothing names, whose number is -1.
        flags = np.array([*map(is_so, of_label), False]) | any(map(is_so, of_all))
        mask: Array = flags[label]
        return mask

    parts = []
    broadcast = having(lambda delivery: delivery.broadcast)
    if broadcast.any():
        parts.append(_part(range(cells), broadcast))
    targets = {}
    for side in SIDES:
        by_side = having(lambda delivery, side=side: side in delivery.sides) & ~broadcast  # type: ignore[misc]
        if by_side.any():
            targets[side] = np.where(by_side, cells_of(hashes(side), cells), cells)
    for cell in range(cells):
        mask = np.zeros(edges.rows, np.bool_)
        for numbers in targets.values():
            mask |= numbers == cell
        if mask.any():
            parts.append(_part((cell,), mask))
    return Routed(parts, edges.rows if of_all else int((label >= 0).sum()))


def _part(cells: Sequence[int], mask: Array) -> Part:
    rows = np.flatnonzero(mask)
    return Part(cells, slice(None) if rows.size == mask.size else rows, rows.size)


# ---------------------------------------------------------------------------------------------------------
# What a cell reads, and what it emits


def partition_streams(
    edges: Mapping[str, Edges], sources: Sequence[StreamRef], cell: int, cells: int
) -> dict[str, Edges]:
    """The edges of the streams that a plan reads, by their keys; each is a stream of `edges` or a cell's share."""
    shares = {}
    for source in sources:
        whole = edges.get(source.name)
        if whole is not None:
            shares[source.key] = (
                whole
                if source.side is None
                else whole.take(owners(getattr(whole, source.side), cells) == cell)
            )
    return shares


def own_answers(answers: Answers, cell: int, cells: int) -> Answers:
    """The answers that a cell owns by their first vertex; the first cell owns an answer without vertices."""
    if not answers.vertices:
        return take_answers(answers, np.full(answers.rows, cell == 0))
    return take_answers(answers, owners(answers.vertices[0], cells) == cell)
