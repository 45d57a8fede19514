"""UNION: for each tuple, its expiry in each input; it holds as long as the longest of them."""

from __future__ import annotations

from meander.kernels.graph import DONE, FULL_OUTPUT, FULL_TABLE
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import Answers, KeyedRows, add_answer, emit_answer, find_answer


@kernel
def take_row(rows: KeyedRows, i: int, source: int, answers: Answers, expiries: Array) -> None:
    """Set the expiry that row `i` gives its tuple in its input. Needs room for one entry."""
    at = find_answer(answers, rows.key[i])
    entry = answers.slots[at]
    if entry < 0:
        if rows.op[i] < 0:
            return
        entry = add_answer(answers, at, rows.key[i])
        expiries[entry, :] = 0
    held = expiries[entry, source]
    expiries[entry, source] = (
        max(held, rows.exp[i]) if rows.op[i] > 0 else min(held, max(rows.exp[i], rows.ts[i]))
    )


@kernel
def unite_rows(
    rows: KeyedRows, source: Array, answers: Answers, expiries: Array, out: KeyedRows, cursor: Array
) -> int:
    """Walk the inputs' tuples, merged by time, and emit those whose largest expiry an instant changes, once each.

    `source` is the input of each row, `expiries` hold each input's expiry by entry. `cursor` is [next row, output
    rows]. An instant is taken whole or not at all: both checks for room come before it.
    """
    while cursor[0] < rows.ts.size:
        begin = cursor[0]
        time = rows.ts[begin]
        end = begin
        while end < rows.ts.size and rows.ts[end] == time:
            end += 1
        if answers.counts[0] + end - begin > answers.exp.size:
            return FULL_TABLE
        if cursor[1] + end - begin > out.ts.size:
            return FULL_OUTPUT
        for i in range(begin, end):
            take_row(rows, i, source[i], answers, expiries)
        for i in range(begin, end):
            entry = answers.slots[find_answer(answers, rows.key[i])]
            if entry < 0:
                continue
            before = max(answers.exp[entry], time)
            after = time
            for j in range(expiries.shape[1]):
                after = max(after, expiries[entry, j])
            if after != before:
                answers.exp[entry] = after
                emit_answer(out, cursor[1], rows.key[i], time, after, 1 if after > before else -1)
                cursor[1] += 1
        cursor[0] = end
    return DONE


@kernel
def pack_union(answers: Answers, expiries: Array, horizon: int) -> None:
    """Drop the entries that are expired at `horizon`, and rebuild the index. Only between two instants."""
    kept = 0
    for entry in range(answers.counts[0]):
        if answers.exp[entry] > horizon:
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
