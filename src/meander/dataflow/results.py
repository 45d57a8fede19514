"""From tuples to answer records: the two output modes, names, and the paths that prove answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meander.dataflow.answers import NO_EXPIRY, Answers, Paths
from meander.dataflow.edges import Text, as_text, concat_texts
from meander.dataflow.graph import WindowGraph, merge_parts, pieces_of_time, slice_rows
from meander.dataflow.path import automaton_arrays
from meander.dataflow.pattern import (
    LEAST_ANSWERS,
    LEAST_OUTPUT,
    AnswerTable,
    as_keyed,
    double_output,
    keyed_rows,
)
from meander.dataflow.resumption import run_to_end
from meander.dataflow.standing import StandingRecords
from meander.dataflow.state import Array, Store
from meander.dataflow.threads import Team
from meander.dataflow.vertices import Vertices
from meander.kernels.changes import STOPS, Changes, mark_open, pack_changes, restart_changes, track_changes
from meander.kernels.graph import FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, Rows
from meander.kernels.merging import NamedRows, name_rows
from meander.kernels.pattern import KeyedRows
from meander.kernels.proofs import PathRows, Records, Search, prove_records
from meander.kernels.standing import ProvedEdges
from meander.physical.plan import Proof, Result

LEAST_PATH_EDGES = 1024


class ChangeTracker:
    """The `changes` mode of one result."""

    def __init__(self, arity: int, store: Store) -> None:
        self.store = store
        self.table = AnswerTable(store, arity)
        self.table.add_column("changes.status", np.int8)
        self.table.add_column("changes.starts", np.int32)
        store.array("changes.stop_exp", self.table.capacity, np.int64)
        store.array("changes.stop_entry", self.table.capacity, np.int32)
        store.array("changes.counts", 2, np.int64)
        store.array("cursor", 3, np.int64)
        self.out = keyed_rows(store.first_capacity(LEAST_OUTPUT), arity)
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
        self._reserve_stops(rows.ts.size)

        def attempt() -> int:
            return track_changes(rows, upto, self.table.answers, self.changes, self.out, cursor)

        def make_room() -> None:
            self.table.make_room(self._pack)
            self._reserve_stops(rows.ts.size)

        run_to_end(self.store, cursor, attempt, {FULL_OUTPUT: self._double_output, FULL_TABLE: make_room})
        return KeyedRows(*(column[: cursor[1]] for column in self.out))

    def _pack(self) -> None:
        self.bind()
        pack_changes(self.table.answers, self.changes)

    def _double_output(self) -> None:
        self.out = double_output(self.out, self.store)

    def _reserve_stops(self, more: int) -> None:
        """Room for the stops of all entries and of as many rows."""
        entries = self.table.capacity
        if self.changes.counts[STOPS] + more + entries > self.changes.stop_exp.size:
            # Most of the heap may be expiries that answers have outlived.
            pack_changes(self.table.answers, self.changes)
            stops = int(self.changes.counts[STOPS]) + more + entries
            if stops > self.changes.stop_exp.size:
                self.store.grow("changes.stop_exp", 2 * stops)
                self.store.grow("changes.stop_entry", 2 * stops)
                self.bind()

    def restart(self, time: int) -> KeyedRows:
        """The answers that hold at `time`, as if none had been emitted before."""
        out = keyed_rows(self.rows, self.table.answers.key.shape[1])
        count = restart_changes(self.table.answers, self.changes, time, out)
        return KeyedRows(*(column[:count] for column in out))

    def mark(self, live: Array) -> None:
        mark_open(self.table.answers, self.changes, live)


class Proved(NamedTuple):
    """The paths of a batch's records, as rows of the graph and what each is called."""

    offsets: Array
    row: Array
    name: Array  # into the prover's names
    given: Array


