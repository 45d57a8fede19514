"""The one batch of tuples: from scan to result, every operator and every kernel reads and writes this type."""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.jit import Array

# Columns of `Batch.key`, where the tuples are edges or pairs.
SRC, TRG = 0, 1


class Batch(NamedTuple):
    """Tuples sorted by time: key columns, the interval in which each holds, and the direction of the change.

    `op` > 0: valid in [ts, exp). `op` < 0: a retraction; from ts on, valid until exp at most (exp <= ts: not at all).
    """

    key: Array  # int32 by row and column, row-major: a slice of rows is contiguous
    ts: Array  # int64
    exp: Array  # int64
    op: Array  # int8
    source: Array  # int16: which input of an operator, relation of the graph, or label of a stream the row is from
