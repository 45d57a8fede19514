"""Routing: which cells read which edges, and what a cell reads of the edges that it has.

Edges are broadcast, or go to the cells that have them by a share: those at the coordinates to which the names of
their ends are hashed. Only hashes of names are looked at, so whoever has hashed a name once (per chunk, per
dictionary) routes all edges that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meander.algebra.nodes import Share, Side
from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.edges import Array, Edges, Names, match_labels
from meander.kernels.spans import wrapping
from meander.physical.stages import Delivery
from meander.physical.streams import SIDES, StreamRef

MIX = np.uint64(0x9E3779B97F4A7C15)
SPREADING_MIX = np.uint64(0xC2B2AE3D27D4EB4F)
"""Of the other end of a heavy vertex's edge: two dimensions may look at the same end."""

Hashes = Callable[[Side], Array]
"""The hash of each edge's name on a side, as `hashes` of its column gives it; called at most once per side."""


def cells_of(hashes: Array, cells: int, mix: np.uint64 = MIX) -> Array:
    """For each hash of a name the number of the cell that owns its vertex."""
    # The tables of a cell are indexed by the hash as it is: mixed once more, or a cell would fill few of its slots.
    with wrapping():
        numbers: Array = (hashes * mix >> np.uint64(32)) % np.uint64(cells)
    return numbers


def owners(text: Names, cells: int) -> Array:
    """For each name the number of the cell that owns its vertex."""
    return cells_of(text.hashes(), cells)


def end_hashes(edges: Edges) -> Hashes:
    """The hashes of the ends of edges."""
    return lambda side: getattr(edges, side).hashes()


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
    known = Coordinates(hashes)
    shares = dict.fromkeys(share for delivery in deliveries for share in delivery.shares)
    readers = {share: having(partial(_reads, share)) & ~broadcast for share in shares}
    wanted = {share: mask for share, mask in readers.items() if mask.any()}
    masks: dict[bytes, tuple[list[int], Array]] = {}
    for cell in range(cells if wanted else 0):
        mask = np.zeros(edges.rows, np.bool_)
        for share, of_share in wanted.items():
            if cell < share.cells:
                mask |= of_share & known.match(share, cell)
        if mask.any():
            # Cells that read the same edges get the same part.
            masks.setdefault(mask.tobytes(), ([], mask))[0].append(cell)
    parts += [_part(tuple(readers_of), mask) for readers_of, mask in masks.values()]
    return Routed(parts, edges.rows if of_all else int((label >= 0).sum()))


def _reads(share: Share, delivery: Delivery) -> bool:
    return share in delivery.shares


class Coordinates:
    """The coordinates of edges in the dimensions of grids; each is computed once."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes_of = hashes
        self._hashes: dict[Side, Array] = {}
        self._known: dict[tuple[Side, int], Array] = {}
        self._heavy: dict[tuple[Side, tuple[int, ...]], Array] = {}
        self._spread: dict[tuple[Side, int], Array] = {}

    def match(self, share: Share, cell: int) -> Array | bool:
        """Whether a cell has each edge by a share."""
        matches: Array | bool = cell < share.cells
        for part in share.slices if matches else ():
            coordinate = cell // part.stride % part.size
            of_part = self._of(part.side, part.size) == coordinate
            if part.heavy != "hash" and share.heavy:
                heavy = self._is_heavy(part.side, share.heavy)
                instead = part.heavy == "copy" or self._of_other(part.side, part.size) == coordinate
                of_part = np.where(heavy, instead, of_part)
            matches = of_part & matches
        return matches

    def _of(self, side: Side, size: int) -> Array:
        if (side, size) not in self._known:
            self._known[side, size] = cells_of(self._hash(side), size)
        return self._known[side, size]

    def _of_other(self, side: Side, size: int) -> Array:
        if (side, size) not in self._spread:
            other = SIDES[1 - SIDES.index(side)]
            self._spread[side, size] = cells_of(self._hash(other), size, SPREADING_MIX)
        return self._spread[side, size]

    def _is_heavy(self, side: Side, heavy: tuple[int, ...]) -> Array:
        if (side, heavy) not in self._heavy:
            self._heavy[side, heavy] = np.isin(self._hash(side), np.array(heavy, np.uint64))
        return self._heavy[side, heavy]

    def _hash(self, side: Side) -> Array:
        if side not in self._hashes:
            self._hashes[side] = self._hashes_of(side)
        return self._hashes[side]


def _part(cells: Sequence[int], mask: Array) -> Part:
    rows = np.flatnonzero(mask)
    return Part(cells, slice(None) if rows.size == mask.size else rows, rows.size)


# ---------------------------------------------------------------------------------------------------------
# What a cell reads, and what it emits


def partition_streams(
    edges: Mapping[str, Edges], sources: Sequence[StreamRef], cell: int
) -> dict[str, Edges]:
    """The edges of the streams that a plan reads, by their keys; each is a stream of `edges` or a cell's share."""
    known = {name: Coordinates(end_hashes(whole)) for name, whole in edges.items()}
    shares = {}
    for source in sources:
        whole = edges.get(source.name)
        if whole is None:
            continue
        matches = True if source.share is None else known[source.name].match(source.share, cell)
        if isinstance(matches, bool):
            shares[source.key] = whole if matches else whole.take(slice(0))
        else:
            # As a rule a cell has nothing of a stream beside its share, or all of it.
            shares[source.key] = whole if matches.all() else whole.take(matches)
    return shares


def own_answers(answers: Answers, cell: int, cells: int) -> Answers:
    """The answers that a cell owns by their first vertex; the first cell owns an answer without vertices."""
    if not answers.vertices:
        return take_answers(answers, np.full(answers.rows, cell == 0))
    return take_answers(answers, owners(answers.vertices[0], cells) == cell)
