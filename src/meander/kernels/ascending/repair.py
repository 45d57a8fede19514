"""Retractions: the roots that may have used a lost arrival are derived again.

Whoever used the arrival stands in the row of its tail and in that of its head. What those roots reach, and the
arrivals that they can have used, follow from one search by earliest arrival over the log (as in Wu et al., "Path
Problems in Temporal Graphs", VLDB 2014), made before the arrival is shortened. These arrivals are then taken again,
in order of time and for these roots alone, into rows of their own (`instants.walk_steps`), and what differs is
emitted.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.ascending.arrivals import Arrivals
from meander.kernels.ascending.instants import (
    CHANGED,
    CHANGED_AT,
    Instant,
    State,
    answer_expiry,
    emit,
    log_change,
)
from meander.kernels.ascending.rows import BEGIN, FREE, WIDTH, Rows, expiry_of, find_slot
from meander.kernels.batch import Batch
from meander.kernels.forest import EMPTY, STATES, Automaton
from meander.kernels.heap import pop_heap, push_heap
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import DONE, EMITTED, FOREVER, FULL_OUTPUT, FULL_SCRATCH, NEXT_ROW

# Positions in `Repair.counts`: roots to derive again, buckets that they reach, queued buckets, lost arrivals.
ROOTS, BUCKETS, QUEUED, LOST = 0, 1, 2, 3
REPAIR_COUNTS = 4


class Repair(NamedTuple):
    marked: Array  # bool by vertex: whether it is one of the roots
    root: Array
    earliest: Array  # by bucket: when a root arrives there first; FOREVER: never
    bucket: Array  # those that are reached
    used: Array  # bool by row of the log: whether a root can have used it
    lost: Array  # the rows of the log that are shortened
    lost_exp: Array
    key: Array  # a heap of (time, bucket)
    node: Array
    counts: Array


class Retractions(NamedTuple):
    """Retractions of one instant, each arrival once."""

    src: Array
    trg: Array
    source: Array
    time: Array  # of the arrival
    exp: Array  # not before the instant


@kernel
def mark_root(repair: Repair, root: int) -> None:
    if not repair.marked[root]:
        repair.marked[root] = True
        repair.root[repair.counts[ROOTS]] = root
        repair.counts[ROOTS] += 1


@kernel
def mark_roots(rows: Rows, bucket: int, target: int, repair: Repair, now: int) -> None:
    """Mark the roots that are both in the row of an edge's tail and in that of its head."""
    begin, width = rows.header[bucket, BEGIN], rows.header[bucket, WIDTH]
    if width == 0:
        return
    for slot in range(begin, begin + (1 << width)):
        root = rows.root[slot]
        if root != FREE and rows.exp[slot] > now and expiry_of(rows, target, root) > now:
            mark_root(repair, root)


@kernel
def find_lost(
    log: Arrivals, retractions: Retractions, automaton: Automaton, rows: Rows, repair: Repair, now: int
) -> None:
    """Find the arrivals that are shortened, and mark the roots that may have used them."""
    states = automaton.settings[STATES]
    for i in range(retractions.src.size):
        src, trg, source = retractions.src[i], retractions.trg[i], retractions.source[i]
        found = False
        row = log.first_out[src]
        while row >= 0 and log.time[row] >= retractions.time[i]:
            if (
                log.trg[row] == trg
                and log.source[row] == source
                and log.time[row] == retractions.time[i]
                and log.exp[row] > retractions.exp[i]
            ):
                repair.lost[repair.counts[LOST]] = row
                repair.lost_exp[repair.counts[LOST]] = retractions.exp[i]
                repair.counts[LOST] += 1
                found = True
            row = log.next_out[row]
        if not found:
            continue
        for move in range(automaton.relation_begin[source], automaton.relation_begin[source + 1]):
            inverse = automaton.relation_inverse[move]
            tail = trg if inverse else src
            target = (src if inverse else trg) * states + automaton.relation_to[move]
            at = automaton.relation_from[move]
            mark_roots(rows, tail * states + at, target, repair, now)
            if at == 0 and expiry_of(rows, target, tail) > now:
                mark_root(repair, tail)


