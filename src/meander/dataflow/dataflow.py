"""The dataflow: one process, all operators of all queries, batch after batch.

A batch is cut into parts (`cutting`), and a part runs through the operators in topological order, each from its first
row to its last. Operators process their inputs in order of time and read the shared graph as of the instant they are
at, so the answers do not depend on how the stream was cut. Expired state is dropped before the next part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.batch import NO_PAIRS, Batch
from meander.dataflow.cutting import Cutter, Part
from meander.dataflow.edges import Edges
from meander.dataflow.encoding import StreamEncoder, StreamInput
from meander.dataflow.graph import WindowGraph
from meander.dataflow.operator import Context, Operator, Pending, Ready
from meander.dataflow.operators import OPERATORS
from meander.dataflow.pipeline import Pipeline, StartedPart
from meander.dataflow.reclaiming import VertexReclaimer
from meander.dataflow.results import ResultStream, result_values
from meander.dataflow.state import Array, Budget, Fields, Store
from meander.dataflow.threads import LanePool
from meander.dataflow.vertices import Vertices
from meander.errors import ArgumentError, StateError
from meander.options import MODES
from meander.physical.plan import PhysicalPlan, ReceiveOp, Result, ScanOp
from meander.physical.streams import LabelClass


class OperatorFigures(NamedTuple):
    """The work of an operator so far, and the size of its state."""

    number: int
    name: str
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int
    choice: str = ""  # of an operator that chooses how it works: its choice, and why


class Clock(Fields):
    time: int = -1


class Dataflow:
    """All queries of a run: `process` takes edges and emits answers."""

    def __init__(
        self,
        plan: PhysicalPlan,
        *,
        mode: str = "intervals",
        paths: bool = False,
        proofs: bool = False,
        memory: int | None = None,
        folder: Path | None = None,
        threads: int = 1,
    ) -> None:
        if mode not in MODES:
            raise ArgumentError(f"unknown mode {mode!r}", hint=f"accepted: {', '.join(MODES)}")
        if threads < 1:
            raise ArgumentError(f"invalid number of threads: {threads}", hint="threads is 1 or more")
        self.plan, self.mode, self.paths = plan, mode, paths
        # The path or the proof of an answer is looked for at the end of its part.
        self.proves = paths or any(result.is_proved for result in plan.results)
        self.pool = LanePool(threads)
        self.budget = Budget(memory)
        self.stores: dict[str, Store] = {}
        self.folder = folder
        self.vertices = Vertices(self._store("vertices"))
        self.relations = {number: relation for relation, number in enumerate(plan.indexed)}
        links = list(plan.indexed.values())
        self.graph = WindowGraph(self._store("graph of the window"), links, validity=proofs)
        self.encoders = {
            stream: StreamEncoder(stream, nodes, self.vertices) for stream, nodes in readers(plan).items()
        }
        labels = {stream: encoder.classes for stream, encoder in self.encoders.items()}
        self.pipeline = Pipeline(
            self.pool,
            self._start,
            self._finish,
            results=[result.input for result in plan.results],
            paths=self.proves,
        )
        # Operators whose output other operators read, here or in another stage; these and those in the graph are
        # awaited at once, the others when their answers are emitted.
        self.read = {source for node in plan.operators for source in node.inputs}
        self.read |= {result.input for result in plan.results if result.raw}
        self.awaited = self.read | set(self.relations)
        # Operators whose tuples are answers with their paths, as they are emitted.
        self.proving = {
            result.input
            for result in plan.results
            if paths and [proof.path for proof in result.proofs] == [plan.operators[result.input]]
        } - set(self.relations)
        self.results = [
            ResultStream(
                result,
                self._context(result.input, self._store(f"result {number} {result.head}"), labels),
                paths=paths,
                proofs=proofs,
            )
            for number, result in enumerate(plan.results)
            if not result.raw
        ]
        self.operators: list[Operator] = [
            OPERATORS[type(node)](
                node, self._context(number, self._store(f"#{number} {plan.names[number]}"), labels)
            )
            for number, node in enumerate(plan.operators)
        ]
        clock = self._store("clock")
        self.clock = Clock(clock, "clock")
        retracts_paths = any(result.retracts_paths for result in self.results)
        tables = {node.stream for node in plan.operators if isinstance(node, ScanOp) and node.table}
        self.cutter = Cutter(clock, paths=self.proves, retracts_paths=retracts_paths, tables=tables)
        self.reclaimer = VertexReclaimer(clock, self.vertices, self.graph, self.operators, self.results)
        for name in ("rows_in", "rows_out"):
            clock.array(name, len(plan.operators), np.int64)
        meaning = repr((plan.operators, plan.results, plan.indexed, mode, paths, proofs))
        self.identity = np.frombuffer(hashlib.sha256(meaning.encode()).digest(), np.uint8)
        clock.array("plan", self.identity.size, np.uint8)[:] = self.identity

    def _store(self, owner: str) -> Store:
        # An owner may have a name too long for a folder.
        folder = None if self.folder is None else self.folder / f"{len(self.stores):03}"
        self.stores[owner] = Store(owner, self.budget, folder)
        return self.stores[owner]

    def _context(self, number: int, store: Store, labels: Mapping[str, Sequence[LabelClass]]) -> Context:
        """What an operator, or a result of its tuples, is provided with."""
        is_read = number in self.read
        return Context(
            number=number,
            store=store,
            graph=self.graph,
            relations=self.relations,
            labels=labels,
            vertices=self.vertices,
            pool=self.pool,
            mode=self.mode,
            paths=self.proves,
            is_read=is_read,
            proves=self.mode == "intervals" and number in self.proving,
            ahead=0 if is_read else self.pipeline.depth,
        )

    # -----------------------------------------------------------------------------------------------------
    # Batches

    def process(
        self, edges: Mapping[str, Edges], upto: int | None, *, more: bool = False
    ) -> Iterator[tuple[Result, Answers]]:
        """Process edges, sorted by time, none before the time reached nor later than `upto`; emit the answers.

        All edges before `upto` have then been seen. Without edges only time advances; with INFINITY the run ends.
        Edges are processed as the answers are iterated over. With `more` another batch follows at once: with several
        threads, the last answers may be emitted with that batch. If a part of the batch fails, the answers of those
        before it are emitted first.
        """
        parts = self.cutter.cut(edges, self.time, upto)
        return self.pipeline.run(parts, lambda: self.time, more=more)

    def _start(self, part: Part, horizon: int) -> StartedPart:
        """Run a part through the operators; state that expired up to `horizon` is dropped before."""
        self.graph.begin(horizon)
        self.reclaimer.reclaim(horizon)
        streams: dict[StreamInput, Batch] = {}
        for stream, edges in part.edges.items():
            if stream in self.encoders:
                streams |= self.encoders[stream].encode(edges)
        self.graph.reserve_vertices(self.vertices.capacity)
        outputs: list[Pending] = []
        rows_in, rows_out = self.rows_in, self.rows_out
        most = 0
        for number, operator in enumerate(self.operators):
            inputs = [
                outputs[source].result() if isinstance(source, int) else streams.get(source, NO_PAIRS)
                for source in operator.inputs
            ]
            rows_in[number] += sum([batch.ts.size for batch in inputs])
            pending = operator.start(inputs, part.upto)
            if number in self.awaited:
                batch = pending.result()
                most = max(most, batch.ts.size)
                rows_out[number] += batch.ts.size
                if number in self.relations:
                    batch = self.graph.update(self.relations[number], batch)
                pending = Ready(batch)
            outputs.append(pending)
        reached, self.clock.time = self.time, part.upto
        return StartedPart(part, reached, outputs, most)

    def _finish(self, started: StartedPart) -> Iterator[tuple[Result, Answers]]:
        """Emit the answers of a part."""
        outputs = {result.input: started.outputs[result.input].result() for result in self.plan.results}
        most = started.rows_out
        for number, batch in outputs.items():
            if number not in self.awaited:
                most = max(most, batch.ts.size)
                self.rows_out[number] += batch.ts.size
        self.cutter.adapt(started.part.rows, most)
        span = started.reached, started.part.upto
        for stream in self.results:
            batch = outputs[stream.result.input]
            known = None
            if stream.result.input in self.proving:
                known = self.operators[stream.result.input].known_paths
            yield stream.result, stream.process(batch, span, self.vertices, started.part.deletion, known)
        for result in self.plan.results:
            if result.raw:
                yield result, self._tuples(result, outputs[result.input])

    def _tuples(self, result: Result, batch: Batch) -> Answers:
        """An operator's tuples unchanged, by name."""
        names = tuple(self.vertices.text(column) for column in batch.key.T[: result.arity])
        return Answers(
            label=result.label,
            vertices=names,
            ts=batch.ts.copy(),
            exp=batch.exp.copy(),
            op=batch.op.copy(),
            properties=result_values(result, batch, self.vertices),
        )

    # -----------------------------------------------------------------------------------------------------
    # Recovery

    def replay(self, parts: Iterable[Mapping[str, Edges]], upto: int) -> Iterator[tuple[Result, Answers]]:
        """Process edges that were processed before, by this plan or another one, up to the same time.

        Only the instant `upto` has to be split into the same parts as before. The state then follows from the edges
        alone: every tuple has its largest expiry. Nothing is known of the paths that were emitted before.
        """
        for operator in self.operators:
            operator.backfill(True, self.time)
        for edges in parts:
            yield from self.process(edges, upto)
        for operator in self.operators:
            operator.backfill(False, self.time)
        for result in self.results:
            result.forget_paths(self.time)

    def restart(self, results: Sequence[Result]) -> list[tuple[Result, Answers]]:
        """In `changes` mode, what holds now of some results of which nothing has been emitted yet."""
        chosen = [stream for stream in self.results if stream.result in results]
        return [(stream.result, stream.restart(self.time, self.vertices)) for stream in chosen]

    @property
    def may_underreport_expiry(self) -> bool:
        """Whether emitted records may understate how long an answer holds."""
        return any(operator.may_underreport_expiry for operator in self.operators)

    def snapshot(self) -> dict[str, Array]:
        """A copy of all state, between two batches of which the second was not announced."""
        assert not self.pipeline.started
        return {
            f"{owner}/{name}": array
            for owner, store in self.stores.items()
            for name, array in store.snapshot().items()
        }

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Resume from a snapshot of a dataflow of the same plan, mode and choice of paths."""
        if not np.array_equal(arrays.get("clock/plan", ()), self.identity):
            raise StateError(
                "the snapshot belongs to another plan", hint="its query, options and version must be the same"
            )
        by_owner: dict[str, dict[str, Array]] = {owner: {} for owner in self.stores}
        for key, array in arrays.items():
            owner, _, name = key.rpartition("/")
            if owner not in by_owner:
                raise StateError(f"the snapshot has state of {owner!r}, which this plan does not have")
            by_owner[owner][name] = array
        for owner, store in self.stores.items():
            store.restore(by_owner[owner])
        self.vertices.bind()
        self.graph.bind()
        for operator in self.operators:
            operator.bind()
        for result in self.results:
            result.bind()

    # -----------------------------------------------------------------------------------------------------
    # Figures

    @property
    def time(self) -> int:
        """The time that all operators have reached, or -1."""
        return self.clock.time

    @property
    def rows_in(self) -> Array:
        return self.stores["clock"].arrays["rows_in"]

    @property
    def rows_out(self) -> Array:
        return self.stores["clock"].arrays["rows_out"]

    @property
    def state_bytes(self) -> int:
        return self.budget.used

    def labels_seen(self) -> dict[str, bool]:
        """For each label that a scan reads, whether an edge had it, before predicates."""
        seen: dict[str, bool] = {}
        for encoder in self.encoders.values():
            for of, had_rows in encoder.seen.items():
                name = f"{of.label} (of a vertex)" if of.vertex else str(of.label)
                seen[name] = seen.get(name, False) or had_rows
        return seen

    def labels_unseen(self) -> list[str]:
        """The labels that a scan reads and that no edge has had."""
        return [label for label, seen in self.labels_seen().items() if not seen]

    def figures(self) -> list[OperatorFigures]:
        """The figures of each operator."""
        valid_rows = self.graph.valid_rows(self.time)
        return [
            OperatorFigures(
                number,
                name,
                int(self.rows_in[number]),
                int(self.rows_out[number]),
                operator.state_rows
                + (int(valid_rows[self.relations[number]]) if number in self.relations else 0),
                operator.store.nbytes,
                operator.choice,
            )
            for number, (name, operator) in enumerate(zip(self.plan.names, self.operators, strict=True))
        ]


def readers(plan: PhysicalPlan) -> dict[str, list[ScanOp | ReceiveOp]]:
    """By stream: the operators that read it."""
    nodes = [node for node in plan.operators if isinstance(node, ScanOp | ReceiveOp)]
    return {stream: [node for node in nodes if node.stream == stream] for stream in plan.streams}
