"""PATH by spanning trees: S-PATH, and the growing half of the negative-tuple algorithm.

S-PATH keeps, for each node, the path that lasts longest: a candidate that outlasts what a node has replaces
it, and is followed further; candidates are settled in order of largest expiry, so each node settles once
per row (Pacaci, Bonifati, Özsu: "Evaluating Complex Queries on Streaming Graphs"; the search is Dijkstra's over the
(max, min) semiring). The negative-tuple algorithm (Pacaci et al., SIGMOD 2020) keeps the first path found, and
searches for another when that one expires (`repair`).

All that a stopped search needs to resume is in `cursor`, the queue, and the columns of the forest.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.forest import (
    EMPTY,
    ITEMS,
    NODES,
    STATES,
    Automaton,
    Forest,
    Queue,
    add_node,
    find_node,
    peek_candidate,
    pop_candidate,
    push_candidate,
)
from meander.kernels.graph import Graph, expiry_at
from meander.kernels.heap import push_heap
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import (
    DONE,
    EMITTED,
    FULL_OUTPUT,
    FULL_SCRATCH,
    FULL_STEPS,
    FULL_TABLE,
    NEXT_ROW,
)
from meander.kernels.steps import NO_STEP
from meander.kernels.tree_paths import NO_ROOM, TreePaths, add_step, find_steps

# Positions in the cursor, after the first row of the instant and the number of output rows.
PHASE, AT, MOVE, NODE, MARKED, REPAIRED_TO = 2, 3, 4, 5, 6, 7
CURSOR = 8
# Phases of an instant.
START, SEED, SETTLE, REPORT, EXTEND = 0, 1, 2, 3, 4
# In cursor[NODE]: the list of a move is read from its head.
LIST_HEAD = -2
# In `Walk.settings`: whether the first path found is kept.
FIRST_PATH = 0
COUNT = 0  # in `Walk.expiry_count`


class Walk(NamedTuple):
    """What a search works on besides graph and forest."""

    queue: Queue
    marked: Array
    expiry_exp: Array  # a heap of (expiry, node), for the negative-tuple algorithm
    expiry_node: Array
    expiry_count: Array
    roots: Array  # the only roots whose paths are wanted; empty: all
    paths: TreePaths
    settings: Array
    cursor: Array


@kernel
def is_root(roots: Array, vertex: int) -> bool:
    """Whether paths from `vertex` are wanted."""
    if roots.size == 0:
        return True
    for i in range(roots.size):  # noqa: SIM110 - a generator is not compiled
        if roots[i] == vertex:
            return True
    return False


@kernel
def answer_expiry(forest: Forest, automaton: Automaton, root: int, vertex: int, skip: int) -> int:
    """The largest expiry over the accepting nodes of (root, vertex), but for state `skip`."""
    best = 0
    for i in range(automaton.finals.size):
        state = automaton.finals[i]
        if state != skip:
            node = find_node(forest, root, vertex, state)
            if node >= 0 and forest.exp[node] > best:
                best = forest.exp[node]
    return best


@kernel
def emit_pair(out: Batch, cursor: Array, src: int, trg: int, time: int, exp: int, op: int) -> None:
    at = cursor[EMITTED]
    out.key[at, SRC] = src
    out.key[at, TRG] = trg
    out.ts[at] = time
    out.exp[at] = exp
    out.op[at] = op
    cursor[EMITTED] = at + 1


@inner_kernel
def note_path(walk: Walk, step: int) -> None:
    """Note the last step of the path of the pair that is emitted next, if paths are wanted."""
    if walk.paths.last.size:
        walk.paths.last[walk.cursor[EMITTED]] = step


@kernel
def push_expiry(walk: Walk, exp: int, node: int) -> None:
    """Schedule a node to be examined at its expiry. Needs room for one."""
    count = walk.expiry_count
    count[COUNT] = push_heap(walk.expiry_exp, walk.expiry_node, count[COUNT], exp, node)


@kernel
def mark_node(forest: Forest, walk: Walk, node: int) -> None:
    """Remember the expiry of a node before the repair."""
    forest.was[node] = forest.exp[node]
    walk.marked[walk.cursor[MARKED]] = node
    walk.cursor[MARKED] += 1


@kernel
def out_degree(graph: Graph, automaton: Automaton, vertex: int, state: int) -> int:
    """The most candidates that the edges of (vertex, state) can bring."""
    relations = graph.linked_out.size
    total = 0
    for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
        bucket = vertex * relations + automaton.out_relation[move]
        total += graph.degree_in[bucket] if automaton.out_inverse[move] else graph.degree_out[bucket]
    return total


@kernel
def settle_nodes(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Batch, time: int, repair: bool
) -> int:
    """Settle the queue, longest expiry first.

    A repair emits nothing and revives only marked nodes: the rows of the instant bring the rest. A node that gains
    by a row of the same instant above it is marked too.
    """
    queue, cursor = walk.queue, walk.cursor
    states = automaton.settings[STATES]
    first_path = walk.settings[FIRST_PATH] != 0
    relations = graph.linked_out.size
    several = automaton.finals.size > 1
    finds_paths = walk.paths.last.size > 0 and not repair
    while True:
        item = peek_candidate(queue)
        if item < 0:
            return DONE
        root, vertex, state, exp = queue.root[item], queue.vertex[item], queue.state[item], queue.exp[item]
        node = find_node(forest, root, vertex, state)
        held = 0
        if node >= 0:
            held = forest.exp[node] if forest.exp[node] > time else 0
        dead = node < 0 or (held == 0 and forest.was[node] == 0)
        if held >= exp or (first_path and held > 0) or (repair and dead):
            pop_candidate(queue)
            continue
        if node < 0 and forest.counts[NODES] == forest.root.size:
            return FULL_TABLE
        if first_path and walk.expiry_count[COUNT] == walk.expiry_exp.size:
            return FULL_SCRATCH
        if queue.counts[ITEMS] + out_degree(graph, automaton, vertex, state) > queue.exp.size:
            return FULL_SCRATCH
        accepting = not repair and automaton.accepting[state] != 0
        if accepting and cursor[EMITTED] == out.ts.size:
            return FULL_OUTPUT
        parent = queue.parent[item]
        before = last = NO_STEP
        if finds_paths and accepting:
            before = find_steps(graph, automaton, forest, walk.paths, parent, time, 1)
            if before == NO_ROOM:
                return FULL_STEPS
        pop_candidate(queue)
        if node < 0:
            node = add_node(forest, root, vertex, state, states)
        if repair and forest.was[node] == 0:
            mark_node(forest, walk, node)
        forest.exp[node] = exp
        forest.parent[node] = parent
        if forest.step.size:
            forest.step[node] = NO_STEP
        if first_path:
            push_expiry(walk, exp, node)
        if accepting and (not several or answer_expiry(forest, automaton, root, vertex, state) < exp):
            if finds_paths:
                last = add_step(graph, automaton, forest, walk.paths, before, node, time)
            note_path(walk, last)
            emit_pair(out, cursor, root, vertex, time, exp, 1)
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            inverse = automaton.out_inverse[move]
            to = automaton.out_to[move]
            bucket = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[bucket] if inverse else graph.first_out[bucket]
            while row >= 0:
                lasts = min(exp, expiry_at(graph, row, time))
                if lasts > time:
                    target = graph.src[row] if inverse else graph.trg[row]
                    other = find_node(forest, root, target, to)
                    wanted = True
                    if other >= 0:
                        valid = forest.exp[other] if forest.exp[other] > time else 0
                        wanted = valid < lasts and not (first_path and valid > 0)
                    if wanted:
                        push_candidate(queue, root, target, to, node, lasts)
                row = graph.next_in[row] if inverse else graph.next_out[row]


@kernel
def extend_empty(
    forest: Forest, automaton: Automaton, vertex: int, time: int, exp: int, out: Batch, walk: Walk
) -> int:
    """Connect an endpoint of a valid edge to itself by the empty path."""
    cursor = walk.cursor
    empty = automaton.settings[EMPTY]
    node = find_node(forest, vertex, vertex, empty)
    if node >= 0 and forest.exp[node] >= exp:
        return DONE
    if node < 0 and forest.counts[NODES] == forest.root.size:
        return FULL_TABLE
    if cursor[EMITTED] == out.ts.size:
        return FULL_OUTPUT
    if node < 0:
        node = add_node(forest, vertex, vertex, empty, automaton.settings[STATES])
    if answer_expiry(forest, automaton, vertex, vertex, -1) < exp:
        note_path(walk, NO_STEP)
        emit_pair(out, cursor, vertex, vertex, time, exp, 1)
    forest.exp[node] = exp
    return DONE


@inner_kernel
def extend_trees(
    graph: Graph, automaton: Automaton, forest: Forest, batch: Batch, i: int, walk: Walk, out: Batch
) -> int:
    """Follow the new or longer edge of row `i` in every tree that reaches it."""
    cursor, queue = walk.cursor, walk.queue
    time, exp, relation = batch.ts[i], batch.exp[i], batch.source[i]
    states = automaton.settings[STATES]
    first_path = walk.settings[FIRST_PATH] != 0
    if queue.counts[ITEMS]:
        status = settle_nodes(graph, automaton, forest, walk, out, time, False)
        if status != DONE:
            return status
    begin, end = automaton.relation_begin[relation], automaton.relation_begin[relation + 1]
    if automaton.settings[EMPTY] >= 0 and cursor[MOVE] < 0:
        for end_point in range(2):
            vertex = batch.key[i, SRC] if end_point == 0 else batch.key[i, TRG]
            if is_root(walk.roots, vertex):
                status = extend_empty(forest, automaton, vertex, time, exp, out, walk)
                if status != DONE:
                    return status
    if cursor[MOVE] < 0:
        cursor[MOVE], cursor[NODE] = begin, LIST_HEAD
    for move in range(cursor[MOVE], end):
        cursor[MOVE] = move
        inverse = automaton.relation_inverse[move]
        tail = batch.key[i, TRG] if inverse else batch.key[i, SRC]
        head = batch.key[i, SRC] if inverse else batch.key[i, TRG]
        state, to = automaton.relation_from[move], automaton.relation_to[move]
        if cursor[NODE] == LIST_HEAD:
            cursor[NODE] = forest.first_node[tail * states + state]
            if state == 0 and is_root(walk.roots, tail):
                push_candidate(queue, tail, head, to, -1, exp)
                status = settle_nodes(graph, automaton, forest, walk, out, time, False)
                if status != DONE:
                    return status
        while cursor[NODE] >= 0:
            node = cursor[NODE]
            cursor[NODE] = forest.next_node[node]
            lasts = min(forest.exp[node], exp)
            if lasts > time:
                root = forest.root[node]
                other = find_node(forest, root, head, to)
                wanted = True
                if other >= 0:
                    valid = forest.exp[other] if forest.exp[other] > time else 0
                    wanted = valid < lasts and not (first_path and valid > 0)
                if wanted:
                    push_candidate(queue, root, head, to, node, lasts)
                    status = settle_nodes(graph, automaton, forest, walk, out, time, False)
                    if status != DONE:
                        return status
        cursor[NODE] = LIST_HEAD
    cursor[MOVE] = -1
    return DONE


@inner_kernel
def reaches_trees(automaton: Automaton, forest: Forest, batch: Batch, i: int) -> bool:
    """Whether the edge of row `i` may start a tree, or extend one."""
    if automaton.settings[EMPTY] >= 0:
        return True
    relation, states = batch.source[i], automaton.settings[STATES]
    for move in range(automaton.relation_begin[relation], automaton.relation_begin[relation + 1]):
        state = automaton.relation_from[move]
        tail = batch.key[i, TRG] if automaton.relation_inverse[move] else batch.key[i, SRC]
        if state == 0 or forest.first_node[tail * states + state] >= 0:
            return True
    return False


@kernel
def walk_insertions(
    graph: Graph, automaton: Automaton, forest: Forest, batch: Batch, walk: Walk, out: Batch
) -> int:
    """Process a batch without retractions, in order of time. `cursor` as for `repair.walk_changes`.

    Returns DONE, or what is full; called again with that room, it resumes where it stopped.
    """
    cursor = walk.cursor
    while cursor[NEXT_ROW] < batch.ts.size:
        if cursor[PHASE] == START:
            if not reaches_trees(automaton, forest, batch, cursor[NEXT_ROW]):
                cursor[NEXT_ROW] += 1
                continue
            cursor[PHASE], cursor[MOVE] = EXTEND, -1
        cursor[AT] = cursor[NEXT_ROW]
        status = extend_trees(graph, automaton, forest, batch, cursor[AT], walk, out)
        if status != DONE:
            return status
        cursor[PHASE] = START
        cursor[NEXT_ROW] += 1
    return DONE
