"""The matrix of levels: by node and root, until when a path between them lasts; its nodes, columns and edges.

Expiries are levels of 16 bits: multiples of a unit, counted from an origin. Edges expire at ends of slides, so that
the unit is the slide. A level that time has passed stands for no path, which is all that expiring takes.

The matrix follows from the window's graph. If it is missing (at the beginning, after a deletion, or if the unit does
not fit the expiries) it is rebuilt, latest edges first. When a table is full, nodes and roots without edges are freed
first.
"""

from __future__ import annotations

from math import gcd

from meander.kernels.closure.segment import is_own_root, source_key, target_key
from meander.kernels.closure.tables import CHUNK, Levels, Moves, Request, Segment, int64
from meander.kernels.jit import inner_kernel, kernel, unsigned

ALWAYS = 65_535  # the level of a root at itself
MAX_LEVEL = 65_000  # of an edge


@inner_kernel
def disown_edge(levels: Levels, edge: int) -> None:
    """Remove an edge from `edge_of`."""
    owner, moves = levels.edge[edge].owner, levels.edge_of.shape[1]
    levels.edge_of[owner // moves, owner % moves] = -1


@kernel
def forget_levels(levels: Levels) -> None:
    """Empty the matrix."""
    counts = levels.counts
    for node in range(counts.nodes):
        if levels.node[node].key >= 0:
            levels.number[levels.node[node].key] = -1
    for column in range(counts.columns):
        if levels.root[column] >= 0:
            levels.column_of[levels.root[column]] = -1
    for edge in range(counts.edges):
        disown_edge(levels, unsigned(edge))
    counts.nodes = counts.columns = counts.edges = counts.queued = counts.touched = 0
    counts.free_node = counts.free_column = counts.free_edge = -1
    counts.is_ready = 0


@kernel
def padded_columns(levels: Levels) -> int:
    """The number of columns in whole chunks. Columns without a root are zero."""
    return -(-levels.counts.columns // CHUNK) * CHUNK


@kernel
def choose_unit(segment: Segment, levels: Levels, time: int) -> bool:
    """Choose origin and unit so that every expiry of the segment is a level; False: there are too many levels."""
    counts = segment.counts
    first, latest, unit = -1, 0, 0
    for i in range(counts.end - counts.begin + counts.changed):
        valid = counts.begin + i
        if valid < counts.end:
            exp = segment.edge[segment.by_expiry[counts.current, valid]].lo
        else:
            exp = segment.edge[segment.changed[valid - counts.end]].hi
        if exp > time:
            first = exp if first < 0 else first
            unit = gcd(unit, abs(exp - first))
            latest = max(latest, exp)
    if first < 0:
        return False
    unit = max(unit, 1)
    origin = first - -(-(first - time) // unit) * unit
    levels.counts.origin, levels.counts.unit = origin, unit
    return (latest - origin) // unit <= MAX_LEVEL


@kernel
def fits_unit(segment: Segment, levels: Levels) -> bool:
    """Whether the expiries that the segment brings are levels."""
    origin, unit = levels.counts.origin, levels.counts.unit
    for i in range(segment.counts.changed):
        exp = segment.edge[segment.changed[i]].hi
        if (exp - origin) % unit != 0 or (exp - origin) // unit > MAX_LEVEL:
            return False
    return True


@inner_kernel
def add_node(levels: Levels, key: int) -> int:
    """The node of a (vertex, state) pair; -1: no room for a new one."""
    counts = levels.counts
    node = levels.number[unsigned(key)]
    if node >= 0:
        return node
    node = counts.free_node
    if node >= 0:
        counts.free_node = levels.node[node].first_out
    elif counts.nodes < levels.node.size:
        node = counts.nodes
        counts.nodes = node + 1
    else:
        counts.short_nodes = 1
        return -1
    levels.number[key] = node
    added = levels.node[node]
    added.key = key
    added.first_out = -1
    added.touch = -1
    added.is_queued = 0
    added.gained = 0
    for column in range(levels.level.shape[1]):
        levels.level[node, column] = 0
    return node


@kernel
def add_column(levels: Levels, vertex: int) -> int:
    """A column for a root that has none; -1: no room."""
    counts = levels.counts
    column = counts.free_column
    if column >= 0:
        counts.free_column = -2 - levels.root[column]
    elif counts.columns < levels.root.size:
        column = counts.columns
        counts.columns = column + 1
    else:
        counts.short_columns = 1
        return -1
    levels.root[column] = vertex
    levels.column_of[vertex] = column
    return column


@kernel
def add_edge(levels: Levels) -> int:
    """A free edge; -1: no room."""
    counts = levels.counts
    edge = counts.free_edge
    if edge >= 0:
        counts.free_edge = levels.edge[edge].next_out
    elif counts.edges < levels.edge.size:
        edge = counts.edges
        counts.edges = edge + 1
    else:
        counts.short_edges = 1
    return edge


@inner_kernel
def drop_edge(levels: Levels, source: int, previous: int, edge: int) -> None:
    """Remove an expired edge from its source's list; `previous` is the edge before it there, or -1."""
    if previous < 0:
        levels.node[source].first_out = levels.edge[edge].next_out
    else:
        levels.edge[previous].next_out = levels.edge[edge].next_out
    disown_edge(levels, edge)
    levels.edge[edge].next_out = levels.counts.free_edge
    levels.counts.free_edge = edge


@kernel
def sweep_edges(levels: Levels, now: int) -> int:
    """Free the edges that have expired, and note which nodes have others; returns the number of valid edges."""
    edges = 0
    for i in range(levels.counts.nodes):
        levels.node[i].is_alive = 0
    for i in range(levels.counts.nodes):
        if levels.node[i].key < 0:
            continue
        previous = int64(-1)
        edge = levels.node[i].first_out
        while edge >= 0:
            following = levels.edge[edge].next_out
            if levels.edge[edge].level <= now:
                drop_edge(levels, unsigned(i), previous, unsigned(edge))
            else:
                levels.node[i].is_alive = 1
                levels.node[levels.edge[edge].target].is_alive = 1
                previous = int64(edge)
                edges += 1
            edge = following
    return edges


@kernel
def sweep_levels(levels: Levels, states: int, now: int) -> bool:
    """Free the edges that have expired, and the nodes and columns of vertices that have no others.

    Returns whether the table that was full has enough room then.
    """
    counts = levels.counts
    edges = sweep_edges(levels, now)
    columns = nodes = 0
    # Between two segments no node is touched, and `before` is free to hold what limits each column.
    limit = levels.before
    for column in range(padded_columns(levels)):
        limit[0, column] = 0
    for column in range(counts.columns):
        vertex = levels.root[column]
        if vertex < 0:
            continue
        if levels.node[levels.number[vertex * states]].is_alive:
            limit[0, column] = ALWAYS
            columns += 1
            continue
        levels.column_of[vertex] = -1
        levels.root[column] = -2 - counts.free_column
        counts.free_column = column
    for i in range(counts.nodes):
        row = unsigned(i)
        for j in range(padded_columns(levels)):
            column = unsigned(j)
            level, most = levels.level[row, column], limit[0, column]
            levels.level[row, column] = level if level < most else most
        node = levels.node[i]
        if node.key >= 0 and not node.is_alive:
            levels.number[node.key] = -1
            node.key = -1
            node.first_out = counts.free_node
            counts.free_node = i
        nodes += node.is_alive
    return (
        (counts.short_nodes == 0 or 4 * nodes < 3 * levels.node.size)
        and (counts.short_columns == 0 or 4 * columns < 3 * levels.root.size)
        and (counts.short_edges == 0 or 4 * edges < 3 * levels.edge.size)
    )


@inner_kernel
def link_edge(
    segment: Segment, levels: Levels, automaton: Moves, request: Request, row: int, move: int, level: int
) -> bool:
    """Add a row, as read by a move, to the edges, and its ends to nodes and columns; False: no room."""
    position = unsigned(move - automaton.begin[segment.edge[row].relation])
    since = segment.edge[row].since + 1
    edge = levels.edge_of[row, position]
    if edge >= 0:
        # Its ends are there too: nodes that are swept have no edges.
        levels.edge[unsigned(edge)].level = level
        levels.edge[unsigned(edge)].since = since
        return True
    key = source_key(segment, automaton, row, move)
    source = add_node(levels, key)
    target = add_node(levels, target_key(segment, automaton, row, move))
    if source < 0 or target < 0:
        return False
    vertex = key // automaton.info.states
    if automaton.move[move].source == 0 and levels.column_of[vertex] < 0 and is_own_root(request, vertex):
        column = add_column(levels, vertex)
        if column < 0:
            return False
        levels.level[source, column] = ALWAYS
    edge = add_edge(levels)
    if edge < 0:
        return False
    levels.edge_of[row, position] = edge
    added = levels.edge[unsigned(edge)]
    added.owner = int64(row) * levels.edge_of.shape[1] + int64(position)
    added.source = source
    added.target = target
    added.next_out = levels.node[unsigned(source)].first_out
    added.level = level
    added.since = since
    levels.node[unsigned(source)].first_out = edge
    return True
