"""How a segment changes the matrix: its edges are pushed over, and what gained is staged as answers.

Pushing goes over chunks of columns, and only over those in which the source has gained since it was last pushed from.
Rows of the segment that bring pairs are pushed along; over an old edge from a place without new pairs none can come.
"""

from __future__ import annotations

import numpy as np

from meander.kernels.closure import (
    CHANGED,
    CHANGES,
    CURRENT,
    END,
    FIRST,
    FROM,
    HELD_ASKED,
    HI,
    INVERSE,
    LO,
    RELATION,
    SINCE,
    SRC,
    STAGED,
    STILL_ASKED,
    TRG,
    UNASKED,
    Moves,
    Segment,
)
from meander.kernels.closure_flow import NONE, ONE, STAGED_EXP, STAGED_ROW, STAGED_SRC, STAGED_TRG
from meander.kernels.closure_matrix import (
    ALL,
    BASE,
    BROUGHT,
    CHUNK,
    CODE,
    FIRST_OUT,
    FRESH,
    IN_ALL,
    KEY,
    LAST_BIT,
    LATELY,
    LISTED,
    NEXT,
    NOT_YET,
    QUEUE,
    READY,
    SHORT,
    TO,
    TOUCH,
    TOUCHED,
    UNIT,
    WAITS,
    Matrix,
    choose_unit,
    drop_edge,
    fits_unit,
    forget_matrix,
    link_edge,
    padded,
    sweep_matrix,
)
from meander.kernels.jit import Array, inner_kernel, kernel, lowest_bit, unsigned
from meander.kernels.status import DONE, FULL_SCRATCH, FULL_TABLE, UNUSABLE


@inner_kernel
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
        row = unsigned(touch)
        for i in range(padded(matrix)):
            column = unsigned(i)
            level = matrix.level[place, column]
            matrix.before[row, column] = level
            matrix.since[row, column] = zero if level > passed else not_yet
    return touch


@inner_kernel
def push_edge(matrix: Matrix, source: int, edge: int, dirty: int, now: int, timed: bool) -> int:
    """Push the dirty chunks of an edge's source over it; the chunks in which its target gained.

    `timed`: keep what was before the segment, and the rows that bring pairs.
    """
    place, level, since = matrix.place, matrix.level, matrix.since
    target, brought = unsigned(matrix.edge[edge, TO]), matrix.edge[edge, BROUGHT]
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
        if timed and to < 0:
            for i in range(CHUNK):
                column = unsigned(begin + i)
                given = level[source, column]
                given = given if given < limit else limit
                held = level[target, column]
                held = held if held > passed else passed
                more = more | bool(given > held)
            if not more:
                continue
            to = touch_place(matrix, target, now)
        for i in range(CHUNK):
            column = unsigned(begin + i)
            given = level[source, column]
            given = given if given < limit else limit
            held = level[target, column]
            least = held if held > passed else passed
            more = more | bool(given > least)
            level[target, column] = given if given > least else held
        if dating:
            earlier = False
            given_by, taken_by = unsigned(at), unsigned(to)
            for i in range(CHUNK):
                column = unsigned(begin + i)
                when = since[given_by, column]
                when = when if when > row else row
                known = since[taken_by, column]
                earlier = earlier | bool(when < known)
                since[taken_by, column] = when if when < known else known
            if earlier:
                more = True
                place[target, FRESH] = 1
        if more:
            gained |= 1 << bit
    return gained


@inner_kernel
def queue_place(matrix: Matrix, place: int, gained: int, tail: int) -> bool:
    """Note the chunks in which a place gained, and put it at the end of the queue; whether it was not in it."""
    matrix.dirty[place, LATELY] |= gained
    matrix.dirty[place, IN_ALL] |= gained
    if matrix.place[place, WAITS]:
        return False
    matrix.place[place, WAITS] = 1
    matrix.place[unsigned(tail), QUEUE] = place
    return True


