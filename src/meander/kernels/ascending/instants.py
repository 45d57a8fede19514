"""Edges in order of time, instant by instant: each takes the row of its source to its target.

All edges of an instant are taken together. Under `strictly ascending` each of them extends the paths as they were
before the instant; under `ascending` also those that end with another edge of the instant, which is a widest path
problem on the edges of the instant alone. Where no edge of the instant continues from the target, a candidate is
applied at once: so it is for nearly all edges. The other candidates are queued until the whole instant is seen, and
applied in order of largest expiry (Dijkstra's search over the (max, min) semiring): each root settles once at each
bucket, and under `ascending` every candidate that is applied queues those of the edges that continue from it.

An instant may come in parts. Under `ascending` the edges of its earlier parts come again with the next one, for its
new edges to be continued by. Under `strictly ascending` the rows that it has changed are logged, and put back while
candidates are sought for the next part.

Rows only grow, and only what grows is emitted. So an instant in which room runs out starts over, until its
candidates are queued; then it resumes with the next of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.ascending.rows import BEGIN, FREE, WIDTH, Rows, expiry_of, find_slot, set_expiry
from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.forest import EMPTY, STATES, Automaton
from meander.kernels.heap import pop_heap, push_heap
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, NEXT_ROW

# Positions in the cursor, after the next row (the first of its instant) and the number of output rows.
PHASE, CURSOR = 2, 3
SEED, DRAIN = 0, 1

# Positions in `Instant.counts`: queued candidates; logged changes, and their instant or -1; whether changes of the
# instant are logged; whether all candidates are queued; whether the instant is one edge that cannot be continued.
QUEUED, CHANGED, CHANGED_AT, LOGS, HOLDS, ALONE = 0, 1, 2, 3, 4, 5
INSTANT_COUNTS = 6

# Positions in `Steps.settings`: whether paths are strictly ascending; the number of leading steps that come again,
# all of the first instant; whether edges are read both ways.
STRICT, AGAIN, TWO_WAY = 0, 1, 2
SETTINGS = 3

# A bucket and a root in one number.
ROOT_BITS, ROOT_MASK = 32, 0xFFFFFFFF


class Steps(NamedTuple):
    """Edges in order of time, all insertions."""

    src: Array
    trg: Array
    ts: Array
    exp: Array
    source: Array
    roots: Array  # bool by vertex: whether paths from it are wanted; empty: from all
    settings: Array


class Instant(NamedTuple):
    """The edges of one instant by their ends, the queue of candidates, and the log of changed rows."""

    first_out: Array  # by vertex: an edge of the instant or -1
    first_in: Array
    next_out: Array  # by step
    next_in: Array
    key: Array  # a heap of (-expiry, bucket and root), largest expiry first
    node: Array
    changed_bucket: Array  # the log of an instant that is not over: what was before
    changed_root: Array
    changed_exp: Array
    counts: Array


class State(NamedTuple):
    """What outlives a batch."""

    rows: Rows
    empty: Array  # by vertex: until when it has the empty path; no elements if the empty word is not accepted


@inner_kernel
def is_wanted(steps: Steps, vertex: int) -> bool:
    return steps.roots.size == 0 or steps.roots[vertex]


@kernel
def answer_expiry(state: State, automaton: Automaton, root: int, vertex: int, skip: int) -> int:
    """The largest expiry of (root, vertex) over the accepting states but `skip`, and by the empty path."""
    best = 0
    states = automaton.settings[STATES]
    for i in range(automaton.finals.size):
        final = automaton.finals[i]
        if final == automaton.settings[EMPTY]:
            if root == vertex:
                best = max(best, state.empty[vertex])
        elif final != skip:
            best = max(best, expiry_of(state.rows, vertex * states + final, root))
    return best


@kernel
def emit(out: Batch, cursor: Array, src: int, trg: int, time: int, exp: int, op: int) -> None:
    at = cursor[EMITTED]
    out.key[at, SRC] = src
    out.key[at, TRG] = trg
    out.ts[at] = time
    out.exp[at] = exp
    out.op[at] = op
    cursor[EMITTED] = at + 1


@kernel
def log_change(instant: Instant, bucket: int, root: int, exp: int) -> None:
    """Remember an expiry that is about to change. Needs room for one."""
    at = instant.counts[CHANGED]
    instant.changed_bucket[at] = bucket
    instant.changed_root[at] = root
    instant.changed_exp[at] = exp
    instant.counts[CHANGED] = at + 1


@kernel
def swap_changes(rows: Rows, instant: Instant, backwards: bool) -> None:
    """Exchange logged expiries and those of the rows: backwards to what was before the instant, forwards again to
    what is."""
    count = instant.counts[CHANGED]
    for i in range(count):
        at = count - 1 - i if backwards else i
        bucket, root = instant.changed_bucket[at], instant.changed_root[at]
        slot = find_slot(rows, bucket, root)
        if rows.root[slot] == root:
            exp = rows.exp[slot]
            rows.exp[slot] = instant.changed_exp[at]
            instant.changed_exp[at] = exp


@kernel
def apply_candidate(
    automaton: Automaton,
    state: State,
    out: Batch,
    cursor: Array,
    candidate: tuple[int, int, int, int],
    time: int,
) -> int:
    """A root reaches (vertex, state) for longer than before: change its row, and emit the answer if there is one."""
    root, vertex, at, exp = candidate
    accepting = automaton.accepting[at] != 0
    if accepting and cursor[EMITTED] == out.ts.size:
        return FULL_OUTPUT
    if not set_expiry(state.rows, vertex * automaton.settings[STATES] + at, root, exp, time):
        return FULL_TABLE
    if accepting and (automaton.finals.size == 1 or answer_expiry(state, automaton, root, vertex, at) < exp):
        emit(out, cursor, root, vertex, time, exp, 1)
    return DONE


@kernel
def link_steps(steps: Steps, instant: Instant, begin: int, end: int) -> None:
    """List the edges of an instant by their ends, and no others."""
    for i in range(begin, end):
        instant.next_out[i] = instant.first_out[steps.src[i]]
        instant.first_out[steps.src[i]] = i
        instant.next_in[i] = instant.first_in[steps.trg[i]]
        instant.first_in[steps.trg[i]] = i


@kernel
def unlink_steps(steps: Steps, instant: Instant, begin: int, end: int) -> None:
    for i in range(begin, end):
        instant.first_out[steps.src[i]] = -1
        instant.first_in[steps.trg[i]] = -1


@kernel
def count_continuing(automaton: Automaton, instant: Instant, steps: Steps, vertex: int, at: int) -> int:
    """The number of moves over edges of the instant that continue from (vertex, state)."""
    count = 0
    for move in range(automaton.out_begin[at], automaton.out_begin[at + 1]):
        inverse = automaton.out_inverse[move]
        step = instant.first_in[vertex] if inverse else instant.first_out[vertex]
        while step >= 0:
            count += steps.source[step] == automaton.out_relation[move]
            step = instant.next_in[step] if inverse else instant.next_out[step]
    return count


@kernel
def is_continued(automaton: Automaton, instant: Instant, steps: Steps, vertex: int, at: int) -> bool:
    """Whether some edge of the instant continues from (vertex, state)."""
    for move in range(automaton.out_begin[at], automaton.out_begin[at + 1]):
        inverse = automaton.out_inverse[move]
        step = instant.first_in[vertex] if inverse else instant.first_out[vertex]
        while step >= 0:
            if steps.source[step] == automaton.out_relation[move]:
                return True
            step = instant.next_in[step] if inverse else instant.next_out[step]
    return False


@inner_kernel
def queue_candidate(instant: Instant, bucket: int, root: int, exp: int) -> None:
    """Needs room for one."""
    node: Any = np.int64(bucket) << ROOT_BITS | np.int64(root)
    instant.counts[QUEUED] = push_heap(instant.key, instant.node, instant.counts[QUEUED], -exp, node)


@inner_kernel
def follow_step(
    steps: Steps,
    automaton: Automaton,
    state: State,
    instant: Instant,
    out: Batch,
    cursor: Array,
    step: int,
    move: int,
) -> int:
    """Take the row of an edge's tail to its head, by one move; candidates that are continued are queued."""
    rows, time, exp = state.rows, steps.ts[step], steps.exp[step]
    inverse = automaton.relation_inverse[move]
    tail = steps.trg[step] if inverse else steps.src[step]
    head = steps.src[step] if inverse else steps.trg[step]
    at, to = automaton.relation_from[move], automaton.relation_to[move]
    states = automaton.settings[STATES]
    bucket = tail * states + at
    target = head * states + to
    first = -1 if at == 0 and is_wanted(steps, tail) else 0
    begin, width = rows.header[bucket, BEGIN], rows.header[bucket, WIDTH]
    size = 1 << width if width > 0 else 0
    if first == size:
        return DONE
    at_once = instant.counts[ALONE] != 0 or (
        instant.counts[HOLDS] == 0 and not is_continued(automaton, instant, steps, head, to)
    )
    logs = instant.counts[LOGS] != 0
    for offset in range(first, size):
        root, lasts = tail, exp
        if offset >= 0:
            root = rows.root[begin + offset]
            if root == FREE:
                continue
            lasts = min(rows.exp[begin + offset], exp)
        if lasts <= time:
            continue
        before = expiry_of(rows, target, root)
        if before >= lasts:
            continue
        if not at_once:
            if instant.counts[QUEUED] == instant.key.size:
                return FULL_SCRATCH
            queue_candidate(instant, target, root, lasts)
            continue
        if logs and instant.counts[CHANGED] == instant.changed_exp.size:
            return FULL_SCRATCH
        status = apply_candidate(automaton, state, out, cursor, (root, head, to, lasts), time)
        if status != DONE:
            return status
        if logs:
            log_change(instant, target, root, before)
    return DONE


