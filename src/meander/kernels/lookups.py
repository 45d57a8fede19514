"""What a proof looks up in the window's graph: the row of a tuple, its validity as of an instant, and the match of a
pattern that an answer is derived from.

The beginning of a row's validity is a column beside the graph, `since`, which only those who ask for proofs have. It
is as of the end of the batch before; what this batch has changed since follows from the rows' older expiries.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.graph import (
    UNCHANGED,
    UNDONE,
    Graph,
    Values,
    expiry_at,
    find_row,
    find_wide_row,
)
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.pattern import Extension, Matching, Program, find_bound, next_match, start_match
from meander.kernels.status import FOREVER

UNPROVED = -1


class Targets(NamedTuple):
    """Tuples to prove: their columns, the instant, and the expiry that their proofs must reach."""

    key: Array
    ts: Array
    exp: Array


class Join(NamedTuple):
    """A pattern whose output is bound, and by atom the relation in which its tuple is looked up."""

    program: Program
    extension: Extension | None
    matching: Matching
    relation: Array


@kernel
def since_at(graph: Graph, since: Array, row: int, time: int) -> int:
    """Since when the row is valid without a pause, as of the end of instant `time`, at which it is valid."""
    start = graph.stamp[row]
    undo = graph.older[row]
    while start > time:
        start = graph.undo_stamp[undo]
        undo = graph.undo_older[undo]
    while start != UNCHANGED:
        # The version before this one lasted until then.
        if graph.undo_exp[undo] <= start:
            return start
        start = graph.undo_stamp[undo]
        undo = graph.undo_older[undo]
    return since[row]


@kernel
def settle_since(graph: Graph, since: Array) -> None:
    """Bring `since` up to date with all changes of the batch, before their older expiries are forgotten."""
    for change in range(graph.counts[UNDONE]):
        row = graph.undo_row[change]
        # The oldest change of a row comes first: it sees what `since` was before the batch.
        if graph.undo_stamp[change] == UNCHANGED:
            since[row] = since_at(graph, since, row, FOREVER)


@kernel
def find_tuples(graph: Graph, values: Values | None, relation: int, key: Array, out: Array) -> None:
    """The row of each tuple of a relation, or -1."""
    for i in range(out.size):
        if values is None:
            out[i] = find_row(graph, relation, key[i, 0], key[i, 1])
        else:
            out[i] = find_wide_row(graph, values, relation, key[i])


@kernel
def read_validity(graph: Graph, since: Array, row: Array, ts: Array, begin: Array, end: Array) -> None:
    """Since when and until when each row is valid, as of the end of an instant at which it is valid."""
    for i in range(row.size):
        begin[i] = since_at(graph, since, row[i], ts[i])
        end[i] = expiry_at(graph, row[i], ts[i])


@kernel
def read_expiries(graph: Graph, row: Array, ts: Array, out: Array) -> None:
    """The expiry of each row as of the end of an instant; 0 for what is no row."""
    for i in range(row.size):
        out[i] = 0 if row[i] < 0 else expiry_at(graph, row[i], ts[i])


@inner_kernel
def bound_row(
    graph: Graph, program: Program, extension: Extension | None, atom: int, relation: int, bound: Array
) -> int:
    """The row of an atom whose variables are all bound."""
    if extension is None:
        return find_row(graph, relation, bound[program.src[atom]], bound[program.trg[atom]])
    return find_bound(graph, extension, atom, relation, bound)


@inner_kernel
def bind_output(program: Program, key: Array, bound: Array) -> bool:
    """Bind the variables of the output to the columns of a tuple; False where one variable has two columns that
    differ."""
    for column in range(program.output.size):
        bound[program.output[column]] = key[column]
    agrees = True
    for column in range(program.output.size):
        agrees = agrees and bound[program.output[column]] == key[column]
    return agrees


@kernel
def find_matches(graph: Graph, join: Join, targets: Targets, out: Array) -> None:
    """For each target the rows of the first match that lasts as long, by atom; UNPROVED if there is none."""
    program, extension, matching = join.program, join.extension, join.matching
    bound = matching.values
    atoms = program.relation.size
    for i in range(targets.ts.size):
        out[i, 0] = UNPROVED
        if not bind_output(program, targets.key[i], bound):
            continue
        time = targets.ts[i]
        start_match(graph, program, extension, atoms, time, False, FOREVER, matching)
        if next_match(graph, program, extension, atoms, time, False, targets.exp[i] - 1, matching) < 0:
            continue
        for atom in range(atoms):
            out[i, atom] = bound_row(graph, program, extension, atom, join.relation[atom], bound)
