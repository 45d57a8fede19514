"""Paths that share their steps.

A path is its last step, and a step has the one before it, so that paths with a common beginning share its steps. A
step's number is greater than that of the one before it: a loop over all steps sees that one first.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.jit import Array, kernel, unsigned

# In place of a last step, or of the one before a step.
NO_STEP = -1  # the empty path
NO_PATH = -2  # in place of a last step: no path is known


class Steps(NamedTuple):
    """Each step reads the edge in a row of the window's graph by a move of the automaton, as numbered by state."""

    before: Array
    row: Array
    move: Array
    length: Array  # of the path up to this step


class EdgeNumbers(NamedTuple):
    """Which edges are numbered: by row and move, the round in which that was, and the number."""

    round: Array
    number: Array


@kernel
def number_edges(
    steps: Steps, moves: int, numbers: EdgeNumbers, current: int, edge: Array, first: Array
) -> int:
    """Number the edges of steps: set `edge` of each step, and `first` to a step of each edge; their count."""
    count = 0
    for step in range(edge.size):
        key = unsigned(steps.row[step] * moves + steps.move[step])
        if numbers.round[key] != current:
            numbers.round[key] = current
            numbers.number[key] = count
            first[count] = step
            count += 1
        edge[step] = numbers.number[key]
    return count


@kernel
def count_steps(before: Array, length: Array) -> None:
    """Set the length of the path up to each step."""
    for step in range(before.size):
        length[step] = 1 + (length[before[step]] if before[step] >= 0 else 0)


@kernel
def measure_steps(last: Array, length: Array, offsets: Array) -> None:
    """Set where the steps of each path begin and end."""
    for record in range(last.size):
        step = last[record]
        offsets[record + 1] = offsets[record] + (length[step] if step >= 0 else 0)


@kernel
def write_steps(last: Array, before: Array, edge: Array, offsets: Array, out: Array) -> None:
    """Write the edges of each path in order, to its part of `out`."""
    for record in range(last.size):
        step = last[record]
        for at in range(offsets[record + 1] - 1, offsets[record] - 1, -1):
            out[unsigned(at)] = edge[unsigned(step)]
            step = before[unsigned(step)]