@kernel
def seed_instant(
    steps: Steps, automaton: Automaton, state: State, instant: Instant, out: Batch, cursor: Array, end: int
) -> int:
    """Take every new edge of the instant before step `end` from its tail to its head."""
    begin = cursor[NEXT_ROW]
    if begin == 0:
        begin = steps.settings[AGAIN]
    for step in range(begin, end):
        relation = steps.source[step]
        for move in range(automaton.relation_begin[relation], automaton.relation_begin[relation + 1]):
            status = follow_step(steps, automaton, state, instant, out, cursor, step, move)
            if status != DONE:
                return status
    return DONE


@kernel
def extend_empty_paths(
    steps: Steps, automaton: Automaton, state: State, out: Batch, cursor: Array, end: int
) -> int:
    """Join both ends of every edge of the instant to themselves."""
    for step in range(cursor[NEXT_ROW], end):
        time, exp = steps.ts[step], steps.exp[step]
        for vertex in (steps.src[step], steps.trg[step]):
            if state.empty[vertex] >= exp or not is_wanted(steps, vertex):
                continue
            if cursor[EMITTED] == out.ts.size:
                return FULL_OUTPUT
            if answer_expiry(state, automaton, vertex, vertex, -1) < exp:
                emit(out, cursor, vertex, vertex, time, exp, 1)
            state.empty[vertex] = exp
    return DONE


