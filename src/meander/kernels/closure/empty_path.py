"""The empty path: a vertex is joined to itself for as long as its longest-lasting edge lasts.

These pairs need no search. Until when each vertex has an edge is kept by vertex, and looked up again only if an edge
is deleted.
"""

from __future__ import annotations

from meander.kernels.closure.staging import stage_answer
from meander.kernels.closure.tables import (
    DELETE,
    EXPIRE,
    GROW,
    Cursor,
    Request,
    Segment,
    Staged,
    VertexEnd,
    int64,
)
from meander.kernels.jit import kernel
from meander.kernels.paths import is_root
from meander.kernels.record import Table
from meander.kernels.steps import NO_STEP


@kernel
def find_vertex_ends(segment: Segment, vertex_end: Table[VertexEnd], kind: int) -> None:
    """Find until when each vertex had an edge before the step."""
    counts = segment.counts
    for vertex in range(vertex_end.size):
        vertex_end[vertex].expiry = 0
    for i in range(counts.begin, counts.end):
        edge = segment.edge[segment.by_expiry[counts.current, i]]
        expiry = edge.lo if kind == GROW else edge.hi
        for vertex in (edge.src, edge.trg):
            vertex_end[vertex].expiry = max(vertex_end[vertex].expiry, expiry)
    counts.has_vertex_ends = 1


@kernel
def move_vertex_ends(segment: Segment, vertex_end: Table[VertexEnd], cursor: Cursor) -> None:
    """Apply the step to the vertices of its edges, and note what was before."""
    counts, kind, time = segment.counts, cursor.kind, cursor.time
    for i in range(counts.changed):
        edge = segment.edge[segment.changed[i]]
        for vertex in (edge.src, edge.trg):
            end = vertex_end[vertex]
            expiry = end.expiry
            if end.previous < 0:
                end.previous = expiry if kind != GROW or expiry > time else 0
                end.since = edge.since
                if kind == DELETE or (kind == EXPIRE and expiry <= time):
                    end.expiry = 0
            if kind == GROW:
                end.expiry = max(expiry, edge.hi)
    if kind == DELETE:
        for i in range(counts.begin, counts.end):
            edge = segment.edge[segment.by_expiry[counts.current, i]]
            for vertex in (edge.src, edge.trg):
                if vertex_end[vertex].previous >= 0:
                    vertex_end[vertex].expiry = max(vertex_end[vertex].expiry, edge.lo)


@kernel
def stage_empty_paths(
    segment: Segment, vertex_end: Table[VertexEnd], staged: Staged, request: Request, cursor: Cursor
) -> None:
    """Stage the empty paths that start, stop or change. Needs room for four answers per changed edge."""
    if segment.counts.has_vertex_ends == 0:
        find_vertex_ends(segment, vertex_end, cursor.kind)
    move_vertex_ends(segment, vertex_end, cursor)
    for i in range(segment.counts.changed):
        edge = segment.edge[segment.changed[i]]
        for vertex in (edge.src, edge.trg):
            end = vertex_end[vertex]
            previous, expiry = end.previous, end.expiry
            end.previous = -1
            continues = previous > 0 and expiry > 0
            if previous < 0 or previous == expiry or (continues and not request.options.expiries):
                continue
            if not is_root(request.roots, vertex):
                continue
            since = 0
            if cursor.kind == GROW:
                since = cursor.last if continues else end.since
            exp = expiry if expiry > 0 else cursor.time
            cursor.staged = stage_answer(
                staged, cursor.staged, vertex, int64(vertex), exp, since, int64(NO_STEP), cursor
            )
