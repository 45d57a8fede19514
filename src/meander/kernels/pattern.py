"""PATTERN: a delta generic join over the window's graph.

A new tuple for one atom binds two variables. The others are bound one at a time: from the shortest list of
an atom that reaches the variable, checked against all other atoms that are then bound, with the least expiry
carried along. Nothing intermediate is kept: only the answers, one entry each with its largest expiry.

When tuples are cut (a deletion upstream), the answers that they carried are evaluated again (`pattern_cuts`).

For RL(x, y) <- a(x, m), b(m, y), c(x, y) a program for a new `a` tuple has one step: bind y from the
shorter of b's list by m and c's list by x, and check the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.graph import (
    DONE,
    FULL_OUTPUT,
    FULL_TABLE,
    ROWS,
    Graph,
    expiry_at,
    expiry_before,
    find_row,
    mix,
)
from meander.kernels.jit import Array, inner_kernel, kernel

FOREVER = 1 << 62
BY_SRC, BY_TRG, SCAN = 0, 1, 2


class Program(NamedTuple):
    """The atoms of a pattern, and the steps of each of its programs.

    Program i starts from a tuple of atom i; the last one starts from an answer's own vertices. A program is
    `checks` (atoms bound from the start) and then steps; each step binds a variable through `step_atoms`.
    """

    relation: Array  # by atom
    src: Array  # by atom: a variable
    trg: Array
    output: Array  # variables handed out
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
    depth: Array  # [open frames - 1, whether a result without any step is pending, steps]


class Answers(NamedTuple):
    """One entry for each answer: its vertices and its largest expiry."""

    key: Array  # by entry and position
    exp: Array
    slots: Array  # open addressing: entry or -1
    counts: Array  # [entries]


class KeyedRows(NamedTuple):
    """A batch of tuples over any number of vertices, sorted by time; `op` and `exp` as in `Rows`."""

    key: Array
    ts: Array
    exp: Array
    op: Array


class MergedRows(NamedTuple):
    """The changes of several relations, merged by time."""

    relation: Array
    src: Array
    trg: Array
    ts: Array
    exp: Array
    op: Array


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
            place = matching.values[program.src[atom]] * relations + program.relation[atom]
            degree, first = graph.degree_out[place], graph.first_out[place]
        else:
            place = matching.values[program.trg[atom]] * relations + program.relation[atom]
            degree, first = graph.degree_in[place], graph.first_in[place]
        if degree < shortest:
            shortest = degree
            matching.side[depth] = walk
            matching.atom[depth] = atom
            matching.cursor[depth] = first


@inner_kernel
def check_atoms(
    graph: Graph,
    program: Program,
    begin: int,
    end: int,
    skip: int,
    time: int,
    before: bool,
    floor: int,
    least: int,
    values: Array,
) -> int:
    """The least expiry over the bound atoms `begin` to `end`; -1 where one is missing or not above `floor`."""
    for entry in range(begin, end):
        atom = program.atoms[entry]
        if atom == skip:
            continue
        row = find_row(graph, program.relation[atom], values[program.src[atom]], values[program.trg[atom]])
        if row < 0:
            return -1
        exp = read_expiry(graph, row, time, before)
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
    least = check_atoms(
        graph,
        program,
        program.checks[number],
        program.checks[number + 1],
        -1,
        time,
        before,
        time,
        bound,
        matching.values,
    )
    matching.least[0] = least
    matching.depth[0] = -1
    matching.depth[1] = 0
    matching.depth[2] = steps
    if least <= time:
        return
    if steps == 0:
        matching.depth[1] = 1
    else:
        matching.depth[0] = 0
        open_step(graph, program, number, 0, matching)


@inner_kernel
def next_match(
    graph: Graph, program: Program, number: int, time: int, before: bool, floor: int, matching: Matching
) -> int:
    """Bind the variables to the next match that lasts longer than `floor`; its expiry, or -1 at the end."""
    if matching.depth[1]:
        matching.depth[1] = 0
        return matching.least[0] if matching.least[0] > floor else -1
    depth = matching.depth[0]
    steps = matching.depth[2]
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
        least = check_atoms(
            graph,
            program,
            program.step_begin[step],
            program.step_begin[step + 1],
            atom,
            time,
            before,
            floor,
            least,
            values,
        )
        if least < 0:
            continue
        if depth + 1 == steps:
            matching.depth[0] = depth
            return least
        depth += 1
        matching.least[depth] = least
        open_step(graph, program, number, depth, matching)
    matching.depth[0] = -1
    return -1


@kernel
def hash_key(key: Array) -> int:
    h = 0
    for position in range(key.size):
        h = mix(key[position], position, h & 0x7FFFFFFF)
    return h


@kernel
def find_answer(answers: Answers, key: Array) -> int:
    """The place in the index where `key` stands, or where it would be put (then the index holds -1 there)."""
    mask = answers.slots.size - 1
    at = hash_key(key) & mask
    while True:
        entry = answers.slots[at]
        if entry < 0:
            return at
        same = True
        for position in range(key.size):
            if answers.key[entry, position] != key[position]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & mask


@inner_kernel
def add_answer(answers: Answers, at: int, key: Array) -> int:
    """A new entry, not valid yet, at the place in the index that `find_answer` gave; -1: there is no room."""
    entry = answers.counts[0]
    if entry == answers.exp.size:
        return -1
    answers.counts[0] = entry + 1
    answers.slots[at] = entry
    for position in range(key.size):
        answers.key[entry, position] = key[position]
    answers.exp[entry] = 0
    return entry


@kernel
def emit_answer(out: KeyedRows, at: int, key: Array, time: int, exp: int, op: int) -> None:
    for position in range(key.size):
        out.key[at, position] = key[position]
    out.ts[at] = time
    out.exp[at] = exp
    out.op[at] = op


@kernel
def bind_tuple(program: Program, atom: int, src: int, trg: int, values: Array) -> bool:
    """Bind an atom's two variables; False where the atom is a loop and the tuple is not."""
    if program.src[atom] == program.trg[atom] and src != trg:
        return False
    values[program.src[atom]] = src
    values[program.trg[atom]] = trg
    return True


