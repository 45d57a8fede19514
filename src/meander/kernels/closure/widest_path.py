"""Widest paths: how a segment of growth changes the matrix of levels, and the answers that follow from that.

A path lasts until its first edge expires, and a pair as long as its longest-lasting path: the widest (bottleneck)
path of Pollack ("The Maximum Capacity Through a Network", Operations Research 1960), that is a closure over the
semiring (max, min) (Carré, "An Algebra for Network Routing Problems", 1971; Gondran and Minoux, "Graphs, Dioids and
Semirings"). An edge that is new or lasts longer is relaxed for all roots at once, element by element,

    level[target] = max(level[target], min(level[source], level(edge)))

and then the edges of each target that gained. Beside it goes the row of the segment that made each pair valid,
`since[target] = min(since[target], max(since[source], since(edge)))`. Only chunks of columns in which the source
gained since its edges were last relaxed are looked at.
"""

from __future__ import annotations

import numpy as np

from meander.kernels.closure.bits import NONE, ONE
from meander.kernels.closure.levels import (
    choose_unit,
    drop_edge,
    fits_unit,
    forget_levels,
    link_edge,
    padded_columns,
    sweep_levels,
)
from meander.kernels.closure.segment import source_key
from meander.kernels.closure.staging import stage_answer
from meander.kernels.closure.tables import (
    CHUNK,
    Cursor,
    Demand,
    Levels,
    Moves,
    Request,
    Segment,
    Staged,
    int64,
)
from meander.kernels.jit import inner_kernel, kernel, lowest_bit, unsigned
from meander.kernels.status import DONE, FULL_SCRATCH, FULL_TABLE, UNUSABLE
from meander.kernels.steps import NO_PATH, NO_STEP

NEVER = 65_535  # in `Levels.since`: the pair is not valid
LAST_BIT = 62  # of `LevelNode.gained`: it stands for all chunks from there on
ALL_CHUNKS = int64(-1)
NO_PATH_KNOWN = int64(NO_PATH)


@inner_kernel
def touch_node(levels: Levels, node: int, now: int) -> int:
    """Keep the levels of a node as they were before the segment."""
    touch = levels.node[node].touch
    if touch < 0:
        touch = levels.counts.touched
        levels.counts.touched = touch + 1
        levels.touched[touch] = node
        levels.node[node].touch = touch
        levels.node[node].has_new_pairs = 0
        levels.node[node].gained_in_segment = 0
        passed, zero, never = np.uint16(now), np.uint16(0), np.uint16(NEVER)
        row = unsigned(touch)
        for i in range(padded_columns(levels)):
            column = unsigned(i)
            level = levels.level[node, column]
            levels.before[row, column] = level
            levels.since[row, column] = zero if level > passed else never
        if levels.via.size:
            for i in range(padded_columns(levels)):
                levels.early_via[row, unsigned(i)] = levels.via[node, unsigned(i)]
    return touch


@inner_kernel
def lead_over(levels: Levels, source: int, target: int, edge: int, begin: int, now: int) -> None:
    """Let the paths of a chunk of columns that gain over an edge, which is about to be relaxed, end with it."""
    level, via, step = levels.level, levels.via, levels.step
    limit, passed = np.uint16(levels.edge[edge].level), np.uint16(now)
    gains = False
    for i in range(CHUNK):
        column = unsigned(begin + i)
        offered = level[source, column]
        offered = offered if offered < limit else limit
        held = level[target, column]
        gains = gains | bool(offered > (held if held > passed else passed))
    if not gains:
        return
    number, no_step = np.int32(edge), np.int32(NO_STEP)
    for i in range(CHUNK):
        column = unsigned(begin + i)
        offered = level[source, column]
        offered = offered if offered < limit else limit
        held = level[target, column]
        more = offered > (held if held > passed else passed)
        via[target, column] = number if more else via[target, column]
        step[target, column] = no_step if more else step[target, column]


@inner_kernel
def lead_early_over(levels: Levels, from_row: int, to_row: int, edge: int, begin: int) -> None:
    """The same for the paths by which pairs first become valid, by touched node."""
    since, early_via = levels.since, levels.early_via
    row, number = np.uint16(levels.edge[edge].since), np.int32(edge)
    for i in range(CHUNK):
        column = unsigned(begin + i)
        offered = since[from_row, column]
        offered = offered if offered > row else row
        early_via[to_row, column] = number if offered < since[to_row, column] else early_via[to_row, column]