@kernel
def push_on(matrix: Matrix, now: int, size: int, timed: bool) -> None:
    """Push from the places in the queue, and on, until nothing gains. Expired edges on the way are dropped."""
    place, edges = matrix.place, matrix.edge
    ring = place.shape[0]
    head, tail = 0, (0 if size == ring else size)
    while size > 0:
        source = unsigned(place[unsigned(head), QUEUE])
        head += 1
        if head == ring:
            head = 0
        size -= 1
        place[source, WAITS] = 0
        dirty = matrix.dirty[source, LATELY]
        matrix.dirty[source, LATELY] = 0
        before = np.int64(-1)
        following = place[source, FIRST_OUT]
        while following >= 0:
            edge = unsigned(following)
            following = edges[edge, NEXT]
            if edges[edge, CODE] <= now:
                drop_edge(matrix, source, before, edge)
            else:
                before = np.int64(edge)
                gained = push_edge(matrix, source, edge, dirty, now, timed)
                if gained and queue_place(matrix, unsigned(edges[edge, TO]), gained, tail):
                    tail += 1
                    if tail == ring:
                        tail = 0
                    size += 1


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


@inner_kernel
def start_row(
    segment: Segment, matrix: Matrix, automaton: Moves, row: int, now: int, size: int, timed: bool
) -> int:
    """Push over the edges of a row, and queue what gains; returns the size of the queue."""
    states = automaton.settings[0]
    relation = segment.row[row, RELATION]
    for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
        tail = segment.row[row, TRG] if automaton.moves[move, INVERSE] else segment.row[row, SRC]
        source = unsigned(matrix.number[tail * states + automaton.moves[move, FROM]])
        if timed:
            touch_place(matrix, source, now)
        edge = unsigned(matrix.edge_of[row, move - automaton.begin[relation]])
        gained = push_edge(matrix, source, edge, ALL, now, timed)
        if gained and queue_place(matrix, unsigned(matrix.edge[edge, TO]), gained, size):
            size += 1
    return size


@kernel
def link_changes(segment: Segment, matrix: Matrix, automaton: Moves, roots: Array, share: Array) -> bool:
    """Put the segment's rows among the edges; False: no room."""
    base, unit = matrix.counts[BASE], matrix.counts[UNIT]
    for i in range(segment.counts[CHANGED]):
        row = unsigned(segment.lists[CHANGES, unsigned(i)])
        relation = unsigned(segment.row[row, RELATION])
        code = (segment.exp[row, HI] - base) // unit
        for move in range(automaton.begin[relation], automaton.begin[relation + unsigned(1)]):
            if not link_edge(
                segment, matrix, automaton, roots, share, row, move, code, segment.row[row, SINCE] + 1
            ):
                return False
    return True


@kernel
def grow_matrix(
    segment: Segment, matrix: Matrix, automaton: Moves, roots: Array, share: Array, time: int
) -> int:
    """Let the segment's rows in. FULL_SCRATCH: `counts` says what is short; UNUSABLE: no unit fits the expiries."""
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


@inner_kernel
def gained_columns(matrix: Matrix, place: int, touch: int, begin: int) -> np.uint64:
    """The columns of a chunk in which a touched place has gained: a bit for each."""
    gained = NONE
    for i in range(CHUNK):
        column = unsigned(begin + i)
        more = matrix.level[place, column] > matrix.before[touch, column]
        gained |= np.uint64(more) << np.uint64(i)
    return gained


@inner_kernel
def look_up(matrix: Matrix, automaton: Moves, vertex: int, column: int, first: int) -> tuple[int, int, int]:
    """A vertex and a root: until when they are joined, until when they were before the segment, and since which row.

    All are 0 where the pair has had its turn: an accepting place that was touched before `first` has gained too.
    """
    states = automaton.settings[0]
    level = before = 0
    since = NOT_YET
    for state in range(states):
        place = matrix.number[vertex * states + state]
        if not automaton.accepting[state] or place < 0:
            continue
        touch = matrix.place[place, TOUCH]
        held = had = int(matrix.level[place, column])
        if touch >= 0:
            had = int(matrix.before[touch, column])
            since = min(since, int(matrix.since[touch, column]))
            if touch < first and held > had:
                return 0, 0, 0
        level, before = max(level, held), max(before, had)
    return level, before, since


