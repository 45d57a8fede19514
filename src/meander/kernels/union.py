"""UNION: for each tuple, its expiry in each input; it holds as long as the longest of them."""

from __future__ import annotations

from meander.kernels.answers import ENTRIES, AnswerTable, add_answer, emit_answer, find_answer
from meander.kernels.batch import Batch
from meander.kernels.jit import Array, kernel
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_TABLE, NEXT_ROW


@kernel
def apply_row(batch: Batch, i: int, answers: AnswerTable, expiries: Array) -> None:
    """Set the expiry that row `i` gives its tuple in its input. Needs room for one entry."""
    slot = find_answer(answers, batch.key[i])
    entry = answers.slots[slot]
    if entry < 0:
        if batch.op[i] < 0:
            return
        entry = add_answer(answers, slot, batch.key[i])
        expiries[entry, :] = 0
    source = batch.source[i]
    before = expiries[entry, source]
    expiries[entry, source] = (
        max(before, batch.exp[i]) if batch.op[i] > 0 else min(before, max(batch.exp[i], batch.ts[i]))
    )


@kernel
def unite_rows(batch: Batch, answers: AnswerTable, expiries: Array, out: Batch, cursor: Array) -> int:
    """Process the inputs' tuples, merged by time, and emit those whose largest expiry an instant changes, once each.

    `expiries` has each input's expiry by entry. `cursor` is [next row, output rows]. An instant is processed whole or
    not at all: both checks for room come before it.
    """
    while cursor[NEXT_ROW] < batch.ts.size:
        begin = cursor[NEXT_ROW]
        time = batch.ts[begin]
        end = begin
        while end < batch.ts.size and batch.ts[end] == time:
            end += 1
        if answers.counts[ENTRIES] + end - begin > answers.exp.size:
            return FULL_TABLE
        if cursor[EMITTED] + end - begin > out.ts.size:
            return FULL_OUTPUT
        for i in range(begin, end):
            apply_row(batch, i, answers, expiries)
        for i in range(begin, end):
            entry = answers.slots[find_answer(answers, batch.key[i])]
            if entry < 0:
                continue
            before = max(answers.exp[entry], time)
            after = time
            for j in range(expiries.shape[1]):
                after = max(after, expiries[entry, j])
            if after != before:
                answers.exp[entry] = after
                emit_answer(out, cursor[EMITTED], batch.key[i], time, after, 1 if after > before else -1)
                cursor[EMITTED] += 1
        cursor[NEXT_ROW] = end
    return DONE