@kernel
def drain_queue(
    steps: Steps, automaton: Automaton, state: State, instant: Instant, out: Batch, cursor: Array
) -> int:
    """Apply the queued candidates, longest expiry first; under `ascending` edges of the instant continue them."""
    rows, counts = state.rows, instant.counts
    states = automaton.settings[STATES]
    time = steps.ts[cursor[NEXT_ROW]]
    strict = steps.settings[STRICT] != 0
    logs = counts[LOGS] != 0
    while counts[QUEUED] > 0:
        exp, node = -instant.key[0], instant.node[0]
        bucket, root = node >> ROOT_BITS, node & ROOT_MASK
        before = expiry_of(rows, bucket, root)
        if before >= exp:
            counts[QUEUED] = pop_heap(instant.key, instant.node, counts[QUEUED])
            continue
        vertex, at = bucket // states, bucket % states
        more = 0 if strict else count_continuing(automaton, instant, steps, vertex, at)
        if counts[QUEUED] + more > instant.key.size:
            return FULL_SCRATCH
        if logs and counts[CHANGED] == instant.changed_exp.size:
            return FULL_SCRATCH
        status = apply_candidate(automaton, state, out, cursor, (root, vertex, at, exp), time)
        if status != DONE:
            return status
        if logs:
            log_change(instant, bucket, root, before)
        counts[QUEUED] = pop_heap(instant.key, instant.node, counts[QUEUED])
        if more == 0:
            continue
        for move in range(automaton.out_begin[at], automaton.out_begin[at + 1]):
            inverse = automaton.out_inverse[move]
            step = instant.first_in[vertex] if inverse else instant.first_out[vertex]
            while step >= 0:
                if steps.source[step] == automaton.out_relation[move]:
                    head = steps.src[step] if inverse else steps.trg[step]
                    target = head * states + automaton.out_to[move]
                    lasts = min(exp, steps.exp[step])
                    if expiry_of(rows, target, root) < lasts:
                        queue_candidate(instant, target, root, lasts)
                step = instant.next_in[step] if inverse else instant.next_out[step]
    return DONE


