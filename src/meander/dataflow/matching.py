"""Matches of a pattern, as of any instant of the part: the tuples from which it derives a given tuple."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.graph import WindowGraph
from meander.dataflow.operator import Context
from meander.dataflow.operators.pattern import ValueJoin, program_arrays
from meander.dataflow.state import Array
from meander.kernels.batch import SRC, TRG
from meander.kernels.graph import FIRST_VALUE
from meander.kernels.lookups import Join, Targets, find_matches
from meander.kernels.pattern import new_matching
from meander.kernels.spans import wrapping
from meander.physical.plan import PatternOp, deciding


class MatchSearch:
    """Finds for each tuple one match that gives it."""

    def __init__(self, node: PatternOp, relations: Sequence[int], context: Context) -> None:
        """The tuple of an input is looked up in its relation of `relations`."""
        # Not every tuple that is asked for is one of the pattern's: it may be of another rule.
        node = deciding(node)
        self.graph = context.graph
        variables = 1 + max(variable for columns in node.ends for variable in columns)
        steps = max(len(program.steps) for program in node.programs)
        is_plain = node.predicate is None and all(len(columns) == FIRST_VALUE for columns in node.ends)
        self.values = None if is_plain else ValueJoin(node, context, steps)
        self.join = Join(
            program_arrays(node, context.relations_of(node.inputs)),
            None,
            new_matching(variables, steps, len(node.output)),
            np.array(relations, np.int32),
        )

    def find(self, targets: Targets) -> Array:
        """For each target the rows of a match by input; UNPROVED in the first if there is none that lasts as long."""
        rows = np.empty((targets.ts.size, self.join.relation.size), np.int64)
        extension = None if self.values is None else self.values.extension()
        with wrapping():
            find_matches(self.graph.graph, self.join._replace(extension=extension), targets, rows)
        return rows


def key_of(window: WindowGraph, rows: Array, width: int) -> Array:
    """The columns of rows of the graph, `width` of them."""
    key = np.empty((rows.size, width), np.int32)
    key[:, SRC], key[:, TRG] = window.graph.src[rows], window.graph.trg[rows]
    if width > FIRST_VALUE:
        key[:, FIRST_VALUE:] = window.value_columns().value[rows, : width - FIRST_VALUE]
    return key
