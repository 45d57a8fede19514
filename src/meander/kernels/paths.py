"""PATH by spanning trees: S-PATH, and the negative-tuple algorithm, in one walk over the changes of the inputs.

S-PATH keeps, for each node, the path that lasts longest: a candidate that outlasts what a node has replaces
it, and is followed further; candidates are settled in order of largest expiry, so each node settles once
a row. The negative-tuple way keeps the first path found, and looks for another when that one expires.

Both share the repair of trees: nodes whose path is cut (by a deletion), or has expired, are marked with all that
hangs below them; then the best ways in from unmarked nodes are queued, and a search by largest expiry
settles what can be settled. What the repair has changed of the answers is handed out at its end.

Everything that a stopped walk needs to go on stands in `cursor`, the queue, and the forest's columns.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.forest import (
    ITEMS,
    NODES,
    Automaton,
    Forest,
    Queue,
    add_node,
    find_node,
    peek_candidate,
    pop_candidate,
    push_candidate,
)
from meander.kernels.graph import (
    DONE,
    FULL_OUTPUT,
    FULL_SCRATCH,
    FULL_TABLE,
    NEEDS_LINKS,
    Graph,
    Rows,
    expiry_at,
    expiry_before,
)
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import MergedRows

# Places in `cursor`.
BEGIN, OUT, PHASE, AT, MOVE, NODE, MARKED, TIME = 0, 1, 2, 3, 4, 5, 6, 7
# Phases of an instant.
START, SEED, SETTLE, REPORT, EXTEND = 0, 1, 2, 3, 4
# In cursor[NODE]: the list of a move is walked from its head.
HEAD = -2


class Walk(NamedTuple):
    """What the walk works on besides graph and forest; `settings` is [keeps first path]."""

    queue: Queue
    marked: Array
    expiry_exp: Array  # a heap of (expiry, node), for the negative-tuple way
    expiry_node: Array
    expiry_count: Array
    roots: Array  # the only roots that are asked for; empty: all
    settings: Array
    cursor: Array


@kernel
def is_root(roots: Array, vertex: int) -> bool:
    """Whether paths from `vertex` are asked for."""
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
def answer_expiry_before(forest: Forest, automaton: Automaton, root: int, vertex: int) -> int:
    """The same, before the repair under way."""
    best = 0
    for i in range(automaton.finals.size):
        node = find_node(forest, root, vertex, automaton.finals[i])
        if node >= 0:
            exp = forest.was[node] if forest.was[node] > 0 else forest.exp[node]
            best = max(best, exp)
    return best


@kernel
def emit_pair(out: Rows, cursor: Array, src: int, trg: int, time: int, exp: int, op: int) -> None:
    at = cursor[OUT]
    out.src[at] = src
    out.trg[at] = trg
    out.ts[at] = time
    out.exp[at] = exp
    out.op[at] = op
    cursor[OUT] = at + 1


@kernel
def push_expiry(walk: Walk, exp: int, node: int) -> None:
    """Remember when a node is to be looked at again. Needs room for one."""
    at = walk.expiry_count[0]
    walk.expiry_count[0] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if walk.expiry_exp[above] <= exp:
            break
        walk.expiry_exp[at] = walk.expiry_exp[above]
        walk.expiry_node[at] = walk.expiry_node[above]
        at = above
    walk.expiry_exp[at] = exp
    walk.expiry_node[at] = node


@kernel
def pop_expiry(walk: Walk) -> None:
    size = walk.expiry_count[0] - 1
    walk.expiry_count[0] = size
    exp, node = walk.expiry_exp[size], walk.expiry_node[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and walk.expiry_exp[below + 1] < walk.expiry_exp[below]:
            below += 1
        if walk.expiry_exp[below] >= exp:
            break
        walk.expiry_exp[at] = walk.expiry_exp[below]
        walk.expiry_node[at] = walk.expiry_node[below]
        at = below
    walk.expiry_exp[at] = exp
    walk.expiry_node[at] = node


@kernel
def collect_expiries(forest: Forest, walk: Walk) -> None:
    """Fill the heap of expiries anew from all nodes (after the table was packed); needs room for all."""
    walk.expiry_count[0] = 0
    for node in range(forest.counts[NODES]):
        push_expiry(walk, forest.exp[node], node)


@kernel
def out_degree(graph: Graph, automaton: Automaton, vertex: int, state: int) -> int:
    """How many candidates following the edges of (vertex, state) can give at most."""
    relations = graph.linked_out.size
    total = 0
    for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
        place = vertex * relations + automaton.out_relation[move]
        total += graph.degree_in[place] if automaton.out_inverse[move] else graph.degree_out[place]
    return total


@kernel
def settle_nodes(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Rows, time: int, repair: bool
) -> int:
    """Settle the queue, longest expiry first. In a repair only marked nodes settle, and nothing is handed out."""
    queue, cursor = walk.queue, walk.cursor
    states = automaton.settings[0]
    first_path = walk.settings[0] != 0
    relations = graph.linked_out.size
    several = automaton.finals.size > 1
    while True:
        item = peek_candidate(queue)
        if item < 0:
            return DONE
        root, vertex, state, exp = queue.root[item], queue.vertex[item], queue.state[item], queue.exp[item]
        node = find_node(forest, root, vertex, state)
        held = 0
        if node >= 0:
            held = forest.exp[node] if forest.exp[node] > time else 0
        if held >= exp or (first_path and held > 0) or (repair and (node < 0 or forest.was[node] == 0)):
            pop_candidate(queue)
            continue
        if node < 0 and forest.counts[NODES] == forest.root.size:
            return FULL_TABLE
        if first_path and walk.expiry_count[0] == walk.expiry_exp.size:
            return FULL_SCRATCH
        if queue.counts[ITEMS] + out_degree(graph, automaton, vertex, state) > queue.exp.size:
            return FULL_SCRATCH
        accepting = not repair and automaton.accepting[state] != 0
        if accepting and cursor[OUT] == out.ts.size:
            return FULL_OUTPUT
        parent = queue.parent[item]
        pop_candidate(queue)
        if node < 0:
            node = add_node(forest, root, vertex, state, states)
        forest.exp[node] = exp
        forest.parent[node] = parent
        if first_path:
            push_expiry(walk, exp, node)
        if accepting and (not several or answer_expiry(forest, automaton, root, vertex, state) < exp):
            emit_pair(out, cursor, root, vertex, time, exp, 1)
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            inverse = automaton.out_inverse[move]
            to = automaton.out_to[move]
            place = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[place] if inverse else graph.first_out[place]
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
def mark_node(forest: Forest, walk: Walk, node: int) -> None:
    forest.was[node] = forest.exp[node]
    walk.marked[walk.cursor[MARKED]] = node
    walk.cursor[MARKED] += 1


@kernel
def mark_cut(
    graph: Graph, automaton: Automaton, forest: Forest, rows: MergedRows, begin: int, end: int, walk: Walk
) -> None:
    """Mark the nodes whose path runs over an edge that the rows of this instant cut, and all below them."""
    cursor = walk.cursor
    time = rows.ts[begin]
    states = automaton.settings[0]
    empty = automaton.settings[1]
    relations = graph.linked_out.size
    for i in range(begin, end):
        if rows.op[i] > 0:
            continue
        relation = rows.relation[i]
        for move in range(automaton.relation_begin[relation], automaton.relation_begin[relation + 1]):
            inverse = automaton.relation_inverse[move]
            tail = rows.trg[i] if inverse else rows.src[i]
            head = rows.src[i] if inverse else rows.trg[i]
            state = automaton.relation_from[move]
            node = forest.first_node[head * states + automaton.relation_to[move]]
            while node >= 0:
                if forest.exp[node] > rows.exp[i] and forest.exp[node] > time and forest.was[node] == 0:
                    parent = forest.parent[node]
                    if parent >= 0:
                        if forest.vertex[parent] == tail and forest.state[parent] == state:
                            mark_node(forest, walk, node)
                    elif state == 0 and forest.root[node] == tail:
                        mark_node(forest, walk, node)
                node = forest.next_node[node]
        if empty >= 0:
            for end_point in range(2):
                vertex = rows.src[i] if end_point == 0 else rows.trg[i]
                node = find_node(forest, vertex, vertex, empty)
                if node >= 0 and forest.exp[node] > max(time, rows.exp[i]) and forest.was[node] == 0:
                    mark_node(forest, walk, node)
    at = 0
    while at < cursor[MARKED]:
        node = walk.marked[at]
        at += 1
        state, vertex, root = forest.state[node], forest.vertex[node], forest.root[node]
        if state == empty:
            continue
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            inverse = automaton.out_inverse[move]
            place = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[place] if inverse else graph.first_out[place]
            while row >= 0:
                if expiry_before(graph, row, time) > time:
                    target = graph.src[row] if inverse else graph.trg[row]
                    child = find_node(forest, root, target, automaton.out_to[move])
                    if (
                        child >= 0
                        and forest.parent[child] == node
                        and forest.was[child] == 0
                        and forest.exp[child] > time
                    ):
                        mark_node(forest, walk, child)
                row = graph.next_in[row] if inverse else graph.next_out[row]


@kernel
def incident_expiry(graph: Graph, automaton: Automaton, vertex: int, time: int) -> int:
    """Until when some edge of the inputs has `vertex` as an end point."""
    relations = graph.linked_out.size
    best = 0
    for relation in range(relations):
        if not automaton.reads[relation]:
            continue
        row = graph.first_out[vertex * relations + relation]
        while row >= 0:
            best = max(best, expiry_at(graph, row, time))
            row = graph.next_out[row]
        row = graph.first_in[vertex * relations + relation]
        while row >= 0:
            best = max(best, expiry_at(graph, row, time))
            row = graph.next_in[row]
    return best if best > time else 0


@kernel
def seed_repair(graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, time: int) -> int:
    """Queue, for each marked node, the best way in from a node that is not marked."""
    cursor = walk.cursor
    relations = graph.linked_out.size
    empty = automaton.settings[1]
    while cursor[AT] < cursor[MARKED]:
        node = walk.marked[cursor[AT]]
        root, vertex, state = forest.root[node], forest.vertex[node], forest.state[node]
        if state == empty:
            forest.exp[node] = incident_expiry(graph, automaton, vertex, time)
            cursor[AT] += 1
            continue
        if walk.queue.counts[ITEMS] == walk.queue.exp.size:
            return FULL_SCRATCH
        best, parent = 0, -1
        for move in range(automaton.in_begin[state], automaton.in_begin[state + 1]):
            inverse = automaton.in_inverse[move]
            source_state = automaton.in_from[move]
            place = vertex * relations + automaton.in_relation[move]
            row = graph.first_out[place] if inverse else graph.first_in[place]
            while row >= 0:
                lasts = expiry_at(graph, row, time)
                if lasts > time and lasts > best:
                    source = graph.trg[row] if inverse else graph.src[row]
                    if source_state == 0 and source == root:
                        best, parent = lasts, -1
                    else:
                        before = find_node(forest, root, source, source_state)
                        if before >= 0 and forest.exp[before] > time:
                            lasts = min(lasts, forest.exp[before])
                            if lasts > best:
                                best, parent = lasts, before
                row = graph.next_out[row] if inverse else graph.next_in[row]
        if best > time:
            push_candidate(walk.queue, root, vertex, state, parent, best)
        cursor[AT] += 1
    return DONE


@kernel
def report_repair(automaton: Automaton, forest: Forest, walk: Walk, out: Rows, time: int) -> int:
    """Hand out the answers that the repair lengthened or shortened, each once; then the marks are gone."""
    cursor = walk.cursor
    while cursor[AT] < cursor[MARKED]:
        node = walk.marked[cursor[AT]]
        state = forest.state[node]
        if automaton.accepting[state]:
            root, vertex = forest.root[node], forest.vertex[node]
            first = True
            for i in range(automaton.finals.size):
                if automaton.finals[i] == state:
                    break
                other = find_node(forest, root, vertex, automaton.finals[i])
                if other >= 0 and forest.was[other] > 0:
                    first = False
            if first:
                if cursor[OUT] == out.ts.size:
                    return FULL_OUTPUT
                before = max(time, answer_expiry_before(forest, automaton, root, vertex))
                after = max(time, answer_expiry(forest, automaton, root, vertex, -1))
                if after != before:
                    emit_pair(out, cursor, root, vertex, time, after, 1 if after > before else -1)
        cursor[AT] += 1
    for i in range(cursor[MARKED]):
        forest.was[walk.marked[i]] = 0
    cursor[MARKED] = 0
    return DONE


@kernel
def continue_repair(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Rows, time: int
) -> int:
    """The phases of a repair, from where it stands: SEED, SETTLE, REPORT."""
    cursor = walk.cursor
    if cursor[PHASE] == SEED:
        status = seed_repair(graph, automaton, forest, walk, time)
        if status != DONE:
            return status
        cursor[PHASE] = SETTLE
    if cursor[PHASE] == SETTLE:
        status = settle_nodes(graph, automaton, forest, walk, out, time, True)
        if status != DONE:
            return status
        cursor[PHASE], cursor[AT] = REPORT, 0
    return report_repair(automaton, forest, walk, out, time)


@kernel
def expire_nodes(graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Rows, upto: int) -> int:
    """For the negative-tuple way: at each instant up to `upto` at which nodes expire, look for other paths."""
    cursor = walk.cursor
    while True:
        if cursor[PHASE] == START:
            while walk.expiry_count[0] > 0:
                node, exp = walk.expiry_node[0], walk.expiry_exp[0]
                if exp > upto or (forest.exp[node] == exp and cursor[MARKED] > 0 and exp > cursor[TIME]):
                    break
                if forest.exp[node] == exp and forest.was[node] == 0:
                    if cursor[MARKED] == walk.marked.size:
                        for i in range(cursor[MARKED]):
                            push_expiry(walk, cursor[TIME], walk.marked[i])
                            forest.was[walk.marked[i]] = 0
                        cursor[MARKED] = 0
                        return FULL_SCRATCH
                    cursor[TIME] = exp
                    mark_node(forest, walk, node)
                pop_expiry(walk)
            if cursor[MARKED] == 0:
                return DONE
            for i in range(cursor[MARKED]):
                forest.exp[walk.marked[i]] = 0
            cursor[PHASE], cursor[AT] = SEED, 0
        status = continue_repair(graph, automaton, forest, walk, out, cursor[TIME])
        if status != DONE:
            return status
        cursor[PHASE] = START


@kernel
def extend_empty(
    forest: Forest, automaton: Automaton, vertex: int, time: int, exp: int, out: Rows, cursor: Array
) -> int:
    """An end point of a valid edge is joined to itself by the empty path."""
    empty = automaton.settings[1]
    node = find_node(forest, vertex, vertex, empty)
    if node >= 0 and forest.exp[node] >= exp:
        return DONE
    if node < 0 and forest.counts[NODES] == forest.root.size:
        return FULL_TABLE
    if cursor[OUT] == out.ts.size:
        return FULL_OUTPUT
    if node < 0:
        node = add_node(forest, vertex, vertex, empty, automaton.settings[0])
    if answer_expiry(forest, automaton, vertex, vertex, -1) < exp:
        emit_pair(out, cursor, vertex, vertex, time, exp, 1)
    forest.exp[node] = exp
    return DONE


@kernel
def extend_trees(
    graph: Graph, automaton: Automaton, forest: Forest, rows: MergedRows, i: int, walk: Walk, out: Rows
) -> int:
    """Follow the new or longer edge of row `i` in every tree that reaches it."""
    cursor, queue = walk.cursor, walk.queue
    time, exp, relation = rows.ts[i], rows.exp[i], rows.relation[i]
    states = automaton.settings[0]
    first_path = walk.settings[0] != 0
    status = settle_nodes(graph, automaton, forest, walk, out, time, False)
    if status != DONE:
        return status
    begin, end = automaton.relation_begin[relation], automaton.relation_begin[relation + 1]
    if automaton.settings[1] >= 0 and cursor[MOVE] < 0:
        for end_point in range(2):
            vertex = rows.src[i] if end_point == 0 else rows.trg[i]
            if is_root(walk.roots, vertex):
                status = extend_empty(forest, automaton, vertex, time, exp, out, cursor)
                if status != DONE:
                    return status
    if cursor[MOVE] < 0:
        cursor[MOVE], cursor[NODE] = begin, HEAD
    for move in range(cursor[MOVE], end):
        cursor[MOVE] = move
        inverse = automaton.relation_inverse[move]
        tail = rows.trg[i] if inverse else rows.src[i]
        head = rows.src[i] if inverse else rows.trg[i]
        state, to = automaton.relation_from[move], automaton.relation_to[move]
        if cursor[NODE] == HEAD:
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
        cursor[NODE] = HEAD
    cursor[MOVE] = -1
    return DONE


@kernel
def walk_paths(
    graph: Graph, automaton: Automaton, forest: Forest, rows: MergedRows, upto: int, walk: Walk, out: Rows
) -> int:
    """Walk the changes of the inputs in order of time, then let time advance to `upto`.

    `cursor` is [first row of the instant, output rows, phase, place in the phase, move, node, marked, time].
    Returns DONE, or what is full (or missing); called again with that, it goes on where it stopped.
    """
    cursor = walk.cursor
    first_path = walk.settings[0] != 0
    total = rows.ts.size
    while cursor[BEGIN] < total:
        begin = cursor[BEGIN]
        time = rows.ts[begin]
        end = begin
        cuts = False
        while end < total and rows.ts[end] == time:
            cuts = cuts or rows.op[end] < 0
            end += 1
        if cursor[PHASE] != EXTEND and first_path and cursor[TIME] < time + 1:
            status = expire_nodes(graph, automaton, forest, walk, out, time)
            if status != DONE:
                return status
            cursor[TIME] = time + 1
        if cursor[PHASE] != EXTEND and cuts:
            if cursor[PHASE] == START:
                if walk.marked.size < forest.counts[NODES]:
                    return FULL_SCRATCH
                if not listed_both_ways(graph, automaton):
                    return NEEDS_LINKS
                mark_cut(graph, automaton, forest, rows, begin, end, walk)
                for i in range(cursor[MARKED]):
                    forest.exp[walk.marked[i]] = 0
                cursor[PHASE], cursor[AT] = SEED, 0
            status = continue_repair(graph, automaton, forest, walk, out, time)
            if status != DONE:
                return status
        if cursor[PHASE] != EXTEND:
            cursor[PHASE], cursor[AT], cursor[MOVE] = EXTEND, begin, -1
        while cursor[AT] < end:
            if rows.op[cursor[AT]] > 0:
                status = extend_trees(graph, automaton, forest, rows, cursor[AT], walk, out)
                if status != DONE:
                    return status
            cursor[AT] += 1
        cursor[PHASE] = START
        cursor[BEGIN] = end
    if first_path:
        return expire_nodes(graph, automaton, forest, walk, out, upto)
    return DONE


@kernel
def listed_both_ways(graph: Graph, automaton: Automaton) -> bool:
    """Whether every relation of the automaton is listed both ways, as a repair needs."""
    for relation in range(graph.linked_out.size):
        if automaton.reads[relation] and not (graph.linked_out[relation] and graph.linked_in[relation]):
            return False
    return True
