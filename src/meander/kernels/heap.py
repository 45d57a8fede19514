"""What expires first: a heap of (expiry, number) in two columns, of which the first `count` rows are used."""

from __future__ import annotations

from meander.kernels.jit import Array, inner_kernel


@inner_kernel
def push_heap(exp: Array, number: Array, count: int, new_exp: int, new_number: int) -> int:
    """Put one in; how many there are then. Needs room for one."""
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if exp[above] <= new_exp:
            break
        exp[at] = exp[above]
        number[at] = number[above]
        at = above
    exp[at] = new_exp
    number[at] = new_number
    return count + 1


@inner_kernel
def pop_heap(exp: Array, number: Array, count: int) -> int:
    """Take out the first, which stands in row 0; how many there are then."""
    size = count - 1
    last_exp, last_number = exp[size], number[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and exp[below + 1] < exp[below]:
            below += 1
        if exp[below] >= last_exp:
            break
        exp[at] = exp[below]
        number[at] = number[below]
        at = below
    exp[at] = last_exp
    number[at] = last_number
    return size
