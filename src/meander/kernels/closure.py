"""PATH by slide-batched closure: what it works on, and the subgraph that a segment's changes can touch.

Between two instants at which an input edge expires the graph only grows: that stretch of a batch is a *segment*.
Within it each edge has two expiries, `lo` and `hi`: before and after the segment's rows (for a deletion: after
and before it). Where the graph is small enough, what was known before the segment is kept and changed
(`closure_matrix`). Else bits flow from nothing (`closure_flow`): an answer's expiry is the level at which its bit
arrives when edges are let in by expiry, latest first; letting both graphs flow at once, a bit that arrives by `hi`
and has not arrived by `lo` is an answer that the segment has lengthened. The window's graph says all, any vertex may
share a block with any other, and only the roots that reach a changed edge are walked.

Where a reader asks for certain pairs alone (its *demand*, a relation of the window's graph), only roots that someone
asks for are walked and only pairs that are asked for are handed out. A pair that is asked for in a segment, and was
not before it, is handed out as if all of its answer were new. More than what is asked for may be handed out, and is
where something is deleted: what a reader was once told must be taken back.

A *place* is a (vertex, state) pair with a number of its own in the segment at hand. An edge of the subgraph is
an input edge read by one move of the automaton.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from meander.kernels.batch import Batch
from meander.kernels.graph import ROWS, Graph, find_row
from meander.kernels.hashing import mix
from meander.kernels.jit import Array, kernel, unsigned
from meander.kernels.paths import is_root
from meander.kernels.status import DONE, FULL_SCRATCH

WORDS = 8
ROOTS = 64 * WORDS  # roots a block: one bit each
MOST_SEGMENT_ROWS = 65_534  # a row's place in its segment fits 16 bits, with one before and one after all

# Flags of a place: it reaches a changed edge; it is reached over one; it keeps answers that may change; it reaches
# a place that bears on those.
BEFORE, BEYOND, MOVED, TOWARDS = 1, 2, 4, 8

# Places in `Segment.counts`.
CURRENT, FIRST, END, NEXT_END, CHANGED, PLACES, EDGES, LOWERED, ROOTED, STAGED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
# Pairs that are asked for from this segment on; pairs that nobody asked for; rows of the demand that are valid;
# whether it is known until when each vertex has an edge.
NEWLY_ASKED, UNASKED, HELD_ASKED, ENDS_KNOWN = 10, 11, 12, 13
COUNTS = 14

# Columns of `Segment.row`: the edge, where in the segment it became valid (-1: before).
RELATION, SRC, TRG, SINCE = 0, 1, 2, 3
ROW_COLUMNS = 4
# Columns of `Segment.exp`: both are the expiry itself where nothing is under way.
LO, HI = 0, 1
# Lists of `Segment.lists`: valid rows by expiry, before and after the changes (which is which: CURRENT), the
# changed rows, two to work in, the rows of the demand that are new, and those that are valid.
CHANGES, SORTING, SPARE, ASKED, STILL_ASKED = 2, 3, 4, 5, 6
LISTS = 7

# Columns of `Places.place`: vertex * states + state; flags; the place that keeps the answer bits of the vertex,
# or -1 (not accepting); its lists of edges; then four that are lists or marks of their own.
KEY, FLAGS, ANSWER, BEGIN_OUT, END_OUT, BEGIN_IN, QUEUED, TOUCHED, ROOT, QUEUE, LISTED = range(11)
PLACE_COLUMNS = 11
# Columns of `Places.edge`, edges by `hi`, latest first; then three lists: those into a place (later: those kept),
# those out of it, and those with another `lo`, by it, latest first.
SOURCE, TARGET, ROW, EDGE_LO, EDGE_HI, INTO, OUT_OF, LOWER = range(8)
EDGE_COLUMNS = 8
# Columns of `Places.out`: what a walk needs of the edges out of a place.
TO, TO_SINCE, TO_LO, TO_HI = 0, 1, 2, 3
# Columns of `Moves.moves`, and places in its `settings`.
INVERSE, FROM, MOVE_TO = 0, 1, 2


class Segment(NamedTuple):
    """The valid input edges by row of the window's graph, and the changes of the segment at hand."""

    row: Array
    exp: Array
    marked: Array  # whether, and how, the row changes
    lists: Array
    counts: Array