@kernel
def reach_bucket(repair: Repair, bucket: int, time: int) -> bool:
    """The roots arrive at a bucket; False if the queue is full."""
    if time >= repair.earliest[bucket]:
        return True
    if repair.counts[QUEUED] == repair.key.size:
        return False
    if repair.earliest[bucket] == FOREVER:
        repair.bucket[repair.counts[BUCKETS]] = bucket
        repair.counts[BUCKETS] += 1
    repair.earliest[bucket] = time
    repair.counts[QUEUED] = push_heap(repair.key, repair.node, repair.counts[QUEUED], time, bucket)
    return True


@kernel
def find_used(log: Arrivals, automaton: Automaton, repair: Repair, strict: bool, now: int) -> int:
    """Find what the roots reach over arrivals that are valid now, and which arrivals they can have used.

    Returns DONE or FULL_SCRATCH; called again with that room, it resumes.
    """
    states = automaton.settings[STATES]
    for i in range(repair.counts[ROOTS]):
        if not reach_bucket(repair, repair.root[i] * states, -1):
            return FULL_SCRATCH
    while repair.counts[QUEUED] > 0:
        time, bucket = repair.key[0], repair.node[0]
        if time == repair.earliest[bucket]:
            vertex, at = bucket // states, bucket % states
            least = time + 1 if strict else time
            for move in range(automaton.out_begin[at], automaton.out_begin[at + 1]):
                inverse = automaton.out_inverse[move]
                row = log.first_in[vertex] if inverse else log.first_out[vertex]
                while row >= 0 and log.time[row] >= least:
                    if log.source[row] == automaton.out_relation[move] and log.exp[row] > now:
                        head = log.src[row] if inverse else log.trg[row]
                        repair.used[row] = True
                        if not reach_bucket(repair, head * states + automaton.out_to[move], log.time[row]):
                            return FULL_SCRATCH
                    row = log.next_in[row] if inverse else log.next_out[row]
        # What was queued meanwhile is not earlier: the first is the same.
        repair.counts[QUEUED] = pop_heap(repair.key, repair.node, repair.counts[QUEUED])
    return DONE


@kernel
def shorten_lost(log: Arrivals, repair: Repair) -> None:
    for i in range(repair.counts[LOST]):
        row = repair.lost[i]
        log.exp[row] = min(log.exp[row], repair.lost_exp[i])


@kernel
def emit_change(out: Batch, cursor: Array, src: int, trg: int, now: int, change: tuple[int, int]) -> None:
    """Emit an answer whose expiry was and is another one. Needs room for one."""
    before, after = max(now, change[0]), max(now, change[1])
    if before != after:
        emit(out, cursor, src, trg, now, after, 1 if after > before else -1)


@inner_kernel
def candidates_in(rows: Rows, bucket: int, repair: Repair) -> int:
    """How many candidates `candidate_slot` has for the roots that are in a row: its slots or all roots, whichever are
    fewer."""
    width = rows.header[bucket, WIDTH]
    return min(1 << width, repair.counts[ROOTS]) if width > 0 else 0


@inner_kernel
def candidate_slot(rows: Rows, bucket: int, repair: Repair, i: int) -> int:
    """The slot of a marked root in a row, or -1."""
    begin, width = rows.header[bucket, BEGIN], rows.header[bucket, WIDTH]
    if (1 << width) <= repair.counts[ROOTS]:
        root = rows.root[begin + i]
        return begin + i if root != FREE and repair.marked[root] else -1
    slot = find_slot(rows, bucket, repair.root[i])
    return slot if rows.root[slot] != FREE else -1


