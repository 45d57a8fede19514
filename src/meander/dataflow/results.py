"""From tuples to answer records: the two output modes, names, and the paths that prove answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.answers import NO_EXPIRY, Answers, Paths, ValueColumn
from meander.dataflow.batch import Batch, split_evenly, take_rows
from meander.dataflow.change_tracking import ChangeTracker
from meander.dataflow.edges import INFINITY, Text, concat_texts
from meander.dataflow.operator import Context, KnownPaths
from meander.dataflow.proofs.search import ProofSearch
from meander.dataflow.proofs.texts import ProofTexts
from meander.dataflow.proving import Proved, Prover, chained_ends, chained_steps
from meander.dataflow.standing import StandingRecords
from meander.dataflow.state import Array
from meander.dataflow.tracing import Tracer
from meander.dataflow.vertices import Vertices
from meander.kernels.merging import NamedRows, name_rows
from meander.kernels.standing import ProvedEdges, ProvedSteps
from meander.kernels.steps import NO_PATH, count_steps, measure_steps, write_steps
from meander.physical.plan import Result
from meander.syntax.values import ValueType


class ResultStream:
    """One result of one query: its tuples become answer records."""

    def __init__(
        self,
        result: Result,
        context: Context,
        *,
        paths: bool,
        proofs: bool,
    ) -> None:
        """`paths` and `proofs`: each record has its path, and its proof."""
        self.result = result
        self.pool = context.pool
        self.store = store = context.store
        graph = context.graph
        width = result.arity + len(result.values)
        self.tracker = ChangeTracker(width, store) if context.mode == "changes" else None
        self.paths = paths
        has_paths = paths and bool(result.proofs)
        self.prover = Prover(result.proofs, graph, context.relations, store) if has_paths else None
        self.proofs = None if result.proof is None else ProofSearch(result.proof, context)
        self.writes_proofs = proofs
        self.texts = None if result.proof is None else ProofTexts(result.proof, store)
        self.tracer = None if result.trace is None else Tracer(result, context)
        self.standing: StandingRecords | None = None
        if self.proofs is not None or self.tracer is not None:
            self.standing = StandingRecords(graph, store, width, max(1, graph.width))
        elif has_paths:
            self.standing = StandingRecords(graph, store, width)

    def bind(self) -> None:
        if self.tracker is not None:
            self.tracker.bind()
        if self.standing is not None:
            self.standing.bind()

    @property
    def retracts_paths(self) -> bool:
        """Whether a deletion can retract a record that was emitted at an earlier instant."""
        return self.standing is not None and self.tracker is None

    def process(
        self,
        batch: Batch,
        span: tuple[int, int],
        vertices: Vertices,
        deletion: int | None,
        known: KnownPaths | None = None,
    ) -> Answers:
        """The records of a batch over a span of time: from the time reached before it, up to its end. `known` are the
        paths of its rows.

        With paths, if an instant is cut into batches, a later one spans that instant alone. If `retracts_paths` and
        something is deleted, that is at time `deletion` and before all rows of the batch.
        """
        reached, upto = span
        total = batch.ts.size
        if self.tracker is not None:
            # A record of a change is not a row of the batch.
            known = None
            batch = self.tracker.process(batch, upto)
            if self.standing is not None and reached == upto:
                answers = self.tracker.table.answers
                batch = self.standing.replace_paths(batch, upto, answers, vertices.capacity)
        elif self.standing is not None and deletion is not None:
            batch = self.standing.retract_paths(batch, deletion, vertices.capacity)
        rows = interval_rows(batch)
        if known is not None:
            retracted = np.full(batch.ts.size - total, NO_PATH, np.int32)
            known = known._replace(last=np.concatenate([retracted, known.last]))
        if rows is not None:
            batch = interval_records(batch, rows)
            if known is not None:
                # The path of a shortened tuple is that of its second record.
                known = known._replace(last=np.where(batch.op > 0, known.last[rows], NO_PATH))
        return self._records(batch, upto, vertices, known)

    def restart(self, time: int, vertices: Vertices) -> Answers:
        """In `changes` mode, what holds at `time`, as if nothing had been emitted before."""
        assert self.tracker is not None
        if self.standing is not None:
            self.standing.clear()
        return self._records(self.tracker.restart(time), time, vertices)

    def _records(
        self, batch: Batch, upto: int, vertices: Vertices, known: KnownPaths | None = None
    ) -> Answers:
        """The records with names and paths."""
        path = no_paths(batch.ts.size) if self.paths else None
        proof: Text | None = None
        standing: list[ProvedSteps] = []
        if self.prover is not None:
            shared = self.prover.share(batch, known, vertices)
            path = self.prover.named(shared, vertices)
            standing.append(self.prover.standing_steps(shared))
        if self.proofs is not None and self.texts is not None:
            trees = self.proofs.prove(batch, vertices)
            if self.writes_proofs:
                proof = self.texts.write(trees, batch.ts, self._expiries(batch), vertices)
            standing.append(steps_of(self.texts.standing_edges(trees)))
        properties = result_values(self.result, batch, vertices)
        if self.tracer is not None:
            traced = self.tracer.trace(batch, vertices)
            standing.append(steps_of(traced.edges))
            if self.result.traces_path:
                path = traced.paths[-1]
            values = map(path_column, self.result.paths, traced.paths)
            properties = tuple(sorted((*properties, *values), key=lambda column: column.name))
        if self.standing is not None:
            add = self.standing.add if self.retracts_paths else self.standing.add_last
            add(batch, merge_steps(standing), upto)
        if self.result.arity == 2:
            return self._name_pairs(batch, vertices, path)._replace(properties=properties, proof=proof)
        names = self.pool.map(vertices.text, batch.key.T[: self.result.arity])
        exp = self._expiries(batch)
        return Answers(
            self.result.label, tuple(names), batch.ts.copy(), exp, batch.op.copy(), path, properties, proof
        )

    def _expiries(self, batch: Batch) -> Array:
        """The expiries as records have them."""
        ended = (batch.op < 0) | (batch.exp >= INFINITY) | (self.tracker is not None)
        return np.where(ended, NO_EXPIRY, batch.exp)

    def _name_pairs(self, batch: Batch, vertices: Vertices, path: Paths | None) -> Answers:
        """Records of pairs, in one pass over the batch."""
        total = batch.ts.size
        # Six columns of eight bytes and three of one in one block: the allocator reuses one large array sooner than
        # nine smaller ones.
        block = np.empty(51 * total, np.uint8)
        wide = block[: 48 * total].view(np.int64).reshape(6, total)
        narrow = block[48 * total :].view(np.int8).reshape(3, total)
        out = NamedRows(*(column for i in range(3) for column in (wide[2 * i], wide[2 * i + 1], narrow[i])))

        def name(rows: slice) -> None:
            part = NamedRows(*(column[rows] for column in out))
            name_rows(take_rows(batch, rows), vertices.names, NO_EXPIRY, part)

        if self.pool.threads == 1:
            name_rows(batch, vertices.names, NO_EXPIRY, out)
        else:
            self.pool.map(name, split_evenly(batch, self.pool.threads))
        if self.tracker is not None:
            out.exp[:] = NO_EXPIRY
        names = (Text(vertices.arena, *out[:3]), Text(vertices.arena, *out[3:6]))
        return Answers(self.result.label, names, out.ts, out.exp, out.op, path)

    def forget_paths(self, time: int) -> None:
        """The records that stand at `time` were emitted with other paths than those known here."""
        if self.standing is not None:
            self.standing.forget_paths()
            if self.tracker is not None:
                self.standing.break_paths(self.tracker.table.answers, time)

    def mark(self, live: Array) -> None:
        if self.tracker is not None:
            self.tracker.mark(live)
            if self.standing is not None:
                self.standing.mark(live)


def result_values(result: Result, batch: Batch, vertices: Vertices) -> tuple[ValueColumn, ...]:
    """The values of a result's tuples, which stand after the vertices in the key."""
    columns = []
    for position, value in enumerate(result.values, start=result.arity):
        assert value.type is not None
        numbers = batch.key[:, position]
        columns.append(ValueColumn(value.name, value.type, vertices.values(numbers, value.type)))
    return tuple(columns)


