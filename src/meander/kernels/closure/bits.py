"""Multi-source breadth-first search over bit vectors, 512 roots at a time, on the subgraph of a step.

The search is that of Then et al. (VLDB 2014, "The More the Merrier: Efficient Multi-Source Graph Traversal"): a node
has one bit per root, and an edge passes the bits that its target lacks. Edges are added by expiry, latest first, so
that the level at which a bit arrives is the expiry of the widest path (as Kruskal's algorithm finds widest paths).
The graphs before and after the step are searched at once, by `lo` and by `hi`: a bit that has arrived by `hi` and not
by `lo` is an answer that the step has lengthened (a deletion: shortened).

A second search adds the segment's edges in order of time, which dates the answers that are new. Both work on one
block of roots and start from nothing, so a block that ran out of room is simply searched again.
"""

from __future__ import annotations

import numpy as np

from meander.kernels.closure.segment import source_key, target_key
from meander.kernels.closure.tables import (
    BLOCK_ROOTS,
    GROW,
    MAY_CHANGE,
    WORDS,
    Bits,
    Cursor,
    Demand,
    Moves,
    Segment,
    Staged,
    Subgraph,
    int64,
)
from meander.kernels.jit import inner_kernel, kernel, lowest_bit
from meander.kernels.status import DONE, FULL_TABLE
from meander.kernels.steps import NO_PATH

# Where the words by `hi` and by `lo` begin in `Bits.reached` and `Bits.fresh`, and their number.
BY_HI, BY_LO, ALL_WORDS = int64(0), int64(WORDS), int64(2 * WORDS)
NONE = np.uint64(0)
ONE = np.uint64(1)


@kernel
def begin_block(subgraph: Subgraph, bits: Bits, cursor: Cursor, accepts_empty: bool) -> None:
    """Clear the bits, and set those of the block's roots at their start nodes.

    If the empty path is an answer, a root's pair with itself is not the search's: its bit is settled beforehand.
    """
    subgraph.counts.queued = 0
    for i in range(subgraph.counts.nodes):
        subgraph.node[i].is_queued = 0
        subgraph.node[i].is_touched = 0
        for w in range(ALL_WORDS):
            bits.reached[i, w] = NONE
            bits.fresh[i, w] = NONE
        for w in range(WORDS):
            bits.settled[i, w] = NONE
            bits.known[i, w] = NONE
    first = cursor.block * BLOCK_ROOTS
    for i in range(min(BLOCK_ROOTS, subgraph.counts.roots - first)):
        node, w = subgraph.root[first + i], i >> 6
        bit = ONE << np.uint64(i & 63)
        bits.reached[node, w] |= bit
        bits.reached[node, BY_LO + w] |= bit
        if accepts_empty:
            # The start state accepts, and is the first that does.
            bits.settled[node, w] |= bit
            bits.known[node, w] |= bit


@kernel
def count_bits(word: np.uint64) -> int:
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(
        ((word & np.uint64(0x00FF00FF00FF00FF)) + ((word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)))
        % np.uint64(0xFFFF)
    )


@kernel
def set_demanded(
    segment: Segment, subgraph: Subgraph, bits: Bits, demand: Demand, automaton: Moves, cursor: Cursor
) -> None:
    """Set the bits of the demanded pairs of the block's roots."""
    states = automaton.info.states
    for i in range(subgraph.counts.nodes):
        for w in range(WORDS):
            bits.demanded[i, w] = NONE
            bits.added[i, w] = NONE
    first = cursor.block * BLOCK_ROOTS
    for i in range(min(BLOCK_ROOTS, subgraph.counts.roots - first)):
        vertex = subgraph.node[subgraph.root[first + i]].key // states
        bit = ONE << np.uint64(i & 63)
        for at in range(demand.begin[vertex], demand.begin[vertex + 1]):
            pair = segment.edge[demand.row[at]]
            if pair.hi > cursor.time:
                answer = subgraph.number[pair.trg * states + automaton.info.answer_state]
                if answer >= 0:
                    bits.demanded[answer, i >> 6] |= bit
                    if pair.since >= 0:
                        bits.added[answer, i >> 6] |= bit


@kernel
def touch_node(subgraph: Subgraph, node: int) -> None:
    """List a node whose answers may change, once per level."""
    answer = subgraph.node[node].answer
    if subgraph.node[node].is_touched == 0 and answer >= 0 and subgraph.node[answer].marks & MAY_CHANGE:
        subgraph.node[node].is_touched = 1
        subgraph.touched[subgraph.counts.touched] = node
        subgraph.counts.touched += 1


