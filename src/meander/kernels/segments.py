"""The segments of a batch: the stretches between two instants at which the window slides or something is deleted."""

from __future__ import annotations

from meander.kernels.jit import Array, kernel


@kernel
def count_steps(ts: Array, exp: Array, op: Array) -> int:
    """How often a row lasts longer than all before it, and at how many instants something is deleted."""
    steps = 0
    latest = deleted = -1
    for row in range(ts.size):
        if exp[row] > latest:
            latest = exp[row]
            steps += 1
        if op[row] < 0 and ts[row] != deleted:
            deleted = ts[row]
            steps += 1
    return steps
