"""The `changes` mode: one record when an answer starts to hold, one when it stops.

An answer that stops to hold at the very instant at which it is extended has not stopped: stops are handed
out only once time has passed them. Starts wait for the end of their instant, or of the batch.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.graph import DONE, FULL_OUTPUT, FULL_TABLE
from meander.kernels.heap import pop_heap, push_heap
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import Answers, KeyedRows, add_answer, emit_answer, find_answer

# By entry: not holding, holding and handed out, starting in the instant at hand.
CLOSED, OPEN, STARTING = 0, 1, 2

# Places in `Changes.counts`.
STOPS, STARTS = 0, 1


class Changes(NamedTuple):
    status: Array  # by entry
    stop_exp: Array  # a heap of (expiry, entry), least first
    stop_entry: Array
    starts: Array  # the entries that start in the instant at hand
    counts: Array


@kernel
def push_stop(changes: Changes, exp: int, entry: int) -> None:
    """Remember when an answer may stop. Needs room for one."""
    counts = changes.counts
    counts[STOPS] = push_heap(changes.stop_exp, changes.stop_entry, counts[STOPS], exp, entry)


@kernel
def hand_out_starts(answers: Answers, changes: Changes, time: int, out: KeyedRows, cursor: Array) -> int:
    """The answers that started at `time` and still hold."""
    while changes.counts[STARTS] > 0:
        if cursor[1] == out.ts.size:
            return FULL_OUTPUT
        changes.counts[STARTS] -= 1
        entry = changes.starts[changes.counts[STARTS]]
        if answers.exp[entry] > time:
            changes.status[entry] = OPEN
            emit_answer(out, cursor[1], answers.key[entry], time, answers.exp[entry], 1)
            cursor[1] += 1
        else:
            changes.status[entry] = CLOSED
    return DONE


@kernel
def hand_out_stops(answers: Answers, changes: Changes, before: int, out: KeyedRows, cursor: Array) -> int:
    """The answers that stopped to hold before the instant `before`."""
    while changes.counts[STOPS] > 0 and changes.stop_exp[0] < before:
        if cursor[1] == out.ts.size:
            return FULL_OUTPUT
        exp, entry = changes.stop_exp[0], changes.stop_entry[0]
        changes.counts[STOPS] = pop_heap(changes.stop_exp, changes.stop_entry, changes.counts[STOPS])
        if changes.status[entry] == OPEN and answers.exp[entry] == exp:
            changes.status[entry] = CLOSED
            emit_answer(out, cursor[1], answers.key[entry], exp, exp, -1)
            cursor[1] += 1
    return DONE


@kernel
def track_changes(
    rows: KeyedRows, upto: int, answers: Answers, changes: Changes, out: KeyedRows, cursor: Array
) -> int:
    """Walk answers in order of time, then let time advance to `upto`.

    `cursor` is [next row, output rows, instant at hand]. Room for as many stops and starts as the answers'
    table has entries, and one more for each row, is the caller's to make.
    """
    while cursor[0] < rows.ts.size:
        i = cursor[0]
        time, exp = rows.ts[i], rows.exp[i]
        if time > cursor[2]:
            status = hand_out_starts(answers, changes, cursor[2], out, cursor)
            if status != DONE:
                return status
            status = hand_out_stops(answers, changes, time, out, cursor)
            if status != DONE:
                return status
            cursor[2] = time
        at = find_answer(answers, rows.key[i])
        entry = answers.slots[at]
        if entry < 0 and rows.op[i] > 0:
            entry = add_answer(answers, at, rows.key[i])
            if entry < 0:
                return FULL_TABLE
            changes.status[entry] = CLOSED
        if entry >= 0:
            before = answers.exp[entry]
            answers.exp[entry] = max(before, exp) if rows.op[i] > 0 else min(before, max(exp, time))
            if answers.exp[entry] != before:
                push_stop(changes, answers.exp[entry], entry)
            if rows.op[i] > 0 and changes.status[entry] == CLOSED:
                changes.status[entry] = STARTING
                changes.starts[changes.counts[STARTS]] = entry
                changes.counts[STARTS] += 1
        cursor[0] = i + 1
    status = hand_out_starts(answers, changes, cursor[2], out, cursor)
    if status != DONE:
        return status
    return hand_out_stops(answers, changes, upto, out, cursor)


@kernel
def restart_changes(answers: Answers, changes: Changes, time: int, out: KeyedRows) -> int:
    """Emit the answers that hold at `time` as if none had been emitted before; how many.

    Those that wait for their stop are closed. Needs room in `out` for as many as there are entries.
    """
    count = 0
    for entry in range(answers.counts[0]):
        if changes.status[entry] == OPEN and answers.exp[entry] > time:
            emit_answer(out, count, answers.key[entry], time, answers.exp[entry], 1)
            count += 1
        else:
            changes.status[entry] = CLOSED
    changes.counts[STARTS] = 0
    return count


@kernel
def pack_changes(answers: Answers, changes: Changes) -> None:
    """Drop the entries that neither hold nor start, and build the index, the heap and the starts anew."""
    kept = 0
    for entry in range(answers.counts[0]):
        if changes.status[entry] != CLOSED:
            for position in range(answers.key.shape[1]):
                answers.key[kept, position] = answers.key[entry, position]
            answers.exp[kept] = answers.exp[entry]
            changes.status[kept] = changes.status[entry]
            kept += 1
    answers.counts[0] = kept
    answers.slots[:] = -1
    changes.counts[STOPS] = 0
    changes.counts[STARTS] = 0
    for entry in range(kept):
        answers.slots[find_answer(answers, answers.key[entry])] = entry
        push_stop(changes, answers.exp[entry], entry)
        if changes.status[entry] == STARTING:
            changes.starts[changes.counts[STARTS]] = entry
            changes.counts[STARTS] += 1


@kernel
def mark_open(answers: Answers, changes: Changes, live: Array) -> None:
    """Mark the vertices of the answers whose stop is still to be handed out."""
    for entry in range(answers.counts[0]):
        if changes.status[entry] != CLOSED:
            for position in range(answers.key.shape[1]):
                live[answers.key[entry, position]] = True
