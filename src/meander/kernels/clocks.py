"""A stream's clock: the greatest time seen on it, edges that jump too far ahead of it left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from meander.kernels.jit import kernel

Array = np.ndarray[Any, Any]


@kernel
def advance_clock(ts: Array, clock: int, max_jump: int, reached: Array) -> None:
    """Put the clock after each edge into `reached`; `clock` is the one before them, negative if there is none.

    An edge more than `max_jump` ahead of the clock does not advance it: those, and no others, have a time greater
    than the clock that they leave.
    """
    for row in range(ts.size):
        if clock < 0 or (ts[row] > clock and ts[row] - clock <= max_jump):
            clock = ts[row]
        reached[row] = clock
