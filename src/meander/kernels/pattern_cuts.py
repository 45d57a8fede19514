"""PATTERN where tuples are cut, by a deletion upstream.

The answers that a cut tuple may have carried are found with the graph as it was before that instant, and
evaluated again, with their own vertices bound, as it is after. This stands apart from `pattern` because a
stream without deletions never needs it compiled.
"""

from __future__ import annotations

from meander.kernels.graph import DONE, FULL_OUTPUT, FULL_SCRATCH, Graph, expiry_before, find_row
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import (
    FOREVER,
    Answers,
    KeyedRows,
    Matching,
    MergedRows,
    Program,
    bind_tuple,
    complete_row,
    emit_answer,
    find_answer,
    next_match,
    start_match,
)


@kernel
def cut_answers(
    graph: Graph,
    program: Program,
    rows: MergedRows,
    begin: int,
    end: int,
    answers: Answers,
    affected: Array,
    out: KeyedRows,
    matching: Matching,
    key: Array,
    cursor: Array,
) -> int:
    """Lower the answers that the cut rows of one instant carried. Doing it twice is doing it once."""
    time = rows.ts[begin]
    atoms = program.relation.size
    found = 0
    for i in range(begin, end):
        if rows.op[i] > 0:
            continue
        row = find_row(graph, rows.relation[i], rows.src[i], rows.trg[i])
        held = expiry_before(graph, row, time)
        for atom in range(atoms):
            if program.relation[atom] != rows.relation[i]:
                continue
            if not bind_tuple(program, atom, rows.src[i], rows.trg[i], matching.values):
                continue
            start_match(graph, program, atom, time, True, held, matching)
            while True:
                exp = next_match(graph, program, atom, time, True, time, matching)
                if exp < 0:
                    break
                for position in range(key.size):
                    key[position] = matching.values[program.output[position]]
                entry = answers.slots[find_answer(answers, key)]
                # An entry is the largest expiry of all its matches: a smaller match did not carry it.
                if entry >= 0 and answers.exp[entry] == exp:
                    if found == affected.size:
                        return FULL_SCRATCH
                    affected[found] = entry
                    found += 1
    for i in range(found):
        entry = affected[i]
        if answers.exp[entry] <= time:
            continue
        if cursor[1] == out.ts.size:
            return FULL_OUTPUT
        for position in range(key.size):
            key[position] = answers.key[entry, position]
            matching.values[program.output[position]] = key[position]
        best = time
        start_match(graph, program, atoms, time, False, FOREVER, matching)
        while True:
            exp = next_match(graph, program, atoms, time, False, best, matching)
            if exp < 0:
                break
            best = exp
            if best >= answers.exp[entry]:
                break
        if best < answers.exp[entry]:
            answers.exp[entry] = best
            emit_answer(out, cursor[1], key, time, best, -1)
            cursor[1] += 1
    return DONE


@kernel
def match_rows(
    graph: Graph,
    program: Program,
    rows: MergedRows,
    answers: Answers,
    affected: Array,
    out: KeyedRows,
    matching: Matching,
    key: Array,
    cursor: Array,
) -> int:
    """Walk the changes of the inputs in order of time; hand out each answer whose expiry grows or shrinks.

    `cursor` is [first row of the instant, output rows, row of the instant or -1 before its cuts are done].
    Stopped for room, it can be called again: what is already handed out is in `answers`, and not repeated.
    """
    total = rows.ts.size
    while cursor[0] < total:
        begin = cursor[0]
        time = rows.ts[begin]
        end = begin
        cuts = False
        while end < total and rows.ts[end] == time:
            cuts = cuts or rows.op[end] < 0
            end += 1
        if cursor[2] < 0:
            if cuts:
                status = cut_answers(
                    graph, program, rows, begin, end, answers, affected, out, matching, key, cursor
                )
                if status != DONE:
                    return status
            cursor[2] = begin
        for i in range(cursor[2], end):
            cursor[2] = i
            if rows.op[i] > 0:
                status = complete_row(graph, program, rows, i, answers, out, matching, key, cursor)
                if status != DONE:
                    return status
        cursor[0] = end
        cursor[2] = -1
    return DONE
