"""The `changes` mode: one record when an answer starts to hold, one when it stops.

An answer that stops to hold at the very instant at which it is extended has not stopped: stops are emitted only
once time has passed them. Starts wait for the end of their instant, or of the batch.

Every answer that holds waits in one list of stops: that of the expiry it had when it was put there. A heap has these
lists by expiry. An answer that is extended stays in its list, and moves to another one when the time of the list
comes; one whose expiry becomes less gets a new entry, and what is left of the old one is dropped with its list.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.answers import ENTRIES, AnswerTable
from meander.kernels.batch import Batch
from meander.kernels.hashing import mix
from meander.kernels.heap import pop_heap, push_heap
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

# By entry: not holding, holding and emitted, starting in the current instant, replaced by a newer entry of its key.
# Those that are open or retired are in a list of stops, the others are not.
CLOSED, OPEN, STARTING, RETIRED = 0, 1, 2, 3

# Positions in `Changes.counts`.
STOPS, STARTS = 0, 1
# In the cursor, after the next row and the number of output rows.
INSTANT = 2

NO_LIST = -1


class Changes(NamedTuple):
    status: Array  # by entry
    starts: Array  # the entries that start in the current instant
    next_stop: Array  # by entry: the next one of its list of stops, or -1
    stop_exp: Array  # a heap of (expiry, first entry of a list), least first
    stop_entry: Array
    recent_exp: Array  # the expiries of lists that were used lately, or NO_LIST; its length is a power of two
    recent_entry: Array  # their first entries
    counts: Array


@inner_kernel
def recent_slot(changes: Changes, exp: int) -> int:
    return mix(exp & 0x7FFFFFFF, exp >> 31, 0) & (changes.recent_exp.size - 1)


@inner_kernel
def add_stop(changes: Changes, exp: int, entry: int) -> None:
    """Put an entry into the list of an expiry; a list that was not used lately gets a second one of its expiry."""
    recent = unsigned(recent_slot(changes, exp))
    if changes.recent_exp[recent] == exp:
        first = unsigned(changes.recent_entry[recent])
        changes.next_stop[unsigned(entry)] = changes.next_stop[first]
        changes.next_stop[first] = entry
        return
    changes.recent_exp[recent] = exp
    changes.recent_entry[recent] = entry
    changes.next_stop[unsigned(entry)] = -1
    counts = changes.counts
    counts[STOPS] = push_heap(changes.stop_exp, changes.stop_entry, counts[STOPS], exp, entry)


@inner_kernel
def emit_change(answers: AnswerTable, entry: int, time: int, exp: int, op: int, out: Batch, row: int) -> None:
    for column in range(answers.key.shape[1]):
        out.key[unsigned(row), unsigned(column)] = answers.key[unsigned(entry), unsigned(column)]
    out.ts[unsigned(row)] = time
    out.exp[unsigned(row)] = exp
    out.op[unsigned(row)] = op


@kernel
def emit_starts(answers: AnswerTable, changes: Changes, time: int, out: Batch, cursor: Array) -> int:
    """The answers that started at `time` and still hold."""
    emitted, count = cursor[EMITTED], changes.counts[STARTS]
    while count > 0 and emitted < out.ts.size:
        count -= 1
        entry = changes.starts[unsigned(count)]
        exp = answers.exp[unsigned(entry)]
        if exp > time:
            changes.status[unsigned(entry)] = OPEN
            add_stop(changes, exp, entry)
            emit_change(answers, entry, time, exp, 1, out, emitted)
            emitted += 1
        else:
            changes.status[unsigned(entry)] = CLOSED
    cursor[EMITTED], changes.counts[STARTS] = emitted, count
    return DONE if count == 0 else FULL_OUTPUT


@inner_kernel
def pass_stop(answers: AnswerTable, changes: Changes, exp: int, entry: int, out: Batch, emitted: int) -> int:
    """An entry leaves the list of `exp`: it stops, or has been extended; the number of output rows then."""
    if changes.status[unsigned(entry)] != OPEN:
        changes.status[unsigned(entry)] = CLOSED
        return emitted
    if answers.exp[unsigned(entry)] > exp:
        add_stop(changes, answers.exp[unsigned(entry)], entry)
        return emitted
    changes.status[unsigned(entry)] = CLOSED
    emit_change(answers, entry, exp, exp, -1, out, emitted)
    return emitted + 1


@kernel
def emit_stops(answers: AnswerTable, changes: Changes, before: int, out: Batch, cursor: Array) -> int:
    """The answers that stopped to hold before the instant `before`."""
    counts, emitted = changes.counts, cursor[EMITTED]
    while counts[STOPS] > 0 and changes.stop_exp[0] < before:
        exp, first = changes.stop_exp[0], changes.stop_entry[0]
        recent = unsigned(recent_slot(changes, exp))
        if changes.recent_exp[recent] == exp:
            changes.recent_exp[recent] = NO_LIST
        entry = changes.next_stop[unsigned(first)]
        while entry >= 0 and emitted < out.ts.size:
            following = changes.next_stop[unsigned(entry)]
            emitted = pass_stop(answers, changes, exp, entry, out, emitted)
            entry = following
        changes.next_stop[unsigned(first)] = entry
        cursor[EMITTED] = emitted
        if emitted == out.ts.size:
            return FULL_OUTPUT
        counts[STOPS] = pop_heap(changes.stop_exp, changes.stop_entry, counts[STOPS])
        emitted = pass_stop(answers, changes, exp, first, out, emitted)
    cursor[EMITTED] = emitted
    return DONE


@inner_kernel
def find_row_slot(answers: AnswerTable, keys: Array, row: int) -> int:
    """`find_answer` for the key of a row, without a view of the row."""
    mask = answers.slots.size - 1
    slot = 0
    for column in range(keys.shape[1]):
        slot = mix(keys[unsigned(row), unsigned(column)], column, slot & 0x7FFFFFFF)
    slot &= mask
    while True:
        entry = answers.slots[unsigned(slot)]
        if entry < 0:
            return slot
        equal = True
        for column in range(keys.shape[1]):
            if answers.key[unsigned(entry), unsigned(column)] != keys[unsigned(row), unsigned(column)]:
                equal = False
                break
        if equal:
            return slot
        slot = (slot + 1) & mask


@inner_kernel
def add_entry(answers: AnswerTable, slot: int, keys: Array, row: int) -> int:
    """A new entry for the key of a row, in its slot. Needs room for one."""
    entry = answers.counts[ENTRIES]
    answers.counts[ENTRIES] = entry + 1
    answers.slots[unsigned(slot)] = entry
    for column in range(keys.shape[1]):
        answers.key[unsigned(entry), unsigned(column)] = keys[unsigned(row), unsigned(column)]
    return entry


@inner_kernel
def track_row(batch: Batch, i: int, answers: AnswerTable, changes: Changes) -> int:
    """Process one answer."""
    time, exp, op = batch.ts[unsigned(i)], batch.exp[unsigned(i)], batch.op[unsigned(i)]
    slot = find_row_slot(answers, batch.key, i)
    entry = answers.slots[unsigned(slot)]
    if op > 0:
        if entry < 0:
            if answers.counts[ENTRIES] == answers.exp.size:
                return FULL_TABLE
            entry = add_entry(answers, slot, batch.key, i)
            answers.exp[unsigned(entry)] = exp
            changes.status[unsigned(entry)] = CLOSED
        elif exp > answers.exp[unsigned(entry)]:
            answers.exp[unsigned(entry)] = exp
        if changes.status[unsigned(entry)] == CLOSED:
            changes.status[unsigned(entry)] = STARTING
            changes.starts[unsigned(changes.counts[STARTS])] = entry
            changes.counts[STARTS] += 1
        return DONE
    exp = max(exp, time)
    if entry < 0 or exp >= answers.exp[unsigned(entry)]:
        return DONE
    if changes.status[unsigned(entry)] == OPEN:
        if answers.counts[ENTRIES] == answers.exp.size:
            return FULL_TABLE
        changes.status[unsigned(entry)] = RETIRED
        entry = add_entry(answers, slot, batch.key, i)
        changes.status[unsigned(entry)] = OPEN
        add_stop(changes, exp, entry)
    answers.exp[unsigned(entry)] = exp
    return DONE


@kernel
def track_changes(
    batch: Batch, upto: int, answers: AnswerTable, changes: Changes, out: Batch, cursor: Array
) -> int:
    """Process answers in order of time, then advance time to `upto`.

    `cursor` is [next row, output rows, current instant].
    """
    i = cursor[NEXT_ROW]
    while i < batch.ts.size:
        time = batch.ts[unsigned(i)]
        if time > cursor[INSTANT]:
            cursor[NEXT_ROW] = i
            status = emit_starts(answers, changes, cursor[INSTANT], out, cursor)
            if status != DONE:
                return status
            status = emit_stops(answers, changes, time, out, cursor)
            if status != DONE:
                return status
            cursor[INSTANT] = time
        status = track_row(batch, i, answers, changes)
        if status != DONE:
            cursor[NEXT_ROW] = i
            return status
        i += 1
    cursor[NEXT_ROW] = i
    status = emit_starts(answers, changes, cursor[INSTANT], out, cursor)
    if status != DONE:
        return status
    return emit_stops(answers, changes, upto, out, cursor)


@kernel
def rebuild_changes(answers: AnswerTable, changes: Changes) -> None:
    """Rebuild the lists of stops and the list of starts from the status of the entries."""
    changes.counts[STOPS] = 0
    changes.counts[STARTS] = 0
    changes.recent_exp[:] = NO_LIST
    for entry in range(answers.counts[ENTRIES]):
        if changes.status[entry] == OPEN:
            add_stop(changes, answers.exp[entry], entry)
        elif changes.status[entry] == STARTING:
            changes.starts[changes.counts[STARTS]] = entry
            changes.counts[STARTS] += 1
        else:
            changes.status[entry] = CLOSED


@kernel
def restart_changes(answers: AnswerTable, changes: Changes, time: int, out: Batch) -> int:
    """Emit the answers that hold at `time` as if none had been emitted before; how many.

    Those that wait for their stop are closed. Needs room in `out` for as many as there are entries.
    """
    count = 0
    for entry in range(answers.counts[ENTRIES]):
        if changes.status[entry] == OPEN and answers.exp[entry] > time:
            emit_change(answers, entry, time, answers.exp[entry], 1, out, count)
            count += 1
        else:
            changes.status[entry] = CLOSED
    rebuild_changes(answers, changes)
    return count


@kernel
def mark_open(answers: AnswerTable, changes: Changes, live: Array) -> None:
    """Mark the vertices of the answers whose stop is still to be emitted."""
    for entry in range(answers.counts[ENTRIES]):
        if changes.status[entry] == OPEN or changes.status[entry] == STARTING:
            for position in range(answers.key.shape[1]):
                live[answers.key[entry, position]] = True
