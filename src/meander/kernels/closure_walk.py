"""The walk of the slide-batched closure over a batch: segment by segment, each in phases that can be resumed.

A step either lets the graph grow by the rows of a segment, cuts what an instant's deletions cut, or, where only
starts and stops of answers are asked for, takes out what expires at one instant. Each marks the rows that it
changes, lets them into the matrix of what was known before, or else builds the subgraph that they touch and walks
the blocks of its roots, and hands out what is staged in order of time.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import Batch
from meander.kernels.closure import (
    ASKED,
    CHANGED,
    CHANGES,
    CURRENT,
    DEMANDED,
    END,
    ENDS_KNOWN,
    FIRST,
    HELD_ASKED,
    HI,
    KEPT_TO,
    LO,
    MOST_SEGMENT_ROWS,
    NEWLY_ASKED,
    NEXT_END,
    ROOTED,
    ROOTS,
    SINCE,
    SRC,
    STAGED,
    STILL_ASKED,
    TRG,
    Demand,
    Moves,
    Places,
    Segment,
    build_places,
    order_changes,
    stamp_demand,
)
from meander.kernels.closure_flow import (
    STAGED_EXP,
    STAGED_ROW,
    STAGED_SRC,
    STAGED_TRG,
    Bits,
    walk_block,
)
from meander.kernels.closure_growth import (
    grow_matrix,
    settle_matrix,
    stage_demanded,
    stage_matrix,
    stage_pair,
)
from meander.kernels.closure_matrix import OFF, READY, Matrix
from meander.kernels.jit import Array, kernel, unsigned
from meander.kernels.paths import is_root
from meander.kernels.status import DONE, FOREVER, FULL_MATRIX, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, UNUSABLE

# Places in `cursor`.
NEXT_ROW, OUT, PHASE, BLOCK, CUT_TIME, LAST, KIND, TIME, SPLIT, KNOWN_BEFORE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
CURSOR = 10
# Phases of a step.
START, BUILD, FLOW, FINISH = 0, 1, 2, 3
# Kinds of a step.
GROW, CUT, EXPIRE = 0, 1, 2


class Asked(NamedTuple):
    """What is asked for; `settings` is [expiries, not only starts and stops; paths]."""

    roots: Array  # the only roots; empty: all
    share: Array  # [which, of how many] shares of the roots
    settings: Array


# Columns of `ends`, for the empty path: by vertex, the largest expiry over its edges; in a step also the one before
# it (-1: not looked at), and the row of the segment that first touched it.
LASTS, HAD, FIRST_SINCE = 0, 1, 2
END_COLUMNS = 3


@kernel
def first_row(segment: Segment) -> int:
    """The row that expires first."""
    return segment.lists[segment.counts[CURRENT], segment.counts[FIRST]]


@kernel
def mark_row(segment: Segment, row: int, how: int) -> None:
    """Note that a row changes: 1 where that may move answers, 2 where it only lasts longer or shorter."""
    if segment.marked[row] == 0:
        segment.lists[CHANGES, segment.counts[CHANGED]] = row
        segment.counts[CHANGED] += 1
    if segment.marked[row] != 1:
        segment.marked[row] = how


@kernel
def take_asked(segment: Segment, row: int, exp: int, time: int, at: int) -> None:
    """A pair is asked for until `exp`, by row `at` of the segment that begins at `time`."""
    if segment.exp[row, HI] <= time:
        segment.row[row, SINCE] = at
        segment.lists[ASKED, segment.counts[NEWLY_ASKED]] = row
        segment.counts[NEWLY_ASKED] += 1
        segment.lists[STILL_ASKED, segment.counts[HELD_ASKED]] = row
        segment.counts[HELD_ASKED] += 1
    segment.exp[row, HI] = exp


@kernel
def drop_asked(segment: Segment, time: int) -> None:
    """Leave out the pairs that are asked for no more."""
    kept = 0
    for i in range(segment.counts[HELD_ASKED]):
        row = segment.lists[STILL_ASKED, i]
        if segment.exp[row, HI] > time:
            segment.lists[STILL_ASKED, kept] = row
            kept += 1
    segment.counts[HELD_ASKED] = kept


@kernel
def take_growth(
    rows: Batch,
    found: Array,
    cut_instant: Array,
    segment: Segment,
    demanded: int,
    cursor: Array,
    by_level: bool,
) -> None:
    """Take rows until something expires or is cut, and set the expiries of their edges before and after."""
    counts = segment.counts
    begin = cursor[NEXT_ROW]
    time = rows.ts[begin]
    drop_asked(segment, time)
    bound = FOREVER
    if counts[FIRST] < counts[END]:
        bound = segment.exp[first_row(segment), HI]
    at = begin
    while at < rows.ts.size and at - begin < MOST_SEGMENT_ROWS and rows.ts[at] < bound:
        if cut_instant[at] and rows.ts[at] != cursor[CUT_TIME]:
            break
        if rows.op[at] > 0 and rows.source[at] == demanded:
            take_asked(segment, found[at], rows.exp[at], time, at - begin)
        elif rows.op[at] > 0:
            row, exp = found[at], rows.exp[at]
            bound = min(bound, exp)
            if segment.marked[row] == 0:
                held = segment.exp[row, HI] > time
                segment.exp[row, LO] = segment.exp[row, HI] if held else 0
                segment.row[row, SINCE] = -1 if held else at - begin
                mark_row(segment, row, 2 if held and not by_level else 1)
            segment.exp[row, HI] = exp
        at += 1
    cursor[LAST] = at - 1
    cursor[SPLIT] = bound
    order_changes(segment, HI, time)


@kernel
def take_cuts(
    rows: Batch, found: Array, segment: Segment, demanded: int, cursor: Array, by_level: bool
) -> None:
    """Take the deletions of one instant."""
    at = cursor[NEXT_ROW]
    time = rows.ts[at]
    while at < rows.ts.size and rows.ts[at] == time:
        row = found[at]
        if rows.source[at] != demanded and rows.op[at] < 0 and row >= 0 and segment.exp[row, HI] > time:
            left = rows.exp[at] if rows.exp[at] > time else 0
            segment.exp[row, LO] = left
            mark_row(segment, row, 2 if left > 0 and not by_level else 1)
        at += 1
    cursor[CUT_TIME] = time
    cursor[LAST] = cursor[NEXT_ROW]
    order_changes(segment, LO, time)


@kernel
def take_expiring(segment: Segment, cursor: Array, time: int) -> None:
    """Take out what expires at `time`."""
    counts = segment.counts
    for i in range(counts[FIRST], counts[END]):
        row = segment.lists[counts[CURRENT], i]
        if segment.exp[row, HI] > time:
            break
        segment.exp[row, LO] = 0
        mark_row(segment, row, 1)
    order_changes(segment, LO, time)


@kernel
def take_step(
    rows: Batch,
    found: Array,
    cut_instant: Array,
    upto: int,
    segment: Segment,
    demand: Demand,
    by_level: bool,
    cursor: Array,
) -> bool:
    """The next step of the batch; False where there is none."""
    counts = segment.counts
    left = cursor[NEXT_ROW] < rows.ts.size
    time = rows.ts[cursor[NEXT_ROW]] if left else upto
    if by_level:
        while counts[FIRST] < counts[END]:
            row = first_row(segment)
            if segment.exp[row, HI] > time:
                break
            segment.exp[row, LO] = 0
            segment.exp[row, HI] = 0
            counts[FIRST] += 1
    elif counts[FIRST] < counts[END]:
        exp = segment.exp[first_row(segment), HI]
        if exp <= time:
            cursor[KIND], cursor[TIME], cursor[LAST] = EXPIRE, exp, cursor[NEXT_ROW]
            take_expiring(segment, cursor, exp)
            return True
    if not left:
        return False
    cursor[TIME] = time
    if cut_instant[cursor[NEXT_ROW]] and cursor[CUT_TIME] != time:
        cursor[KIND] = CUT
        take_cuts(rows, found, segment, demand.settings[DEMANDED], cursor, by_level)
    else:
        cursor[KIND] = GROW
        take_growth(rows, found, cut_instant, segment, demand.settings[DEMANDED], cursor, by_level)
    return True


@kernel
def learn_ends(segment: Segment, ends: Array, kind: int) -> None:
    """Note until when each vertex had an edge before the step."""
    counts = segment.counts
    column = LO if kind == GROW else HI
    for vertex in range(ends.shape[0]):
        ends[vertex, LASTS] = 0
    for i in range(counts[FIRST], counts[END]):
        row = segment.lists[counts[CURRENT], i]
        for vertex in (segment.row[row, SRC], segment.row[row, TRG]):
            ends[vertex, LASTS] = max(ends[vertex, LASTS], segment.exp[row, column])
    counts[ENDS_KNOWN] = 1


@kernel
def move_ends(segment: Segment, ends: Array, kind: int, time: int) -> None:
    """Let the step change until when the vertices of its rows have edges, and keep what they had."""
    counts = segment.counts
    for i in range(counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        for vertex in (segment.row[row, SRC], segment.row[row, TRG]):
            lasts = ends[vertex, LASTS]
            if ends[vertex, HAD] < 0:
                ends[vertex, HAD] = lasts if kind != GROW or lasts > time else 0
                ends[vertex, FIRST_SINCE] = segment.row[row, SINCE]
                if kind == CUT or (kind == EXPIRE and lasts <= time):
                    ends[vertex, LASTS] = 0
            if kind == GROW:
                ends[vertex, LASTS] = max(lasts, segment.exp[row, HI])
    if kind == CUT:
        for i in range(counts[FIRST], counts[END]):
            row = segment.lists[counts[CURRENT], i]
            for vertex in (segment.row[row, SRC], segment.row[row, TRG]):
                if ends[vertex, HAD] >= 0:
                    ends[vertex, LASTS] = max(ends[vertex, LASTS], segment.exp[row, LO])


@kernel
def stage_empty(
    segment: Segment, ends: Array, staged: Array, roots: Array, by_level: bool, split: int, cursor: Array
) -> None:
    """Stage the empty paths that start, stop or change: those of the ends of changed edges. Needs room for all."""
    counts = segment.counts
    kind, time = cursor[KIND], cursor[TIME]
    if counts[ENDS_KNOWN] == 0:
        learn_ends(segment, ends, kind)
    move_ends(segment, ends, kind, time)
    last = cursor[LAST] - cursor[NEXT_ROW]
    for i in range(counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        for vertex in (segment.row[row, SRC], segment.row[row, TRG]):
            had, lasts = ends[vertex, HAD], ends[vertex, LASTS]
            ends[vertex, HAD] = -1
            both = had > 0 and lasts > 0
            if had < 0 or had == lasts or (both and not by_level) or not is_root(roots, vertex):
                continue
            exp, first = lasts if lasts > 0 else time, 0
            if kind == GROW:
                first = last if both else ends[vertex, FIRST_SINCE]
            counts[STAGED] = stage_pair(staged, counts[STAGED], vertex, vertex, exp, first, last, split)


@kernel
def hand_out(
    rows: Batch, staged: Array, slots: Array, by_level: bool, out: Batch, cursor: Array, size: int
) -> None:
    """Put what is staged into the output, in order of time (`slots`: by row of the segment). Needs room for all."""
    base = cursor[OUT]
    cursor[OUT] = base + size
    if cursor[KIND] != GROW:
        for i in range(size):
            out.key[base + i, 0] = staged[i, STAGED_SRC]
            out.key[base + i, 1] = staged[i, STAGED_TRG]
            out.ts[base + i] = cursor[TIME]
            out.exp[base + i] = staged[i, STAGED_EXP]
            out.op[base + i] = -1
        return
    times, total = rows.ts[cursor[NEXT_ROW] :], cursor[LAST] - cursor[NEXT_ROW] + 1
    for row in range(total + 1):
        slots[row] = 0
    for i in range(size):
        slots[unsigned(staged[unsigned(i), STAGED_ROW] + 1)] += 1
    slots[0] = base
    for row in range(total):
        slots[row + 1] += slots[row]
    for i in range(size):
        one = unsigned(i)
        row = unsigned(staged[one, STAGED_ROW])
        at = unsigned(slots[row])
        slots[row] += 1
        out.key[at, 0] = staged[one, STAGED_SRC]
        out.key[at, 1] = staged[one, STAGED_TRG]
        out.ts[at] = times[row]
        out.exp[at] = staged[one, STAGED_EXP] if by_level else FOREVER
        out.op[at] = 1


@kernel
def finish_step(segment: Segment, cursor: Array) -> None:
    """The changes are made: both expiries of a row are one again."""
    counts = segment.counts
    for i in range(counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        if cursor[KIND] == GROW:
            segment.exp[row, LO] = segment.exp[row, HI]
        else:
            segment.exp[row, HI] = segment.exp[row, LO]
        segment.marked[row] = 0
        segment.row[row, SINCE] = -1
    counts[CHANGED] = 0
    for i in range(counts[NEWLY_ASKED]):
        segment.row[segment.lists[ASKED, i], SINCE] = -1
    counts[NEWLY_ASKED] = 0
    counts[CURRENT] = 1 - counts[CURRENT]
    counts[FIRST] = 0
    counts[END] = counts[NEXT_END]
    if cursor[KIND] == GROW:
        cursor[NEXT_ROW] = cursor[LAST] + 1
    cursor[PHASE] = START


@kernel
def walk_segments(
    rows: Batch,
    found: Array,
    cut_instant: Array,
    upto: int,
    segment: Segment,
    places: Places,
    bits: Bits,
    matrix: Matrix,
    staged: Array,
    ends: Array,
    slots: Array,
    automaton: Moves,
    asked: Asked,
    demand: Demand,
    out: Batch,
    cursor: Array,
) -> int:
    """Walk a batch of changes, then let time advance to `upto`.

    Returns DONE, or what is full: FULL_SCRATCH for places, FULL_MATRIX, FULL_TABLE for what is staged, FULL_OUTPUT;
    called again with that room, it goes on where it stopped.
    """
    counts = segment.counts
    by_level = asked.settings[0] != 0
    while True:
        if cursor[PHASE] == START:
            if not take_step(rows, found, cut_instant, upto, segment, demand, by_level, cursor):
                return DONE
            cursor[PHASE] = BUILD
            demand.settings[KEPT_TO] = demand.settings[DEMANDED] >= 0 and cursor[KIND] == GROW
            if demand.settings[KEPT_TO]:
                stamp_demand(segment, demand)
        hi_order = 1 - counts[CURRENT] if cursor[KIND] == GROW else counts[CURRENT]
        if cursor[PHASE] == BUILD:
            status = UNUSABLE
            if by_level and cursor[KIND] == GROW and matrix.counts[OFF] == 0:
                status = grow_matrix(segment, matrix, automaton, asked.roots, asked.share, cursor[TIME])
                if status == FULL_SCRATCH:
                    return FULL_MATRIX
            cursor[KNOWN_BEFORE] = status == DONE
            if status != DONE:
                matrix.counts[READY] = 0
                status = build_places(
                    segment, places, automaton, asked.roots, asked.share, demand, hi_order, by_level
                )
                if status != DONE:
                    return FULL_SCRATCH
            cursor[PHASE], cursor[BLOCK] = FLOW, 0
            counts[STAGED] = 0
        if cursor[PHASE] == FLOW:
            last = cursor[LAST] - cursor[NEXT_ROW]
            split = cursor[SPLIT] if asked.settings[1] else 0
            if cursor[KNOWN_BEFORE]:
                if demand.settings[KEPT_TO]:
                    status = stage_demanded(segment, matrix, automaton, staged, last, split, cursor[TIME])
                else:
                    status = stage_matrix(segment, matrix, automaton, staged, last, split, cursor[TIME])
                if status != DONE:
                    return FULL_TABLE
                settle_matrix(segment, matrix, automaton)
                cursor[KNOWN_BEFORE] = 0
                counts[ROOTED] = 0
            while cursor[BLOCK] * ROOTS < counts[ROOTED]:
                status = walk_block(
                    segment,
                    places,
                    bits,
                    staged,
                    automaton,
                    demand,
                    cursor[BLOCK],
                    last,
                    split,
                    cursor[KIND] != GROW,
                    cursor[TIME],
                )
                if status != DONE:
                    return FULL_TABLE
                cursor[BLOCK] += 1
            if automaton.settings[1] >= 0 and asked.share[0] == 0:
                if counts[STAGED] + 4 * counts[CHANGED] > staged.shape[0]:
                    return FULL_TABLE
                stage_empty(segment, ends, staged, asked.roots, by_level, split, cursor)
            cursor[PHASE] = FINISH
        if cursor[OUT] + counts[STAGED] > out.ts.size:
            return FULL_OUTPUT
        hand_out(rows, staged, slots, by_level, out, cursor, counts[STAGED])
        finish_step(segment, cursor)
