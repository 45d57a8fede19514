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
from meander.dataflow.matching import MatchSearch, key_of
from meander.dataflow.operator import Context
from meander.dataflow.path_texts import read_paths
from meander.dataflow.proving import Prover
from meander.dataflow.state import Array
from meander.dataflow.vertices import Vertices
from meander.kernels.lookups import UNPROVED, Targets, find_tuples, read_expiries
from meander.kernels.spans import wrapping
from meander.kernels.standing import ProvedEdges
from meander.physical.plan import (
    ChoiceTrace,
    ColumnTrace,
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
    """The paths of some records, which are the path values `values` of each: for each record those edges of `paths`
    that begin at `begin`, `length` of them."""

    record: Array
    values: tuple[int, ...]
    begin: Array
    length: Array
    given: Array
    paths: Paths


class FoundRows(NamedTuple):
    """Rows of the graph that prove records."""

    record: Array
    row: Array


Found = FoundPaths | FoundRows


class TracedPaths(NamedTuple):
    """The paths of a batch's records by number, and the rows of the graph that all of them rest on."""

    paths: list[Paths]
    edges: ProvedEdges


Step = Callable[[Tuples, Vertices], Iterator[Found]]
"""One node of a trace: the paths and rows of tuples that the node's operator derived."""


Inputs = Sequence[tuple[int, Step]]
"""The inputs of a pattern whose tuples are traced further, by number."""


class Tracer:
    """Finds the path values of one result's answers."""

    def __init__(self, result: Result, context: Context) -> None:
        assert result.trace is not None
        paths = len(result.paths) + result.traces_path
        self.timed = [is_timed(result.trace, value) for value in range(paths)]
        self.context = context
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
                context = self.context
                prover = Prover([proof], context.graph, context.relations, context.store)
                return PathStep(prover, values)
            case ColumnTrace(columns):
                return ColumnStep(columns)
            case PatternTrace():
                return PatternStep([self._pattern(trace)], self.context)
            case ChoiceTrace(patterns):
                return PatternStep(list(map(self._pattern, patterns)), self.context)
            case UnionTrace(inputs):
                relations = [self.context.relations[operator] for operator, _ in inputs]
                steps = [self._step(inner) for _, inner in inputs]
                return UnionStep(relations, steps, self.context)

    def _pattern(self, trace: PatternTrace) -> tuple[PatternOp, Inputs]:
        return trace.pattern, [(number, self._step(inner)) for number, inner in trace.inputs]


class PathStep:
    """The path of a PATH's tuple."""

    def __init__(self, prover: Prover, values: tuple[int, ...]) -> None:
        self.prover = prover
        self.values = values

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        # Many answers may rest on one tuple: its path is searched once.
        key, ts, exp = tuples.targets
        asked = np.column_stack([key, ts, exp]).view([("", np.int64)] * 4).ravel()
        _, first, place = np.unique(asked, return_index=True, return_inverse=True)
        batch = empty_batch(first.size)
        batch.key[:], batch.ts[:], batch.exp[:], batch.op[:] = key[first], ts[first], exp[first], 1
        proved = self.prover.prove(batch, vertices)
        begin, length = proved.offsets[:-1][place], np.diff(proved.offsets)[place]
        yield FoundPaths(
            tuples.record,
            self.values,
            begin,
            length,
            proved.given[place],
            self.prover.paths(proved, vertices),
        )
        offsets = np.concatenate([[0], np.cumsum(length)])
        steps = np.repeat(begin - offsets[:-1], length) + np.arange(offsets[-1])
        yield FoundRows(np.repeat(tuples.record, length), proved.row[steps])


class ColumnStep:
    """The paths that the tuple of a scan has among its values."""

    def __init__(self, columns: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        self.columns = columns

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        for column, values in self.columns:
            # Many answers may rest on one tuple: its path is read once.
            numbers, place = np.unique(tuples.targets.key[:, column], return_inverse=True)
            paths = read_paths(vertices.text(numbers))
            begin, length = paths.offsets[:-1][place], np.diff(paths.offsets)[place]
            yield FoundPaths(tuples.record, values, begin, length, paths.given[place], paths)


class PatternStep:
    """One match for each tuple of a pattern, or of several in union; some of its own tuples are traced further."""

    def __init__(self, patterns: Sequence[tuple[PatternOp, Inputs]], context: Context) -> None:
        self.graph = context.graph
        self.patterns = [
            (MatchSearch(node, context.relations_of(node.inputs), context), node, inputs)
            for node, inputs in patterns
        ]

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        for search, node, inputs in self.patterns:
            rows = search.find(tuples.targets)
            is_matched = rows[:, 0] != UNPROVED
            matched, rows = tuples.take(np.flatnonzero(is_matched)), rows[is_matched]
            yield FoundRows(np.repeat(matched.record, rows.shape[1]), rows.ravel())
            for number, step in inputs:
                key = key_of(self.graph, rows[:, number], len(node.ends[number]))
                yield from step(matched._replace(targets=matched.targets._replace(key=key)), vertices)
            tuples = tuples.take(np.flatnonzero(~is_matched))
            if not tuples.record.size:
                break


class UnionStep:
    """The tuple of one input of a union that lasts as long, traced further."""

    def __init__(self, relations: Sequence[int], steps: Sequence[Step], context: Context) -> None:
        self.graph = context.graph
        self.inputs = list(zip(relations, steps, strict=True))

    def __call__(self, tuples: Tuples, vertices: Vertices) -> Iterator[Found]:
        for relation, step in self.inputs:
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
        given[part.record] = part.given
        begin[part.record] = used + part.begin
        length[part.record] = part.length
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
    return ProvedEdges(begin, row[order], np.zeros(total, np.bool_))
