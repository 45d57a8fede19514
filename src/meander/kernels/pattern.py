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

Atoms may have value columns, whose variables are bound and checked like any other, and a predicate may compare
variables; its parts are decided as soon as their variables are bound. All this is in an `Extension`. A pattern
without it has None there, and what it needs is not compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.answers import AnswerTable, add_answer, emit_answer, find_answer
from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.conditions import Conditions, are_true
from meander.kernels.graph import (
    FIRST_VALUE,
    ROWS,
    Graph,
    Values,
    expiry_at,
    expiry_before,
    find_row,
    find_wide_row,
)
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned
from meander.kernels.status import DONE, EMITTED, FOREVER, FULL_OUTPUT, FULL_TABLE, NEXT_ROW

# How an atom is walked: by one of its lists, all of its relation, or its tuple of an earlier step AGAIN.
BY_SRC, BY_TRG, BY_VALUE, SCAN, AGAIN = 0, 1, 2, 3, 4
# Positions in `Matching.depth`: the number of the last open frame, whether a match without any step is pending, and
# the number of steps.
OPEN, PENDING, STEPS = 0, 1, 2


class Program(NamedTuple):
    """The atoms of a pattern, and the steps of each of its programs.

    Program i starts from a tuple of atom i; the last one starts from an answer's own columns. A program is
    `checks` (atoms bound from the start) and then steps; each step binds a variable by one of its walks, and
    completes some atoms.
    """

    relation: Array  # by atom
    src: Array  # by atom: a variable
    trg: Array
    output: Array  # the variables of an answer
    checks: Array  # by program: begin in `atoms`, with one more for the end
    steps: Array  # by program: begin in `step_begin`, with one more for the end
    step_begin: Array  # by step: begin in `atoms` of those that it completes, with one more for the end
    atoms: Array
    walk_begin: Array  # by step: begin in the walks, with one more for the end
    walk_atom: Array  # by walk
    walk_side: Array


class Extension(NamedTuple):
    """What a join needs for atoms with value columns and for a predicate.

    Columns of an atom are counted from its source on; the masks have a bit per column.
    """

    values: Values
    columns: Array  # by atom and column: a variable, or -1 after the last
    width: Array  # by atom: the number of its value columns
    walk_equal: Array  # by walk: a mask of the columns whose variables are bound before
    walk_binds: Array  # by walk: a mask of the columns that bind their variables
    walk_list: Array  # by walk: the number of the list by value, or -1
    walk_again: Array  # by walk: whether an earlier step may have walked the atom
    walk: Array  # by depth: the walk that was chosen
    row: Array  # by depth: the row walked last
    key: Array  # scratch for the columns of one atom
    conditions: Conditions  # a place for each program's start, then one for each step


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
    extension: Extension | None
    answers: AnswerTable
    matching: Matching
    affected: Array  # scratch: the entries that a retraction may shorten


@kernel
def read_expiry(graph: Graph, row: int, time: int, before: bool) -> int:
    if before:
        return expiry_before(graph, row, time)
    return expiry_at(graph, row, time)


@inner_kernel
def open_step(
    graph: Graph, program: Program, extension: Extension | None, number: int, depth: int, matching: Matching
) -> None:
    """Choose the shortest list that this step may walk."""
    step = program.steps[number] + depth
    shortest = FOREVER
    for walk in range(program.walk_begin[step], program.walk_begin[step + 1]):
        atom, side = unsigned(program.walk_atom[walk]), program.walk_side[walk]
        if extension is not None and extension.walk_again[walk]:
            row = walked_row(extension, atom, depth, matching)
            if row >= 0:
                matching.side[depth] = AGAIN
                matching.atom[depth] = atom
                matching.cursor[depth] = row
                extension.walk[depth] = walk
                return
        relations = graph.linked_out.size
        if side == BY_SRC:
            bucket = unsigned(matching.values[program.src[atom]] * relations + program.relation[atom])
            degree, first = int(graph.degree_out[bucket]), int(graph.first_out[bucket])
        elif side == BY_TRG:
            bucket = unsigned(matching.values[program.trg[atom]] * relations + program.relation[atom])
            degree, first = int(graph.degree_in[bucket]), int(graph.first_in[bucket])
        elif extension is not None and side == BY_VALUE:
            degree, first = list_by_value(extension, walk, atom, matching)
        else:
            degree, first = 0, 0
        if degree < shortest:
            shortest = degree
            matching.side[depth] = side
            matching.atom[depth] = atom
            matching.cursor[depth] = first
            if extension is not None:
                extension.walk[depth] = walk


