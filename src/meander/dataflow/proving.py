"""The paths that prove the answers of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from meander.dataflow.answers import NO_TIME, Paths
from meander.dataflow.automaton import automaton_arrays
from meander.dataflow.batch import Batch
from meander.dataflow.edges import as_text
from meander.dataflow.graph import WindowGraph
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG
from meander.kernels.forest import STATES, Automaton
from meander.kernels.interning import HEAD
from meander.kernels.ordered_proofs import TIME, OrderedSearch, prove_ordered_records
from meander.kernels.proofs import PathRows, Records, Search, prove_records
from meander.kernels.standing import ProvedEdges
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_SCRATCH
from meander.physical.plan import Proof
from meander.syntax.query import PathOrder

LEAST_QUEUE = 256
LEAST_PATH_EDGES = 1024


class Proved(NamedTuple):
    """The paths of a batch's records, as rows of the graph and their names."""

    offsets: Array
    row: Array
    name: Array  # a position in the prover's names
    given: Array


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

    def _times(self, proved: Proved, vertices: Vertices) -> Array:
        """The own times of the edges of the paths in order of time."""
        times = np.full(proved.row.size, NO_TIME, np.int64)
        timed = np.flatnonzero(self.in_order[proved.name])
        value = self.graph.value_columns().value
        times[timed] = vertices.names.span[value[proved.row[timed], TIME], HEAD]
        return times

    def standing_edges(self, proved: Proved) -> ProvedEdges:
        """The edges of the paths, for `StandingRecords`.

        An empty path proves its answer by one expression alone: if that is the only one, it is true as long as the
        answer holds, and otherwise until its vertex loses its edges.
        """
        empty = proved.given & (np.diff(proved.offsets) == 0)
        return ProvedEdges(proved.offsets, proved.row, empty & (len(self.automata) > 1))

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
