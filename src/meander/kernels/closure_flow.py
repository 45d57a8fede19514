"""The flow of bits: one bit a root, 512 roots at a time, over the subgraph of a segment.

`flow_levels` lets edges in by expiry, latest first, by `hi` and by `lo` at once, and stages what differs.
`time_answers` then inserts the segment's edges in order of time, pushing only newly set bits on: that gives
each answer that is new the row that brought it. Both work on one block of roots and start from nothing, so a
block that has run out of room is simply walked again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.closure import (
    ANSWER,
    BEGIN_OUT,
    CHANGED,
    CHANGES,
    EDGE_HI,
    EDGE_LO,
    EDGES,
    END_OUT,
    FLAGS,
    FROM,
    HI,
    INTO,
    INVERSE,
    KEPT_TO,
    KEY,
    LISTED,
    LOWER,
    LOWERED,
    MOVE_TO,
    MOVED,
    PLACES,
    QUEUE,
    QUEUED,
    RELATION,
    ROOT,
    ROOTED,
    ROOTS,
    SINCE,
    SOURCE,
    SRC,
    STAGED,
    TARGET,
    TO,
    TO_HI,
    TO_LO,
    TO_SINCE,
    TOUCHED,
    TRG,
    UNASKED,
    WORDS,
    Demand,
    Moves,
    Places,
    Segment,
)
from meander.kernels.jit import Array, kernel, lowest_bit
from meander.kernels.status import DONE, FULL_OUTPUT

BOTH = 2 * WORDS
# In `Bits.have`, after the words by `hi` and by `lo`, for answer places: bits whose level is settled, and bits of
# answers before the segment (in a cut: of those that lose their level).
CLAIMED, KNOWN = 2 * WORDS, 3 * WORDS
HAVE_COLUMNS = 4 * WORDS
# In `Bits.asked`, for answer places: the pairs that are asked for, and those that are so from this segment on.
WANTED, NEWLY = 0, WORDS
NONE = np.uint64(0)
ONE = np.uint64(1)

# Columns of what is staged: the answers of a segment, in no order, with the row of the segment whose time they carry.
STAGED_SRC, STAGED_TRG, STAGED_EXP, STAGED_ROW = 0, 1, 2, 3
STAGED_COLUMNS = 4


class Bits(NamedTuple):
    """By place: words by `hi`, then by `lo`."""

    have: Array
    fresh: Array
    timed: Array  # by answer place and bit: the row of the segment that brought the answer
    asked: Array  # by answer place; empty where there is no demand


@kernel
def begin_block(places: Places, bits: Bits, counts: Array, block: int, nullable: bool) -> None:
    """Clear the bits, and set those of the block's roots at their starts.

    Where the empty path counts, a root's answer to itself is settled apart: its bit is claimed beforehand.
    """
    total = counts[PLACES]
    for place in range(total):
        places.place[place, QUEUED] = 0
        places.place[place, TOUCHED] = 0
        for w in range(BOTH):
            bits.have[place, w] = NONE
            bits.fresh[place, w] = NONE
        for w in range(WORDS):
            bits.have[place, CLAIMED + w] = NONE
            bits.have[place, KNOWN + w] = NONE
    first = block * ROOTS
    size = min(ROOTS, counts[ROOTED] - first)
    for i in range(size):
        place = places.place[first + i, ROOT]
        bit = ONE << np.uint64(i & 63)
        bits.have[place, i >> 6] |= bit
        bits.have[place, WORDS + (i >> 6)] |= bit
        if nullable:
            # The start state accepts, and is the first that does.
            bits.have[place, CLAIMED + (i >> 6)] |= bit
            bits.have[place, KNOWN + (i >> 6)] |= bit


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
def ask_bits(
    segment: Segment, places: Places, bits: Bits, demand: Demand, automaton: Moves, block: int, time: int
) -> None:
    """Set the bits of the pairs that are asked for, root by root of the block."""
    counts = segment.counts
    states = automaton.settings[0]
    for place in range(counts[PLACES]):
        for w in range(BOTH):
            bits.asked[place, w] = NONE
    first = block * ROOTS
    for i in range(min(ROOTS, counts[ROOTED] - first)):
        vertex = places.place[places.place[first + i, ROOT], KEY] // states
        bit = ONE << np.uint64(i & 63)
        for at in range(demand.begin[vertex], demand.begin[vertex + 1]):
            row = demand.row[at]
            if segment.exp[row, HI] > time:
                answer = places.number[segment.row[row, TRG] * states + automaton.settings[2]]
                if answer >= 0:
                    bits.asked[answer, WANTED + (i >> 6)] |= bit
                    if segment.row[row, SINCE] >= 0:
                        bits.asked[answer, NEWLY + (i >> 6)] |= bit


@kernel
def queue_place(places: Places, bits: Bits, place: int, tail: int, listed: int) -> int:
    """Note that a place has fresh bits; returns how many are listed as touched."""
    if places.place[place, QUEUED] == 0:
        places.place[place, QUEUED] = 1
        places.place[tail, QUEUE] = place
    answer = places.place[place, ANSWER]
    if places.place[place, TOUCHED] == 0 and answer >= 0 and places.place[answer, FLAGS] & MOVED:
        places.place[place, TOUCHED] = 1
        places.place[listed, LISTED] = place
        return listed + 1
    return listed


@kernel
def stage_bits(staged: Array, counts: Array, answer: int, w: int, word: np.uint64, exp: int) -> bool:
    """Stage an answer for each bit of a word, by place and bit; False where there is no room."""
    while word != NONE:
        at = counts[STAGED]
        if at == staged.shape[0]:
            return False
        staged[at, STAGED_SRC] = 64 * w + lowest_bit(word)
        staged[at, STAGED_TRG] = answer
        staged[at, STAGED_EXP] = exp
        counts[STAGED] = at + 1
        word &= word - ONE
    return True


@kernel
def stage_level(
    places: Places,
    bits: Bits,
    staged: Array,
    counts: Array,
    listed: int,
    level: int,
    cut: bool,
    asked: bool,
) -> bool:
    """At the end of a level: stage the answers that it settles otherwise than the other graph does."""
    for i in range(listed):
        place = places.place[i, LISTED]
        answer = places.place[place, ANSWER]
        for w in range(WORDS):
            word = bits.have[place, WORDS + w]
            if cut:
                word &= ~bits.have[answer, CLAIMED + w]
                late = word & bits.have[answer, KNOWN + w]
                if late != NONE and not stage_bits(staged, counts, answer, w, late, level):
                    return False
            elif asked:
                # What is newly asked for is handed out, changed or not.
                word &= ~bits.asked[answer, NEWLY + w]
            bits.have[answer, CLAIMED + w] |= word
    for i in range(listed):
        place = places.place[i, LISTED]
        places.place[place, TOUCHED] = 0
        answer = places.place[place, ANSWER]
        for w in range(WORDS):
            word = bits.have[place, w] & ~bits.have[answer, CLAIMED + w]
            if word != NONE:
                if cut:
                    bits.have[answer, KNOWN + w] |= word
                else:
                    bits.have[answer, CLAIMED + w] |= word
                    if asked:
                        counts[UNASKED] += count_bits(word & ~bits.asked[answer, WANTED + w])
                        word &= bits.asked[answer, WANTED + w]
                    if not stage_bits(staged, counts, answer, w, word, level):
                        return False
    return True


@kernel
def flow_levels(places: Places, bits: Bits, staged: Array, counts: Array, cut: bool, asked: bool) -> bool:
    """Let the edges in by expiry, latest first, and stage the answers that `hi` and `lo` settle differently.

    An answer that `hi` settles later than `lo` is staged with the expiry by `hi`; in a cut with that by `lo`.
    """
    edges, lowered = counts[EDGES], counts[LOWERED]
    i = j = 0
    while i < edges or j < lowered:
        level = 0
        if i < edges:
            level = places.edge[places.edge[i, INTO], EDGE_HI]
        if j < lowered:
            level = max(level, places.edge[places.edge[j, LOWER], EDGE_LO])
        tail = listed = 0
        while i < edges or j < lowered:
            if i < edges and places.edge[places.edge[i, INTO], EDGE_HI] == level:
                edge = places.edge[i, INTO]
                i += 1
                begin, end = 0, (BOTH if places.edge[edge, EDGE_LO] == level else WORDS)
            elif j < lowered and places.edge[places.edge[j, LOWER], EDGE_LO] == level:
                edge = places.edge[j, LOWER]
                j += 1
                begin, end = WORDS, BOTH
            else:
                break
            source, target = places.edge[edge, SOURCE], places.edge[edge, TARGET]
            fresh = NONE
            for w in range(begin, end):
                word = bits.have[source, w] & ~bits.have[target, w]
                bits.have[target, w] |= word
                bits.fresh[target, w] |= word
                fresh |= word
            if fresh != NONE:
                waiting = places.place[target, QUEUED] != 0
                listed = queue_place(places, bits, target, tail, listed)
                tail += 0 if waiting else 1
        listed = push_fresh(places, bits, level, tail, listed)
        if listed > 0 and not stage_level(places, bits, staged, counts, listed, level, cut, asked):
            return False
    return True


@kernel
def push_fresh(places: Places, bits: Bits, level: int, size: int, listed: int) -> int:
    """Push fresh bits over all edges of the level and later; the queue is a ring over all places."""
    ring = places.place.shape[0]
    head, tail = 0, (0 if size == ring else size)
    while size > 0:
        place = places.place[head, QUEUE]
        head += 1
        if head == ring:
            head = 0
        size -= 1
        places.place[place, QUEUED] = 0
        for at in range(places.place[place, BEGIN_OUT], places.place[place, END_OUT]):
            if places.out[at, TO_HI] < level:
                break
            target = places.out[at, TO]
            end = BOTH if places.out[at, TO_LO] >= level else WORDS
            fresh = NONE
            for w in range(end):
                fresh |= bits.fresh[place, w] & ~bits.have[target, w]
            if fresh != NONE:
                for w in range(end):
                    word = bits.fresh[place, w] & ~bits.have[target, w]
                    bits.have[target, w] |= word
                    bits.fresh[target, w] |= word
                waiting = places.place[target, QUEUED] != 0
                listed = queue_place(places, bits, target, tail, listed)
                if not waiting:
                    size += 1
                    tail += 1
                    if tail == ring:
                        tail = 0
        for w in range(BOTH):
            bits.fresh[place, w] = NONE
    return listed


@kernel
def time_bits(bits: Bits, places: Places, place: int, row: int) -> None:
    """The fresh bits of an accepting place are answers from this row on, where they were none before."""
    answer = places.place[place, ANSWER]
    for w in range(WORDS):
        word = bits.fresh[place, WORDS + w] & ~bits.have[answer, CLAIMED + w]
        bits.have[answer, CLAIMED + w] |= word
        while word != NONE:
            bits.timed[answer, 64 * w + lowest_bit(word)] = row
            word &= word - ONE


@kernel
def time_answers(segment: Segment, places: Places, bits: Bits, automaton: Moves, asked: bool) -> bool:
    """Find the row that brought each answer of the block that is new (and asked for); False if none is."""
    counts = segment.counts
    states = automaton.settings[0]
    news = False
    for place in range(counts[PLACES]):
        answer = places.place[place, ANSWER]
        if answer >= 0:
            for w in range(WORDS):
                bits.have[answer, KNOWN + w] |= bits.have[place, WORDS + w]
    for place in range(counts[PLACES]):
        answer = places.place[place, ANSWER]
        if answer >= 0:
            for w in range(WORDS):
                new = bits.have[place, w] & ~bits.have[answer, KNOWN + w]
                if asked:
                    new &= bits.asked[answer, WANTED + w]
                news = news or new != NONE
                bits.have[place, CLAIMED + w] = bits.have[place, KNOWN + w]
    if not news:
        return False
    ring = places.place.shape[0]
    for i in range(counts[CHANGED]):
        row = segment.lists[CHANGES, i]
        since = segment.row[row, SINCE]
        if since < 0:
            continue
        relation = segment.row[row, RELATION]
        for move in range(automaton.begin[relation], automaton.begin[relation + 1]):
            inverse = automaton.moves[move, INVERSE]
            tail_vertex = segment.row[row, TRG] if inverse else segment.row[row, SRC]
            head_vertex = segment.row[row, SRC] if inverse else segment.row[row, TRG]
            source = places.number[tail_vertex * states + automaton.moves[move, FROM]]
            target = places.number[head_vertex * states + automaton.moves[move, MOVE_TO]]
            fresh = NONE
            for w in range(WORDS, BOTH):
                word = bits.have[source, w] & ~bits.have[target, w]
                bits.have[target, w] |= word
                bits.fresh[target, w] |= word
                fresh |= word
            if fresh == NONE:
                continue
            head, tail, size = 0, 1, 1
            places.place[0, QUEUE] = target
            places.place[target, QUEUED] = 1
            while size > 0:
                place = places.place[head, QUEUE]
                head += 1
                if head == ring:
                    head = 0
                size -= 1
                places.place[place, QUEUED] = 0
                if places.place[place, ANSWER] >= 0:
                    time_bits(bits, places, place, since)
                for at in range(places.place[place, BEGIN_OUT], places.place[place, END_OUT]):
                    if places.out[at, TO_SINCE] > since:
                        continue
                    other = places.out[at, TO]
                    fresh = NONE
                    for w in range(WORDS, BOTH):
                        fresh |= bits.fresh[place, w] & ~bits.have[other, w]
                    if fresh != NONE:
                        for w in range(WORDS, BOTH):
                            word = bits.fresh[place, w] & ~bits.have[other, w]
                            bits.have[other, w] |= word
                            bits.fresh[other, w] |= word
                        if places.place[other, QUEUED] == 0:
                            places.place[other, QUEUED] = 1
                            places.place[tail, QUEUE] = other
                            size += 1
                            tail += 1
                            if tail == ring:
                                tail = 0
                for w in range(WORDS, BOTH):
                    bits.fresh[place, w] = NONE
    return True


@kernel
def finish_block(
    segment: Segment,
    places: Places,
    bits: Bits,
    staged: Array,
    begin: int,
    first_root: int,
    states: int,
    news: bool,
    asked: bool,
    last: int,
    split: int,
) -> int:
    """Turn what the block has staged from `begin` on into pairs, each with the row whose time it carries.

    An answer that is new carries the row that brought it; one that is newly asked for the segment's first; the
    others its last. With `split` > 0 an answer that does not carry the last is first true until `split` alone, and
    lengthened at the last row: so its path is the same all along.
    """
    counts = segment.counts
    for at in range(begin, counts[STAGED]):
        bit, answer = staged[at, STAGED_SRC], staged[at, STAGED_TRG]
        staged[at, STAGED_SRC] = places.place[places.place[first_root + bit, ROOT], KEY] // states
        staged[at, STAGED_TRG] = places.place[answer, KEY] // states
        staged[at, STAGED_ROW] = last
        row = last
        if news and bits.have[answer, KNOWN + (bit >> 6)] >> np.uint64(bit & 63) & ONE == NONE:
            row = int(bits.timed[answer, bit])
        elif asked and bits.asked[answer, NEWLY + (bit >> 6)] >> np.uint64(bit & 63) & ONE != NONE:
            row = 0
        if row < last:
            if 0 < split < staged[at, STAGED_EXP]:
                extra = counts[STAGED]
                if extra == staged.shape[0]:
                    return FULL_OUTPUT
                counts[STAGED] = extra + 1
                staged[extra, STAGED_SRC] = staged[at, STAGED_SRC]
                staged[extra, STAGED_TRG] = staged[at, STAGED_TRG]
                staged[extra, STAGED_EXP] = staged[at, STAGED_EXP]
                staged[extra, STAGED_ROW] = last
                staged[at, STAGED_EXP] = split
            staged[at, STAGED_ROW] = row
    return DONE


@kernel
def stage_dead(places: Places, bits: Bits, staged: Array, counts: Array, time: int) -> bool:
    """After a cut: the answers that no path leads to any more."""
    for place in range(counts[PLACES]):
        if places.place[place, ANSWER] == place:
            for w in range(WORDS):
                word = bits.have[place, KNOWN + w] & ~bits.have[place, CLAIMED + w]
                if word != NONE and not stage_bits(staged, counts, place, w, word, time):
                    return False
    return True


@kernel
def walk_block(
    segment: Segment,
    places: Places,
    bits: Bits,
    staged: Array,
    automaton: Moves,
    demand: Demand,
    block: int,
    last: int,
    split: int,
    cut: bool,
    time: int,
) -> int:
    """Stage what the segment changes for one block of roots. On FULL_OUTPUT nothing of the block is staged."""
    counts = segment.counts
    states = automaton.settings[0]
    nullable = automaton.settings[1] >= 0
    begin, unasked = counts[STAGED], counts[UNASKED]
    asked = demand.settings[KEPT_TO] != 0
    begin_block(places, bits, counts, block, nullable)
    if asked:
        ask_bits(segment, places, bits, demand, automaton, block, time)
    room = flow_levels(places, bits, staged, counts, cut, asked)
    news = False
    if cut:
        room = room and stage_dead(places, bits, staged, counts, time)
    elif room and counts[STAGED] > begin:
        news = time_answers(segment, places, bits, automaton, asked)
    if room:
        status = finish_block(
            segment, places, bits, staged, begin, block * ROOTS, states, news, asked, last, split
        )
        if status == DONE:
            return DONE
    counts[STAGED], counts[UNASKED] = begin, unasked
    return FULL_OUTPUT
