"""The answer table of PATTERN, UNION and the `changes` mode: one entry per key, with its largest expiry."""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import Batch
from meander.kernels.hashing import find_key
from meander.kernels.jit import Array, inner_kernel, kernel

ENTRIES = 0  # in `AnswerTable.counts`


class AnswerTable(NamedTuple):
    key: Array  # by entry and column
    exp: Array  # by entry
    slots: Array  # the hash index
    counts: Array


@inner_kernel
def find_answer(answers: AnswerTable, key: Array) -> int:
    """The slot of a key, or the free slot where it belongs."""
    return find_key(answers.slots, answers.key, key)


@inner_kernel
def add_answer(answers: AnswerTable, slot: int, key: Array) -> int:
    """A new entry, not valid yet, in the slot from `find_answer`; -1 if the table is full."""
    entry = answers.counts[ENTRIES]
    if entry == answers.exp.size:
        return -1
    answers.counts[ENTRIES] = entry + 1
    answers.slots[slot] = entry
    for column in range(key.size):
        answers.key[entry, column] = key[column]
    answers.exp[entry] = 0
    return entry


@kernel
def emit_answer(out: Batch, row: int, key: Array, time: int, exp: int, op: int) -> None:
    for column in range(key.size):
        out.key[row, column] = key[column]
    out.ts[row] = time
    out.exp[row] = exp
    out.op[row] = op


@kernel
def mark_answers(answers: AnswerTable, horizon: int, live: Array) -> None:
    """Mark the vertices of the answers that are valid after `horizon`."""
    for entry in range(answers.counts[ENTRIES]):
        if answers.exp[entry] > horizon:
            for column in range(answers.key.shape[1]):
                live[answers.key[entry, column]] = True
