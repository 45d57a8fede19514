"""Finding strings among those that a query states: labels, and the members of a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.edges import CodedText, Names
from meander.dataflow.state import Array
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

    def match(self, label: Names) -> Array:
        """The position of each label as int16, or -1 for one that nobody reads."""
        if isinstance(label, CodedText):
            of_name: Array = self.match(label.dictionary.text)[label.code]
            return of_name
        out = np.empty(label.rows, np.int16)
        with wrapping():
            match_spans(label.data, label.start, label.end, self.data, self.start, self.end, self.slots, out)
        return out
