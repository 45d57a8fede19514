"""The path values of answers: found by following a trace from each answer down to the tuples that prove it.

For the length of a part the graph has older expiries, so that every relation can be read as of the end of an instant.
A tuple that lasts until e as of t was derived from tuples that last until e as of t, and of these any will do: the
search goes straight down, level by level for all answers of a part at once, and never turns back. It proves only what
the path values need: a pattern's match, whose tuples are in the graph, and of these those that path values come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from meander.dataflow.answers import NO_TIME, Paths
from meander.dataflow.batch import Batch, empty_batch
from meander.dataflow.edges import concat_texts
from meander.dataflow.operator import Context
from meander.dataflow.operators.pattern import ValueJoin, program_arrays
from meander.dataflow.proving import Prover
from meander.dataflow.state import Array, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG
from meander.kernels.graph import FIRST_VALUE
from meander.kernels.lookups import UNPROVED, Join, Targets, find_matches, find_tuples, read_expiries
from meander.kernels.pattern import new_matching
from meander.kernels.spans import wrapping
from meander.kernels.standing import ProvedEdges
from meander.physical.plan import (
    PathTrace,
    PatternOp,
    PatternTrace,
    Result,
    Trace,
    UnionTrace,
    is_timed,
)


class Tuples(NamedTuple):
    """Tuples to trace, and the record that each belongs to."""

    record: Array
    targets: Targets

    def take(self, chosen: Array) -> Tuples:
        return Tuples(self.record[chosen], Targets(*(column[chosen] for column in self.targets)))


class FoundPaths(NamedTuple):
    """The paths of some records, which are the path values `values` of each."""

    record: Array
    values: tuple[int, ...]
    paths: Paths


class FoundRows(NamedTuple):
    """Rows of the graph that prove records."""

    record: Array
    row: Array


Found = FoundPaths | FoundRows


class TracedPaths(NamedTuple):
    """The paths of a batch's records by number, and the rows of the graph that all of them rest on."""

    values: list[Paths]
    edges: ProvedEdges


Step = Callable[[Tuples, Vertices], Iterator[Found]]
"""One node of a trace: the paths and rows of tuples that the node's operator derived."""


class Tracer:
    """Finds the path values of one result's answers."""

    def __init__(self, result: Result, context: Context, store_of: Callable[[str], Store]) -> None:
        """`store_of` makes the store of a search, for its memory."""
        assert result.trace is not None
        paths = len(result.paths) + result.traces_path
        self.timed = [is_timed(result.trace, value) for value in range(paths)]
        self.searches = 0
        self.context = context
        self.store_of = store_of
        self.step = self._step(result.trace)

    def trace(self, records: Batch, vertices: Vertices) -> TracedPaths:
        """The path values of the `+` records of a batch, at the end of its part."""
        total = records.ts.size
        added = np.flatnonzero(records.op > 0)
        targets = Targets(records.key[added], records.ts[added], records.exp[added])
        found = list(self.step(Tuples(added, targets), vertices)) if added.size else []
        paths = [part for part in found if isinstance(part, FoundPaths)]
        values = [
            _joined_paths(total, [part for part in paths if value in part.values], timed)
            for value, timed in enumerate(self.timed)
        ]
        return TracedPaths(
            values, _joined_rows(total, [part for part in found if isinstance(part, FoundRows)])
        )

    def _step(self, trace: Trace) -> Step:
        match trace:
            case PathTrace(proof, values):
                self.searches += 1
                store = self.store_of(f"path value {self.searches}")
                return PathStep(Prover([proof], self.context.graph, self.context.relations, store), values)
            case PatternTrace(pattern, inputs):
                return PatternStep(pattern, [(n, self._step(inner)) for n, inner in inputs], self.context)
            case UnionTrace(inputs):
                relations = [self.context.relations[operator] for operator, _ in inputs]
                steps = [None if inner is None else self._step(inner) for _, inner in inputs]
                return UnionStep(relations, steps, self.context)


class PathStep:
    """The path of a PATH's tuple."""

    def __init__(self, prover: Prover, values: tuple[int, ...]) -> None:
        self.prover = prover
        self.values = values

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        batch = empty_batch(tuples.record.size)
        batch.key[:] = tuples.targets.key
        batch.ts[:], batch.exp[:], batch.op[:] = tuples.targets.ts, tuples.targets.exp, 1
        proved = self.prover.prove(batch, vertices)
        yield FoundPaths(tuples.record, self.values, self.prover.paths(proved, vertices))
        yield FoundRows(np.repeat(tuples.record, np.diff(proved.offsets)), proved.row)