@kernel
def begin_instant(steps: Steps, instant: Instant, begin: int, end: int) -> None:
    """Set how the instant from step `begin` to `end` is taken."""
    counts, time = instant.counts, steps.ts[begin]
    strict = steps.settings[STRICT] != 0
    if counts[CHANGED_AT] != time:
        counts[CHANGED_AT] = time
        counts[CHANGED] = 0
    counts[QUEUED] = 0
    counts[LOGS] = strict and end == steps.ts.size
    counts[HOLDS] = counts[CHANGED] > 0
    one = end - begin == 1 and steps.src[begin] != steps.trg[begin]
    counts[ALONE] = one and steps.settings[TWO_WAY] == 0 and counts[HOLDS] == 0


@kernel
def walk_steps(
    steps: Steps, automaton: Automaton, state: State, instant: Instant, out: Batch, cursor: Array
) -> int:
    """Take all steps, instant by instant, and emit the answers that they extend.

    Returns DONE, or what is full; called again with that room, it resumes from `cursor`.
    """
    total = steps.ts.size
    counts = instant.counts
    while cursor[NEXT_ROW] < total:
        begin = cursor[NEXT_ROW]
        end = begin + 1
        while end < total and steps.ts[end] == steps.ts[begin]:
            end += 1
        if cursor[PHASE] == SEED:
            if automaton.settings[EMPTY] >= 0:
                status = extend_empty_paths(steps, automaton, state, out, cursor, end)
                if status != DONE:
                    return status
            begin_instant(steps, instant, begin, end)
            if counts[ALONE] == 0:
                link_steps(steps, instant, begin, end)
            if counts[HOLDS] != 0:
                swap_changes(state.rows, instant, True)
            status = seed_instant(steps, automaton, state, instant, out, cursor, end)
            if counts[HOLDS] != 0:
                swap_changes(state.rows, instant, False)
            if status != DONE:
                unlink_steps(steps, instant, begin, end)
                return status
            cursor[PHASE] = DRAIN
        if counts[QUEUED] > 0:
            status = drain_queue(steps, automaton, state, instant, out, cursor)
            if status != DONE:
                return status
        if counts[ALONE] == 0:
            unlink_steps(steps, instant, begin, end)
        cursor[PHASE] = SEED
        cursor[NEXT_ROW] = end
    return DONE
