"""Changes of two relations as the operators get them."""

from __future__ import annotations

import numpy as np

from meander.dataflow.graph import WindowGraph
from meander.kernels.graph import Rows
from meander.kernels.pattern import MergedRows


def merged(graph: WindowGraph, changes: list[tuple[int, ...]]) -> MergedRows:
    """The changes, applied to the graph, and what they changed in order of time."""
    parts = []
    for relation in range(2):
        columns = np.array([one[1:] for one in changes if one[0] == relation], np.int64).reshape(-1, 5).T
        dtypes = (np.int32, np.int32, np.int64, np.int64, np.int8)
        rows = graph.update(
            relation, Rows(*(np.ascontiguousarray(c, t) for c, t in zip(columns, dtypes, strict=True)))
        )
        parts.append(MergedRows(np.full(rows.ts.size, relation, np.int16), *rows))
    together = MergedRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(together.ts, kind="stable")
    return MergedRows(*(column[order] for column in together))