class Demand(NamedTuple):
    """The pairs that are asked for: rows of the window's graph, whose expiries are in `Segment.exp`."""

    row: Array  # by source
    begin: Array  # by vertex, with one more for the end: its rows
    stamp: Array  # by vertex: the last step in which it was asked for, as a root and as a target
    settings: Array  # [the relation, or -1: all pairs are asked for; whether the step keeps to it; the step's number]


# Columns of `Demand.stamp`, and places in its `settings`.
AS_ROOT, AS_TARGET = 0, 1
DEMANDED, KEPT_TO, STEP = 0, 1, 2


class Places(NamedTuple):
    """The subgraph: `number` finds a place by its key, or -1."""

    number: Array
    place: Array
    edge: Array
    out: Array


class Moves(NamedTuple):
    """The automaton's moves by relation; `settings` is [states, the empty path's or -1, first accepting state]."""

    begin: Array
    moves: Array
    accepting: Array
    settings: Array


@kernel
def find_rows(graph: Graph, rows: Batch, found: Array) -> None:
    """The graph's rows of the edges that a batch changes."""
    for i in range(rows.ts.size):
        found[i] = find_row(graph, rows.source[i], rows.key[i, 0], rows.key[i, 1])


class Extent(NamedTuple):
    """How large a graph is: its edges and vertices, and the expiries of the edges."""

    rows: int
    sources: int
    ends: int  # sources and targets
    latest: int
    unit: int  # expiries differ by multiples of it


@kernel
def measure_graph(graph: Graph, reads: Array, time: int, seen: Array) -> tuple[int, int, int, int, int]:
    """The extent of the edges that are read and valid after `time`, without those that change after it.

    `seen` has a zero for each vertex.
    """
    rows = sources = ends = unit = 0
    latest, first, before = time, -1, -1
    for row in range(graph.counts[ROWS]):
        exp = graph.exp[row]
        if exp <= time or graph.stamp[row] > time or not reads[graph.relation[row]]:
            continue
        rows += 1
        src, trg = graph.src[row], graph.trg[row]
        if seen[src] != 2:
            sources += 1
            ends += seen[src] == 0
            seen[src] = 2
        if seen[trg] == 0:
            ends += 1
            seen[trg] = 1
        if exp != before:
            first = exp if first < 0 else first
            unit = gcd(unit, abs(exp - first))
            latest = max(latest, exp)
            before = exp
    return rows, sources, ends, latest, max(unit, 1)


@kernel
def sort_rows(lists: Array, size: int, exp: Array, column: int) -> None:
    """Sort the rows in SORTING by expiry, earliest first, by merging runs."""
    ordered = True
    for i in range(1, size):
        if exp[lists[SORTING, i - 1], column] > exp[lists[SORTING, i], column]:
            ordered = False
            break
    width = size if ordered else 1
    while width < size:
        begin = 0
        while begin < size:
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            left, right = begin, middle
            for at in range(begin, end):
                if left < middle and (
                    right >= end or exp[lists[SORTING, left], column] <= exp[lists[SORTING, right], column]
                ):
                    lists[SPARE, at] = lists[SORTING, left]
                    left += 1
                else:
                    lists[SPARE, at] = lists[SORTING, right]
                    right += 1
            begin = end
        for i in range(size):
            lists[SORTING, i] = lists[SPARE, i]
        width *= 2


