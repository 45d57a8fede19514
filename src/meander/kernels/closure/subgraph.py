"""The subgraph of a step: the part of the window's graph on which answers that the step may change depend.

Roots that reach no changed edge keep their answers, and so do vertices that are reached over none. Everything on any
path between the others counts: another path to the same answer may avoid the changed edges.
"""

from __future__ import annotations

from meander.kernels.closure.demand import is_demanded_root, is_demanded_target, mark_added
from meander.kernels.closure.segment import is_own_root, source_key, target_key
from meander.kernels.closure.tables import (
    BEYOND_CHANGE,
    CHANGES_PAIRS,
    GROW,
    MAY_CHANGE,
    REACHES_ANSWER,
    REACHES_CHANGE,
    Cursor,
    Demand,
    Moves,
    Request,
    Segment,
    Subgraph,
)
from meander.kernels.jit import Array, kernel
from meander.kernels.status import DONE, FULL_SCRATCH


@kernel
def number_node(subgraph: Subgraph, key: int) -> int:
    """The node of a (vertex, state) pair. Needs room for one."""
    node = subgraph.number[key]
    if node < 0:
        node = subgraph.counts.nodes
        subgraph.counts.nodes = node + 1
        subgraph.number[key] = node
        subgraph.node[node].key = key
    return node


@kernel
def forget_nodes(subgraph: Subgraph) -> None:
    for node in range(subgraph.counts.nodes):
        subgraph.number[subgraph.node[node].key] = -1
    subgraph.counts.nodes = 0


@kernel
def add_edges(segment: Segment, subgraph: Subgraph, automaton: Moves, request: Request, order: int) -> bool:
    """Add all edges that are valid by `hi`, latest first; False: no room.

    If expiries are not requested, all of them are one level.
    """
    counts = segment.counts
    begin = counts.begin if order == counts.current else 0
    end = counts.end if order == counts.current else counts.next_end
    edges = 0
    for at in range(end - 1, begin - 1, -1):
        row = segment.by_expiry[order, at]
        subgraph.first_edge[row] = edges
        lo, hi = segment.edge[row].lo, segment.edge[row].hi
        if not request.options.expiries:
            lo, hi = min(lo, 1), min(hi, 1)
        relation = segment.edge[row].relation
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            if edges == subgraph.edge.size or subgraph.counts.nodes + 3 > subgraph.node.size:
                return False
            edge = subgraph.edge[edges]
            edge.source = number_node(subgraph, source_key(segment, automaton, row, move))
            edge.target = number_node(subgraph, target_key(segment, automaton, row, move))
            edge.row = row
            edge.lo = lo
            edge.hi = hi
            edges += 1
    subgraph.counts.edges = edges
    return True


@kernel
def assign_answers(subgraph: Subgraph, automaton: Moves) -> bool:
    """Find the node for the answers of each accepting node: in the first accepting state. False: no room."""
    states, total = automaton.info.states, subgraph.counts.nodes
    if 2 * total >= subgraph.node.size:
        return False
    for i in range(total):
        vertex, state = divmod(subgraph.node[i].key, states)
        subgraph.node[i].answer = -1
        if automaton.accepting[state]:
            answer = number_node(subgraph, vertex * states + automaton.info.answer_state)
            subgraph.node[i].answer = answer
    for i in range(total, subgraph.counts.nodes):
        subgraph.node[i].answer = i
    for i in range(subgraph.counts.nodes):
        subgraph.node[i].marks = 0
    return True


@kernel
def list_edges(subgraph: Subgraph, end: Array, begin: Array, listed: Array) -> None:
    """List the edges by one of their ends, each list in the order of the edges: a counting sort."""
    nodes, edges = subgraph.counts.nodes, subgraph.counts.edges
    for i in range(nodes + 1):
        begin[i] = 0
    for i in range(edges):
        begin[end[i] + 1] += 1
    for i in range(nodes):
        begin[i + 1] += begin[i]
    for i in range(edges):
        listed[begin[end[i]]] = i
        begin[end[i]] += 1
    for i in range(nodes, 0, -1):
        begin[i] = begin[i - 1]
    begin[0] = 0


@kernel
def spread_mark(subgraph: Subgraph, begin: Array, listed: Array, other_end: Array, mark: int) -> None:
    """Mark all nodes that are connected, over lists of edges by one end, to the nodes in the queue."""
    queue = subgraph.queue
    head, tail = 0, subgraph.counts.queued
    while head < tail:
        node = queue[head]
        head += 1
        for at in range(begin[node], begin[node + 1]):
            other = other_end[listed[at]]
            if subgraph.node[other].marks & mark == 0:
                subgraph.node[other].marks |= mark
                queue[tail] = other
                tail += 1


@kernel
def mark_changes(segment: Segment, subgraph: Subgraph, end: Array, mark: int) -> None:
    """Mark and queue the nodes at one end of the changed edges."""
    size = 0
    for edge in range(subgraph.counts.edges):
        if segment.change[subgraph.edge[edge].row] == CHANGES_PAIRS:
            node = end[edge]
            if subgraph.node[node].marks & mark == 0:
                subgraph.node[node].marks |= mark
                subgraph.queue[size] = node
                size += 1
    subgraph.counts.queued = size