class Prover:
    """Finds the paths of one result's answers."""

    def __init__(
        self, proofs: Sequence[Proof], graph: WindowGraph, relations: dict[int, int], store: Store
    ) -> None:
        self.graph = graph
        self.store = store
        self.automata = []
        self.first_names = [0]
        names: list[str] = []
        # A vertex is joined to itself by the empty path only where no other expression does it.
        for proof in sorted(proofs, key=lambda one: 0 in one.path.accepting):
            numbers = [relations[source] for source in proof.path.edges]
            self.automata.append(automaton_arrays(proof.path, numbers, graph.relations))
            names += proof.labels
            self.first_names.append(len(names))
        self.names = as_text(names)
        self._reserve(0, store.first_capacity(LEAST_ANSWERS))
        edges = store.first_capacity(LEAST_PATH_EDGES)
        self.edges, self.moves = np.empty(edges, np.int32), np.empty(edges, np.int32)

    def prove(self, rows: KeyedRows, capacity: int) -> Proved:
        """The paths of the records, in their order; all vertices are below `capacity`."""
        count = rows.ts.size
        src, trg = np.ascontiguousarray(rows.key[:, 0]), np.ascontiguousarray(rows.key[:, 1])
        given = np.zeros(count, np.bool_)
        begins = np.zeros(count, np.int64)
        lengths = np.zeros(count, np.int64)
        used = 0
        for automaton, first_name in zip(self.automata, self.first_names, strict=False):
            left = np.flatnonzero(~given & (rows.op > 0))
            found, begin = np.zeros(left.size, np.bool_), np.zeros(left.size + 1, np.int64)
            cursor = np.array([0, used], np.int64)
            places = capacity * int(automaton.settings[0])
            if places > self.search.seen.size:
                self._reserve(places, self.search.vertex.size)
            asked = Records(*(column[left] for column in (src, trg, rows.ts, rows.exp)))

            def attempt() -> int:
                out = PathRows(found, begin, self.edges, self.moves)  # noqa: B023 - called in this round only
                return prove_records(self.graph.graph, automaton, self.search, asked, out, cursor)  # noqa: B023

            run_to_end(
                self.store,
                cursor,
                attempt,
                {
                    FULL_OUTPUT: self._double_paths,
                    FULL_SCRATCH: lambda: self._reserve(self.search.seen.size, 2 * self.search.vertex.size),
                },
            )
            given[left] = found
            begins[left] = begin[:-1]
            lengths[left] = np.diff(begin)
            self.moves[used : cursor[1]] += first_name
            used = int(cursor[1])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        order = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Proved(offsets, self.edges[order], self.moves[order], given)

    def _double_paths(self) -> None:
        self.store.count_buffer("paths", 4 * self.edges.nbytes)
        self.edges = np.concatenate([self.edges, np.empty_like(self.edges)])
        self.moves = np.concatenate([self.moves, np.empty_like(self.moves)])

    def paths(self, proved: Proved, vertices: Vertices) -> Paths:
        """The paths by name."""
        graph = self.graph.graph
        return Paths(
            proved.offsets,
            vertices.text(graph.src[proved.row]),
            self.names.take(proved.name),
            vertices.text(graph.trg[proved.row]),
            proved.given,
        )

    def standing_edges(self, proved: Proved) -> ProvedEdges:
        """The edges by which records stand.

        An empty path proves its answer by one expression alone: where that is the only one, it is true as long as the
        answer holds, and otherwise until its vertex loses its edges.
        """
        empty = proved.given & (np.diff(proved.offsets) == 0)
        return ProvedEdges(proved.offsets, proved.row, empty & (len(self.automata) > 1))

    def _reserve(self, places: int, queue: int) -> None:
        """Room for a search over so many (vertex, state) with so many of them waiting."""
        self.store.count_buffer("search", 8 * places + 20 * queue)
        waiting = np.empty((5, queue), np.int32)
        self.search = Search(
            seen=np.zeros(places, np.int64),
            vertex=waiting[0],
            state=waiting[1],
            before=waiting[2],
            row=waiting[3],
            move=waiting[4],
            number=np.zeros(1, np.int64),
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
        team: Team,
    ) -> None:
        self.result = result
        self.team = team
        self.store = store
        self.tracker = ChangeTracker(result.arity, store) if mode == "changes" else None
        self.paths = paths
        self.prover = Prover(result.proofs, graph, relations, store) if paths and result.proofs else None
        self.standing = StandingRecords(graph, store) if self.prover is not None else None

    def bind(self) -> None:
        if self.tracker is not None:
            self.tracker.bind()
        if self.standing is not None:
            self.standing.bind()

    @property
    def cuts_paths(self) -> bool:
        """Whether a deletion can cut a record that was handed out at an earlier instant."""
        return self.standing is not None and self.tracker is None

    def process(
        self,
        rows: Rows | KeyedRows | list[Rows],
        span: tuple[int, int],
        vertices: Vertices,
        deletion: int | None,
    ) -> Answers:
        """The records of a batch over a span of time: from the time that was reached before it, up to its end.

        Several `rows` are parts, each in order of time. With paths, where an instant is cut into batches a later
        one spans that instant alone. Where `cuts_paths` and something is deleted, that is at time `deletion` and
        before all rows of the batch.
        """
        if isinstance(rows, Rows):
            rows = [rows]
        if isinstance(rows, list):
            plain = self.tracker is None and self.prover is None
            if plain and not any((part.op < 0).any() and is_shortened(part).any() for part in rows):
                return self._pairs(rows, vertices)
            rows = merge_parts(rows)
        keyed = as_keyed(rows)
        reached, upto = span
        if self.tracker is not None:
            keyed = self.tracker.process(keyed, upto)
            if self.standing is not None and reached == upto:
                answers = self.tracker.table.answers
                keyed = self.standing.replace_paths(keyed, upto, answers, vertices.capacity)
        elif self.standing is not None and deletion is not None:
            keyed = self.standing.cut_paths(keyed, deletion, vertices.capacity)
        return self._records(interval_records(keyed), upto, vertices)

    def restart(self, time: int, vertices: Vertices) -> Answers:
        """In `changes` mode, what holds at `time`, as if nothing had been emitted before."""
        assert self.tracker is not None
        if self.standing is not None:
            self.standing.clear()
        return self._records(self.tracker.restart(time), time, vertices)

    def _records(self, keyed: KeyedRows, upto: int, vertices: Vertices) -> Answers:
        """The records with names and paths."""
        path = no_paths(keyed.ts.size) if self.paths else None
        if self.prover is not None:
            proved = self.prover.prove(keyed, vertices.capacity)
            path = self.prover.paths(proved, vertices)
            if self.standing is not None:
                keep = self.standing.keep if self.cuts_paths else self.standing.keep_last
                keep(keyed, self.prover.standing_edges(proved), upto)
        names = self.team.map(vertices.text, keyed.key.T)
        without = keyed.op < 0 if self.tracker is None else True
        exp = np.where(without, NO_EXPIRY, keyed.exp)
        return Answers(self.result.label, tuple(names), keyed.ts.copy(), exp, keyed.op.copy(), path)

    def _pairs(self, parts: list[Rows], vertices: Vertices) -> Answers:
        """The records of pairs that need nothing but names for numbers, in one pass."""
        first = parts[0]
        second = merge_parts(parts[1:])
        total = first.ts.size + second.ts.size
        # Six columns of eight bytes and three of one in one block: the memory of one large array is more readily used
        # again than that of nine.
        block = np.empty(51 * total, np.uint8)
        wide = block[: 48 * total].view(np.int64).reshape(6, total)
        narrow = block[48 * total :].view(np.int8).reshape(3, total)
        out = NamedRows(*(one for i in range(3) for one in (wide[2 * i], wide[2 * i + 1], narrow[i])))

        def name(piece: tuple[slice, slice, slice]) -> None:
            one, other = slice_rows(first, piece[0]), slice_rows(second, piece[1])
            name_rows(one, other, vertices.names, NO_EXPIRY, NamedRows(*(column[piece[2]] for column in out)))

        self.team.map(name, pieces_of_time(first, second, self.team.threads))
        names = (Text(vertices.arena, *out[:3]), Text(vertices.arena, *out[3:6]))
        path = no_paths(total) if self.paths else None
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


def is_shortened(rows: Rows | KeyedRows) -> Array:
    """By tuple: whether it says that its answer ends earlier, but not yet."""
    shortened: Array = (rows.op < 0) & (rows.exp > rows.ts)
    return shortened


def interval_records(rows: KeyedRows) -> KeyedRows:
    """A tuple that is shortened is cut, and given anew until its new expiry."""
    shortened = is_shortened(rows)
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
