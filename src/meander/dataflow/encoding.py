"""The edges of a stream as a batch: names become vertex numbers, labels become positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch
from meander.dataflow.edges import Edges, Text
from meander.dataflow.state import Array
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG
from meander.kernels.spans import index_spans, match_spans, wrapping


class LabelIndex:
    """Finds the position of a label among the labels that some scan reads."""

    def __init__(self, labels: Sequence[str]) -> None:
        encoded = [label.encode() for label in labels]
        offsets = np.cumsum([0, *map(len, encoded)])
        self.data = np.frombuffer(b"".join(encoded), np.uint8)
        self.start, self.end = offsets[:-1], offsets[1:]
        self.slots = np.zeros(1 << (2 * len(labels) + 1).bit_length(), np.int64)
        with wrapping():
            index_spans(self.data, self.start, self.end, self.slots)

    def match(self, label: Text) -> Array:
        """The position of each label as int16, or -1 for one that nobody reads."""
        out = np.empty(label.rows, np.int16)
        with wrapping():
            match_spans(label.data, label.start, label.end, self.data, self.start, self.end, self.slots, out)
        return out


class StreamEncoder:
    """Keeps the edges of one stream whose label some scan reads; `source` is the position of the label."""

    def __init__(self, labels: Sequence[str], vertices: Vertices) -> None:
        self.labels = LabelIndex(labels)
        self.vertices = vertices

    def encode(self, edges: Edges) -> Batch:
        """Edges with an expiry come from another stage: they have one label, and are kept as they are."""
        if edges.exp is not None:
            label = np.zeros(edges.rows, np.int16)
        else:
            label = self.labels.match(edges.label)
            wanted = np.flatnonzero(label >= 0)
            if wanted.size < edges.rows:
                edges, label = edges.take(wanted), label[wanted]
        key = np.empty((edges.rows, 2), np.int32)
        self.vertices.intern(edges.src, key[:, SRC])
        self.vertices.intern(edges.trg, key[:, TRG])
        ts = writable(edges.ts)
        exp = ts if edges.exp is None else writable(edges.exp)
        return Batch(key, ts, exp, writable(edges.op), label)


def writable(column: Array) -> Array:
    """Kernels are compiled for writable, contiguous arrays alone."""
    return column if column.flags.carray else np.require(column, requirements=("C", "W"))