@inner_kernel
def put_pair(staged: Array, at: int, source: int, target: int, exp: int, row: int) -> None:
    to = unsigned(at)
    staged[to, STAGED_SRC] = source
    staged[to, STAGED_TRG] = target
    staged[to, STAGED_ROW] = row
    staged[to, STAGED_EXP] = exp


@inner_kernel
def stage_pair(
    staged: Array, at: int, source: int, target: int, exp: int, row: int, last: int, split: int
) -> int:
    """Stage an answer, in two where it must be split; returns where the next one goes (see `finish_block`)."""
    if row < last and 0 < split < exp:
        put_pair(staged, at, source, target, split, row)
        at, row = at + 1, last
    put_pair(staged, at, source, target, exp, row)
    return at + 1


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
    passed = (time - base) // unit
    # The empty path's state has no places.
    accepting = -1 if nullable else 0
    for state in range(states):
        accepting += automaton.accepting[state]
    alone = accepting == 1
    at = 0
    for one in range(counts[TOUCHED]):
        touch, place = unsigned(one), unsigned(matrix.place[one, LISTED])
        vertex, state = divmod(matrix.place[place, KEY], states)
        if not automaton.accepting[state]:
            continue
        for chunk in range(padded(matrix) // CHUNK):
            if matrix.dirty[place, IN_ALL] >> min(chunk, LAST_BIT) & 1 == 0:
                continue
            if at + 2 * CHUNK > staged.shape[0]:
                segment.counts[STAGED] = 0
                return FULL_TABLE
            gained = gained_columns(matrix, place, touch, chunk * CHUNK)
            while gained != NONE:
                column = unsigned(chunk * CHUNK + lowest_bit(gained))
                gained &= gained - ONE
                source = matrix.column[column]
                if alone:
                    level, before = int(matrix.level[place, column]), int(matrix.before[touch, column])
                    since = int(matrix.since[touch, column])
                else:
                    level, before, since = look_up(matrix, automaton, vertex, column, one)
                if level > before and not (nullable and source == vertex):
                    row = last if before > passed else min(since - 1, last)
                    at = stage_pair(staged, at, source, vertex, base + level * unit, row, last, split)
    segment.counts[STAGED] = at
    return DONE


@kernel
def stage_demanded(
    segment: Segment,
    matrix: Matrix,
    automaton: Moves,
    staged: Array,
    last: int,
    split: int,
    time: int,
) -> int:
    """Stage the pairs that are asked for and changed, or newly asked for. On FULL_TABLE nothing is staged."""
    counts = matrix.counts
    base, unit = counts[BASE], counts[UNIT]
    passed = (time - base) // unit
    at = 0
    for i in range(segment.counts[HELD_ASKED]):
        asked = segment.lists[STILL_ASKED, i]
        source, target = segment.row[asked, SRC], segment.row[asked, TRG]
        column = matrix.column_of[source]
        if column < 0 or (automaton.settings[1] >= 0 and source == target):
            continue
        level, before, since = look_up(matrix, automaton, target, column, 0)
        newly = segment.row[asked, SINCE] >= 0
        if level <= passed or (level == before and not newly):
            continue
        if at + 2 > staged.shape[0]:
            segment.counts[STAGED] = 0
            return FULL_TABLE
        row = last
        if before <= passed:
            row = min(since - 1, last)
        elif newly:
            row = 0
        at = stage_pair(staged, at, source, target, base + level * unit, row, last, split)
    segment.counts[STAGED] = at
    segment.counts[UNASKED] += max(0, count_gains(matrix, automaton) - at)
    return DONE


@kernel
def count_gains(matrix: Matrix, automaton: Moves) -> int:
    """How many levels of accepting places the segment has raised."""
    states = automaton.settings[0]
    total = 0
    for touch in range(matrix.counts[TOUCHED]):
        place = matrix.place[touch, LISTED]
        if automaton.accepting[matrix.place[place, KEY] % states]:
            for column in range(padded(matrix)):
                total += matrix.level[place, column] > matrix.before[touch, column]
    return total


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