def path_column(name: str, paths: Paths) -> ValueColumn:
    return ValueColumn(name, ValueType.PATH, paths)


def steps_of(edges: ProvedEdges) -> ProvedSteps:
    """The edges of each record as steps, which it shares with no other."""
    total = edges.row.size
    proved = Proved(edges.begin, edges.row, np.zeros(total, np.int64), np.ones(edges.empty.size, np.bool_))
    steps = chained_steps(proved, 0)
    row, edge = np.unique(edges.row, return_inverse=True)
    return ProvedSteps(chained_ends(proved, 0), steps.before, edge.astype(np.int32), row, edges.empty)


def merge_steps(parts: Sequence[ProvedSteps]) -> ProvedSteps:
    """The edges of the records in all parts, record by record."""
    if len(parts) == 1:
        return parts[0]
    flat = [edges_of(part) for part in parts]
    lengths = [np.diff(part.begin) for part in flat]
    begin = np.concatenate([[0], np.cumsum(sum(lengths))])
    row = np.empty(int(begin[-1]), np.int64)
    filled = begin[:-1].copy()
    for part, length in zip(flat, lengths, strict=True):
        row[np.repeat(filled - part.begin[:-1], length) + np.arange(part.row.size)] = part.row
        filled += length
    return steps_of(ProvedEdges(begin, row, np.logical_or.reduce([part.empty for part in flat])))


def edges_of(steps: ProvedSteps) -> ProvedEdges:
    """The steps of each record as its edges."""
    length = np.empty(steps.before.size, np.int32)
    count_steps(steps.before, length)
    begin = np.zeros(steps.last.size + 1, np.int64)
    measure_steps(steps.last, length, begin)
    edge = np.empty(int(begin[-1]), np.int32)
    write_steps(steps.last, steps.before, steps.edge, begin, edge)
    return ProvedEdges(begin, steps.row[edge], steps.empty)


def interval_rows(batch: Batch) -> Array | None:
    """The row of each record, unless that is each row: a shortened tuple becomes a retraction, and a record until its
    new expiry."""
    if batch.op.min(initial=1) > 0:
        return None
    shortened = (batch.op < 0) & (batch.exp > batch.ts)
    return np.repeat(np.arange(batch.ts.size), 1 + shortened) if shortened.any() else None


def interval_records(batch: Batch, rows: Array) -> Batch:
    """The records of a batch: the second of a row is no retraction."""
    records = take_rows(batch, rows)
    records.op[np.concatenate([[False], rows[1:] == rows[:-1]])] = 1
    return records


def no_paths(count: int) -> Paths:
    """For answers that are no paths."""
    none: Text = concat_texts([])
    return Paths(np.zeros(count + 1, np.int64), none, none, none, np.zeros(count, np.bool_))