@inner_kernel
def relax_edge(levels: Levels, source: int, edge: int, chunks: int, now: int) -> int:
    """Relax an edge in some chunks; returns the chunks in which its target gained."""
    level, since, is_dated = levels.level, levels.since, levels.counts.is_dated != 0
    target, edge_since = unsigned(levels.edge[edge].target), levels.edge[edge].since
    if source == target:
        return 0
    limit, passed, row = np.uint16(levels.edge[edge].level), np.uint16(now), np.uint16(edge_since)
    source_touch, target_touch = levels.node[source].touch, levels.node[target].touch
    finds_paths = levels.via.size > 0
    # Over an old edge from a node without new pairs none can come.
    brings_pairs = is_dated and (edge_since > 0 or levels.node[source].has_new_pairs != 0)
    gained = 0
    for chunk in range(padded_columns(levels) // CHUNK):
        bit = min(chunk, LAST_BIT)
        if chunks >> bit & 1 == 0:
            continue
        begin = chunk * CHUNK
        more = False
        if is_dated and target_touch < 0:
            for i in range(CHUNK):
                column = unsigned(begin + i)
                offered = level[source, column]
                offered = offered if offered < limit else limit
                held = level[target, column]
                held = held if held > passed else passed
                more = more | bool(offered > held)
            if not more:
                continue
            target_touch = touch_node(levels, target, now)
        if finds_paths:
            lead_over(levels, source, target, edge, begin, now)
        for i in range(CHUNK):
            column = unsigned(begin + i)
            offered = level[source, column]
            offered = offered if offered < limit else limit
            held = level[target, column]
            least = held if held > passed else passed
            more = more | bool(offered > least)
            level[target, column] = offered if offered > least else held
        if brings_pairs:
            earlier = False
            from_row, to_row = unsigned(source_touch), unsigned(target_touch)
            if finds_paths:
                lead_early_over(levels, from_row, to_row, edge, begin)
            for i in range(CHUNK):
                column = unsigned(begin + i)
                offered = since[from_row, column]
                offered = offered if offered > row else row
                held = since[to_row, column]
                earlier = earlier | bool(offered < held)
                since[to_row, column] = offered if offered < held else held
            if earlier:
                more = True
                levels.node[target].has_new_pairs = 1
        if more:
            gained |= 1 << bit
    return gained


@inner_kernel
def enqueue(levels: Levels, node: int, gained: int, tail: int) -> bool:
    """Note the chunks in which a node gained, and put it into the queue at `tail`, unless it is in there already."""
    levels.node[node].gained |= gained
    levels.node[node].gained_in_segment |= gained
    if levels.node[node].is_queued:
        return False
    levels.node[node].is_queued = 1
    levels.queue[unsigned(tail)] = node
    levels.counts.queued += 1
    return True


@inner_kernel
def relax_row(segment: Segment, levels: Levels, automaton: Moves, row: int, now: int) -> None:
    """Relax the edges of a row, and queue what gains."""
    relation = segment.edge[row].relation
    for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
        source = unsigned(levels.number[source_key(segment, automaton, row, move)])
        if levels.counts.is_dated:
            touch_node(levels, source, now)
        edge = unsigned(levels.edge_of[row, move - automaton.begin[relation]])
        gained = relax_edge(levels, source, edge, ALL_CHUNKS, now)
        if gained:
            enqueue(levels, unsigned(levels.edge[edge].target), gained, levels.counts.queued)


@kernel
def propagate_gains(levels: Levels, now: int) -> None:
    """Relax the edges of the nodes in the queue, and so on, until nothing gains; drops expired edges on the way."""
    ring, counts = levels.queue.size, levels.counts
    head, tail = int64(0), (counts.queued if counts.queued < ring else 0)
    while counts.queued > 0:
        source = unsigned(levels.queue[unsigned(head)])
        head = head + 1 if head + 1 < ring else 0
        counts.queued -= 1
        levels.node[source].is_queued = 0
        chunks = levels.node[source].gained
        levels.node[source].gained = 0
        previous = int64(-1)
        following = levels.node[source].first_out
        while following >= 0:
            edge = unsigned(following)
            following = levels.edge[edge].next_out
            if levels.edge[edge].level <= now:
                drop_edge(levels, source, previous, edge)
                continue
            previous = int64(edge)
            gained = relax_edge(levels, source, edge, chunks, now)
            if gained and enqueue(levels, unsigned(levels.edge[edge].target), gained, tail):
                tail = tail + 1 if tail + 1 < ring else 0


@kernel
def build_levels(segment: Segment, levels: Levels, automaton: Moves, request: Request, time: int) -> int:
    """Rebuild the matrix from the edges that are valid before the segment, latest first."""
    counts = segment.counts
    forget_levels(levels)
    if not choose_unit(segment, levels, time):
        return UNUSABLE
    origin, unit = levels.counts.origin, levels.counts.unit
    now = (time - origin) // unit
    levels.counts.is_dated = 0
    rows = segment.by_expiry[counts.current]
    at = counts.end - 1
    while at >= counts.begin:
        exp = segment.edge[rows[at]].lo
        if exp <= time:
            at -= 1
            continue
        level, begin = (exp - origin) // unit, at
        while at >= counts.begin and segment.edge[rows[at]].lo == exp:
            relation = segment.edge[rows[at]].relation
            for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
                if not link_edge(segment, levels, automaton, request, rows[at], move, level):
                    return FULL_SCRATCH
            at -= 1
        for i in range(begin, at, -1):
            relax_row(segment, levels, automaton, rows[i], now)
        propagate_gains(levels, now)
    levels.counts.is_ready = 1
    return DONE


@kernel
def link_changes(segment: Segment, levels: Levels, automaton: Moves, request: Request) -> bool:
    """Add the segment's rows to the edges; False: no room."""
    counts = levels.counts
    counts.short_nodes = counts.short_columns = counts.short_edges = 0
    origin, unit = counts.origin, counts.unit
    for i in range(segment.counts.changed):
        row = segment.changed[i]
        relation = segment.edge[row].relation
        level = (segment.edge[row].hi - origin) // unit
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            if not link_edge(segment, levels, automaton, request, row, move, level):
                return False
    return True


@kernel
def grow_levels(segment: Segment, levels: Levels, automaton: Moves, request: Request, time: int) -> int:
    """Let the segment's rows in. FULL_SCRATCH: `counts` has what is short; UNUSABLE: no unit fits the expiries."""
    counts = levels.counts
    if counts.is_ready == 0 or not fits_unit(segment, levels):
        counts.short_nodes = counts.short_columns = counts.short_edges = 0
        status = build_levels(segment, levels, automaton, request, time)
        if status != DONE:
            forget_levels(levels)
            return status
    now = (time - counts.origin) // counts.unit
    if not link_changes(segment, levels, automaton, request):
        has_room = sweep_levels(levels, automaton.info.states, now)
        if not has_room or not link_changes(segment, levels, automaton, request):
            return FULL_SCRATCH
    counts.is_dated = 1
    for i in range(segment.counts.changed):
        relax_row(segment, levels, automaton, segment.changed[i], now)
    propagate_gains(levels, now)
    return DONE


@inner_kernel
def gained_columns(levels: Levels, node: int, touch: int, begin: int) -> np.uint64:
    """The columns of a chunk in which a touched node has gained: a bit for each."""
    gained = NONE
    for i in range(CHUNK):
        column = unsigned(begin + i)
        more = levels.level[node, column] > levels.before[touch, column]
        gained |= np.uint64(more) << np.uint64(i)
    return gained


@inner_kernel
def look_up(levels: Levels, automaton: Moves, vertex: int, column: int, first: int) -> tuple[int, int, int]:
    """A vertex and a root: until when they are joined, until when they were before the segment, and since which row.

    All are 0 if the pair is staged already: an accepting node that was touched before `first` has gained too.
    """
    states = automaton.info.states
    level = before = 0
    since = NEVER
    for state in range(states):
        node = levels.number[vertex * states + state]
        if not automaton.accepting[state] or node < 0:
            continue
        touch = levels.node[node].touch
        held = had = int(levels.level[node, column])
        if touch >= 0:
            had = int(levels.before[touch, column])
            since = min(since, int(levels.since[touch, column]))
            if touch < first and held > had:
                return 0, 0, 0
        level, before = max(level, held), max(before, had)
    return level, before, since


@kernel
def stage_gained(levels: Levels, automaton: Moves, staged: Staged, cursor: Cursor) -> int:
    """Stage the answers that the segment has changed. On FULL_TABLE nothing is staged."""
    counts = levels.counts
    states = automaton.info.states
    accepts_empty = automaton.info.empty_state >= 0
    origin, unit, last = counts.origin, counts.unit, cursor.last
    passed = (cursor.time - origin) // unit
    # The empty path's state has no nodes.
    accepting = -1 if accepts_empty else 0
    for state in range(states):
        accepting += automaton.accepting[state]
    cursor.staged = 0
    at = cursor.staged
    for i in range(counts.touched):
        touch, node = unsigned(i), unsigned(levels.touched[i])
        vertex, state = divmod(levels.node[node].key, states)
        if not automaton.accepting[state]:
            continue
        for chunk in range(padded_columns(levels) // CHUNK):
            if levels.node[node].gained_in_segment >> min(chunk, LAST_BIT) & 1 == 0:
                continue
            if at + 2 * CHUNK > staged.answer.size:
                return FULL_TABLE
            gained = gained_columns(levels, node, touch, chunk * CHUNK)
            while gained != NONE:
                column = unsigned(chunk * CHUNK + lowest_bit(gained))
                gained &= gained - ONE
                source = levels.root[column]
                if accepting == 1:
                    level, before = int(levels.level[node, column]), int(levels.before[touch, column])
                    since = int(levels.since[touch, column])
                else:
                    level, before, since = look_up(levels, automaton, vertex, column, i)
                if level > before and not (accepts_empty and source == vertex):
                    row = last if before > passed else min(since - 1, last)
                    at = stage_answer(
                        staged, at, source, vertex, origin + level * unit, row, NO_PATH_KNOWN, cursor
                    )
    cursor.staged = at
    return DONE


@kernel
def stage_demanded(
    segment: Segment, levels: Levels, automaton: Moves, demand: Demand, staged: Staged, cursor: Cursor
) -> int:
    """Stage the demanded pairs that the segment has changed or demanded. On FULL_TABLE nothing is staged."""
    counts = levels.counts
    origin, unit, last = counts.origin, counts.unit, cursor.last
    passed = (cursor.time - origin) // unit
    cursor.staged = 0
    at = cursor.staged
    for i in range(demand.counts.valid):
        pair = segment.edge[demand.valid[i]]
        target, column = int64(pair.trg), levels.column_of[pair.src]
        if column < 0 or (automaton.info.empty_state >= 0 and pair.src == pair.trg):
            continue
        level, before, since = look_up(levels, automaton, target, unsigned(column), int64(0))
        is_added = pair.since >= 0
        if level <= passed or (level == before and not is_added):
            continue
        if at + 2 > staged.answer.size:
            return FULL_TABLE
        row = last
        if before <= passed:
            row = min(since - 1, last)
        elif is_added:
            row = 0
        at = stage_answer(staged, at, pair.src, target, origin + level * unit, row, NO_PATH_KNOWN, cursor)
    cursor.staged = at
    demand.counts.undemanded += max(0, count_gains(levels, automaton) - at)
    return DONE


@kernel
def count_gains(levels: Levels, automaton: Moves) -> int:
    """How many levels of accepting nodes the segment has raised."""
    total = 0
    for touch in range(levels.counts.touched):
        node = levels.touched[touch]
        if automaton.accepting[levels.node[node].key % automaton.info.states]:
            for column in range(padded_columns(levels)):
                total += levels.level[node, column] > levels.before[touch, column]
    return total


@kernel
def settle_levels(segment: Segment, levels: Levels, automaton: Moves) -> None:
    """The segment is over: nothing of it is new any more."""
    for touch in range(levels.counts.touched):
        levels.node[levels.touched[touch]].touch = -1
    levels.counts.touched = 0
    for i in range(segment.counts.changed):
        row = segment.changed[i]
        relation = segment.edge[row].relation
        for position in range(automaton.begin[relation + 1] - automaton.begin[relation]):
            edge = levels.edge_of[row, position]
            if edge >= 0:
                levels.edge[edge].since = 0