@inner_kernel
def enqueue(subgraph: Subgraph, node: int, tail: int) -> bool:
    """Put a node into the queue at `tail`, unless it is in there already; whether that is so."""
    if subgraph.node[node].is_queued:
        return False
    subgraph.node[node].is_queued = 1
    subgraph.queue[tail] = node
    subgraph.counts.queued += 1
    return True


@inner_kernel
def next_in_ring(subgraph: Subgraph, position: int) -> int:
    """The queue is a ring over all nodes."""
    return position + 1 if position + 1 < subgraph.queue.size else 0


@inner_kernel
def pass_reached(bits: Bits, source: int, target: int, begin: int, end: int) -> bool:
    """Pass the bits that reached the source to the target; whether any is new there."""
    fresh = NONE
    for w in range(begin, end):
        word = bits.reached[source, w] & ~bits.reached[target, w]
        bits.reached[target, w] |= word
        bits.fresh[target, w] |= word
        fresh |= word
    return bool(fresh != NONE)


@inner_kernel
def pass_fresh(bits: Bits, source: int, target: int, begin: int, end: int) -> bool:
    """Pass the fresh bits of the source to the target; whether any is new there."""
    fresh = NONE
    for w in range(begin, end):
        fresh |= bits.fresh[source, w] & ~bits.reached[target, w]
    if fresh == NONE:
        return False
    for w in range(begin, end):
        word = bits.fresh[source, w] & ~bits.reached[target, w]
        bits.reached[target, w] |= word
        bits.fresh[target, w] |= word
    return True


@kernel
def stage_bits(staged: Staged, cursor: Cursor, node: int, w: int, word: np.uint64, exp: int) -> bool:
    """Stage an answer for each bit of a word; False: no room."""
    while word != NONE:
        at = cursor.staged
        if at == staged.answer.size:
            return False
        answer = staged.answer[at]
        answer.node = node
        answer.bit = 64 * w + lowest_bit(word)
        answer.exp = exp
        cursor.staged = at + 1
        word &= word - ONE
    return True


@kernel
def stage_gains(
    subgraph: Subgraph, bits: Bits, staged: Staged, demand: Demand, cursor: Cursor, level: int
) -> bool:
    """At the end of a level of growth: stage the answers that `hi` settles and `lo` does not. False: no room."""
    enforced = demand.counts.is_enforced != 0
    for i in range(subgraph.counts.touched):
        node = subgraph.touched[i]
        answer = subgraph.node[node].answer
        for w in range(WORDS):
            word = bits.reached[node, BY_LO + w]
            if enforced:
                # A pair that the segment adds to the demand is emitted, changed or not.
                word &= ~bits.added[answer, w]
            bits.settled[answer, w] |= word
    for i in range(subgraph.counts.touched):
        node = subgraph.touched[i]
        subgraph.node[node].is_touched = 0
        answer = subgraph.node[node].answer
        for w in range(WORDS):
            word = bits.reached[node, w] & ~bits.settled[answer, w]
            if word != NONE:
                bits.settled[answer, w] |= word
                if enforced:
                    demand.counts.undemanded += count_bits(word & ~bits.demanded[answer, w])
                    word &= bits.demanded[answer, w]
                if not stage_bits(staged, cursor, answer, w, word, level):
                    return False
    return True


@kernel
def stage_losses(subgraph: Subgraph, bits: Bits, staged: Staged, cursor: Cursor, level: int) -> bool:
    """At the end of a level of a deletion: stage the answers that `hi` had settled earlier. False: no room."""
    for i in range(subgraph.counts.touched):
        node = subgraph.touched[i]
        answer = subgraph.node[node].answer
        for w in range(WORDS):
            word = bits.reached[node, BY_LO + w] & ~bits.settled[answer, w]
            late = word & bits.known[answer, w]
            if late != NONE and not stage_bits(staged, cursor, answer, w, late, level):
                return False
            bits.settled[answer, w] |= word
    for i in range(subgraph.counts.touched):
        node = subgraph.touched[i]
        subgraph.node[node].is_touched = 0
        answer = subgraph.node[node].answer
        for w in range(WORDS):
            bits.known[answer, w] |= bits.reached[node, w] & ~bits.settled[answer, w]
    return True