@kernel
def emit_losses(
    automaton: Automaton, old: State, new: State, repair: Repair, out: Batch, cursor: Array, now: int
) -> int:
    """Emit the answers of the roots that have changed, but for the empty paths; `new` has rows for these roots.

    `cursor[NEXT_ROW]` counts the buckets.
    """
    rows = old.rows
    states = automaton.settings[STATES]
    nullable = automaton.settings[EMPTY] >= 0
    while cursor[NEXT_ROW] < repair.counts[BUCKETS]:
        bucket = repair.bucket[cursor[NEXT_ROW]]
        vertex, at = bucket // states, bucket % states
        if automaton.accepting[at] != 0:
            candidates = candidates_in(rows, bucket, repair)
            if cursor[EMITTED] + candidates > out.ts.size:
                return FULL_OUTPUT
            for i in range(candidates):
                slot = candidate_slot(rows, bucket, repair, i)
                if slot < 0 or rows.exp[slot] <= now:
                    continue
                root = rows.root[slot]
                if nullable and root == vertex:
                    continue
                # An answer by several accepting states is emitted with the first of them.
                first = True
                for j in range(automaton.finals.size):
                    other = automaton.finals[j]
                    if other == at:
                        break
                    if expiry_of(rows, vertex * states + other, root) > now:
                        first = False
                if first:
                    before = answer_expiry(old, automaton, root, vertex, -1)
                    after = answer_expiry(new, automaton, root, vertex, -1)
                    emit_change(out, cursor, root, vertex, now, (before, after))
        cursor[NEXT_ROW] += 1
    return DONE


@kernel
def incident_expiry(log: Arrivals, vertex: int) -> int:
    """The largest expiry of the arrivals at a vertex."""
    best = 0
    row = log.first_out[vertex]
    while row >= 0:
        best = max(best, log.exp[row])
        row = log.next_out[row]
    row = log.first_in[vertex]
    while row >= 0:
        best = max(best, log.exp[row])
        row = log.next_in[row]
    return best


@kernel
def find_loops(
    log: Arrivals, automaton: Automaton, old: State, new: State, repair: Repair, vertices: Array, out: Batch
) -> None:
    """Write into `out`, a row per vertex, the expiries of (vertex, vertex) with its empty path: `ts` before, `exp`
    after; and change the expiry of the empty path."""
    for i in range(vertices.size):
        vertex = vertices[i]
        out.ts[i] = answer_expiry(old, automaton, vertex, vertex, -1)
        old.empty[vertex] = incident_expiry(log, vertex)
        out.exp[i] = old.empty[vertex]
        states = automaton.settings[STATES]
        rows = new.rows if repair.marked[vertex] else old.rows
        for j in range(automaton.finals.size):
            final = automaton.finals[j]
            if final != automaton.settings[EMPTY]:
                out.exp[i] = max(out.exp[i], expiry_of(rows, vertex * states + final, vertex))


@kernel
def take_over(old: Rows, new: Rows, repair: Repair) -> None:
    """Set the rows of the roots to what was derived again: nothing lasts longer than it did."""
    for i in range(repair.counts[BUCKETS]):
        bucket = repair.bucket[i]
        for j in range(candidates_in(old, bucket, repair)):
            slot = candidate_slot(old, bucket, repair, j)
            if slot >= 0:
                old.exp[slot] = expiry_of(new, bucket, old.root[slot])


@kernel
def take_over_changes(old: Instant, new: Instant, repair: Repair) -> int:
    """Replace the log of what the open instant has changed for the roots; FULL_SCRATCH if there is no room."""
    more = new.counts[CHANGED] if new.counts[CHANGED_AT] == old.counts[CHANGED_AT] else 0
    if old.counts[CHANGED] + more > old.changed_exp.size:
        return FULL_SCRATCH
    kept = 0
    for i in range(old.counts[CHANGED]):
        if not repair.marked[old.changed_root[i]]:
            old.changed_bucket[kept] = old.changed_bucket[i]
            old.changed_root[kept] = old.changed_root[i]
            old.changed_exp[kept] = old.changed_exp[i]
            kept += 1
    old.counts[CHANGED] = kept
    for i in range(more):
        log_change(old, new.changed_bucket[i], new.changed_root[i], new.changed_exp[i])
    return DONE


@kernel
def clear_repair(repair: Repair) -> None:
    """Forget the roots and what they reach."""
    for i in range(repair.counts[ROOTS]):
        repair.marked[repair.root[i]] = False
    for i in range(repair.counts[BUCKETS]):
        repair.earliest[repair.bucket[i]] = FOREVER
    repair.counts[:] = 0
