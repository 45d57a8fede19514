"""What the closure knows from one segment to the next: by place and root, until when a path between them lasts.

Expiries are kept as 16-bit codes, multiples of a unit counted from a base: the expiries of edges are ends of slides,
so that the unit is the slide. A code that time has passed stands for no path, which is all that expiring needs. An
edge that comes or lasts longer is pushed over once for all roots, `level[target] = max(level[target],
min(level[source], code))`, element by element, and on from each target that gained. Beside it goes the row of the
segment that brought each pair: `since[target] = min(since[target], max(since[source], since(edge)))`.

All of this follows from the window's graph. Where it is not there (at the beginning, after a deletion, or for
expiries that the unit does not fit) it is built anew, latest edges first. When a table is full, places and roots that
have no edges any more are freed first.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from meander.kernels.closure import (
    CHANGED,
    CHANGES,
    CURRENT,
    END,
    FIRST,
    FROM,
    HI,
    INVERSE,
    LO,
    MOVE_TO,
    RELATION,
    SRC,
    TRG,
    Moves,
    Segment,
    is_own,
)
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned

# Places in `Matrix.counts`.
READY, PLACES, COLUMNS, EDGES, FREE_PLACE, FREE_COLUMN, FREE_EDGE, TOUCHED, BASE, UNIT, SHORT, OFF = range(12)
MATRIX_COUNTS = 12
# What is SHORT: a sum of these.
SHORT_PLACES, SHORT_COLUMNS, SHORT_EDGES = 1, 2, 4
# Columns of `Matrix.place`: vertex * states + state (-1: it is free); its first edge (or the next free place); its
# place among the touched ones, or -1; whether it waits to be pushed from; whether the segment brought it pairs;
# whether it has edges; then two lists of their own: the queue, and the touched places.
KEY, FIRST_OUT, TOUCH, WAITS, FRESH, ALIVE, QUEUE, LISTED = range(8)
MATRIX_PLACE = 8
# Columns of `Matrix.edge`: what it leads to; the next edge of its source; its code; the row that brought it (from 1;
# 0: before the segment); where `edge_of` has it.
TO, NEXT, CODE, BROUGHT, OWNER = range(5)
MATRIX_EDGE = 5
# Columns of `Matrix.dirty`.
LATELY, IN_ALL = 0, 1

ALWAYS = 65_535  # the code of the empty path
LATEST = 65_000  # the largest code of an edge
NOT_YET = 65_535  # in `since`: not valid
CHUNK = 64  # columns that are looked at together
LAST_BIT = 62  # of `dirty`: it stands for all chunks from there on
ALL = -1  # all chunks


class Matrix(NamedTuple):
    """`level`, `before` and `since` by place (the last two: by touched place) and root, the latter by its column."""

    level: Array
    before: Array
    since: Array
    place: Array
    dirty: Array  # by place: a bit for each chunk of columns that gained, since it was pushed from and in the segment
    edge: Array
    edge_of: Array  # by row of the window's graph and move: the edge, or -1
    number: Array  # by vertex * states + state: the place, or -1
    column: Array  # by column: its vertex
    column_of: Array  # by vertex: its column, or -1
    counts: Array


@inner_kernel
def disown_edge(matrix: Matrix, edge: int) -> None:
    """The row and move of an edge have none any more."""
    owner, moves = matrix.edge[edge, OWNER], matrix.edge_of.shape[1]
    matrix.edge_of[owner // moves, owner % moves] = -1


@kernel
def forget_matrix(matrix: Matrix) -> None:
    counts = matrix.counts
    for place in range(counts[PLACES]):
        if matrix.place[place, KEY] >= 0:
            matrix.number[matrix.place[place, KEY]] = -1
    for column in range(counts[COLUMNS]):
        if matrix.column[column] >= 0:
            matrix.column_of[matrix.column[column]] = -1
    for edge in range(counts[EDGES]):
        disown_edge(matrix, edge)
    counts[PLACES] = counts[COLUMNS] = counts[EDGES] = counts[TOUCHED] = 0
    counts[FREE_PLACE] = counts[FREE_COLUMN] = counts[FREE_EDGE] = -1
    counts[READY] = 0


@kernel
def padded(matrix: Matrix) -> int:
    """How many columns are looked at: whole chunks. Those that are nobody's are zero."""
    return -(-matrix.counts[COLUMNS] // CHUNK) * CHUNK


@kernel
def choose_unit(segment: Segment, matrix: Matrix, time: int) -> bool:
    """Choose base and unit so that every expiry of the segment is a whole number of units after the base."""
    counts = segment.counts
    first, latest, unit = -1, 0, 0
    for i in range(counts[FIRST], counts[END]):
        exp = segment.exp[segment.lists[counts[CURRENT], i], LO]
        if exp > time:
            if first < 0:
                first = exp
            unit = gcd(unit, abs(exp - first))
            latest = max(latest, exp)
    for i in range(counts[CHANGED]):
        exp = segment.exp[segment.lists[CHANGES, i], HI]
        if first < 0:
            first = exp
        unit = gcd(unit, abs(exp - first))
        latest = max(latest, exp)
    if first < 0:
        return False
    unit = max(unit, 1)
    base = first - -(-(first - time) // unit) * unit
    matrix.counts[BASE], matrix.counts[UNIT] = base, unit
    return (latest - base) // unit <= LATEST


@kernel
def fits_unit(segment: Segment, matrix: Matrix) -> bool:
    """Whether the expiries that the segment brings have codes."""
    base, unit = matrix.counts[BASE], matrix.counts[UNIT]
    for i in range(segment.counts[CHANGED]):
        exp = segment.exp[segment.lists[CHANGES, i], HI]
        if (exp - base) % unit != 0 or (exp - base) // unit > LATEST:
            return False
    return True


@inner_kernel
def matrix_place(matrix: Matrix, key: int) -> int:
    """The place of a (vertex, state) pair; -1 where there is no room for a new one."""
    counts = matrix.counts
    place = matrix.number[unsigned(key)]
    if place >= 0:
        return place
    place = counts[FREE_PLACE]
    if place >= 0:
        counts[FREE_PLACE] = matrix.place[place, FIRST_OUT]
    elif counts[PLACES] < matrix.place.shape[0]:
        place = counts[PLACES]
        counts[PLACES] = place + 1
    else:
        counts[SHORT] |= SHORT_PLACES
        return -1
    matrix.number[key] = place
    matrix.place[place, KEY] = key
    matrix.place[place, FIRST_OUT] = -1
    matrix.place[place, TOUCH] = -1
    matrix.place[place, WAITS] = 0
    matrix.dirty[place, LATELY] = 0
    for column in range(matrix.level.shape[1]):
        matrix.level[place, column] = 0
    return place


@kernel
def matrix_column(matrix: Matrix, vertex: int) -> int:
    """A column for a root that has none; -1 where there is no room."""
    counts = matrix.counts
    column = counts[FREE_COLUMN]
    if column >= 0:
        counts[FREE_COLUMN] = -2 - matrix.column[column]
    elif counts[COLUMNS] < matrix.column.size:
        column = counts[COLUMNS]
        counts[COLUMNS] = column + 1
    else:
        counts[SHORT] |= SHORT_COLUMNS
        return -1
    matrix.column[column] = vertex
    matrix.column_of[vertex] = column
    return column


@kernel
def matrix_edge(matrix: Matrix) -> int:
    """Room for an edge; -1 where there is none."""
    counts = matrix.counts
    edge = counts[FREE_EDGE]
    if edge >= 0:
        counts[FREE_EDGE] = matrix.edge[edge, NEXT]
    elif counts[EDGES] < matrix.edge.shape[0]:
        edge = counts[EDGES]
        counts[EDGES] = edge + 1
    else:
        counts[SHORT] |= SHORT_EDGES
    return edge


@inner_kernel
def drop_edge(matrix: Matrix, source: int, before: int | np.int64, edge: int) -> None:
    """Take an expired edge out of its source's list; `before` is the one before it there, or -1."""
    if before < 0:
        matrix.place[source, FIRST_OUT] = matrix.edge[edge, NEXT]
    else:
        matrix.edge[before, NEXT] = matrix.edge[edge, NEXT]
    disown_edge(matrix, edge)
    matrix.edge[edge, NEXT] = matrix.counts[FREE_EDGE]
    matrix.counts[FREE_EDGE] = edge


@kernel
def sweep_matrix(matrix: Matrix, states: int, now: int) -> bool:
    """Free the edges that have expired, and the places and columns of vertices that have no other.

    Returns whether what was short is plenty then.
    """
    counts, places = matrix.counts, matrix.place
    edges = columns = alive = 0
    for place in range(counts[PLACES]):
        places[place, ALIVE] = 0
    for place in range(counts[PLACES]):
        if places[place, KEY] < 0:
            continue
        before = -1
        edge = places[place, FIRST_OUT]
        while edge >= 0:
            following = matrix.edge[edge, NEXT]
            if matrix.edge[edge, CODE] <= now:
                drop_edge(matrix, place, before, edge)
            else:
                places[place, ALIVE] = 1
                places[matrix.edge[edge, TO], ALIVE] = 1
                before = edge
                edges += 1
            edge = following
    # No place is touched between two segments, so the room for what was before is free for what stays.
    stays = matrix.before
    for column in range(padded(matrix)):
        stays[0, column] = 0
    for column in range(counts[COLUMNS]):
        vertex = matrix.column[column]
        if vertex < 0:
            continue
        if places[matrix.number[vertex * states], ALIVE]:
            stays[0, column] = ALWAYS
            columns += 1
            continue
        matrix.column_of[vertex] = -1
        matrix.column[column] = -2 - counts[FREE_COLUMN]
        counts[FREE_COLUMN] = column
    for place in range(counts[PLACES]):
        row = unsigned(place)
        for i in range(padded(matrix)):
            column = unsigned(i)
            level, most = matrix.level[row, column], stays[0, column]
            matrix.level[row, column] = level if level < most else most
        if places[place, KEY] >= 0 and not places[place, ALIVE]:
            matrix.number[places[place, KEY]] = -1
            places[place, KEY] = -1
            places[place, FIRST_OUT] = counts[FREE_PLACE]
            counts[FREE_PLACE] = place
        alive += places[place, ALIVE]
    return (
        (counts[SHORT] & SHORT_PLACES == 0 or 4 * alive < 3 * places.shape[0])
        and (counts[SHORT] & SHORT_COLUMNS == 0 or 4 * columns < 3 * matrix.column.size)
        and (counts[SHORT] & SHORT_EDGES == 0 or 4 * edges < 3 * matrix.edge.shape[0])
    )


@inner_kernel
def link_edge(
    segment: Segment,
    matrix: Matrix,
    automaton: Moves,
    roots: Array,
    share: Array,
    row: int,
    move: int,
    code: int,
    brought: int,
) -> bool:
    """Put a row, as read by a move, among the edges, and its ends among places and columns; False: no room."""
    which = unsigned(move - automaton.begin[segment.row[row, RELATION]])
    edge = matrix.edge_of[row, which]
    if edge >= 0:
        # Its ends are there: what is swept away has no edges.
        matrix.edge[unsigned(edge), CODE] = code
        matrix.edge[unsigned(edge), BROUGHT] = brought
        return True
    states = automaton.settings[0]
    inverse = automaton.moves[move, INVERSE]
    tail = segment.row[row, TRG] if inverse else segment.row[row, SRC]
    head = segment.row[row, SRC] if inverse else segment.row[row, TRG]
    source = matrix_place(matrix, tail * states + automaton.moves[move, FROM])
    target = matrix_place(matrix, head * states + automaton.moves[move, MOVE_TO])
    if source < 0 or target < 0:
        return False
    rooted = automaton.moves[move, FROM] == 0 and matrix.column_of[tail] < 0
    if rooted and is_own(roots, share, tail):
        column = matrix_column(matrix, tail)
        if column < 0:
            return False
        matrix.level[source, column] = ALWAYS
    edge = matrix_edge(matrix)
    if edge < 0:
        return False
    at, begin = unsigned(edge), unsigned(source)
    matrix.edge_of[row, which] = edge
    matrix.edge[at, OWNER] = np.int64(row) * matrix.edge_of.shape[1] + np.int64(which)
    matrix.edge[at, TO] = target
    matrix.edge[at, NEXT] = matrix.place[begin, FIRST_OUT]
    matrix.place[begin, FIRST_OUT] = edge
    matrix.edge[at, CODE] = code
    matrix.edge[at, BROUGHT] = brought
    return True