@kernel
def stage_stops(subgraph: Subgraph, bits: Bits, staged: Staged, cursor: Cursor) -> bool:
    """After a deletion or an expiry: stage the answers to which no path leads any more. False: no room."""
    for i in range(subgraph.counts.nodes):
        answer = subgraph.node[i].answer
        if answer == i:
            for w in range(WORDS):
                word = bits.known[i, w] & ~bits.settled[i, w]
                if word != NONE and not stage_bits(staged, cursor, answer, w, word, cursor.time):
                    return False
    return True


@kernel
def push_level(subgraph: Subgraph, bits: Bits, level: int) -> None:
    """Propagate fresh bits from the nodes in the queue over all edges that last until `level` or longer."""
    counts = subgraph.counts
    head, tail = int64(0), counts.queued % subgraph.queue.size
    while counts.queued > 0:
        node = subgraph.queue[head]
        head = next_in_ring(subgraph, head)
        counts.queued -= 1
        subgraph.node[node].is_queued = 0
        for at in range(subgraph.node[node].begin_out, subgraph.node[node].end_out):
            out = subgraph.out[at]
            if out.hi < level:
                break
            target = out.target
            if pass_fresh(bits, node, target, BY_HI, ALL_WORDS if out.lo >= level else BY_LO):
                if enqueue(subgraph, target, tail):
                    tail = next_in_ring(subgraph, tail)
                touch_node(subgraph, target)
        for w in range(ALL_WORDS):
            bits.fresh[node, w] = NONE


@kernel
def search_levels(subgraph: Subgraph, bits: Bits, staged: Staged, demand: Demand, cursor: Cursor) -> bool:
    """Add the edges by expiry, latest first, and stage the answers that `hi` and `lo` settle differently.

    An answer that `hi` settles earlier than `lo` is staged with the expiry by `hi`; in a deletion with that by `lo`.
    False: no room.
    """
    edges, lowered = subgraph.counts.edges, subgraph.counts.lowered
    i = j = 0
    while i < edges or j < lowered:
        level = 0
        if i < edges:
            level = subgraph.edge[subgraph.in_edges[i]].hi
        if j < lowered:
            level = max(level, subgraph.edge[subgraph.lowered[j]].lo)
        subgraph.counts.touched = 0
        while True:
            begin, end, at = BY_HI, ALL_WORDS, -1
            if i < edges and subgraph.edge[subgraph.in_edges[i]].hi == level:
                at = subgraph.in_edges[i]
                i += 1
                if subgraph.edge[at].lo != level:
                    end = BY_LO
            elif j < lowered and subgraph.edge[subgraph.lowered[j]].lo == level:
                at = subgraph.lowered[j]
                j += 1
                begin = BY_LO
            if at < 0:
                break
            target = subgraph.edge[at].target
            if pass_reached(bits, subgraph.edge[at].source, target, begin, end):
                enqueue(subgraph, target, subgraph.counts.queued)
                touch_node(subgraph, target)
        push_level(subgraph, bits, level)
        if cursor.kind == GROW:
            has_room = stage_gains(subgraph, bits, staged, demand, cursor, level)
        else:
            has_room = stage_losses(subgraph, bits, staged, cursor, level)
        if not has_room:
            return False
    return True


@kernel
def has_starts(subgraph: Subgraph, bits: Bits, demand: Demand) -> bool:
    """Whether any (demanded) answer of the block is new; sets `known` to those that are not."""
    starts = False
    for i in range(subgraph.counts.nodes):
        answer = subgraph.node[i].answer
        if answer >= 0:
            for w in range(WORDS):
                bits.known[answer, w] |= bits.reached[i, BY_LO + w]
    for i in range(subgraph.counts.nodes):
        answer = subgraph.node[i].answer
        if answer >= 0:
            for w in range(WORDS):
                new = bits.reached[i, w] & ~bits.known[answer, w]
                if demand.counts.is_enforced:
                    new &= bits.demanded[answer, w]
                starts = starts or new != NONE
    return starts


@kernel
def date_bits(subgraph: Subgraph, bits: Bits, node: int, since: int) -> None:
    """The fresh bits of an accepting node are answers from this row on, unless they were before."""
    answer = subgraph.node[node].answer
    for w in range(WORDS):
        word = bits.fresh[node, BY_LO + w] & ~bits.settled[answer, w]
        bits.settled[answer, w] |= word
        while word != NONE:
            bits.since[answer, 64 * w + lowest_bit(word)] = since
            word &= word - ONE