class PatternStep:
    """One match of a pattern for each of its tuples; some of the match's own tuples are traced further."""

    def __init__(self, node: PatternOp, inputs: Sequence[tuple[int, Step]], context: Context) -> None:
        self.graph = context.graph
        self.inputs = inputs
        variables = 1 + max(variable for columns in node.ends for variable in columns)
        steps = max(len(program.steps) for program in node.programs)
        is_plain = node.predicate is None and all(len(columns) == FIRST_VALUE for columns in node.ends)
        self.widths = [len(columns) for columns in node.ends]
        self.value_join = None if is_plain else ValueJoin(node, context, steps)
        relations = context.relations_of(node.inputs)
        self.join = Join(
            program_arrays(node, relations),
            None,
            new_matching(variables, steps, len(node.output)),
            np.array(relations, np.int32),
        )

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        rows = np.empty((tuples.record.size, len(self.widths)), np.int64)
        extension = None if self.value_join is None else self.value_join.extension()
        with wrapping():
            find_matches(self.graph.graph, self.join._replace(extension=extension), tuples.targets, rows)
        matched = np.flatnonzero(rows[:, 0] != UNPROVED)
        rows, tuples = rows[matched], tuples.take(matched)
        yield FoundRows(np.repeat(tuples.record, rows.shape[1]), rows.ravel())
        for number, step in self.inputs:
            targets = tuples.targets._replace(key=self._key_of(rows[:, number], self.widths[number]))
            yield from step(tuples._replace(targets=targets), vertices)

    def _key_of(self, rows: Array, width: int) -> Array:
        """The columns of rows of the graph."""
        graph = self.graph.graph
        key = np.empty((rows.size, width), np.int32)
        key[:, SRC], key[:, TRG] = graph.src[rows], graph.trg[rows]
        if width > FIRST_VALUE:
            key[:, FIRST_VALUE:] = self.graph.value_columns().value[rows, : width - FIRST_VALUE]
        return key


class UnionStep:
    """The tuple of one input of a union that lasts as long, traced further."""

    def __init__(self, relations: Sequence[int], steps: Sequence[Step | None], context: Context) -> None:
        self.graph = context.graph
        self.inputs = list(zip(relations, steps, strict=True))

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        for relation, step in self.inputs:
            if step is None:
                break
            key, ts, exp = tuples.targets
            rows, expiries = np.empty(ts.size, np.int64), np.empty(ts.size, np.int64)
            with wrapping():
                find_tuples(self.graph.graph, self.graph.values, relation, np.ascontiguousarray(key), rows)
            read_expiries(self.graph.graph, rows, ts, expiries)
            lasts = expiries >= exp
            chosen, left = np.flatnonzero(lasts), np.flatnonzero(~lasts)
            if chosen.size:
                yield FoundRows(tuples.record[chosen], rows[chosen])
                yield from step(tuples.take(chosen), vertices)
            tuples = tuples.take(left)
            if not left.size:
                break


def _joined_paths(total: int, parts: Sequence[FoundPaths], timed: bool) -> Paths:
    """The paths of all records, in their order; those in order of time have times."""
    given = np.zeros(total, np.bool_)
    begin, length = np.zeros(total, np.int64), np.zeros(total, np.int64)
    used = 0
    for part in parts:
        given[part.record] = part.paths.given
        begin[part.record] = used + part.paths.offsets[:-1]
        length[part.record] = np.diff(part.paths.offsets)
        used += part.paths.label.rows
    offsets = np.concatenate([[0], np.cumsum(length)])
    order = np.repeat(begin - offsets[:-1], length) + np.arange(offsets[-1])
    src, label, trg = (
        concat_texts([getattr(part.paths, name) for part in parts]).take(order)
        for name in ("src", "label", "trg")
    )
    if not timed:
        return Paths(offsets, src, label, trg, given)
    times = [
        np.full(part.paths.label.rows, NO_TIME) if part.paths.ts is None else part.paths.ts for part in parts
    ]
    return Paths(offsets, src, label, trg, given, np.concatenate([np.zeros(0, np.int64), *times])[order])


def _joined_rows(total: int, parts: Sequence[FoundRows]) -> ProvedEdges:
    """The rows of all records, in their order."""
    record = np.concatenate([np.zeros(0, np.int64), *(part.record for part in parts)])
    row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
    order = np.argsort(record, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=total))])
    return ProvedEdges(begin, row[order].astype(np.int32), np.zeros(total, np.bool_))


def both(first: ProvedEdges, second: ProvedEdges) -> ProvedEdges:
    """What the same records rest on by two proofs."""
    lengths = [np.diff(edges.begin) for edges in (first, second)]
    total = lengths[0].size
    record = np.concatenate([np.repeat(np.arange(total), length) for length in lengths])
    order = np.argsort(record, kind="stable")
    row = np.concatenate([first.row, second.row])[order]
    begin = np.concatenate([[0], np.cumsum(lengths[0] + lengths[1])])
    return ProvedEdges(begin, row, first.empty | second.empty)
