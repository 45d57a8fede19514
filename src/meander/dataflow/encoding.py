"""The edges of a stream as a batch: names become vertex numbers, labels become positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch
from meander.dataflow.edges import Edges, match_labels
from meander.dataflow.state import Array
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG


class StreamEncoder:
    """Keeps the edges of one stream whose label some scan reads; `source` is the position of the label."""

    def __init__(self, labels: Sequence[str], vertices: Vertices) -> None:
        self.labels = [label.encode() for label in labels]
        self.vertices = vertices

    def encode(self, edges: Edges) -> Batch:
        """Edges with an expiry come from another stage: they have one label, and are kept as they are."""
        label = np.zeros(edges.rows, np.int16)
        if edges.exp is None:
            label = match_labels(edges.label, self.labels)
            if label.size and label.min() < 0:
                wanted = np.flatnonzero(label >= 0)
                edges, label = edges.take(wanted), label[wanted]
        key = np.empty((edges.rows, 2), np.int32)
        key[:, SRC] = self.vertices.intern(edges.src)
        key[:, TRG] = self.vertices.intern(edges.trg)
        ts = writable(edges.ts)
        exp = ts if edges.exp is None else writable(edges.exp)
        return Batch(key, ts, exp, writable(edges.op), label.astype(np.int16, copy=False))


def writable(column: Array) -> Array:
    """Kernels are compiled for writable, contiguous arrays alone."""
    return np.require(column, requirements=("C", "W"))
