"""PATTERN: a delta generic join over the window's graph.

A new tuple for one atom binds two variables. The others are bound one at a time: from the shortest list of
an atom that reaches the variable, checked against all other atoms that are then bound, with the least expiry
carried along. Nothing intermediate is kept: only the answers, one entry each with its largest expiry.

When tuples are retracted (a deletion upstream), the answers that they carried are evaluated again
(`pattern_retractions`). The join is worst-case optimal: Ngo, Ré and Rudra, "Skew strikes back" (SIGMOD Record 2013);
its delta form follows Ammar et al., "Distributed evaluation of subgraph queries using worst-case optimal and
low-memory dataflows" (VLDB 2018).

For RL(x, y) <- a(x, m), b(m, y), c(x, y) a program for a new `a` tuple has one step: bind y from the
shorter of b's list by m and c's list by x, and check the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.answers import AnswerTable, add_answer, emit_answer, find_answer
from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.graph import ROWS, Graph, expiry_at, expiry_before, find_row
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import DONE, EMITTED, FOREVER, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

BY_SRC, BY_TRG, SCAN = 0, 1, 2
# Positions in `Matching.depth`: the number of the last open frame, whether a match without any step is pending, and
# the number of steps.
OPEN, PENDING, STEPS = 0, 1, 2


class Program(NamedTuple):
    """The atoms of a pattern, and the steps of each of its programs.

    Program i starts from a tuple of atom i; the last one starts from an answer's own vertices. A program is
    `checks` (atoms bound from the start) and then steps; each step binds a variable through `step_atoms`.
    """

    relation: Array  # by atom
    src: Array  # by atom: a variable
    trg: Array
    output: Array  # the variables of an answer
    checks: Array  # by program: begin in `atoms`, with one more for the end
    steps: Array  # by program: begin in `step_begin`, with one more for the end
    step_begin: Array  # by step: begin in `atoms`, with one more for the end
    step_scans: Array  # by step: whether the first atom is scanned whole (nothing of it is bound)
    step_walks: Array  # by entry of `atoms`: whether its list may be walked in this step, and by which end
    atoms: Array


class Matching(NamedTuple):
    """Where a search stands: the values bound, and a frame for each open step."""

    values: Array  # by variable
    cursor: Array  # by depth: the next row
    side: Array
    atom: Array
    least: Array  # by depth: the least expiry so far
    depth: Array
    key: Array  # scratch for the key of one answer


class PatternState(NamedTuple):
    """All that a join works on."""

    graph: Graph
    program: Program
    answers: AnswerTable
    matching: Matching
    affected: Array  # scratch: the entries that a retraction may shorten


@kernel
def read_expiry(graph: Graph, row: int, time: int, before: bool) -> int:
    if before:
        return expiry_before(graph, row, time)
    return expiry_at(graph, row, time)


@inner_kernel
def open_step(graph: Graph, program: Program, number: int, depth: int, matching: Matching) -> None:
    """Choose the shortest list that this step may walk."""
    step = program.steps[number] + depth
    begin, end = program.step_begin[step], program.step_begin[step + 1]
    if program.step_scans[step]:
        matching.side[depth] = SCAN
        matching.atom[depth] = program.atoms[begin]
        matching.cursor[depth] = 0
        return
    relations = graph.linked_out.size
    shortest = FOREVER
    for entry in range(begin, end):
        walk = program.step_walks[entry]
        if walk < 0:
            continue
        atom = program.atoms[entry]
        if walk == BY_SRC:
            bucket = matching.values[program.src[atom]] * relations + program.relation[atom]
            degree, first = graph.degree_out[bucket], graph.first_out[bucket]
        else:
            bucket = matching.values[program.trg[atom]] * relations + program.relation[atom]
            degree, first = graph.degree_in[bucket], graph.first_in[bucket]
        if degree < shortest:
            shortest = degree
            matching.side[depth] = walk
            matching.atom[depth] = atom
            matching.cursor[depth] = first


@inner_kernel
def check_atoms(
    graph: Graph,
    program: Program,
    entries: tuple[int, int],
    skip: int,
    instant: tuple[int, bool],
    floor: int,
    least: int,
    values: Array,
) -> int:
    """The least expiry over the bound atoms from `entries[0]` to `entries[1]`, but for atom `skip`; -1 if one has no
    tuple that lasts longer than `floor`."""
    for entry in range(entries[0], entries[1]):
        atom = program.atoms[entry]
        if atom == skip:
            continue
        row = find_row(graph, program.relation[atom], values[program.src[atom]], values[program.trg[atom]])
        if row < 0:
            return -1
        exp = read_expiry(graph, row, instant[0], instant[1])
        if exp <= floor:
            return -1
        least = min(least, exp)
    return least


@inner_kernel
def start_match(
    graph: Graph, program: Program, number: int, time: int, before: bool, bound: int, matching: Matching
) -> None:
    """Begin program `number`; the values that it starts from are set, and hold until `bound`."""
    steps = program.steps[number + 1] - program.steps[number]
    checks = program.checks[number], program.checks[number + 1]
    least = check_atoms(graph, program, checks, -1, (time, before), time, bound, matching.values)
    matching.least[0] = least
    matching.depth[OPEN] = -1
    matching.depth[PENDING] = 0
    matching.depth[STEPS] = steps
    if least <= time:
        return
    if steps == 0:
        matching.depth[PENDING] = 1
    else:
        matching.depth[OPEN] = 0
        open_step(graph, program, number, 0, matching)


@inner_kernel
def next_match(
    graph: Graph, program: Program, number: int, time: int, before: bool, floor: int, matching: Matching
) -> int:
    """Bind the variables to the next match that lasts longer than `floor`; its expiry, or -1 at the end."""
    if matching.depth[PENDING]:
        matching.depth[PENDING] = 0
        return matching.least[0] if matching.least[0] > floor else -1
    depth = matching.depth[OPEN]
    steps = matching.depth[STEPS]
    values = matching.values
    while depth >= 0:
        atom = matching.atom[depth]
        row = matching.cursor[depth]
        if matching.side[depth] == SCAN:
            rows = graph.counts[ROWS]
            while row < rows and graph.relation[row] != program.relation[atom]:
                row += 1
            if row >= rows:
                depth -= 1
                continue
            matching.cursor[depth] = row + 1
        elif row < 0:
            depth -= 1
            continue
        elif matching.side[depth] == BY_SRC:
            matching.cursor[depth] = graph.next_out[row]
        else:
            matching.cursor[depth] = graph.next_in[row]
        exp = read_expiry(graph, row, time, before)
        if exp <= floor:
            continue
        least = min(matching.least[depth], exp)
        if least <= floor:
            depth -= 1
            continue
        if program.src[atom] == program.trg[atom] and graph.src[row] != graph.trg[row]:
            continue
        values[program.src[atom]] = graph.src[row]
        values[program.trg[atom]] = graph.trg[row]
        step = program.steps[number] + depth
        entries = program.step_begin[step], program.step_begin[step + 1]
        least = check_atoms(graph, program, entries, atom, (time, before), floor, least, values)
        if least < 0:
            continue
        if depth + 1 == steps:
            matching.depth[OPEN] = depth
            return least
        depth += 1
        matching.least[depth] = least
        open_step(graph, program, number, depth, matching)
    matching.depth[OPEN] = -1
    return -1


@kernel
def bind_tuple(program: Program, atom: int, src: int, trg: int, values: Array) -> bool:
    """Bind an atom's two variables; False where the atom is a loop and the tuple is not."""
    if program.src[atom] == program.trg[atom] and src != trg:
        return False
    values[program.src[atom]] = src
    values[program.trg[atom]] = trg
    return True