@inner_kernel
def complete_row(
    graph: Graph,
    program: Program,
    rows: MergedRows,
    i: int,
    answers: Answers,
    out: KeyedRows,
    matching: Matching,
    key: Array,
    cursor: Array,
) -> int:
    """Hand out the answers that the new or longer tuple of row `i` brings. Doing it twice is doing it once."""
    time = rows.ts[i]
    for atom in range(program.relation.size):
        if program.relation[atom] != rows.relation[i]:
            continue
        if not bind_tuple(program, atom, rows.src[i], rows.trg[i], matching.values):
            continue
        start_match(graph, program, atom, time, False, rows.exp[i], matching)
        while True:
            exp = next_match(graph, program, atom, time, False, time, matching)
            if exp < 0:
                break
            for position in range(key.size):
                key[position] = matching.values[program.output[position]]
            at = find_answer(answers, key)
            entry = answers.slots[at]
            if entry >= 0 and answers.exp[entry] >= exp:
                continue
            if cursor[1] == out.ts.size:
                return FULL_OUTPUT
            if entry < 0:
                entry = add_answer(answers, at, key)
                if entry < 0:
                    return FULL_TABLE
            answers.exp[entry] = exp
            emit_answer(out, cursor[1], key, time, exp, 1)
            cursor[1] += 1
    return DONE


@kernel
def match_insertions(
    graph: Graph,
    program: Program,
    rows: MergedRows,
    answers: Answers,
    out: KeyedRows,
    matching: Matching,
    key: Array,
    cursor: Array,
) -> int:
    """Walk changes that only lengthen, in order of time; `cursor` is [next row, output rows].

    Stopped for room, it can be called again: what is already handed out is in `answers`, and not repeated.
    """
    while cursor[0] < rows.ts.size:
        status = complete_row(graph, program, rows, cursor[0], answers, out, matching, key, cursor)
        if status != DONE:
            return status
        cursor[0] += 1
    return DONE


@kernel
def pack_answers(answers: Answers, horizon: int) -> None:
    """Drop the answers that are expired at `horizon`, and build the index anew."""
    kept = 0
    for entry in range(answers.counts[0]):
        if answers.exp[entry] > horizon:
            for position in range(answers.key.shape[1]):
                answers.key[kept, position] = answers.key[entry, position]
            answers.exp[kept] = answers.exp[entry]
            kept += 1
    answers.counts[0] = kept
    answers.slots[:] = -1
    for entry in range(kept):
        answers.slots[find_answer(answers, answers.key[entry])] = entry


@kernel
def mark_answers(answers: Answers, horizon: int, live: Array) -> None:
    """Mark the vertices of the answers that are valid after `horizon`."""
    for entry in range(answers.counts[0]):
        if answers.exp[entry] > horizon:
            for position in range(answers.key.shape[1]):
                live[answers.key[entry, position]] = True


def new_matching(variables: int, steps: int) -> Matching:
    """Room for searches of a pattern; holds nothing between two calls."""
    depth = max(1, steps)
    return Matching(
        values=np.zeros(variables, np.int32),
        cursor=np.zeros(depth, np.int64),
        side=np.zeros(depth, np.int8),
        atom=np.zeros(depth, np.int32),
        least=np.zeros(depth + 1, np.int64),
        depth=np.zeros(3, np.int64),
    )
