"""The paths that prove the answers of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from meander.dataflow.answers import NO_TIME, Paths
from meander.dataflow.automaton import automaton_arrays
from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.edges import as_text
from meander.dataflow.graph import WindowGraph
from meander.dataflow.operator import KnownPaths
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG
from meander.kernels.forest import STATES, Automaton
from meander.kernels.interning import HEAD
from meander.kernels.ordered_proofs import TIME, OrderedSearch, prove_ordered_records
from meander.kernels.proofs import PathRows, Records, Search, prove_records
from meander.kernels.standing import ProvedSteps
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_SCRATCH
from meander.kernels.steps import (
    NO_PATH,
    NO_STEP,
    EdgeNumbers,
    Steps,
    measure_steps,
    number_edges,
    write_steps,
)
from meander.physical.plan import Proof
from meander.syntax.query import PathOrder

LEAST_QUEUE = 256
LEAST_PATH_EDGES = 1024
NO_STEPS = Steps(*(np.zeros(0, np.int32) for _ in Steps._fields))


class Proved(NamedTuple):
    """The paths of a batch's records, as rows of the graph and their names."""

    offsets: Array
    row: Array
    name: Array  # a position in the prover's names
    given: Array


class SharedPaths(NamedTuple):
    """The paths of a batch's records, which share their steps; the edges as rows of the graph and their names."""

    last: Array  # by record: the last step, NO_STEP or NO_PATH
    before: Array  # by step: the one before it, or NO_STEP
    length: Array  # by step: the number of steps up to it
    edge: Array  # by step
    row: Array  # by edge
    name: Array  # by edge: a position in the prover's names

    @property
    def given(self) -> Array:
        given: Array = self.last != NO_PATH
        return given


