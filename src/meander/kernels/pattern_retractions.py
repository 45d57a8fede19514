"""PATTERN for batches with retractions, which come from deletions upstream.

The answers that a retracted tuple may have carried are found with the graph as it was before that instant, and
evaluated again, with their own columns bound, as it is after. This stands apart from `pattern` because a
stream without deletions never needs it compiled.
"""

from __future__ import annotations

from meander.kernels.answers import emit_answer, find_answer
from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.graph import Graph, expiry_before, find_row, find_wide_row
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import (
    Extension,
    PatternState,
    bind_tuple,
    complete_row,
    next_match,
    start_match,
)
from meander.kernels.status import DONE, EMITTED, FOREVER, FULL_OUTPUT, FULL_SCRATCH, NEXT_ROW

# In the cursor, after the first row of the instant and the number of output rows: the row of the instant that is
# next, or -1 before its retractions are processed.
ROW_OF_INSTANT = 2


@kernel
def expiry_of_tuple(graph: Graph, extension: Extension | None, batch: Batch, i: int) -> int:
    """The expiry of a batch's tuple before its instant."""
    if extension is None:
        row = find_row(graph, batch.source[i], batch.key[i, SRC], batch.key[i, TRG])
    else:
        row = find_wide_row(graph, extension.values, batch.source[i], batch.key[i])
    return expiry_before(graph, row, batch.ts[i])


@kernel
def find_affected(state: PatternState, batch: Batch, begin: int, end: int) -> int:
    """List the entries that the retracted rows `begin` to `end`, all of one instant, carried; how many, or -1 if the
    list is full."""
    graph, program, extension = state.graph, state.program, state.extension
    answers, matching = state.answers, state.matching
    key = matching.key
    time = batch.ts[begin]
    count = 0
    for i in range(begin, end):
        if batch.op[i] > 0:
            continue
        until = expiry_of_tuple(graph, extension, batch, i)
        for atom in range(program.relation.size):
            if program.relation[atom] != batch.source[i]:
                continue
            if not bind_tuple(program, extension, atom, batch, i, matching.values):
                continue
            start_match(graph, program, extension, atom, time, True, until, matching)
            while True:
                exp = next_match(graph, program, extension, atom, time, True, time, matching)
                if exp < 0:
                    break
                for column in range(key.size):
                    key[column] = matching.values[program.output[column]]
                entry = answers.slots[find_answer(answers, key)]
                # An entry is the largest expiry of all its matches: a smaller match did not carry it.
                if entry >= 0 and answers.exp[entry] == exp:
                    if count == state.affected.size:
                        return -1
                    state.affected[count] = entry
                    count += 1
    return count


@kernel
def shorten_answers(
    state: PatternState, batch: Batch, begin: int, end: int, out: Batch, cursor: Array
) -> int:
    """Emit the answers that the retracted rows of one instant shorten. Idempotent, so that it can be resumed."""
    graph, program, extension = state.graph, state.program, state.extension
    answers, matching = state.answers, state.matching
    key = matching.key
    time = batch.ts[begin]
    atoms = program.relation.size
    affected = find_affected(state, batch, begin, end)
    if affected < 0:
        return FULL_SCRATCH
    for i in range(affected):
        entry = state.affected[i]
        if answers.exp[entry] <= time:
            continue
        if cursor[EMITTED] == out.ts.size:
            return FULL_OUTPUT
        for column in range(key.size):
            key[column] = answers.key[entry, column]
            matching.values[program.output[column]] = key[column]
        best = time
        start_match(graph, program, extension, atoms, time, False, FOREVER, matching)
        while True:
            exp = next_match(graph, program, extension, atoms, time, False, best, matching)
            if exp < 0:
                break
            best = exp
            if best >= answers.exp[entry]:
                break
        if best < answers.exp[entry]:
            answers.exp[entry] = best
            emit_answer(out, cursor[EMITTED], key, time, best, -1)
            cursor[EMITTED] += 1
    return DONE


@kernel
def match_changes(state: PatternState, batch: Batch, out: Batch, cursor: Array) -> int:
    """Process a batch instant by instant, retractions first; emit each answer whose expiry grows or shrinks.

    It can be called again after it stopped for room: the answers emitted so far are in the table, and not repeated.
    """
    total = batch.ts.size
    while cursor[NEXT_ROW] < total:
        begin = cursor[NEXT_ROW]
        time = batch.ts[begin]
        end = begin
        retracts = False
        while end < total and batch.ts[end] == time:
            retracts = retracts or batch.op[end] < 0
            end += 1
        if cursor[ROW_OF_INSTANT] < 0:
            if retracts:
                status = shorten_answers(state, batch, begin, end, out, cursor)
                if status != DONE:
                    return status
            cursor[ROW_OF_INSTANT] = begin
        for i in range(cursor[ROW_OF_INSTANT], end):
            cursor[ROW_OF_INSTANT] = i
            if batch.op[i] > 0:
                status = complete_row(state, batch, i, out, cursor)
                if status != DONE:
                    return status
        cursor[NEXT_ROW] = end
        cursor[ROW_OF_INSTANT] = -1
    return DONE
