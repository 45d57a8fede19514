"""Trees that lose paths: repair after a deletion, and the negative-tuple algorithm.

Nodes whose path is broken, or has expired, are marked with all of their subtrees; then the best ways in from
unmarked nodes are queued, and a search by largest expiry settles what can be settled. The answers that the repair has
changed are emitted at its end.

This stands apart from `paths` because a stream without deletions, under S-PATH, never needs it compiled.
"""

from __future__ import annotations

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.forest import EMPTY, ITEMS, NODES, STATES, Automaton, Forest, find_node, push_candidate
from meander.kernels.graph import Graph, expiry_at, expiry_before
from meander.kernels.heap import pop_heap
from meander.kernels.jit import kernel
from meander.kernels.paths import (
    AT,
    COUNT,
    EXTEND,
    FIRST_PATH,
    MARKED,
    MOVE,
    PHASE,
    REPAIRED_TO,
    REPORT,
    SEED,
    SETTLE,
    START,
    Walk,
    answer_expiry,
    emit_pair,
    extend_trees,
    mark_node,
    note_path,
    push_expiry,
    settle_nodes,
)
from meander.kernels.status import (
    DONE,
    EMITTED,
    FULL_OUTPUT,
    FULL_SCRATCH,
    FULL_STEPS,
    NEEDS_LINKS,
    NEXT_ROW,
)
from meander.kernels.steps import NO_PATH, NO_STEP
from meander.kernels.tree_paths import NO_ROOM, find_steps, forget_steps


@kernel
def answer_expiry_before(forest: Forest, automaton: Automaton, root: int, vertex: int) -> int:
    """As `answer_expiry`, before the current repair."""
    best = 0
    for i in range(automaton.finals.size):
        node = find_node(forest, root, vertex, automaton.finals[i])
        if node >= 0:
            exp = forest.was[node] if forest.was[node] > 0 else forest.exp[node]
            best = max(best, exp)
    return best


@kernel
def collect_expiries(forest: Forest, walk: Walk) -> None:
    """Rebuild the heap of expiries from all nodes, after the table was packed. Needs room for all."""
    walk.expiry_count[COUNT] = 0
    for node in range(forest.counts[NODES]):
        push_expiry(walk, forest.exp[node], node)


@kernel
def mark_retracted(
    graph: Graph, automaton: Automaton, forest: Forest, batch: Batch, begin: int, end: int, walk: Walk
) -> None:
    """Mark the nodes whose path uses an edge that the rows of this instant retract, and their subtrees."""
    cursor = walk.cursor
    time = batch.ts[begin]
    states = automaton.settings[STATES]
    empty = automaton.settings[EMPTY]
    relations = graph.linked_out.size
    for i in range(begin, end):
        if batch.op[i] > 0:
            continue
        relation = batch.source[i]
        for move in range(automaton.relation_begin[relation], automaton.relation_begin[relation + 1]):
            inverse = automaton.relation_inverse[move]
            tail = batch.key[i, TRG] if inverse else batch.key[i, SRC]
            head = batch.key[i, SRC] if inverse else batch.key[i, TRG]
            state = automaton.relation_from[move]
            node = forest.first_node[head * states + automaton.relation_to[move]]
            while node >= 0:
                if forest.exp[node] > batch.exp[i] and forest.exp[node] > time and forest.was[node] == 0:
                    parent = forest.parent[node]
                    if parent >= 0:
                        if forest.vertex[parent] == tail and forest.state[parent] == state:
                            mark_node(forest, walk, node)
                    elif state == 0 and forest.root[node] == tail:
                        mark_node(forest, walk, node)
                node = forest.next_node[node]
        if empty >= 0:
            for end_point in range(2):
                vertex = batch.key[i, SRC] if end_point == 0 else batch.key[i, TRG]
                node = find_node(forest, vertex, vertex, empty)
                if node >= 0 and forest.exp[node] > max(time, batch.exp[i]) and forest.was[node] == 0:
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
            bucket = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[bucket] if inverse else graph.first_out[bucket]
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
def mark_expiring(forest: Forest, walk: Walk, time: int) -> None:
    """Mark the nodes that expire at an instant with retractions too: both are repaired at once."""
    while walk.expiry_count[COUNT] > 0 and walk.expiry_exp[0] <= time:
        node, exp = walk.expiry_node[0], walk.expiry_exp[0]
        if forest.exp[node] == exp and forest.was[node] == 0:
            mark_node(forest, walk, node)
        walk.expiry_count[COUNT] = pop_heap(walk.expiry_exp, walk.expiry_node, walk.expiry_count[COUNT])


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
    empty = automaton.settings[EMPTY]
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
            bucket = vertex * relations + automaton.in_relation[move]
            row = graph.first_out[bucket] if inverse else graph.first_in[bucket]
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
def last_step(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, root: int, vertex: int, time: int
) -> int:
    """The last step of the path of a pair that is emitted after a repair; NO_ROOM: no room for its steps."""
    best = -1
    for i in range(automaton.finals.size):
        node = find_node(forest, root, vertex, automaton.finals[i])
        if node >= 0 and (best < 0 or forest.exp[node] > forest.exp[best]):
            best = node
    if forest.state[best] == automaton.settings[EMPTY]:
        return NO_STEP
    return find_steps(graph, automaton, forest, walk.paths, best, time, 0)


