"""From tuples to answer records: the two output modes, names, and the paths that prove answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.answers import NO_EXPIRY, Answers, Paths
from meander.dataflow.edges import Text, as_text, concat_texts
from meander.dataflow.graph import WindowGraph
from meander.dataflow.path import automaton_arrays
from meander.dataflow.pattern import LEAST_ANSWERS, LEAST_OUTPUT, AnswerTable, grow_keyed_rows, keyed_rows
from meander.dataflow.state import Array, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.changes import STARTS, Changes, mark_open, pack_changes, track_changes
from meander.kernels.graph import DONE, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE
from meander.kernels.pattern import KeyedRows
from meander.kernels.proofs import PathRows, Records, Search, prove_records
from meander.physical.plan import Proof, Result

LEAST_PATH_EDGES = 1024


class ChangeTracker:
    """The `changes` mode of one result."""

    def __init__(self, arity: int, store: Store) -> None:
        self.store = store
        self.table = AnswerTable(store, arity)
        store.array("changes.status", LEAST_ANSWERS, np.int8)
        store.array("changes.stop_exp", LEAST_ANSWERS, np.int64)
        store.array("changes.stop_entry", LEAST_ANSWERS, np.int32)
        store.array("changes.starts", LEAST_ANSWERS, np.int32)
        store.array("changes.counts", 2, np.int64)
        store.array("cursor", 3, np.int64)
        self.out = keyed_rows(LEAST_OUTPUT, arity)
        self.bind()

    def bind(self) -> None:
        self.table.bind()
        self.changes = Changes(*(self.store.arrays[f"changes.{column}"] for column in Changes._fields))

    @property
    def rows(self) -> int:
        return int(self.table.answers.counts[0])

    def process(self, rows: KeyedRows, upto: int) -> KeyedRows:
        rows = KeyedRows(*(np.ascontiguousarray(column) for column in rows))
        cursor = self.store.arrays["cursor"]
        cursor[:2] = 0
        self._reserve(rows.ts.size)
        while True:
            status = track_changes(rows, upto, self.table.answers, self.changes, self.out, cursor)
            if status == DONE:
                return KeyedRows(*(column[: cursor[1]] for column in self.out))
            if status == FULL_OUTPUT:
                self.out = grow_keyed_rows(self.out, 2 * self.out.ts.size)
            else:
                assert status == FULL_TABLE
                if self.changes.counts[STARTS] == 0:
                    pack_changes(self.table.answers, self.changes)
                # What waits for the end of its instant must not be dropped: then the table only grows.
                self.table.make_room(-1)
                self._reserve(rows.ts.size)

    def _reserve(self, more: int) -> None:
        entries = self.table.answers.exp.size
        stops = int(self.changes.counts[0]) + more + entries
        self.store.grow("changes.status", entries)
        self.store.grow("changes.starts", entries)
        if stops > self.changes.stop_exp.size:
            self.store.grow("changes.stop_exp", 2 * stops)
            self.store.grow("changes.stop_entry", 2 * stops)
        self.bind()

    def mark(self, live: Array) -> None:
        mark_open(self.table.answers, self.changes, live)


class Prover:
    """Finds the paths of one result's answers."""

    def __init__(self, proofs: Sequence[Proof], graph: WindowGraph, relations: dict[int, int]) -> None:
        self.graph = graph
        self.automata = []
        self.names: dict[int, str] = {}
        for proof in proofs:
            numbers = [relations[source] for source in proof.path.inputs]
            self.automata.append(automaton_arrays(proof.path, numbers, graph.relations))
            self.names |= dict(zip(numbers, proof.labels, strict=True))
        self.search = _new_search(0, LEAST_ANSWERS)

    def prove(self, rows: KeyedRows, vertices: Vertices) -> Paths:
        """The paths of the records, in their order."""
        count = rows.ts.size
        src, trg = np.ascontiguousarray(rows.key[:, 0]), np.ascontiguousarray(rows.key[:, 1])
        given = np.zeros(count, np.bool_)
        edges = np.empty(LEAST_PATH_EDGES, np.int32)
        begins = np.zeros(count, np.int64)
        lengths = np.zeros(count, np.int64)
        used = 0
        for automaton in self.automata:
            left = np.flatnonzero(~given & (rows.op > 0))
            out = PathRows(np.zeros(left.size, np.bool_), np.zeros(left.size + 1, np.int64), edges)
            cursor = np.array([0, used], np.int64)
            places = vertices.capacity * int(automaton.settings[0])
            if places > self.search.seen.size:
                self.search = _new_search(places, self.search.vertex.size)
            asked = Records(*(column[left] for column in (src, trg, rows.ts, rows.exp)))
            while True:
                status = prove_records(self.graph.graph, automaton, self.search, asked, out, cursor)
                if status == DONE:
                    break
                if status == FULL_OUTPUT:
                    edges = np.concatenate([out.row, np.empty_like(out.row)])
                    out = out._replace(row=edges)
                else:
                    assert status == FULL_SCRATCH
                    self.search = _new_search(self.search.seen.size, 2 * self.search.vertex.size)
            given[left] = out.given
            begins[left] = out.begin[:-1]
            lengths[left] = np.diff(out.begin)
            used = int(cursor[1])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        order = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        chosen_rows = edges[order]
        graph = self.graph.graph
        kinds = np.unique(graph.relation[chosen_rows], return_inverse=True)
        names = as_text([self.names[int(relation)] for relation in kinds[0]])
        return Paths(
            offsets,
            vertices.text(graph.src[chosen_rows]),
            names.take(kinds[1]),
            vertices.text(graph.trg[chosen_rows]),
            given,
        )


