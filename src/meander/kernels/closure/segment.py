"""Steps: what of a batch changes the graph at once, and the valid edges by expiry before and after it.

A step either lets the graph grow by the rows of a segment, applies the deletions of one instant, or, if only starts
and stops of answers are requested, removes the edges that expire at one instant.
"""

from __future__ import annotations

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.closure.demand import add_demand, drop_demand
from meander.kernels.closure.tables import (
    CHANGES_EXPIRY,
    CHANGES_PAIRS,
    DELETE,
    EXPIRE,
    GROW,
    MAX_SEGMENT_ROWS,
    START,
    UNCHANGED,
    Cursor,
    Demand,
    Input,
    Moves,
    Request,
    Segment,
    int64,
)
from meander.kernels.graph import Graph, find_row
from meander.kernels.hashing import mix
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned
from meander.kernels.paths import is_root
from meander.kernels.status import FOREVER


@kernel
def find_rows(graph: Graph, batch: Batch, rows: Array) -> None:
    """Set `rows` to the graph's rows of the edges in a batch."""
    for i in range(batch.ts.size):
        rows[i] = find_row(graph, batch.source[i], batch.key[i, SRC], batch.key[i, TRG])


@kernel
def is_own_root(request: Request, vertex: int) -> bool:
    """Whether this share of the roots has the vertex.

    A root stays with its share, so that the changes of its pairs keep their order. Its number is mixed: the ends of
    new edges are often numbered alternately, and one share would get all sources.
    """
    options = request.options
    own = (mix(vertex, 0, 0) & 0xFFFF) * options.shares >> 16 == options.share
    return own and is_root(request.roots, vertex)


@inner_kernel
def source_key(segment: Segment, automaton: Moves, row: int, move: int) -> int:
    """The node in which a move reads an edge."""
    step = automaton.move[move]
    vertex = segment.edge[row].trg if step.inverse else segment.edge[row].src
    return vertex * automaton.info.states + step.source


@inner_kernel
def target_key(segment: Segment, automaton: Moves, row: int, move: int) -> int:
    """The node to which a move leads over an edge."""
    step = automaton.move[move]
    vertex = segment.edge[row].src if step.inverse else segment.edge[row].trg
    return vertex * automaton.info.states + step.target


@inner_kernel
def expiry_after(segment: Segment, row: int, kind: int) -> int:
    """An edge's expiry after the step."""
    return segment.edge[row].hi if kind == GROW else segment.edge[row].lo


@kernel
def sort_rows(segment: Segment, size: int, kind: int) -> None:
    """Sort the first of the lists in `sorting` by expiry after the step, earliest first, by merging runs."""
    rows, merged = segment.sorting[0], segment.sorting[1]
    width = size
    for i in range(1, size):
        if expiry_after(segment, rows[i - 1], kind) > expiry_after(segment, rows[i], kind):
            width = 1
            break
    while width < size:
        begin = 0
        while begin < size:
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            left, right = begin, middle
            for at in range(begin, end):
                if left < middle and (
                    right >= end
                    or expiry_after(segment, rows[left], kind) <= expiry_after(segment, rows[right], kind)
                ):
                    merged[at] = rows[left]
                    left += 1
                else:
                    merged[at] = rows[right]
                    right += 1
            begin = end
        for i in range(size):
            rows[i] = merged[i]
        width *= 2


@kernel
def order_changes(segment: Segment, cursor: Cursor) -> None:
    """Write the order of the valid rows after the step: the current one, with changed rows where they belong."""
    counts, kind = segment.counts, cursor.kind
    rows, current = segment.sorting[0], segment.by_expiry[counts.current]
    following = segment.by_expiry[1 - counts.current]
    size = int64(0)
    for i in range(counts.changed):
        if expiry_after(segment, segment.changed[i], kind) > cursor.time:
            rows[size] = segment.changed[i]
            size += 1
    sort_rows(segment, size, kind)
    total = j = 0
    first, last = counts.begin, counts.end - 1
    while last >= first and segment.change[current[last]]:
        last -= 1
    if (
        size == 0
        or last < first
        or expiry_after(segment, rows[0], kind) >= expiry_after(segment, current[last], kind)
    ):
        # The usual case: new edges last longest, and there is nothing to compare.
        for i in range(first, last + 1):
            row = current[unsigned(i)]
            following[unsigned(total)] = row
            total += segment.change[unsigned(row)] == UNCHANGED
        first = last + 1
    for i in range(first, last + 1):
        row = current[i]
        if segment.change[row]:
            continue
        while j < size and expiry_after(segment, rows[j], kind) < expiry_after(segment, row, kind):
            following[total] = rows[j]
            total += 1
            j += 1
        following[total] = row
        total += 1
    while j < size:
        following[total] = rows[j]
        total += 1
        j += 1
    counts.next_end = total


@kernel
def mark_change(segment: Segment, row: int, how: int) -> None:
    """Note that a step changes a row."""
    if segment.change[row] == UNCHANGED:
        segment.changed[segment.counts.changed] = row
        segment.counts.changed += 1
    if segment.change[row] != CHANGES_PAIRS:
        segment.change[row] = how


