"""The forest of PATH: a spanning tree for each root, over (vertex, state of the automaton).

A node of the tree of root x at (v, s) means that a path from x to v takes the automaton to s, and until when
(`exp`); its parent is the node before it on that path, or -1 for the root, which has no node of its own.
Nodes are found by (root, vertex, state) and listed by (vertex, state), so that a new edge finds the trees that
it extends. Expired nodes are skipped, and dropped when the table is packed.

The empty path is a node too: of root x at x, in a state of its own (EMPTY), without parent.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.hashing import find_triple, free_slot
from meander.kernels.jit import Array, kernel
from meander.kernels.steps import NO_STEP

# Positions in `Automaton.settings`: the number of states, that of the empty path included, and that state or -1.
STATES, EMPTY = 0, 1
# Positions in `Forest.counts` and in `Queue.counts`.
NODES = 0
ITEMS, HEAP, HEAD, TAIL, LEVEL = 0, 1, 2, 3, 4


class Automaton(NamedTuple):
    """A minimal DFA over (relation, direction): its moves by relation, by state out of it, and by state into it.

    State 0 is the start.
    """

    accepting: Array  # by state (the empty path's included): 0 or 1
    finals: Array  # the accepting states, the empty path's included
    reads: Array  # by relation of the graph: whether it is an input, with moves or without
    relation_begin: Array  # by relation of the graph, with one more for the end
    relation_inverse: Array
    relation_from: Array
    relation_to: Array
    out_begin: Array  # by state, with one more for the end
    out_relation: Array
    out_inverse: Array
    out_to: Array
    in_begin: Array
    in_relation: Array
    in_inverse: Array
    in_from: Array
    settings: Array


class Forest(NamedTuple):
    root: Array
    vertex: Array
    state: Array
    exp: Array
    parent: Array
    next_node: Array  # the list by (vertex, state)
    was: Array  # while a retraction or an expiry is repaired: the expiry before it; else 0
    step: Array  # the number of the last step of its path, see `kernels.tree_paths`; empty if no paths are wanted
    slots: Array  # the hash index over (root, vertex, state)
    first_node: Array  # by vertex * states + state
    counts: Array


class Queue(NamedTuple):
    """Candidates to settle, longest expiry first: a list of those of the current level, a heap for the rest.

    Those of a level are settled in the order in which they came, so that paths have few edges.
    """

    root: Array
    vertex: Array
    state: Array
    parent: Array
    exp: Array
    heap: Array
    level: Array
    counts: Array


@kernel
def find_node(forest: Forest, root: int, vertex: int, state: int) -> int:
    """The node of a tree at (vertex, state), valid or not, or -1."""
    slot = find_triple(forest.slots, forest.root, forest.vertex, forest.state, (root, vertex, state))
    return forest.slots[slot]


@kernel
def link_node(forest: Forest, node: int, states: int) -> None:
    """Put a node, whose columns are set, into the index and its list."""
    root, vertex, state = forest.root[node], forest.vertex[node], forest.state[node]
    forest.slots[free_slot(forest.slots, root, vertex, state)] = node
    bucket = vertex * states + state
    forest.next_node[node] = forest.first_node[bucket]
    forest.first_node[bucket] = node


@kernel
def add_node(forest: Forest, root: int, vertex: int, state: int, states: int) -> int:
    """A new node, not valid yet. Needs room for one."""
    node = forest.counts[NODES]
    forest.counts[NODES] = node + 1
    forest.root[node] = root
    forest.vertex[node] = vertex
    forest.state[node] = state
    forest.exp[node] = 0
    forest.parent[node] = -1
    forest.was[node] = 0
    if forest.step.size:
        forest.step[node] = NO_STEP
    link_node(forest, node, states)
    return node


@kernel
def relink_nodes(forest: Forest, states: int) -> None:
    """Rebuild the index and the lists from the columns."""
    forest.slots[:] = -1
    forest.first_node[:] = -1
    for node in range(forest.counts[NODES]):
        link_node(forest, node, states)


@kernel
def pack_nodes(forest: Forest, horizon: int, states: int, queue: Queue) -> None:
    """Drop the nodes that are expired at `horizon`; parents, and those of waiting candidates, follow.

    A valid node's parent lasts at least as long, so it is kept too.
    """
    kept = 0
    nodes = forest.counts[NODES]
    moved = forest.next_node
    for node in range(nodes):
        if forest.exp[node] > horizon:
            moved[node] = kept
            forest.root[kept] = forest.root[node]
            forest.vertex[kept] = forest.vertex[node]
            forest.state[kept] = forest.state[node]
            forest.exp[kept] = forest.exp[node]
            forest.parent[kept] = forest.parent[node]
            forest.was[kept] = 0
            if forest.step.size:
                forest.step[kept] = forest.step[node]
            kept += 1
        else:
            moved[node] = -1
    for node in range(kept):
        if forest.parent[node] >= 0:
            forest.parent[node] = moved[forest.parent[node]]
    for item in range(queue.counts[ITEMS]):
        if queue.parent[item] >= 0:
            queue.parent[item] = moved[queue.parent[item]]
    forest.counts[NODES] = kept
    relink_nodes(forest, states)


@kernel
def push_candidate(queue: Queue, root: int, vertex: int, state: int, parent: int, exp: int) -> None:
    """Queue a candidate; it needs room for one. Those of the current level need no order among themselves."""
    item = queue.counts[ITEMS]
    queue.counts[ITEMS] = item + 1
    queue.root[item] = root
    queue.vertex[item] = vertex
    queue.state[item] = state
    queue.parent[item] = parent
    queue.exp[item] = exp
    if exp == queue.counts[LEVEL]:
        queue.level[queue.counts[TAIL]] = item
        queue.counts[TAIL] += 1
        return
    at = queue.counts[HEAP]
    queue.counts[HEAP] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if queue.exp[queue.heap[above]] >= exp:
            break
        queue.heap[at] = queue.heap[above]
        at = above
    queue.heap[at] = item


@kernel
def peek_candidate(queue: Queue) -> int:
    """The item with the largest expiry, or -1; an empty queue starts over."""
    if queue.counts[HEAD] < queue.counts[TAIL]:
        return queue.level[queue.counts[HEAD]]
    if queue.counts[HEAP] > 0:
        return queue.heap[0]
    queue.counts[ITEMS] = queue.counts[HEAD] = queue.counts[TAIL] = 0
    queue.counts[LEVEL] = -1
    return -1


@kernel
def pop_candidate(queue: Queue) -> None:
    """Remove the item that `peek_candidate` showed."""
    if queue.counts[HEAD] < queue.counts[TAIL]:
        queue.counts[HEAD] += 1
        return
    queue.counts[LEVEL] = queue.exp[queue.heap[0]]
    size = queue.counts[HEAP] - 1
    queue.counts[HEAP] = size
    item = queue.heap[size]
    exp = queue.exp[item]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and queue.exp[queue.heap[below + 1]] > queue.exp[queue.heap[below]]:
            below += 1
        if queue.exp[queue.heap[below]] <= exp:
            break
        queue.heap[at] = queue.heap[below]
        at = below
    if size > 0:
        queue.heap[at] = item
