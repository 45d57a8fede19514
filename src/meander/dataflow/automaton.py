"""The automaton of a path expression as arrays, for the kernels that search paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.state import Array
from meander.kernels.forest import Automaton
from meander.physical.plan import PathOp


def automaton_arrays(node: PathOp, relations: Sequence[int], total: int) -> Automaton:
    """An automaton whose inputs are `relations` of a graph of `total`, as the kernels read it.

    If it accepts the empty word, the empty path has a state of its own, after all others. The moves out of
    states are in the order of the node, which is by state.
    """
    nullable = 0 in node.accepting
    states = node.states + nullable
    # The start state as such is never a node's: only the empty path reaches it, and that has its own state,
    # unless a longer path leads back to it.
    accepting = np.zeros(states, np.int8)
    accepting[list(node.accepting)] = 1
    if nullable:
        accepting[node.states] = 1
    reads = np.zeros(total, np.int8)
    reads[list(relations)] = 1
    moves = [(state, relations[source], inverse, to) for state, source, inverse, to in node.moves]

    def grouped(key: int, groups: int) -> tuple[Array, Array]:
        ordered = sorted(moves, key=lambda move: move[key])
        begin = np.searchsorted([move[key] for move in ordered], np.arange(groups + 1)).astype(np.int32)
        return begin, np.array(ordered, np.int32).reshape(len(ordered), 4)

    by_relation, relation_moves = grouped(1, total)
    by_source, source_moves = grouped(0, states)
    by_target, target_moves = grouped(3, states)

    def column(table: Array, position: int) -> Array:
        return np.ascontiguousarray(table[:, position])

    return Automaton(
        accepting=accepting,
        finals=np.flatnonzero(accepting).astype(np.int32),
        reads=reads,
        relation_begin=by_relation,
        relation_inverse=column(relation_moves, 2),
        relation_from=column(relation_moves, 0),
        relation_to=column(relation_moves, 3),
        out_begin=by_source,
        out_relation=column(source_moves, 1),
        out_inverse=column(source_moves, 2),
        out_to=column(source_moves, 3),
        in_begin=by_target,
        in_relation=column(target_moves, 1),
        in_inverse=column(target_moves, 2),
        in_from=column(target_moves, 0),
        settings=np.array([states, node.states if nullable else -1], np.int64),
    )
