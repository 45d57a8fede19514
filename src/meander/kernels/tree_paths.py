"""The paths of S-PATH's answers, read off its trees as they are emitted.

At the instant at which a pair is emitted, its tree has a path that lasts as long. Later the tree changes, so the path
becomes steps (`kernels.steps`) at once. A node remembers the last step of its path: that path lasts as long as the
node does, also after a node on it has found a better one, so the paths below a node share its steps. It is
forgotten when the node settles again, at the end of a batch, and wherever an edge of it may be deleted.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.forest import Automaton, Forest
from meander.kernels.graph import Graph, expiry_at, find_row
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.steps import NO_PATH, NO_STEP, Steps

NO_ROOM = -3  # in place of a step
# Positions in `TreePaths.counts`: the number of steps, the number of the first step of this batch as nodes remember
# it, and the least that a node may remember.
COUNT, FIRST, LEAST = 0, 1, 2


class TreePaths(NamedTuple):
    """The steps of the batch's paths; all is empty if no paths are wanted."""

    steps: Steps
    last: Array  # by row of the output: the last step of its path
    counts: Array


@kernel
def forget_steps(paths: TreePaths) -> None:
    """No node has steps from here on."""
    paths.counts[LEAST] = paths.counts[FIRST] + paths.counts[COUNT]


@inner_kernel
def set_edge(
    graph: Graph, automaton: Automaton, forest: Forest, steps: Steps, step: int, node: int, time: int
) -> bool:
    """Set the edge of a step to the one between a node and its parent; False if there is none that lasts."""
    parent = forest.parent[node]
    vertex = forest.vertex[parent] if parent >= 0 else forest.root[node]
    state = forest.state[parent] if parent >= 0 else 0
    for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
        if automaton.out_to[move] == forest.state[node]:
            inverse = automaton.out_inverse[move]
            src = forest.vertex[node] if inverse else vertex
            trg = vertex if inverse else forest.vertex[node]
            row = find_row(graph, automaton.out_relation[move], src, trg)
            if row >= 0 and expiry_at(graph, row, time) >= forest.exp[node]:
                steps.row[step] = row
                steps.move[step] = move
                return True
    return False


@inner_kernel
def find_steps(
    graph: Graph, automaton: Automaton, forest: Forest, paths: TreePaths, node: int, time: int, spare: int
) -> int:
    """The last step of a valid node's path (NO_STEP for the root), or NO_PATH; or NO_ROOM, unless there is room
    for it and `spare` more."""
    steps, counts = paths.steps, paths.counts
    missing = 0
    at = node
    while at >= 0 and forest.step[at] < counts[LEAST]:
        missing += 1
        at = forest.parent[at]
    before = forest.step[at] - counts[FIRST] if at >= 0 else NO_STEP
    first = counts[COUNT]
    if first + missing + spare > steps.before.size:
        return NO_ROOM
    length = steps.length[before] if before >= 0 else 0
    at = node
    for i in range(missing):
        step = first + missing - 1 - i
        if not set_edge(graph, automaton, forest, steps, step, at, time):
            return NO_PATH
        steps.before[step] = step - 1 if i < missing - 1 else before
        steps.length[step] = length + missing - i
        at = forest.parent[at]
    at = node
    for i in range(missing):
        forest.step[at] = counts[FIRST] + first + missing - 1 - i
        at = forest.parent[at]
    counts[COUNT] = first + missing
    return first + missing - 1 if missing else before


@inner_kernel
def add_step(
    graph: Graph, automaton: Automaton, forest: Forest, paths: TreePaths, before: int, node: int, time: int
) -> int:
    """The last step of the path of a node, which is new, after the last of its parent's. Needs room for one."""
    steps, counts = paths.steps, paths.counts
    step = counts[COUNT]
    if before == NO_PATH or not set_edge(graph, automaton, forest, steps, step, node, time):
        return NO_PATH
    steps.before[step] = before
    steps.length[step] = steps.length[before] + 1 if before >= 0 else 1
    forest.step[node] = counts[FIRST] + step
    counts[COUNT] = step + 1
    return step
