"""What a proof looks up in the window's graph: the row of a tuple, its expiry as of an instant, and the match of a
pattern that an answer is derived from.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.graph import Graph, Values, expiry_at, find_row, find_wide_row
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
def find_tuples(graph: Graph, values: Values | None, relation: int, key: Array, out: Array) -> None:
    """The row of each tuple of a relation, or -1."""
    for i in range(out.size):
        if values is None:
            out[i] = find_row(graph, relation, key[i, 0], key[i, 1])
        else:
            out[i] = find_wide_row(graph, values, relation, key[i])


@kernel
def read_expiries(graph: Graph, row: Array, ts: Array, out: Array) -> None:
    """The expiry of each row as of the end of an instant; 0 for what is no row."""
    for i in range(row.size):
        out[i] = 0 if row[i] < 0 else expiry_at(graph, row[i], ts[i])


@inner_kernel
def row_of_atom(
    graph: Graph, program: Program, extension: Extension | None, atom: int, relation: int, bound: Array
) -> int:
    """The row of an atom whose variables are all bound, or -1."""
    if extension is None:
        return find_row(graph, relation, bound[program.src[atom]], bound[program.trg[atom]])
    return find_bound(graph, extension, atom, relation, bound)


@kernel
def find_matches(graph: Graph, join: Join, targets: Targets, out: Array) -> None:
    """For each target the rows of the first match that lasts as long, by atom; UNPROVED if there is none."""
    program, extension, matching = join.program, join.extension, join.matching
    bound = matching.values
    atoms = program.relation.size
    for i in range(targets.ts.size):
        for column in range(program.output.size):
            bound[program.output[column]] = targets.key[i, column]
        time = targets.ts[i]
        start_match(graph, program, extension, atoms, time, False, FOREVER, matching)
        if next_match(graph, program, extension, atoms, time, False, targets.exp[i] - 1, matching) < 0:
            out[i, 0] = UNPROVED
            continue
        for atom in range(atoms):
            out[i, atom] = row_of_atom(graph, program, extension, atom, join.relation[atom], bound)