@kernel
def report_repair(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Batch, time: int
) -> int:
    """Emit the answers that the repair lengthened or shortened, each once, and clear the marks."""
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
                if cursor[EMITTED] == out.ts.size:
                    return FULL_OUTPUT
                before = max(time, answer_expiry_before(forest, automaton, root, vertex))
                after = max(time, answer_expiry(forest, automaton, root, vertex, -1))
                if after != before:
                    last = NO_PATH
                    if walk.paths.last.size and after > time:
                        last = last_step(graph, automaton, forest, walk, root, vertex, time)
                        if last == NO_ROOM:
                            return FULL_STEPS
                    note_path(walk, last)
                    emit_pair(out, cursor, root, vertex, time, after, 1 if after > before else -1)
        cursor[AT] += 1
    for i in range(cursor[MARKED]):
        forest.was[walk.marked[i]] = 0
    cursor[MARKED] = 0
    return DONE


@kernel
def continue_repair(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Batch, time: int
) -> int:
    """Run the phases of a repair from the current one: SEED, SETTLE, REPORT."""
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
    return report_repair(graph, automaton, forest, walk, out, time)


@kernel
def expire_nodes(
    graph: Graph, automaton: Automaton, forest: Forest, walk: Walk, out: Batch, upto: int
) -> int:
    """For the negative-tuple algorithm: wherever nodes expire up to `upto`, search for other paths."""
    cursor = walk.cursor
    while True:
        if cursor[PHASE] == START:
            while walk.expiry_count[COUNT] > 0:
                node, exp = walk.expiry_node[0], walk.expiry_exp[0]
                if exp > upto or (
                    forest.exp[node] == exp and cursor[MARKED] > 0 and exp > cursor[REPAIRED_TO]
                ):
                    break
                if forest.exp[node] == exp and forest.was[node] == 0:
                    if cursor[MARKED] == walk.marked.size:
                        for i in range(cursor[MARKED]):
                            push_expiry(walk, cursor[REPAIRED_TO], walk.marked[i])
                            forest.was[walk.marked[i]] = 0
                        cursor[MARKED] = 0
                        return FULL_SCRATCH
                    cursor[REPAIRED_TO] = exp
                    mark_node(forest, walk, node)
                walk.expiry_count[COUNT] = pop_heap(
                    walk.expiry_exp, walk.expiry_node, walk.expiry_count[COUNT]
                )
            if cursor[MARKED] == 0:
                return DONE
            for i in range(cursor[MARKED]):
                forest.exp[walk.marked[i]] = 0
            cursor[PHASE], cursor[AT] = SEED, 0
        status = continue_repair(graph, automaton, forest, walk, out, cursor[REPAIRED_TO])
        if status != DONE:
            return status
        cursor[PHASE] = START


@kernel
def walk_changes(
    graph: Graph, automaton: Automaton, forest: Forest, batch: Batch, upto: int, walk: Walk, out: Batch
) -> int:
    """Process the changes of the inputs in order of time, then advance time to `upto`.

    Returns DONE, or what is full (or missing); called again with that, it resumes where it stopped.
    """
    cursor = walk.cursor
    first_path = walk.settings[FIRST_PATH] != 0
    total = batch.ts.size
    while cursor[NEXT_ROW] < total:
        begin = cursor[NEXT_ROW]
        time = batch.ts[begin]
        end = begin
        retracts = False
        while end < total and batch.ts[end] == time:
            retracts = retracts or batch.op[end] < 0
            end += 1
        if cursor[PHASE] != EXTEND and first_path and cursor[REPAIRED_TO] < time + 1:
            status = expire_nodes(graph, automaton, forest, walk, out, time - 1 if retracts else time)
            if status != DONE:
                return status
            cursor[REPAIRED_TO] = time + 1
        if cursor[PHASE] != EXTEND and retracts:
            if cursor[PHASE] == START:
                if walk.marked.size < forest.counts[NODES]:
                    return FULL_SCRATCH
                if not listed_both_ways(graph, automaton):
                    return NEEDS_LINKS
                mark_retracted(graph, automaton, forest, batch, begin, end, walk)
                if walk.paths.last.size:
                    forget_steps(walk.paths)
                if first_path:
                    mark_expiring(forest, walk, time)
                for i in range(cursor[MARKED]):
                    forest.exp[walk.marked[i]] = 0
                cursor[PHASE], cursor[AT] = SEED, 0
            status = continue_repair(graph, automaton, forest, walk, out, time)
            if status != DONE:
                return status
        if cursor[PHASE] != EXTEND:
            cursor[PHASE], cursor[AT], cursor[MOVE] = EXTEND, begin, -1
        while cursor[AT] < end:
            if batch.op[cursor[AT]] > 0:
                status = extend_trees(graph, automaton, forest, batch, cursor[AT], walk, out)
                if status != DONE:
                    return status
            cursor[AT] += 1
        cursor[PHASE] = START
        cursor[NEXT_ROW] = end
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
