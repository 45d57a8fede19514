"""The `changes` mode: one record when an answer starts to hold, one when it stops.

An answer that stops to hold at the very instant at which it is extended has not stopped: stops are emitted only
once time has passed them. Starts wait for the end of their instant, or of the batch.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.answers import ENTRIES, AnswerTable, add_answer, emit_answer, find_answer
from meander.kernels.batch import Batch
from meander.kernels.heap import pop_heap, push_heap
from meander.kernels.jit import Array, kernel
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

# By entry: not holding, holding and emitted, starting in the current instant.
CLOSED, OPEN, STARTING = 0, 1, 2

# Positions in `Changes.counts`.
STOPS, STARTS = 0, 1
# In the cursor, after the next row and the number of output rows.
INSTANT = 2


class Changes(NamedTuple):
    status: Array  # by entry
    stop_exp: Array  # a heap of (expiry, entry), least first
    stop_entry: Array
    starts: Array  # the entries that start in the current instant
    counts: Array


@kernel
def push_stop(changes: Changes, exp: int, entry: int) -> None:
    """Remember when an answer may stop. Needs room for one."""
    counts = changes.counts
    counts[STOPS] = push_heap(changes.stop_exp, changes.stop_entry, counts[STOPS], exp, entry)


@kernel
def emit_starts(answers: AnswerTable, changes: Changes, time: int, out: Batch, cursor: Array) -> int:
    """The answers that started at `time` and still hold."""
    while changes.counts[STARTS] > 0:
        if cursor[EMITTED] == out.ts.size:
            return FULL_OUTPUT
        changes.counts[STARTS] -= 1
        entry = changes.starts[changes.counts[STARTS]]
        if answers.exp[entry] > time:
            changes.status[entry] = OPEN
            emit_answer(out, cursor[EMITTED], answers.key[entry], time, answers.exp[entry], 1)
            cursor[EMITTED] += 1
        else:
            changes.status[entry] = CLOSED
    return DONE


@kernel
def emit_stops(answers: AnswerTable, changes: Changes, before: int, out: Batch, cursor: Array) -> int:
    """The answers that stopped to hold before the instant `before`."""
    while changes.counts[STOPS] > 0 and changes.stop_exp[0] < before:
        if cursor[EMITTED] == out.ts.size:
            return FULL_OUTPUT
        exp, entry = changes.stop_exp[0], changes.stop_entry[0]
        changes.counts[STOPS] = pop_heap(changes.stop_exp, changes.stop_entry, changes.counts[STOPS])
        if changes.status[entry] == OPEN and answers.exp[entry] == exp:
            changes.status[entry] = CLOSED
            emit_answer(out, cursor[EMITTED], answers.key[entry], exp, exp, -1)
            cursor[EMITTED] += 1
    return DONE


@kernel
def track_changes(
    batch: Batch, upto: int, answers: AnswerTable, changes: Changes, out: Batch, cursor: Array
) -> int:
    """Process answers in order of time, then advance time to `upto`.

    `cursor` is [next row, output rows, current instant]. The caller provides room for as many stops and starts as
    the table has entries, and one more per row.
    """
    while cursor[NEXT_ROW] < batch.ts.size:
        i = cursor[NEXT_ROW]
        time, exp = batch.ts[i], batch.exp[i]
        if time > cursor[INSTANT]:
            status = emit_starts(answers, changes, cursor[INSTANT], out, cursor)
            if status != DONE:
                return status
            status = emit_stops(answers, changes, time, out, cursor)
            if status != DONE:
                return status
            cursor[INSTANT] = time
        slot = find_answer(answers, batch.key[i])
        entry = answers.slots[slot]
        if entry < 0 and batch.op[i] > 0:
            entry = add_answer(answers, slot, batch.key[i])
            if entry < 0:
                return FULL_TABLE
            changes.status[entry] = CLOSED
        if entry >= 0:
            before = answers.exp[entry]
            answers.exp[entry] = max(before, exp) if batch.op[i] > 0 else min(before, max(exp, time))
            if answers.exp[entry] != before:
                push_stop(changes, answers.exp[entry], entry)
            if batch.op[i] > 0 and changes.status[entry] == CLOSED:
                changes.status[entry] = STARTING
                changes.starts[changes.counts[STARTS]] = entry
                changes.counts[STARTS] += 1
        cursor[NEXT_ROW] = i + 1
    status = emit_starts(answers, changes, cursor[INSTANT], out, cursor)
    if status != DONE:
        return status
    return emit_stops(answers, changes, upto, out, cursor)


@kernel
def restart_changes(answers: AnswerTable, changes: Changes, time: int, out: Batch) -> int:
    """Emit the answers that hold at `time` as if none had been emitted before; how many.

    Those that wait for their stop are closed. Needs room in `out` for as many as there are entries.
    """
    count = 0
    for entry in range(answers.counts[ENTRIES]):
        if changes.status[entry] == OPEN and answers.exp[entry] > time:
            emit_answer(out, count, answers.key[entry], time, answers.exp[entry], 1)
            count += 1
        else:
            changes.status[entry] = CLOSED
    changes.counts[STARTS] = 0
    return count


@kernel
def rebuild_changes(answers: AnswerTable, changes: Changes) -> None:
    """Rebuild the heap of stops and the list of starts from the status of the entries."""
    changes.counts[STOPS] = 0
    changes.counts[STARTS] = 0
    for entry in range(answers.counts[ENTRIES]):
        push_stop(changes, answers.exp[entry], entry)
        if changes.status[entry] == STARTING:
            changes.starts[changes.counts[STARTS]] = entry
            changes.counts[STARTS] += 1


@kernel
def mark_open(answers: AnswerTable, changes: Changes, live: Array) -> None:
    """Mark the vertices of the answers whose stop is still to be emitted."""
    for entry in range(answers.counts[ENTRIES]):
        if changes.status[entry] != CLOSED:
            for position in range(answers.key.shape[1]):
                live[answers.key[entry, position]] = True