@kernel
def push_dated(subgraph: Subgraph, bits: Bits, node: int, since: int) -> None:
    """Propagate the fresh bits of a node, by `lo`, over all edges that are valid at row `since` of the segment."""
    head = tail = int64(0)
    enqueue(subgraph, node, tail)
    tail = next_in_ring(subgraph, tail)
    while subgraph.counts.queued > 0:
        source = subgraph.queue[head]
        head = next_in_ring(subgraph, head)
        subgraph.counts.queued -= 1
        subgraph.node[source].is_queued = 0
        if subgraph.node[source].answer >= 0:
            date_bits(subgraph, bits, source, since)
        for at in range(subgraph.node[source].begin_out, subgraph.node[source].end_out):
            if subgraph.out[at].since > since:
                continue
            target = subgraph.out[at].target
            if pass_fresh(bits, source, target, BY_LO, ALL_WORDS) and enqueue(subgraph, target, tail):
                tail = next_in_ring(subgraph, tail)
        for w in range(BY_LO, ALL_WORDS):
            bits.fresh[source, w] = NONE


@kernel
def date_answers(segment: Segment, subgraph: Subgraph, bits: Bits, automaton: Moves) -> None:
    """Find the row of the segment that starts each answer that is new, adding the segment's edges by time."""
    for i in range(subgraph.counts.nodes):
        if subgraph.node[i].answer >= 0:
            for w in range(WORDS):
                bits.settled[i, w] = bits.known[i, w]
    for i in range(segment.counts.changed):
        row = segment.changed[i]
        since = segment.edge[row].since
        if since < 0:
            continue
        relation = segment.edge[row].relation
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            source = subgraph.number[source_key(segment, automaton, row, move)]
            target = subgraph.number[target_key(segment, automaton, row, move)]
            if pass_reached(bits, source, target, BY_LO, ALL_WORDS):
                push_dated(subgraph, bits, target, since)


@kernel
def finish_block(
    subgraph: Subgraph,
    bits: Bits,
    staged: Staged,
    demand: Demand,
    cursor: Cursor,
    begin: int,
    states: int,
    has_dates: bool,
) -> bool:
    """Turn bits that are staged from `begin` on into pairs, each with the row whose time it carries; False: no room.

    An answer that is new carries the row that starts it, one that the segment adds to the demand carries the
    segment's first row, and the others carry its last. See `staging.stage_answer` for `split`.
    """
    last, enforced = cursor.last, demand.counts.is_enforced != 0
    first_root = cursor.block * BLOCK_ROOTS
    for at in range(begin, cursor.staged):
        answer = staged.answer[at]
        node, bit = answer.node, answer.bit
        w, shift = bit >> 6, np.uint64(bit & 63)
        answer.src = subgraph.node[subgraph.root[first_root + bit]].key // states
        answer.trg = subgraph.node[node].key // states
        since = last
        if has_dates and bits.known[node, w] >> shift & ONE == NONE:
            since = int(bits.since[node, bit])
        elif enforced and bits.added[node, w] >> shift & ONE != NONE:
            since = 0
        answer.since = since
        answer.step = NO_PATH
        if since < last and 0 < cursor.split < answer.exp:
            if cursor.staged == staged.answer.size:
                return False
            rest = staged.answer[cursor.staged]
            cursor.staged += 1
            rest.src = answer.src
            rest.trg = answer.trg
            rest.exp = answer.exp
            rest.since = last
            rest.step = NO_PATH
            answer.exp = cursor.split
    return True


@kernel
def search_block(
    segment: Segment,
    subgraph: Subgraph,
    bits: Bits,
    staged: Staged,
    automaton: Moves,
    demand: Demand,
    cursor: Cursor,
) -> int:
    """Stage what the step changes for one block of roots. On FULL_TABLE nothing of the block is staged."""
    begin, undemanded = cursor.staged, demand.counts.undemanded
    begin_block(subgraph, bits, cursor, automaton.info.empty_state >= 0)
    if demand.counts.is_enforced:
        set_demanded(segment, subgraph, bits, demand, automaton, cursor)
    has_room = search_levels(subgraph, bits, staged, demand, cursor)
    has_dates = False
    if has_room and cursor.kind != GROW:
        has_room = stage_stops(subgraph, bits, staged, cursor)
    elif has_room and cursor.staged > begin:
        has_dates = has_starts(subgraph, bits, demand)
        if has_dates:
            date_answers(segment, subgraph, bits, automaton)
    if has_room and finish_block(
        subgraph, bits, staged, demand, cursor, begin, automaton.info.states, has_dates
    ):
        return DONE
    cursor.staged, demand.counts.undemanded = begin, undemanded
    return FULL_TABLE
