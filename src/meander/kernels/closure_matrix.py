"""What the closure knows from one segment to the next: by place and root, until when a path between them lasts.

Expiries are kept as 16-bit codes, multiples of a unit counted from a base: the expiries of edges are ends of slides,
so that the unit is the slide. A code that time has passed stands for no path, which is all that expiring needs. An
edge that comes or lasts longer is pushed over once for all roots, `level[target] = max(level[target],
min(level[source], code))`, element by element, and on from each target that gained. Beside it goes the row of the
segment that brought each pair: `since[target] = min(since[target], max(since[source], since(edge)))`.

All of this follows from the window's graph. Where it is not there (at the beginning, after a deletion, or when a
table is full of places that have no edges any more) it is built anew, latest edges first.
"""

from __future__ import annotations

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
    SINCE,
    SRC,
    STAGED,
    TRG,
    Moves,
    Segment,
)
from meander.kernels.closure_flow import STAGED_EXP, STAGED_ROW, STAGED_SRC, STAGED_TRG
from meander.kernels.graph import DONE, FULL_SCRATCH, FULL_TABLE
from meander.kernels.jit import Array, kernel
from meander.kernels.paths import is_root

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
# Rows of `Matrix.answer`.
OLD, NEW, WHEN = 0, 1, 2

ALWAYS = 65_535  # the code of the empty path
LATEST = 65_000  # the largest code of an edge
NOT_YET = 65_535  # in `since`: not valid
CHUNK = 64  # columns that are looked at together
LAST_BIT = 63  # of `dirty`: it stands for all chunks from there on
ALL = -1  # all chunks
UNUSABLE = 7  # expiries have no unit that lets them fit


class Matrix(NamedTuple):
    """`level`, `before` and `since` by place (the last two: by touched place) and root, the latter by its column."""

    level: Array
    before: Array
    since: Array
    answer: Array  # a vertex's answers before and after, and when, by column
    place: Array
    dirty: Array  # by place: a bit for each chunk of columns that gained, since it was pushed from and in the segment
    edge: Array
    edge_of: Array  # by row of the window's graph and move: the edge, or -1
    number: Array  # by vertex * states + state: the place, or -1
    column: Array  # by column: its vertex
    column_of: Array  # by vertex: its column, or -1
    counts: Array


