"""Who owns what: vertices by their names, and from these the edges and answers of a cell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.edges import Array, Edges, Text
from meander.kernels.interning import hash_names
from meander.kernels.spans import wrapping
from meander.physical.shares import MARK

MIX = np.uint64(0x9E3779B97F4A7C15)


def owners(text: Text, cells: int) -> Array:
    """For each name the number of the cell that owns its vertex."""
    hashes = np.empty(text.rows, np.uint64)
    with wrapping():
        hash_names(*text, hashes)
    # The tables of a cell are indexed by the hash as it is: mixed once more, or a cell would fill few of its slots.
    numbers: Array = (hashes * MIX >> np.uint64(32)) % np.uint64(cells)
    return numbers


def own_answers(answers: Answers, cell: int, cells: int) -> Answers:
    """Those of all answers that a cell owns by their first vertex; one of no vertices is the first cell's."""
    if not answers.vertices:
        return take_answers(answers, np.full(answers.rows, cell == 0))
    return take_answers(answers, owners(answers.vertices[0], cells) == cell)


def with_shares(
    edges: Mapping[str, Edges], streams: tuple[str, ...], cell: int, cells: int
) -> dict[str, Edges]:
    """The edges of the streams that a plan reads, made from those of the streams that they are shares of."""
    made = {}
    for stream in streams:
        base, _, side = stream.partition(MARK)
        if base in edges:
            whole = edges[base]
            made[stream] = whole.take(owners(getattr(whole, side), cells) == cell) if side else whole
    return made