@inner_kernel
def complete_row(state: PatternState, batch: Batch, i: int, out: Batch, cursor: Array) -> int:
    """Emit the answers that the new or longer tuple of row `i` brings. Idempotent, so that it can be resumed."""
    program, answers, matching = state.program, state.answers, state.matching
    key = matching.key
    time = batch.ts[i]
    for atom in range(program.relation.size):
        if program.relation[atom] != batch.source[i]:
            continue
        if not bind_tuple(program, atom, batch.key[i, SRC], batch.key[i, TRG], matching.values):
            continue
        start_match(state.graph, program, atom, time, False, batch.exp[i], matching)
        while True:
            exp = next_match(state.graph, program, atom, time, False, time, matching)
            if exp < 0:
                break
            for column in range(key.size):
                key[column] = matching.values[program.output[column]]
            slot = find_answer(answers, key)
            entry = answers.slots[slot]
            if entry >= 0 and answers.exp[entry] >= exp:
                continue
            if cursor[EMITTED] == out.ts.size:
                return FULL_OUTPUT
            if entry < 0:
                entry = add_answer(answers, slot, key)
                if entry < 0:
                    return FULL_TABLE
            answers.exp[entry] = exp
            emit_answer(out, cursor[EMITTED], key, time, exp, 1)
            cursor[EMITTED] += 1
    return DONE


@kernel
def match_insertions(state: PatternState, batch: Batch, out: Batch, cursor: Array) -> int:
    """Process a batch without retractions; `cursor` is [next row, output rows].

    It can be called again after it stopped for room: the answers emitted so far are in the table, and not repeated.
    """
    while cursor[NEXT_ROW] < batch.ts.size:
        status = complete_row(state, batch, cursor[NEXT_ROW], out, cursor)
        if status != DONE:
            return status
        cursor[NEXT_ROW] += 1
    return DONE


def new_matching(variables: int, steps: int, arity: int) -> Matching:
    """Scratch for the searches of a pattern; it holds nothing between two calls."""
    depth = max(1, steps)
    return Matching(
        values=np.zeros(variables, np.int32),
        cursor=np.zeros(depth, np.int64),
        side=np.zeros(depth, np.int8),
        atom=np.zeros(depth, np.int32),
        least=np.zeros(depth + 1, np.int64),
        depth=np.zeros(3, np.int64),
        key=np.zeros(arity, np.int32),
    )
