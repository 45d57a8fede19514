"""Statistics of the input of a run, from the first edges of its files: they decide how joins are laid out over cells.

They are taken once, when a run begins, and are part of its checkpoint: the cells of a run that continues hold the
edges that the layout has given them. Of streams that are no files nothing is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from meander.dataflow.edges import Edges
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.registry import open_url
from meander.dataflow.sources.source import ReadOptions
from meander.errors import MeanderError
from meander.physical.layouts import Statistics
from meander.spark.input.stream_source import StreamSource

SAMPLED_CHUNKS, CHUNK_ROWS = 2, 50_000

LEAST_HEAVY = 1_000
"""The edges of a sample that a heavy vertex has at least: fewer keep no cell busy."""


def sample(sources: Mapping[str, tuple[StreamSource, StreamLayout]], cells: int) -> Statistics:
    """The statistics of the first edges of each file."""
    read = {name: first_edges(source, layout) for name, (source, layout) in sources.items()}
    return count_edges(read, cells)


def first_edges(source: StreamSource, layout: StreamLayout) -> list[Edges]:
    """The first chunks of a stream; none if it is no file, or cannot be read twice."""
    if source.frame is not None or source.by_spark:
        return []
    try:
        reader = open_url(source.location)
        if reader.size() is None:
            return []  # what is read from a pipe is gone
        return [edges for edges, _ in islice(reader.chunks(ReadOptions(layout, CHUNK_ROWS)), SAMPLED_CHUNKS)]
    except (MeanderError, OSError):
        return []  # the run will say what is wrong with the input


def count_edges(sampled: Mapping[str, Sequence[Edges]], cells: int) -> Statistics:
    """The number of sampled edges of each label, and the vertices that end at least half as many edges of a label as
    a cell would have of it, if all cells had as many."""
    sizes: Counter[tuple[str, str | None]] = Counter()
    heavy: set[int] = set()
    for name, chunks in sampled.items():
        counts: Counter[tuple[str, str, int]] = Counter()
        for edges in chunks:
            labels, of_label = np.unique(np.array(edges.label.values(), object), return_inverse=True)
            for number, label in enumerate(labels):
                rows = np.flatnonzero(of_label == number)
                sizes[name, str(label)] += rows.size
                for side in ("src", "trg"):
                    hashes, found = np.unique(getattr(edges, side).hashes()[rows], return_counts=True)
                    for at in np.flatnonzero(found >= LEAST_HEAVY // SAMPLED_CHUNKS):
                        counts[side, str(label), int(hashes[at])] += int(found[at])
        heavy |= {
            vertex
            for (_, label, vertex), count in counts.items()
            if count >= max(LEAST_HEAVY, sizes[name, label] / (2 * cells))
        }
    return Statistics(dict(sizes), tuple(sorted(heavy)))


def to_note(statistics: Statistics) -> dict[str, Any]:
    return {
        "sizes": [[*label, size] for label, size in statistics.sizes.items()],
        "heavy": list(statistics.heavy),
    }


def from_note(note: Mapping[str, Any]) -> Statistics:
    sizes = {(stream, label): size for stream, label, size in note["sizes"]}
    return Statistics(sizes, tuple(note["heavy"]))
