"""What a sequence of changes does to the expiry of a tuple, whatever the expiry was before it."""

from __future__ import annotations

from meander.kernels.jit import Array, kernel


@kernel
def bound_expiries(key: Array, ts: Array, exp: Array, op: Array, least: Array, most: Array) -> None:
    """Sum up the changes of each tuple, in their order: an expiry `x` before them becomes max(least, min(most, x)).

    `key` has the number of the tuple that a row changes. `least` and `most`, by tuple, are 0 and beyond every time at
    first.
    """
    for row in range(key.size):
        number, end = key[row], exp[row]
        if op[row] > 0:
            least[number] = max(least[number], end)
            most[number] = max(most[number], end)
        else:
            end = max(end, ts[row])
            least[number] = min(least[number], end)
            most[number] = min(most[number], end)