@kernel
def take_growth(changes: Input, segment: Segment, demand: Demand, request: Request, cursor: Cursor) -> None:
    """Take rows up to the first expiry or deletion, and set the expiries of their edges before and after."""
    batch, counts, begin = changes.batch, segment.counts, cursor.next_row
    time = cursor.time
    lengthened = CHANGES_PAIRS if request.options.expiries else CHANGES_EXPIRY
    drop_demand(segment, demand, time)
    bound = FOREVER
    if counts.begin < counts.end:
        bound = segment.edge[segment.by_expiry[counts.current, counts.begin]].hi
    at = begin
    while at < batch.ts.size and at - begin < MAX_SEGMENT_ROWS and batch.ts[at] < bound:
        if changes.has_deletion[at] and batch.ts[at] != cursor.deleted_at:
            break
        row, exp = changes.row[at], batch.exp[at]
        if batch.op[at] > 0 and batch.source[at] == demand.counts.relation:
            add_demand(segment, demand, row, exp, time, at - begin)
        elif batch.op[at] > 0:
            bound = min(bound, exp)
            edge = segment.edge[row]
            if segment.change[row] == UNCHANGED:
                was_valid = edge.hi > time
                edge.lo = edge.hi if was_valid else 0
                edge.since = -1 if was_valid else at - begin
                mark_change(segment, row, lengthened if was_valid else CHANGES_PAIRS)
            edge.hi = exp
        at += 1
    cursor.last = at - 1 - begin
    cursor.split = bound if request.options.paths else 0
    order_changes(segment, cursor)


@kernel
def take_deletions(
    changes: Input, segment: Segment, demand: Demand, request: Request, cursor: Cursor
) -> None:
    """Take the deletions of one instant."""
    batch, time = changes.batch, cursor.time
    shortened = CHANGES_PAIRS if request.options.expiries else CHANGES_EXPIRY
    at = cursor.next_row
    while at < batch.ts.size and batch.ts[at] == time:
        row = changes.row[at]
        is_edge = batch.source[at] != demand.counts.relation
        if is_edge and batch.op[at] < 0 and row >= 0 and segment.edge[row].hi > time:
            remains = batch.exp[at] > time
            segment.edge[row].lo = batch.exp[at] if remains else 0
            mark_change(segment, row, shortened if remains else CHANGES_PAIRS)
        at += 1
    cursor.deleted_at = time
    cursor.last = 0
    order_changes(segment, cursor)


@kernel
def take_expiring(segment: Segment, cursor: Cursor) -> None:
    """Remove the edges that expire."""
    counts = segment.counts
    for i in range(counts.begin, counts.end):
        row = segment.by_expiry[counts.current, i]
        if segment.edge[row].hi > cursor.time:
            break
        segment.edge[row].lo = 0
        mark_change(segment, row, CHANGES_PAIRS)
    cursor.last = 0
    order_changes(segment, cursor)


@kernel
def drop_expired(segment: Segment, time: int) -> None:
    """Drop the edges that have expired: answers carry their expiries, and nothing is emitted for that."""
    counts = segment.counts
    while counts.begin < counts.end:
        edge = segment.edge[segment.by_expiry[counts.current, counts.begin]]
        if edge.hi > time:
            return
        edge.lo = 0
        edge.hi = 0
        counts.begin += 1


@kernel
def take_step(changes: Input, segment: Segment, demand: Demand, request: Request, cursor: Cursor) -> bool:
    """Take the next step of the batch; False if there is none."""
    counts, batch = segment.counts, changes.batch
    has_rows = cursor.next_row < batch.ts.size
    time = batch.ts[cursor.next_row] if has_rows else cursor.upto
    if request.options.expiries:
        drop_expired(segment, time)
    elif counts.begin < counts.end:
        exp = segment.edge[segment.by_expiry[counts.current, counts.begin]].hi
        if exp <= time:
            cursor.kind, cursor.time = EXPIRE, exp
            take_expiring(segment, cursor)
            return True
    if not has_rows:
        return False
    cursor.time = time
    if changes.has_deletion[cursor.next_row] and cursor.deleted_at != time:
        cursor.kind = DELETE
        take_deletions(changes, segment, demand, request, cursor)
    else:
        cursor.kind = GROW
        take_growth(changes, segment, demand, request, cursor)
    return True


@kernel
def finish_step(segment: Segment, demand: Demand, cursor: Cursor) -> None:
    """The step is done: both expiries of each edge are equal again."""
    counts = segment.counts
    for i in range(counts.changed):
        row = segment.changed[i]
        edge = segment.edge[row]
        if cursor.kind == GROW:
            edge.lo = edge.hi
        else:
            edge.hi = edge.lo
        edge.since = -1
        segment.change[row] = UNCHANGED
    counts.changed = 0
    for i in range(demand.counts.added):
        segment.edge[demand.added[i]].since = -1
    demand.counts.added = 0
    counts.current = 1 - counts.current
    counts.begin = 0
    counts.end = counts.next_end
    if cursor.kind == GROW:
        cursor.next_row += cursor.last + 1
    cursor.phase = START