@kernel
def greatest_divisor(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


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
        owner = matrix.edge[edge, OWNER]
        matrix.edge_of[owner // matrix.edge_of.shape[1], owner % matrix.edge_of.shape[1]] = -1
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
            unit = greatest_divisor(unit, abs(exp - first))
            latest = max(latest, exp)
    for i in range(counts[CHANGED]):
        exp = segment.exp[segment.lists[CHANGES, i], HI]
        if first < 0:
            first = exp
        unit = greatest_divisor(unit, abs(exp - first))
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


@kernel
def matrix_place(matrix: Matrix, key: int) -> int:
    """The place of a (vertex, state) pair; -1 where there is no room for a new one."""
    counts = matrix.counts
    place = matrix.number[key]
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


@kernel
def drop_edge(matrix: Matrix, source: int, before: int, edge: int) -> None:
    """Take an expired edge out of its source's list; `before` is the one before it there, or -1."""
    if before < 0:
        matrix.place[source, FIRST_OUT] = matrix.edge[edge, NEXT]
    else:
        matrix.edge[before, NEXT] = matrix.edge[edge, NEXT]
    owner = matrix.edge[edge, OWNER]
    matrix.edge_of[owner // matrix.edge_of.shape[1], owner % matrix.edge_of.shape[1]] = -1
    matrix.edge[edge, NEXT] = matrix.counts[FREE_EDGE]
    matrix.counts[FREE_EDGE] = edge


@kernel
def sweep_matrix(matrix: Matrix, states: int, now: int) -> bool:
    """Free the edges that have expired, and the places and columns of vertices that have no other.

    Returns whether what was short is plenty then.
    """
    counts, places = matrix.counts, matrix.place
    edges = columns = alive = 0
    free = counts[FREE_COLUMN]
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
    for column in range(counts[COLUMNS]):
        vertex = matrix.column[column]
        if vertex < 0 or places[matrix.number[vertex * states], ALIVE]:
            columns += vertex >= 0
            continue
        matrix.column_of[vertex] = -1
        matrix.column[column] = -2 - counts[FREE_COLUMN]
        counts[FREE_COLUMN] = column
    for place in range(counts[PLACES]):
        column = counts[FREE_COLUMN]
        while column != free:
            matrix.level[place, column] = 0
            column = -2 - matrix.column[column]
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


@kernel
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
    states = automaton.settings[0]
    inverse = automaton.moves[move, INVERSE]
    tail = segment.row[row, TRG] if inverse else segment.row[row, SRC]
    head = segment.row[row, SRC] if inverse else segment.row[row, TRG]
    source = matrix_place(matrix, tail * states + automaton.moves[move, FROM])
    target = matrix_place(matrix, head * states + automaton.moves[move, MOVE_TO])
    if source < 0 or target < 0:
        return False
    own = tail % share[1] == share[0] and is_root(roots, tail)
    if own and automaton.moves[move, FROM] == 0 and matrix.column_of[tail] < 0:
        column = matrix_column(matrix, tail)
        if column < 0:
            return False
        matrix.level[source, column] = ALWAYS
    which = move - automaton.begin[segment.row[row, RELATION]]
    edge = matrix.edge_of[row, which]
    if edge < 0:
        edge = matrix_edge(matrix)
        if edge < 0:
            return False
        matrix.edge_of[row, which] = edge
        matrix.edge[edge, OWNER] = row * matrix.edge_of.shape[1] + which
        matrix.edge[edge, TO] = target
        matrix.edge[edge, NEXT] = matrix.place[source, FIRST_OUT]
        matrix.place[source, FIRST_OUT] = edge
    matrix.edge[edge, CODE] = code
    matrix.edge[edge, BROUGHT] = brought
    return True


@kernel
def touch_place(matrix: Matrix, place: int, now: int) -> int:
    """Keep the levels of a place as they were before the segment."""
    touch = matrix.place[place, TOUCH]
    if touch < 0:
        touch = matrix.counts[TOUCHED]
        matrix.counts[TOUCHED] = touch + 1
        matrix.place[place, TOUCH] = touch
        matrix.place[place, FRESH] = 0
        matrix.dirty[place, IN_ALL] = 0
        matrix.place[touch, LISTED] = place
        passed, zero, not_yet = np.uint16(now), np.uint16(0), np.uint16(NOT_YET)
        for column in range(padded(matrix)):
            level = matrix.level[place, column]
            matrix.before[touch, column] = level
            matrix.since[touch, column] = zero if level > passed else not_yet
    return touch


@kernel
def push_edge(matrix: Matrix, source: int, edge: int, dirty: int, now: int, timed: bool) -> int:
    """Push the dirty chunks of an edge's source over it; the chunks in which its target gained.

    `timed`: keep what was before the segment, and the rows that bring pairs.
    """
    place, level, since = matrix.place, matrix.level, matrix.since
    target, brought = matrix.edge[edge, TO], matrix.edge[edge, BROUGHT]
    if source == target:
        return 0
    limit, passed, row = np.uint16(matrix.edge[edge, CODE]), np.uint16(now), np.uint16(brought)
    at, to = place[source, TOUCH], place[target, TOUCH]
    # Over an old edge from a place without new pairs none can come.
    dating = timed and (brought > 0 or place[source, FRESH] != 0)
    gained = 0
    for chunk in range(padded(matrix) // CHUNK):
        bit = min(chunk, LAST_BIT)
        if dirty >> bit & 1 == 0:
            continue
        begin = chunk * CHUNK
        more = False
        for i in range(CHUNK):
            given = level[source, begin + i]
            given = given if given < limit else limit
            held = level[target, begin + i]
            held = held if held > passed else passed
            more = more | bool(given > held)
        if more:
            if timed and to < 0:
                to = touch_place(matrix, target, now)
            for i in range(CHUNK):
                given = level[source, begin + i]
                given = given if given < limit else limit
                held = level[target, begin + i]
                least = held if held > passed else passed
                level[target, begin + i] = given if given > least else held
        if dating and to >= 0:
            earlier = False
            for i in range(CHUNK):
                when = since[at, begin + i]
                when = when if when > row else row
                earlier = earlier | (when < since[to, begin + i])
            if earlier:
                more = True
                place[target, FRESH] = 1
                for i in range(CHUNK):
                    when = since[at, begin + i]
                    when = when if when > row else row
                    known = since[to, begin + i]
                    since[to, begin + i] = when if when < known else known
        if more:
            gained |= 1 << bit
    return gained


@kernel
def push_on(matrix: Matrix, now: int, size: int, timed: bool) -> None:
    """Push from the places in the queue, and on, until nothing gains. Expired edges on the way are dropped."""
    place, edges = matrix.place, matrix.edge
    ring = place.shape[0]
    head, tail = 0, (0 if size == ring else size)
    while size > 0:
        source = place[head, QUEUE]
        head += 1
        if head == ring:
            head = 0
        size -= 1
        place[source, WAITS] = 0
        dirty = matrix.dirty[source, LATELY]
        matrix.dirty[source, LATELY] = 0
        before = -1
        edge = place[source, FIRST_OUT]
        while edge >= 0:
            following = edges[edge, NEXT]
            if edges[edge, CODE] <= now:
                drop_edge(matrix, source, before, edge)
            else:
                before = edge
                gained = push_edge(matrix, source, edge, dirty, now, timed)
                if gained:
                    target = edges[edge, TO]
                    matrix.dirty[target, LATELY] |= gained
                    matrix.dirty[target, IN_ALL] |= gained
                    if place[target, WAITS] == 0:
                        place[target, WAITS] = 1
                        place[tail, QUEUE] = target
                        tail += 1
                        if tail == ring:
                            tail = 0
                        size += 1
            edge = following


@kernel
def build_matrix(
    segment: Segment, matrix: Matrix, automaton: Moves, roots: Array, share: Array, time: int
) -> int:
    """Build all anew from the edges that are valid before the segment."""
    counts = segment.counts
    forget_matrix(matrix)
    if not choose_unit(segment, matrix, time):
        return UNUSABLE
    base, unit = matrix.counts[BASE], matrix.counts[UNIT]
    now = (time - base) // unit
    order = counts[CURRENT]
    at = counts[END] - 1
    while at >= counts[FIRST]:
        exp = segment.exp[segment.lists[order, at], LO]
        if exp <= time:
            at -= 1
            continue
        code = (exp - base) // unit
        begin = at
        while at >= counts[FIRST] and segment.exp[segment.lists[order, at], LO] == exp:
            row = segment.lists[order, at]
            relation = segment.row[row, RELATION]
            for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
                if not link_edge(segment, matrix, automaton, roots, share, row, move, code, 0):
                    return FULL_SCRATCH
            at -= 1
        size = 0
        for i in range(begin, at, -1):
            size = start_row(segment, matrix, automaton, segment.lists[order, i], now, size, False)
        push_on(matrix, now, size, False)
    matrix.counts[READY] = 1
    return DONE


@kernel
def start_row(
    segment: Segment, matrix: Matrix, automaton: Moves, row: int, now: int, size: int, timed: bool
) -> int:
    """Push over the edges of a row, and queue what gains; returns the size of the queue."""
    states = automaton.settings[0]
    relation = segment.row[row, RELATION]
    for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
        tail = segment.row[row, TRG] if automaton.moves[move, INVERSE] else segment.row[row, SRC]
        source = matrix.number[tail * states + automaton.moves[move, FROM]]
        if timed:
            touch_place(matrix, source, now)
        edge = matrix.edge_of[row, move - automaton.begin[relation]]
        gained = push_edge(matrix, source, edge, ALL, now, timed)
        if gained:
            target = matrix.edge[edge, TO]
            matrix.dirty[target, LATELY] |= gained
            matrix.dirty[target, IN_ALL] |= gained
            if matrix.place[target, WAITS] == 0:
                matrix.place[target, WAITS] = 1
                matrix.place[size, QUEUE] = target
                size += 1
    return size


@kernel
def link_changes(segment: Segment, matrix: Matrix, automaton: Moves, roots: Array, share: Array) -> bool:
    """Put the segment's rows among the edges; False: no room."""
    base, unit = matrix.counts[BASE], matrix.counts[UNIT]
    for i in range(segment.counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        relation = segment.row[row, RELATION]
        code = (segment.exp[row, HI] - base) // unit
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            if not link_edge(
                segment, matrix, automaton, roots, share, row, move, code, segment.row[row, SINCE] + 1
            ):
                return False
    return True


@kernel
def grow_matrix(
    segment: Segment, matrix: Matrix, automaton: Moves, roots: Array, share: Array, time: int
) -> int:
    """Let the segment's rows in. DONE; UNUSABLE; or FULL_SCRATCH, where `counts` says what is short."""
    counts = matrix.counts
    counts[SHORT] = 0
    if counts[READY] == 0 or not fits_unit(segment, matrix):
        status = build_matrix(segment, matrix, automaton, roots, share, time)
        if status != DONE:
            forget_matrix(matrix)
            return status
    now = (time - counts[BASE]) // counts[UNIT]
    if not link_changes(segment, matrix, automaton, roots, share):
        if not sweep_matrix(matrix, automaton.settings[0], now):
            return FULL_SCRATCH
        counts[SHORT] = 0
        if not link_changes(segment, matrix, automaton, roots, share):
            return FULL_SCRATCH
    size = 0
    for i in range(segment.counts[CHANGED]):
        size = start_row(segment, matrix, automaton, segment.lists[CHANGES, i], now, size, True)
    push_on(matrix, now, size, True)
    return DONE


@kernel
def moved_chunks(matrix: Matrix, automaton: Moves, vertex: int, first: int) -> int:
    """The chunks in which an accepting place of a vertex gained; none where another touched place has its turn."""
    states = automaton.settings[0]
    moved = 0
    for state in range(states):
        place = matrix.number[vertex * states + state]
        if automaton.accepting[state] and place >= 0 and matrix.place[place, TOUCH] >= 0:
            if matrix.place[place, TOUCH] < first:
                return 0
            moved |= matrix.dirty[place, IN_ALL]
    return moved


@kernel
def gather_answers(matrix: Matrix, automaton: Moves, vertex: int) -> None:
    """The answers of a vertex, over all its accepting states."""
    states = automaton.settings[0]
    columns = padded(matrix)
    first = True
    for state in range(states):
        place = matrix.number[vertex * states + state]
        if not automaton.accepting[state] or place < 0:
            continue
        touch = matrix.place[place, TOUCH]
        if first:
            for column in range(columns):
                matrix.answer[NEW, column] = matrix.level[place, column]
            for column in range(columns):
                matrix.answer[OLD, column] = (
                    matrix.level[place, column] if touch < 0 else matrix.before[touch, column]
                )
            for column in range(columns):
                matrix.answer[WHEN, column] = NOT_YET if touch < 0 else matrix.since[touch, column]
            first = False
            continue
        for column in range(columns):
            level = matrix.level[place, column]
            held = matrix.answer[NEW, column]
            matrix.answer[NEW, column] = level if level > held else held
        if touch < 0:
            for column in range(columns):
                level = matrix.level[place, column]
                held = matrix.answer[OLD, column]
                matrix.answer[OLD, column] = level if level > held else held
        else:
            for column in range(columns):
                level = matrix.before[touch, column]
                held = matrix.answer[OLD, column]
                matrix.answer[OLD, column] = level if level > held else held
            for column in range(columns):
                since = matrix.since[touch, column]
                when = matrix.answer[WHEN, column]
                matrix.answer[WHEN, column] = since if since < when else when


@kernel
def stage_matrix(
    segment: Segment,
    matrix: Matrix,
    automaton: Moves,
    staged: Array,
    last: int,
    split: int,
    time: int,
) -> int:
    """Stage the answers that the segment has changed. On FULL_TABLE nothing is staged."""
    counts = matrix.counts
    states = automaton.settings[0]
    nullable = automaton.settings[1] >= 0
    base, unit = counts[BASE], counts[UNIT]
    passed = np.uint16((time - base) // unit)
    at = 0
    for touch in range(counts[TOUCHED]):
        key = matrix.place[matrix.place[touch, LISTED], KEY]
        vertex = key // states
        if not automaton.accepting[key % states]:
            continue
        moved = moved_chunks(matrix, automaton, vertex, touch)
        if moved == 0:
            continue
        gather_answers(matrix, automaton, vertex)
        for begin in range(0, padded(matrix), CHUNK):
            if moved >> min(begin // CHUNK, LAST_BIT) & 1 == 0:
                continue
            gained = False
            for i in range(CHUNK):
                level, held = matrix.answer[NEW, begin + i], matrix.answer[OLD, begin + i]
                gained = gained | (level > held)
            if not gained:
                continue
            for column in range(begin, begin + CHUNK):
                held, level = matrix.answer[OLD, column], matrix.answer[NEW, column]
                if level <= held or level <= passed or (nullable and matrix.column[column] == vertex):
                    continue
                if at + 2 > staged.shape[0]:
                    segment.counts[STAGED] = 0
                    return FULL_TABLE
                row = last if held > passed else int(matrix.answer[WHEN, column]) - 1
                exp = base + int(level) * unit
                staged[at, STAGED_SRC] = matrix.column[column]
                staged[at, STAGED_TRG] = vertex
                staged[at, STAGED_ROW] = row
                staged[at, STAGED_EXP] = exp
                if row < last and 0 < split < exp:
                    staged[at, STAGED_EXP] = split
                    at += 1
                    staged[at, STAGED_SRC] = matrix.column[column]
                    staged[at, STAGED_TRG] = vertex
                    staged[at, STAGED_ROW] = last
                    staged[at, STAGED_EXP] = exp
                at += 1
    segment.counts[STAGED] = at
    return DONE


@kernel
def settle_matrix(segment: Segment, matrix: Matrix, automaton: Moves) -> None:
    """The segment is over: what it brought is no longer new."""
    for touch in range(matrix.counts[TOUCHED]):
        matrix.place[matrix.place[touch, LISTED], TOUCH] = -1
    matrix.counts[TOUCHED] = 0
    for i in range(segment.counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        relation = segment.row[row, RELATION]
        for which in range(automaton.begin[relation + 1] - automaton.begin[relation]):
            edge = matrix.edge_of[row, which]
            if edge >= 0:
                matrix.edge[edge, BROUGHT] = 0
