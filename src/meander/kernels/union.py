"""UNION: for each tuple, its expiry in each input; it holds as long as the longest of them."""

from __future__ import annotations

from meander.kernels.graph import DONE, FULL_OUTPUT, FULL_TABLE
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import Answers, KeyedRows, add_answer, emit_answer, find_answer


@kernel
def take_row(rows: KeyedRows, i: int, source: int, answers: Answers, expiries: Array) -> bool:
    """Set what row `i` says of its tuple in its input; False: there is no room for a new tuple."""
    at = find_answer(answers, rows.key[i])
    entry = answers.slots[at]
    if entry < 0:
        if rows.op[i] < 0:
            return True
        entry = add_answer(answers, at, rows.key[i])
        if entry < 0:
            return False
        expiries[entry, :] = 0
    held = expiries[entry, source]
    expiries[entry, source] = (
        max(held, rows.exp[i]) if rows.op[i] > 0 else min(held, max(rows.exp[i], rows.ts[i]))
    )
    return True


@kernel
def unite_rows(
    rows: KeyedRows, source: Array, answers: Answers, expiries: Array, out: KeyedRows, cursor: Array
) -> int:
    """Walk the inputs' tuples, merged by time, and hand out those whose largest expiry an instant changes, once each.

    `source` tells which input a row is from, `expiries` hold each input's expiry by entry.
    `cursor` is [first row of the instant, output rows]; an instant that is begun again comes out the same.
    """
    while cursor[0] < rows.ts.size:
        begin = cursor[0]
        time = rows.ts[begin]
        end = begin
        while end < rows.ts.size and rows.ts[end] == time:
            if not take_row(rows, end, source[end], answers, expiries):
                return FULL_TABLE
            end += 1
        for i in range(begin, end):
            entry = answers.slots[find_answer(answers, rows.key[i])]
            if entry < 0:
                continue
            before = max(answers.exp[entry], time)
            after = time
            for j in range(expiries.shape[1]):
                after = max(after, expiries[entry, j])
            if after != before:
                if cursor[1] == out.ts.size:
                    return FULL_OUTPUT
                answers.exp[entry] = after
                emit_answer(out, cursor[1], rows.key[i], time, after, 1 if after > before else -1)
                cursor[1] += 1
        cursor[0] = end
    return DONE


@kernel
def pack_union(answers: Answers, expiries: Array, horizon: int) -> None:
    """Drop the entries that are expired at `horizon`, both in what was emitted and in every input, and rebuild the
    index. An entry that the current instant has added is not emitted yet, but some input holds it."""
    kept = 0
    for entry in range(answers.counts[0]):
        latest = answers.exp[entry]
        for j in range(expiries.shape[1]):
            latest = max(latest, expiries[entry, j])
        if latest > horizon:
            for position in range(answers.key.shape[1]):
                answers.key[kept, position] = answers.key[entry, position]
            for j in range(expiries.shape[1]):
                expiries[kept, j] = expiries[entry, j]
            answers.exp[kept] = answers.exp[entry]
            kept += 1
    answers.counts[0] = kept
    answers.slots[:] = -1
    for entry in range(kept):
        answers.slots[find_answer(answers, answers.key[entry])] = entry