@kernel
def mark_nodes(segment: Segment, subgraph: Subgraph, automaton: Moves, demand: Demand) -> None:
    """Mark the roots and the answers that the step may change, and all nodes from which the latter are reached."""
    source, target = subgraph.edge["source"], subgraph.edge["target"]
    begin_out, begin_in = subgraph.node["begin_out"], subgraph.node["begin_in"]
    list_edges(subgraph, source, begin_out, subgraph.out_edges)
    list_edges(subgraph, target, begin_in, subgraph.in_edges)
    mark_changes(segment, subgraph, source, REACHES_CHANGE)
    spread_mark(subgraph, begin_in, subgraph.in_edges, source, REACHES_CHANGE)
    mark_changes(segment, subgraph, target, BEYOND_CHANGE)
    spread_mark(subgraph, begin_out, subgraph.out_edges, target, BEYOND_CHANGE)
    for i in range(subgraph.counts.nodes):
        node = subgraph.node[i]
        is_affected = node.marks & BEYOND_CHANGE and node.answer >= 0
        if is_affected and is_demanded_target(demand, node.key // automaton.info.states):
            subgraph.node[node.answer].marks |= MAY_CHANGE
    if demand.counts.is_enforced:
        mark_added(segment, demand, subgraph, automaton)
    size = 0
    for i in range(subgraph.counts.nodes):
        node = subgraph.node[i]
        if node.answer >= 0 and subgraph.node[node.answer].marks & MAY_CHANGE:
            node.marks |= REACHES_ANSWER
            subgraph.queue[size] = i
            size += 1
    subgraph.counts.queued = size
    spread_mark(subgraph, begin_in, subgraph.in_edges, source, REACHES_ANSWER)


@kernel
def prune_edges(segment: Segment, subgraph: Subgraph) -> None:
    """Keep the edges that lead to answers that may change: out of each node, and all by `hi` in `in_edges`."""
    at = 0
    for i in range(subgraph.counts.nodes):
        node = subgraph.node[i]
        begin, end = node.begin_out, subgraph.node[i + 1].begin_out
        node.begin_out = at
        if node.marks & REACHES_ANSWER:
            for j in range(begin, end):
                edge = subgraph.edge[subgraph.out_edges[j]]
                if subgraph.node[edge.target].marks & REACHES_ANSWER:
                    out = subgraph.out[at]
                    out.target = edge.target
                    out.since = segment.edge[edge.row].since
                    out.lo = edge.lo
                    out.hi = edge.hi
                    at += 1
        node.end_out = at
    total = 0
    for i in range(subgraph.counts.edges):
        if subgraph.node[subgraph.edge[i].target].marks & REACHES_ANSWER:
            subgraph.in_edges[total] = i
            total += 1
    subgraph.counts.edges = total


@kernel
def list_lowered(segment: Segment, subgraph: Subgraph, automaton: Moves, order: int) -> None:
    """List the changed edges that are valid by `lo` too, latest first."""
    counts = segment.counts
    begin = counts.begin if order == counts.current else 0
    end = counts.end if order == counts.current else counts.next_end
    size = 0
    for at in range(end - 1, begin - 1, -1):
        row = segment.by_expiry[order, at]
        if segment.change[row]:
            relation = segment.edge[row].relation
            for i in range(automaton.begin[relation + 1] - automaton.begin[relation]):
                subgraph.lowered[size] = subgraph.first_edge[row] + i
                size += 1
    subgraph.counts.lowered = size


@kernel
def list_roots(subgraph: Subgraph, automaton: Moves, request: Request, demand: Demand) -> None:
    """List the roots of this share that reach a changed edge and are demanded."""
    size = 0
    for i in range(subgraph.counts.nodes):
        vertex, state = divmod(subgraph.node[i].key, automaton.info.states)
        is_affected = state == 0 and subgraph.node[i].marks & REACHES_CHANGE
        if is_affected and is_own_root(request, vertex) and is_demanded_root(demand, vertex):
            subgraph.root[size] = i
            size += 1
    subgraph.counts.roots = size


@kernel
def build_subgraph(
    segment: Segment, subgraph: Subgraph, automaton: Moves, request: Request, demand: Demand, cursor: Cursor
) -> int:
    """Build the subgraph of a step and list its roots. FULL_SCRATCH: no room for nodes or edges."""
    current = segment.counts.current
    by_hi = 1 - current if cursor.kind == GROW else current
    forget_nodes(subgraph)
    if not add_edges(segment, subgraph, automaton, request, by_hi) or not assign_answers(subgraph, automaton):
        return FULL_SCRATCH
    mark_nodes(segment, subgraph, automaton, demand)
    prune_edges(segment, subgraph)
    subgraph.counts.lowered = 0
    if request.options.expiries:
        list_lowered(segment, subgraph, automaton, 1 - by_hi)
    list_roots(subgraph, automaton, request, demand)
    return DONE