@kernel
def order_changes(segment: Segment, column: int, time: int) -> None:
    """Make the other order of the valid rows: the changed ones at their new places, by LO or HI."""
    counts, lists, exp = segment.counts, segment.lists, segment.exp
    now, following = counts[CURRENT], 1 - counts[CURRENT]
    size = 0
    for i in range(counts[CHANGED]):
        if exp[lists[CHANGES, i], column] > time:
            lists[SORTING, size] = lists[CHANGES, i]
            size += 1
    sort_rows(lists, size, exp, column)
    kept = j = 0
    first, last = counts[FIRST], counts[END] - 1
    while last >= first and segment.marked[lists[now, last]]:
        last -= 1
    if size == 0 or last < first or exp[lists[SORTING, 0], column] >= exp[lists[now, last], column]:
        # As a rule: what comes lasts longest.
        for i in range(first, last + 1):
            row = lists[now, unsigned(i)]
            lists[following, unsigned(kept)] = row
            kept += segment.marked[unsigned(row)] == 0
        first = last + 1
    for i in range(first, last + 1):
        row = lists[now, i]
        if segment.marked[row]:
            continue
        while j < size and exp[lists[SORTING, j], column] < exp[row, column]:
            lists[following, kept] = lists[SORTING, j]
            kept += 1
            j += 1
        lists[following, kept] = row
        kept += 1
    while j < size:
        lists[following, kept] = lists[SORTING, j]
        kept += 1
        j += 1
    counts[NEXT_END] = kept


@kernel
def stamp_demand(segment: Segment, demand: Demand) -> None:
    """Stamp the vertices that are asked for in the segment."""
    demand.settings[STEP] += 1
    for i in range(segment.counts[HELD_ASKED]):
        row = segment.lists[STILL_ASKED, i]
        demand.stamp[segment.row[row, SRC], AS_ROOT] = demand.settings[STEP]
        demand.stamp[segment.row[row, TRG], AS_TARGET] = demand.settings[STEP]


@kernel
def is_own(roots: Array, share: Array, vertex: int) -> bool:
    """Whether this share of the roots has the vertex: ends of edges are often numbered in turns, so it is mixed."""
    return (mix(vertex, 0, 0) & 0xFFFF) * share[1] >> 16 == share[0] and is_root(roots, vertex)


@kernel
def is_asked(demand: Demand, vertex: int, end: int) -> bool:
    """Whether any pair with the vertex at that end is asked for in this step."""
    return demand.settings[KEPT_TO] == 0 or demand.stamp[vertex, end] == demand.settings[STEP]


@kernel
def seed_demand(segment: Segment, places: Places, automaton: Moves) -> None:
    """Flag the ends of the pairs that are newly asked for: all that lies between them counts."""
    states = automaton.settings[0]
    for i in range(segment.counts[NEWLY_ASKED]):
        row = segment.lists[ASKED, i]
        root = places.number[segment.row[row, SRC] * states]
        answer = places.number[segment.row[row, TRG] * states + automaton.settings[2]]
        if root >= 0 and answer >= 0:
            places.place[root, FLAGS] |= BEFORE
            places.place[answer, FLAGS] |= MOVED


@kernel
def number_place(places: Places, key: int, counts: Array) -> int:
    """The place of a (vertex, state) pair. Needs room for one."""
    place = places.number[key]
    if place < 0:
        place = counts[PLACES]
        counts[PLACES] = place + 1
        places.number[key] = place
        places.place[place, KEY] = key
    return place


@kernel
def forget_places(places: Places, counts: Array) -> None:
    for place in range(counts[PLACES]):
        places.number[places.place[place, KEY]] = -1
    counts[PLACES] = 0


@kernel
def list_edges(places: Places, end: int, begin: int, listed: int, counts: Array) -> None:
    """List the edges by one of their ends (a column), each list in the order of the edges."""
    place, edge = places.place, places.edge
    for i in range(counts[PLACES] + 1):
        place[i, begin] = 0
    for i in range(counts[EDGES]):
        place[edge[i, end] + 1, begin] += 1
    for i in range(counts[PLACES]):
        place[i + 1, begin] += place[i, begin]
    for i in range(counts[EDGES]):
        at = place[edge[i, end], begin]
        edge[at, listed] = i
        place[edge[i, end], begin] = at + 1
    for i in range(counts[PLACES], 0, -1):
        place[i, begin] = place[i - 1, begin]
    place[0, begin] = 0