class Prover:
    """Finds the paths of one result's answers."""

    def __init__(
        self, proofs: Sequence[Proof], graph: WindowGraph, relations: Mapping[int, int], store: Store
    ) -> None:
        self.graph = graph
        self.store = store
        self.automata: list[tuple[Automaton, PathOrder]] = []
        self.is_timed = any(proof.path.order for proof in proofs)
        self.first_names = [0]
        names: list[str] = []
        in_order: list[bool] = []
        # The empty path connects a vertex to itself only if no other expression does.
        for proof in sorted(proofs, key=lambda proof: 0 in proof.path.accepting):
            numbers = [relations[source] for source in proof.path.edges]
            automaton = automaton_arrays(proof.path, numbers, graph.relations)
            self.automata.append((automaton, proof.path.order))
            names += proof.labels
            in_order += [proof.path.order is not PathOrder.ANY] * len(proof.labels)
            self.first_names.append(len(names))
        self.names = as_text(names)
        self.in_order = np.array(in_order, np.bool_)  # by name
        self._reserve(0, store.first_capacity(LEAST_QUEUE))
        edges = store.first_capacity(LEAST_PATH_EDGES)
        self.edges, self.moves = np.empty(edges, np.int32), np.empty(edges, np.int32)
        self.numbers = EdgeNumbers(np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.round = 0

    def prove(self, records: Batch, vertices: Vertices) -> Proved:
        """The paths of the records, in their order."""
        count = records.ts.size
        src, trg = np.ascontiguousarray(records.key[:, SRC]), np.ascontiguousarray(records.key[:, TRG])
        given = np.zeros(count, np.bool_)
        begins = np.zeros(count, np.int64)
        lengths = np.zeros(count, np.int64)
        used = 0
        for (automaton, order), first_name in zip(self.automata, self.first_names, strict=False):
            left = np.flatnonzero(~given & (records.op > 0))
            found, begin = np.zeros(left.size, np.bool_), np.zeros(left.size + 1, np.int64)
            cursor = np.array([0, used], np.int64)
            nodes = vertices.capacity * int(automaton.settings[STATES])
            if nodes > self.search.seen.size:
                self._reserve(nodes, self.search.vertex.size)
            targets = Records(*(column[left] for column in (src, trg, records.ts, records.exp)))

            def attempt() -> int:
                # All that this refers to is that of its own round.
                out = PathRows(found, begin, self.edges, self.moves)  # noqa: B023
                search = self.graph.graph, automaton, self.search  # noqa: B023
                if order is PathOrder.ANY:  # noqa: B023
                    return prove_records(*search, targets, out, cursor)  # noqa: B023
                ordered = self._ordered_search(order, vertices)  # noqa: B023
                return prove_ordered_records(*search, ordered, targets, out, cursor)  # noqa: B023

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
            self.moves[used : cursor[EMITTED]] += first_name
            used = int(cursor[EMITTED])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        position = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Proved(offsets, self.edges[position], self.moves[position], given)

    def share(self, records: Batch, known: KnownPaths | None, vertices: Vertices) -> SharedPaths:
        """The paths of the records: those that the operator found with the answers, and a search for each other."""
        last = np.full(records.ts.size, NO_PATH, np.int32) if known is None else known.last
        left = np.flatnonzero((last == NO_PATH) & (records.op > 0))
        steps = NO_STEPS if known is None else known.steps
        if left.size:
            proved = self.prove(take_rows(records, left), vertices)
            last = last.copy()
            last[left] = chained_ends(proved, steps.before.size)
            steps = concat_steps(steps, chained_steps(proved, steps.before.size))
        edge, first = self._number_edges(steps)
        return SharedPaths(last, steps.before, steps.length, edge, steps.row[first], steps.move[first])

    def _number_edges(self, steps: Steps) -> tuple[Array, Array]:
        """The edge of each step by number, and a step of each edge."""
        moves = self.names.rows
        keys = self.graph.graph.relation.size * moves
        if keys > self.numbers.round.size:
            self.store.count_buffer("edges of paths", 2 * 4 * keys)
            self.numbers = EdgeNumbers(np.zeros(keys, np.int32), np.zeros(keys, np.int32))
            self.round = 0
        # Rounds end before their number is too large for its column.
        self.round = self.round % ((1 << 31) - 1) + 1
        if self.round == 1:
            self.numbers.round[:] = 0
        edge, first = np.empty(steps.before.size, np.int32), np.empty(steps.before.size, np.int32)
        count = number_edges(steps, moves, self.numbers, self.round, edge, first)
        return edge, first[:count]

    def _ordered_search(self, order: PathOrder, vertices: Vertices) -> OrderedSearch:
        return OrderedSearch(
            self.earliest,
            self.arrival,
            self.graph.value_columns().value,
            vertices.names.span,
            np.array([order is PathOrder.STRICTLY_ASCENDING], np.int64),
        )

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
            self._times(proved, vertices) if self.is_timed else None,
        )

    def named(self, shared: SharedPaths, vertices: Vertices) -> Paths:
        """The paths by name."""
        step, offsets = path_steps(shared)
        edges = Proved(offsets, shared.row, shared.name, shared.given)
        return self.paths(edges, vertices)._replace(step=step)

    def _times(self, proved: Proved, vertices: Vertices) -> Array:
        """The own times of the edges of the paths in order of time."""
        times = np.full(proved.row.size, NO_TIME, np.int64)
        timed = np.flatnonzero(self.in_order[proved.name])
        value = self.graph.value_columns().value
        times[timed] = vertices.names.span[value[proved.row[timed], TIME], HEAD]
        return times

    def standing_steps(self, shared: SharedPaths) -> ProvedSteps:
        """The edges of the paths, for `StandingRecords`.

        An empty path proves its answer by one expression alone: if that is the only one, it is true as long as the
        answer holds, and otherwise until its vertex loses its edges.
        """
        empty = (shared.last == NO_STEP) & (len(self.automata) > 1)
        return ProvedSteps(shared.last, shared.before, shared.edge, shared.row, empty)

    def _reserve(self, nodes: int, queue: int) -> None:
        """Make room for a search over `nodes` (vertex, state) pairs, with `queue` of them waiting."""
        times = nodes + queue if self.is_timed else 0
        self.store.count_buffer("search", 8 * nodes + 20 * queue + 8 * times)
        self.earliest = np.zeros(nodes if self.is_timed else 0, np.int64)
        self.arrival = np.zeros(queue if self.is_timed else 0, np.int64)
        waiting = np.empty((5, queue), np.int32)
        self.search = Search(
            seen=np.zeros(nodes, np.int64),
            vertex=waiting[0],
            state=waiting[1],
            before=waiting[2],
            row=waiting[3],
            move=waiting[4],
            number=np.zeros(1, np.int64),
        )


def chained_ends(proved: Proved, first: int) -> Array:
    """The last step of each path, if the paths share nothing and their steps are numbered from `first`."""
    ends = np.where(np.diff(proved.offsets) > 0, first + proved.offsets[1:] - 1, NO_STEP)
    return np.where(proved.given, ends, NO_PATH).astype(np.int32)


def chained_steps(proved: Proved, first: int) -> Steps:
    """The steps of paths that share none, numbered from `first`."""
    count = proved.row.size
    before = np.arange(first - 1, first + count - 1, dtype=np.int32)
    begins = proved.offsets[:-1][np.diff(proved.offsets) > 0]
    before[begins] = NO_STEP
    lengths = np.diff(proved.offsets)
    length = np.arange(1, count + 1) - np.repeat(proved.offsets[:-1], lengths)
    return Steps(before, proved.row.astype(np.int32), proved.name.astype(np.int32), length.astype(np.int32))


def concat_steps(first: Steps, second: Steps) -> Steps:
    """The steps of both, if the second are numbered from the end of the first."""
    if not first.before.size:
        return second
    return Steps(*(np.concatenate(columns) for columns in zip(first, second, strict=True)))


def path_steps(shared: SharedPaths) -> tuple[Array, Array]:
    """The edges of all paths, path by path, and where each path begins, with one more for the end."""
    offsets = np.zeros(shared.last.size + 1, np.int64)
    measure_steps(shared.last, shared.length, offsets)
    step = np.empty(int(offsets[-1]), np.int32)
    write_steps(shared.last, shared.before, shared.edge, offsets, step)
    return step, offsets
