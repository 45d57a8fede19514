"""Answers of a step: collected in any order, then emitted by time."""

from __future__ import annotations

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.closure.tables import GROW, Cursor, Input, Request, Staged
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned
from meander.kernels.status import FOREVER
from meander.kernels.steps import NO_PATH


@inner_kernel
def put_answer(staged: Staged, at: int, src: int, trg: int, exp: int, since: int, step: int) -> None:
    """Stage an answer; `step` is the last of its path."""
    answer = staged.answer[unsigned(at)]
    answer.src = src
    answer.trg = trg
    answer.exp = exp
    answer.since = since
    answer.step = step


@inner_kernel
def stage_answer(
    staged: Staged, at: int, src: int, trg: int, exp: int, since: int, step: int, cursor: Cursor
) -> int:
    """Stage an answer at `at`; returns the position for the next one. Needs room for two.

    If paths are requested (`split` > 0), an answer that starts before the segment's last row first lasts until
    `split` only and is lengthened at the last row: then each part has one path that lasts throughout.
    """
    if since < cursor.last and 0 < cursor.split < exp:
        put_answer(staged, at, src, trg, cursor.split, since, step)
        at, since = at + 1, cursor.last
    put_answer(staged, at, src, trg, exp, since, step)
    return at + 1


@kernel
def emit_answers(
    changes: Input, staged: Staged, request: Request, out: Batch, last: Array, cursor: Cursor
) -> None:
    """Write the staged answers to the output, sorted by time (a counting sort), and the last step of each path to
    `last`, unless that is empty. Needs room for all."""
    size, base = cursor.staged, cursor.emitted
    cursor.emitted = base + size
    if cursor.kind != GROW:
        for i in range(size):
            answer = staged.answer[i]
            out.key[base + i, SRC] = answer.src
            out.key[base + i, TRG] = answer.trg
            out.ts[base + i] = cursor.time
            out.exp[base + i] = answer.exp
            out.op[base + i] = -1
            if last.size:
                last[base + i] = NO_PATH
        return
    times, offset = changes.batch.ts[cursor.next_row :], staged.offset
    total = cursor.last + 1
    for row in range(total + 1):
        offset[row] = 0
    for i in range(size):
        offset[unsigned(staged.answer[unsigned(i)].since + 1)] += 1
    offset[0] = base
    for row in range(total):
        offset[row + 1] += offset[row]
    has_expiries = request.options.expiries != 0
    for i in range(size):
        answer = staged.answer[unsigned(i)]
        since = unsigned(answer.since)
        at = unsigned(offset[since])
        offset[since] += 1
        out.key[at, SRC] = answer.src
        out.key[at, TRG] = answer.trg
        out.ts[at] = times[since]
        out.exp[at] = answer.exp if has_expiries else FOREVER
        out.op[at] = 1
        if last.size:
            last[at] = answer.step