@inner_kernel
def walked_row(extension: Extension, atom: int, depth: int, matching: Matching) -> int:
    """The row of the atom that an open step has walked, or -1."""
    for earlier in range(depth):
        if matching.atom[earlier] == atom:
            return int(extension.row[earlier])
    return -1


@inner_kernel
def list_by_value(extension: Extension, walk: int, atom: int, matching: Matching) -> tuple[int, int]:
    """Length and first row of the list by value of a walk."""
    values, number = extension.values, extension.walk_list[walk]
    variable = extension.columns[atom, FIRST_VALUE + values.listed[number]]
    bucket = matching.values[variable] * values.listed.size + number
    return int(values.degree[bucket]), int(values.first[bucket])


@inner_kernel
def next_listed(extension: Extension, depth: int, row: int, side: int) -> int:
    """The row after `row` in the list by value that a step walks; -1 after a single one."""
    if side == AGAIN:
        return -1
    values = extension.values
    return int(values.next[row, values.listed[extension.walk_list[extension.walk[depth]]]])


@inner_kernel
def take_row(graph: Graph, extension: Extension, depth: int, row: int, matching: Matching) -> bool:
    """Bind variables to the columns of the row that a step walks; False if it disagrees with those bound before."""
    extension.row[depth] = row
    walk, atom = extension.walk[depth], matching.atom[depth]
    equal, binds = extension.walk_equal[walk], extension.walk_binds[walk]
    for column in range(FIRST_VALUE + extension.width[atom]):
        if column == SRC:
            value = graph.src[row]
        elif column == TRG:
            value = graph.trg[row]
        else:
            value = extension.values.value[row, column - FIRST_VALUE]
        variable = extension.columns[atom, column]
        if (equal >> column) & 1:
            if matching.values[variable] != value:
                return False
        elif (binds >> column) & 1:
            matching.values[variable] = value
    return True


@inner_kernel
def are_satisfied(conditions: Conditions, place: int, values: Array) -> bool:
    """Whether the comparisons that are decided at a place are true."""
    begin = conditions.begin
    return bool(begin[place] == begin[place + 1] or are_true(conditions, place, values))


@inner_kernel
def find_bound(graph: Graph, extension: Extension, atom: int, relation: int, values: Array) -> int:
    """The row of an atom whose variables are all bound, or -1."""
    for column in range(FIRST_VALUE + extension.width[atom]):
        extension.key[column] = values[extension.columns[atom, column]]
    return find_wide_row(graph, extension.values, relation, extension.key)


@inner_kernel
def check_atoms(
    graph: Graph,
    program: Program,
    extension: Extension | None,
    entries: tuple[int, int],
    skip: int,
    instant: tuple[int, bool, int],
    least: int,
    values: Array,
) -> int:
    """The least expiry over the bound atoms from `entries[0]` to `entries[1]`, but for atom `skip`; -1 if one has no
    tuple that lasts longer than `floor`. `instant` is (time, before, floor)."""
    for entry in range(entries[0], entries[1]):
        atom = program.atoms[entry]
        if atom == skip:
            continue
        relation = program.relation[atom]
        if extension is None:
            row = find_row(graph, relation, values[program.src[atom]], values[program.trg[atom]])
        else:
            row = find_bound(graph, extension, atom, relation, values)
        if row < 0:
            return -1
        exp = read_expiry(graph, row, instant[0], instant[1])
        if exp <= instant[2]:
            return -1
        least = min(least, exp)
    return least