@kernel
def flag_places(places: Places, begin: int, listed: int, other_end: int, flag: int, size: int) -> None:
    """Flag all that is connected, over the lists of one kind, to the places in the queue."""
    place = places.place
    head, tail = 0, size
    while head < tail:
        one = place[head, QUEUE]
        head += 1
        for at in range(place[one, begin], place[one + 1, begin]):
            other = places.edge[places.edge[at, listed], other_end]
            if place[other, FLAGS] & flag == 0:
                place[other, FLAGS] |= flag
                place[tail, QUEUE] = other
                tail += 1


@kernel
def seed_flags(segment: Segment, places: Places, flag: int) -> int:
    """Flag and queue the tails (BEFORE) or heads (BEYOND) of the changed edges."""
    size = 0
    for edge in range(segment.counts[EDGES]):
        if segment.marked[places.edge[edge, ROW]] == 1:
            place = places.edge[edge, SOURCE] if flag == BEFORE else places.edge[edge, TARGET]
            if places.place[place, FLAGS] & flag == 0:
                places.place[place, FLAGS] |= flag
                places.place[size, QUEUE] = place
                size += 1
    return size


@kernel
def build_places(
    segment: Segment,
    places: Places,
    automaton: Moves,
    roots: Array,
    share: Array,
    demand: Demand,
    hi_order: int,
    by_level: bool,
) -> int:
    """The subgraph that the changed edges can touch, and the roots among it that fall to this share.

    `order[hi_order]` has the valid rows by `hi`. Without `by_level` all expiries are one level.
    """
    counts = segment.counts
    states = automaton.settings[0]
    forget_places(places, counts)
    first = counts[FIRST] if hi_order == counts[CURRENT] else 0
    end = counts[END] if hi_order == counts[CURRENT] else counts[NEXT_END]
    edge = 0
    for at in range(end - 1, first - 1, -1):
        row = segment.lists[hi_order, at]
        relation = segment.row[row, RELATION]
        segment.lists[SORTING, row] = edge
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            if edge == places.edge.shape[0] or counts[PLACES] + 3 > places.place.shape[0]:
                return FULL_SCRATCH
            inverse = automaton.moves[move, INVERSE]
            tail = segment.row[row, TRG] if inverse else segment.row[row, SRC]
            head = segment.row[row, SRC] if inverse else segment.row[row, TRG]
            places.edge[edge, SOURCE] = number_place(
                places, tail * states + automaton.moves[move, FROM], counts
            )
            places.edge[edge, TARGET] = number_place(
                places, head * states + automaton.moves[move, MOVE_TO], counts
            )
            places.edge[edge, ROW] = row
            places.edge[edge, EDGE_LO] = segment.exp[row, LO] if by_level else min(segment.exp[row, LO], 1)
            places.edge[edge, EDGE_HI] = segment.exp[row, HI] if by_level else min(segment.exp[row, HI], 1)
            edge += 1
    counts[EDGES] = edge
    # Answers of a vertex are kept at its place in the first accepting state.
    total = counts[PLACES]
    if 2 * total >= places.place.shape[0]:
        return FULL_SCRATCH
    for place in range(total):
        key = places.place[place, KEY]
        places.place[place, ANSWER] = -1
        if automaton.accepting[key % states]:
            places.place[place, ANSWER] = number_place(
                places, key // states * states + automaton.settings[2], counts
            )
    for place in range(total, counts[PLACES]):
        places.place[place, ANSWER] = place
    for place in range(counts[PLACES]):
        places.place[place, FLAGS] = 0
    list_edges(places, SOURCE, BEGIN_OUT, OUT_OF, counts)
    list_edges(places, TARGET, BEGIN_IN, INTO, counts)
    size = seed_flags(segment, places, BEFORE)
    flag_places(places, BEGIN_IN, INTO, SOURCE, BEFORE, size)
    size = seed_flags(segment, places, BEYOND)
    flag_places(places, BEGIN_OUT, OUT_OF, TARGET, BEYOND, size)
    for place in range(counts[PLACES]):
        reached = places.place[place, FLAGS] & BEYOND and places.place[place, ANSWER] >= 0
        if reached and is_asked(demand, places.place[place, KEY] // states, AS_TARGET):
            places.place[places.place[place, ANSWER], FLAGS] |= MOVED
    if demand.settings[KEPT_TO]:
        seed_demand(segment, places, automaton)
    size = 0
    for place in range(counts[PLACES]):
        answer = places.place[place, ANSWER]
        if answer >= 0 and places.place[answer, FLAGS] & MOVED:
            places.place[place, FLAGS] |= TOWARDS
            places.place[size, QUEUE] = place
            size += 1
    flag_places(places, BEGIN_IN, INTO, SOURCE, TOWARDS, size)
    prune_lists(segment, places)
    counts[LOWERED] = 0
    if by_level:
        list_lowered(segment, places, automaton, 1 - hi_order)
    list_roots(places, states, roots, share, demand, counts)
    return DONE


@kernel
def prune_lists(segment: Segment, places: Places) -> None:
    """Keep the edges that bear on answers that may change, in the lists out of places and in the order by `hi`."""
    counts = segment.counts
    at = 0
    for place in range(counts[PLACES]):
        begin, end = places.place[place, BEGIN_OUT], places.place[place + 1, BEGIN_OUT]
        places.place[place, BEGIN_OUT] = at
        if places.place[place, FLAGS] & TOWARDS:
            for i in range(begin, end):
                edge = places.edge[i, OUT_OF]
                if places.place[places.edge[edge, TARGET], FLAGS] & TOWARDS:
                    places.out[at, TO] = places.edge[edge, TARGET]
                    places.out[at, TO_SINCE] = segment.row[places.edge[edge, ROW], SINCE]
                    places.out[at, TO_LO] = places.edge[edge, EDGE_LO]
                    places.out[at, TO_HI] = places.edge[edge, EDGE_HI]
                    at += 1
        places.place[place, END_OUT] = at
    kept = 0
    for edge in range(counts[EDGES]):
        if places.place[places.edge[edge, TARGET], FLAGS] & TOWARDS:
            places.edge[kept, INTO] = edge
            kept += 1
    counts[EDGES] = kept


@kernel
def list_lowered(segment: Segment, places: Places, automaton: Moves, lo_order: int) -> None:
    """The changed edges that are valid by `lo` too, latest first."""
    counts = segment.counts
    first = counts[FIRST] if lo_order == counts[CURRENT] else 0
    end = counts[END] if lo_order == counts[CURRENT] else counts[NEXT_END]
    size = 0
    for at in range(end - 1, first - 1, -1):
        row = segment.lists[lo_order, at]
        if segment.marked[row]:
            relation = segment.row[row, RELATION]
            moves = automaton.begin[relation + 1] - automaton.begin[relation]
            for move in range(moves):
                places.edge[size, LOWER] = segment.lists[SORTING, row] + move
                size += 1
    counts[LOWERED] = size


@kernel
def list_roots(
    places: Places, states: int, roots: Array, share: Array, demand: Demand, counts: Array
) -> None:
    """The roots from which a changed edge is reached: those of this share, among those asked for."""
    # A root stays with its share: what two steps of one instant say of a pair keeps its order.
    size = 0
    for place in range(counts[PLACES]):
        if places.place[place, FLAGS] & BEFORE and places.place[place, KEY] % states == 0:
            vertex = places.place[place, KEY] // states
            if is_own(roots, share, vertex) and is_asked(demand, vertex, AS_ROOT):
                places.place[size, ROOT] = place
                size += 1
    counts[ROOTED] = size