def _new_search(places: int, queue: int) -> Search:
    return Search(
        np.zeros(places, np.int64),
        np.empty(queue, np.int32),
        np.empty(queue, np.int32),
        np.empty(queue, np.int32),
        np.empty(queue, np.int32),
        np.zeros(1, np.int64),
    )


class ResultStream:
    """One result of one query: its tuples become answer records."""

    def __init__(
        self,
        result: Result,
        graph: WindowGraph,
        relations: dict[int, int],
        store: Store,
        *,
        mode: str,
        paths: bool,
    ) -> None:
        self.result = result
        self.store = store
        self.tracker = ChangeTracker(result.arity, store) if mode == "changes" else None
        self.paths = paths
        self.prover = Prover(result.proofs, graph, relations) if paths and result.proofs else None

    def bind(self) -> None:
        if self.tracker is not None:
            self.tracker.bind()

    def process(self, rows: KeyedRows, upto: int, vertices: Vertices) -> Answers:
        rows = self.tracker.process(rows, upto) if self.tracker is not None else interval_records(rows)
        path = None
        if self.paths:
            path = self.prover.prove(rows, vertices) if self.prover is not None else no_paths(rows.ts.size)
        ends = np.where(rows.op < 0, NO_EXPIRY, rows.exp) if self.tracker is None else None
        return Answers(
            label=self.result.label,
            vertices=tuple(
                vertices.text(np.ascontiguousarray(rows.key[:, position]))
                for position in range(self.result.arity)
            ),
            ts=rows.ts.copy(),
            exp=np.full(rows.ts.size, NO_EXPIRY, np.int64) if ends is None else ends,
            op=rows.op.copy(),
            path=path,
        )

    def mark(self, live: Array) -> None:
        if self.tracker is not None:
            self.tracker.mark(live)


def interval_records(rows: KeyedRows) -> KeyedRows:
    """A tuple that is shortened is cut, and given anew until its new expiry."""
    shortened = (rows.op < 0) & (rows.exp > rows.ts)
    if not shortened.any():
        return rows
    twice = np.repeat(np.arange(rows.ts.size), 1 + shortened)
    records = KeyedRows(*(column[twice] for column in rows))
    again = np.concatenate([[False], twice[1:] == twice[:-1]])
    records.op[again] = 1
    return records


def no_paths(count: int) -> Paths:
    """For answers that are no paths."""
    none: Text = concat_texts([])
    return Paths(np.zeros(count + 1, np.int64), none, none, none, np.zeros(count, np.bool_))