@inner_kernel
def start_match(
    graph: Graph,
    program: Program,
    extension: Extension | None,
    number: int,
    time: int,
    before: bool,
    bound: int,
    matching: Matching,
) -> None:
    """Begin program `number`; the values that it starts from are set, and hold until `bound`."""
    steps = program.steps[number + 1] - program.steps[number]
    matching.depth[OPEN] = -1
    matching.depth[PENDING] = 0
    matching.depth[STEPS] = steps
    if extension is not None and not are_satisfied(extension.conditions, number, matching.values):
        return
    checks = program.checks[number], program.checks[number + 1]
    least = check_atoms(graph, program, extension, checks, -1, (time, before, time), bound, matching.values)
    matching.least[0] = least
    if least <= time:
        return
    if steps == 0:
        matching.depth[PENDING] = 1
    else:
        matching.depth[OPEN] = 0
        open_step(graph, program, extension, number, 0, matching)


@inner_kernel
def next_match(
    graph: Graph,
    program: Program,
    extension: Extension | None,
    number: int,
    time: int,
    before: bool,
    floor: int,
    matching: Matching,
) -> int:
    """Bind the variables to the next match that lasts longer than `floor`; its expiry, or -1 at the end."""
    if matching.depth[PENDING]:
        matching.depth[PENDING] = 0
        return matching.least[0] if matching.least[0] > floor else -1
    depth = matching.depth[OPEN]
    steps = matching.depth[STEPS]
    values = matching.values
    programs = program.checks.size - 1
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
        elif extension is None or matching.side[depth] == BY_TRG:
            matching.cursor[depth] = graph.next_in[row]
        else:
            matching.cursor[depth] = next_listed(extension, depth, row, matching.side[depth])
        if extension is not None and not take_row(graph, extension, depth, row, matching):
            continue
        exp = read_expiry(graph, row, time, before)
        if exp <= floor:
            continue
        least = min(matching.least[depth], exp)
        if least <= floor:
            depth -= 1
            continue
        if extension is None:
            if program.src[atom] == program.trg[atom] and graph.src[row] != graph.trg[row]:
                continue
            values[program.src[atom]] = graph.src[row]
            values[program.trg[atom]] = graph.trg[row]
        step = program.steps[number] + depth
        if extension is not None and not are_satisfied(extension.conditions, programs + step, values):
            continue
        entries = program.step_begin[step], program.step_begin[step + 1]
        least = check_atoms(graph, program, extension, entries, atom, (time, before, floor), least, values)
        if least < 0:
            continue
        if depth + 1 == steps:
            matching.depth[OPEN] = depth
            return least
        depth += 1
        matching.least[depth] = least
        open_step(graph, program, extension, number, depth, matching)
    matching.depth[OPEN] = -1
    return -1


@inner_kernel
def bind_tuple(
    program: Program, extension: Extension | None, atom: int, batch: Batch, i: int, values: Array
) -> bool:
    """Bind an atom's variables to the columns of a batch's tuple; False where two of them are one variable and the
    columns differ."""
    if extension is None:
        src, trg = batch.key[i, SRC], batch.key[i, TRG]
        if program.src[atom] == program.trg[atom] and src != trg:
            return False
        values[program.src[atom]] = src
        values[program.trg[atom]] = trg
        return True
    columns = extension.columns
    for column in range(FIRST_VALUE + extension.width[atom]):
        variable, value = columns[atom, column], batch.key[i, column]
        for earlier in range(column):
            if columns[atom, earlier] == variable and batch.key[i, earlier] != value:
                return False
        values[variable] = value
    return True


@inner_kernel
def complete_row(state: PatternState, batch: Batch, i: int, out: Batch, cursor: Array) -> int:
    """Emit the answers that the new or longer tuple of row `i` brings. Idempotent, so that it can be resumed."""
    program, extension = state.program, state.extension
    answers, matching = state.answers, state.matching
    key = matching.key
    time = batch.ts[i]
    for atom in range(program.relation.size):
        if program.relation[atom] != batch.source[i]:
            continue
        if not bind_tuple(program, extension, atom, batch, i, matching.values):
            continue
        start_match(state.graph, program, extension, atom, time, False, batch.exp[i], matching)
        while True:
            exp = next_match(state.graph, program, extension, atom, time, False, time, matching)
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
