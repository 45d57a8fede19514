"""The dataflow: one process, all operators of all queries, batch after batch.

A batch runs through the operators in topological order, each from its first row to its last. Operators walk
their inputs in order of time and read the shared graph as of the instant they are at, so the answers do not
depend on where the stream was cut into batches. What has expired is given back after the batch.

With several threads an operator whose tuples nobody reads but a result may still be at work on one part of a batch
while the next ones are begun (`AHEAD`): then no thread waits for another at the end of each part, nor, where the
next batch is at hand, at the end of a batch.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meander.algebra.nodes import Condition
from meander.dataflow.answers import Answers
from meander.dataflow.auto import AutoPathOperator
from meander.dataflow.closure import ClosureOperator
from meander.dataflow.edges import Edges, match_labels
from meander.dataflow.graph import NO_ROWS, WindowGraph
from meander.dataflow.path import TreePathOperator
from meander.dataflow.pattern import PatternOperator, as_keyed, as_pairs
from meander.dataflow.results import ResultStream
from meander.dataflow.state import Array, Budget, Store
from meander.dataflow.threads import Team
from meander.dataflow.union import UnionOperator
from meander.dataflow.vertices import Vertices
from meander.errors import ArgumentError, StateError
from meander.kernels.graph import Rows
from meander.kernels.pattern import KeyedRows, MergedRows
from meander.physical.plan import (
    FilterOp,
    PathOp,
    PatternOp,
    PhysicalPlan,
    ReceiveOp,
    Result,
    ScanOp,
    UnionOp,
)

MODES = ("intervals", "changes")

# A batch is cut smaller while operators hand out more rows than this at a time, and larger again below a fourth:
# what is handed out at a time should fit the processor's caches.
MOST_ROWS_OUT = 250_000
LEAST_CUT = 16
FIRST_CUT = 1 << 11
# Vertex numbers are given back when there are twice as many as were kept the last time, and so many more.
FEW_VERTICES = 1024
# With several threads so many parts of a batch are begun before the first of them is finished.
AHEAD = 2

Stateful = UnionOperator | PatternOperator | TreePathOperator | ClosureOperator | AutoPathOperator


class OperatorFigures(NamedTuple):
    """What an operator has done and holds."""

    number: int
    name: str
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int
    choice: str = ""  # of an operator that chooses how it works: what, and why


class StreamBatch(NamedTuple):
    """The edges of one stream that some query asks for, as numbers."""

    src: Array
    trg: Array
    label: Array  # a place in the stream's list of labels
    ts: Array
    op: Array
    exp: Array | None = None  # of derived tuples


class Part(NamedTuple):
    """A part of a batch that all operators have taken."""

    outputs: list[Rows | KeyedRows]  # by operator; the next part is written over them
    later: dict[int, Callable[[], list[Rows]]]  # by operator: what will be its output, in parts
    taken: int  # edges
    most: int  # rows that an operator has handed out
    span: tuple[int, int]  # from the time that was reached before it
    deletion: int | None  # the first


class Dataflow:
    """All queries of a run. Edges go in by `process`, answers come out of it."""

    def __init__(
        self,
        plan: PhysicalPlan,
        *,
        mode: str = "intervals",
        paths: bool = False,
        memory: int | None = None,
        folder: Path | None = None,
        threads: int = 1,
    ) -> None:
        if mode not in MODES:
            raise ArgumentError(f"unknown mode {mode!r}\naccepted: {', '.join(MODES)}")
        if threads < 1:
            raise ArgumentError(f"{threads} threads cannot do any work\nhint: threads is 1 or more")
        self.plan = plan
        self.mode = mode
        self.paths = paths
        self.team = Team(threads)
        self.budget = Budget(memory)
        self.stores: dict[str, Store] = {}
        self.folder = folder
        self.vertices = Vertices(self._store("vertices"))
        self.relations = {number: relation for relation, number in enumerate(plan.indexed)}
        self.graph = WindowGraph(self._store("graph of the window"), list(plan.indexed.values()))
        self.labels = {stream: self._labels(stream) for stream in plan.streams}
        self.ahead = AHEAD if threads > 1 and not paths else 0
        self.begun: deque[Part] = deque()
        self.operators: dict[int, Stateful] = {}
        for number, operator in enumerate(plan.operators):
            made = self._operator(number, operator)
            if made is not None:
                self.operators[number] = made
        self.results = [
            ResultStream(
                result,
                self.graph,
                self.relations,
                self._store(f"result {at} {result.head}"),
                mode=mode,
                paths=paths,
                team=self.team,
            )
            for at, result in enumerate(plan.results)
            if not result.raw
        ]
        self.handed_out = {result.input for result in plan.results}
        self.cuts_paths = any(stream.cuts_paths for stream in self.results)
        clock = self._store("clock")
        # [time reached, rows to take at a time, vertices kept by the last sweep]
        clock.array("clock", 3, np.int64)[:] = (-1, FIRST_CUT, 0)
        clock.array("rows_in", len(plan.operators), np.int64)
        clock.array("rows_out", len(plan.operators), np.int64)
        meaning = repr((plan.operators, plan.results, plan.indexed, mode, paths))
        self.identity = np.frombuffer(hashlib.sha256(meaning.encode()).digest(), np.uint8)
        clock.array("plan", self.identity.size, np.uint8)[:] = self.identity
        self._bind_clock()

    def _bind_clock(self) -> None:
        arrays = self.stores["clock"].arrays
        self.clock, self.rows_in, self.rows_out = arrays["clock"], arrays["rows_in"], arrays["rows_out"]

    def _store(self, owner: str) -> Store:
        # The owner of a folder may have a name too long for one.
        folder = None if self.folder is None else self.folder / f"{len(self.stores):03}"
        self.stores[owner] = Store(owner, self.budget, folder)
        return self.stores[owner]

    def _labels(self, stream: str) -> list[str]:
        scans = [op for op in self.plan.operators if isinstance(op, ScanOp) and op.stream == stream]
        return list(dict.fromkeys(scan.label for scan in scans))

    def _operator(self, number: int, operator: object) -> Stateful | None:
        name = f"#{number} {self.plan.names[number]}"
        match operator:
            case UnionOp():
                return UnionOperator(len(operator.inputs), operator.arity, self._store(name))
            case PatternOp():
                relations = [self.relations[source] for source in operator.inputs]
                return PatternOperator(operator, self.graph, relations, self._store(name))
            case PathOp():
                relations = [self.relations[source] for source in operator.edges]
                demanded = -1 if operator.demand is None else self.relations[operator.demand]
                if operator.operator == "auto":
                    return AutoPathOperator(
                        operator,
                        self.graph,
                        relations,
                        self._store(name),
                        roots=self._numbers(operator.root),
                        proved=self.paths,
                        demanded=demanded,
                        team=self.team,
                        ahead=self._ahead(number),
                    )
                if operator.operator == "closure":
                    return ClosureOperator(
                        operator,
                        self.graph,
                        relations,
                        self._store(name),
                        roots=self._numbers(operator.root),
                        expiries=self.mode == "intervals" or self.paths or self._is_read(number),
                        proved=self.paths,
                        demanded=demanded,
                        team=self.team,
                        ahead=self._ahead(number),
                    )
                return TreePathOperator(
                    operator,
                    self.graph,
                    relations,
                    self._store(name),
                    first_path=operator.operator == "negative-tuple",
                    roots=self._numbers(operator.root),
                )
        return None

    def _ahead(self, number: int) -> int:
        """How many more parts an operator may begin before it has finished one."""
        return 0 if self._is_read(number) else self.ahead

    def _is_read(self, number: int) -> bool:
        """Whether other operators take the tuples of this one, here or in another stage."""
        sent = any(result.raw and result.input == number for result in self.plan.results)
        return sent or any(number in operator.inputs for operator in self.plan.operators)

    def _numbers(self, constant: str | int | None) -> list[int]:
        """The vertices that a constant of a query names: a number may be written as text in the stream."""
        if constant is None:
            return []
        spellings: list[str | int] = [constant]
        if isinstance(constant, int):
            spellings.append(str(constant))
        return [self.vertices.pin(spelling) for spelling in spellings]

    # -----------------------------------------------------------------------------------------------------
    # Batches

    def process(
        self, edges: Mapping[str, Edges], upto: int | None, *, more: bool = False
    ) -> Iterator[tuple[Result, Answers]]:
        """Take edges, sorted by time, none before the time reached nor later than `upto`; hand out the answers
        that they bring.

        All edges before `upto` have then been seen. Without edges only time advances; with INFINITY the run
        ends. The batch is taken in parts where its answers are many, and with paths before each deletion and
        after an instant that was begun before. What is not iterated over is not processed (with several threads, some
        parts of it are). With `more` another batch follows at once: with several threads the last parts may still be
        worked at then, and their answers are handed out with that batch. Where a part fails, the answers of those
        before it are handed out first.
        """
        times = self._times(edges, upto)
        failed: Exception | None = None
        try:
            for part, bound in self._parts(edges, times, upto):
                # What the parts that are not finished have used is not given back.
                horizon = self.begun[0].span[0] - 1 if self.begun else self.time
                try:
                    self.begun.append(self._take(part, bound, horizon))
                except Exception as error:
                    failed = error
                    break
                keep = self.ahead if self.begun[-1].later.keys() >= self.handed_out else 0
                while len(self.begun) > keep:
                    yield from self._finish(self.begun.popleft())
            while self.begun and not (more and failed is None):
                yield from self._finish(self.begun.popleft())
        except BaseException:
            self.team.rest()
            self.begun.clear()
            raise
        if failed is not None:
            raise failed

    def _times(self, edges: Mapping[str, Edges], upto: int | None) -> Array:
        """The times of the edges, in order, if they may come now."""
        times: Array = np.sort(
            np.concatenate([np.zeros(0, np.int64), *(one.ts for one in edges.values())]), kind="stable"
        )
        if upto is not None and (
            upto < self.time or (times.size and not self.time <= times[0] <= times[-1] <= upto)
        ):
            given = f"edges from {times[0]} to {times[-1]}" if times.size else "no edges"
            raise StateError(
                f"{given} and time up to {upto} cannot follow the time {self.time} that is reached\n"
                "hint: Ingest puts edges in order"
            )
        return times

    def _parts(
        self, edges: Mapping[str, Edges], times: Array, upto: int | None
    ) -> Iterator[tuple[dict[str, Edges], int]]:
        """The batch in parts, each with the time up to which it goes: between two instants, so that a part is a
        batch like any other."""
        if upto is None:
            return
        deletions = self._deletions(edges)
        position = 0
        taken = dict.fromkeys(edges, 0)
        while True:
            last = position + int(self.clock[1]) - 1
            bound = int(times[last]) if last < times.size - 1 else upto
            if position < times.size:
                later = deletions[np.searchsorted(deletions, times[position], side="right") :]
                bound = min([bound, *(later[:1] - 1).tolist()])
                if self.paths and times[position] == self.time:
                    bound = self.time
            part = {}
            for stream, one in edges.items():
                end = int(np.searchsorted(one.ts, bound, side="right"))
                part[stream] = (
                    one.take(slice(taken[stream], end)) if (taken[stream], end) != (0, one.rows) else one
                )
                taken[stream] = end
            position = int(np.searchsorted(times, bound, side="right"))
            yield part, bound
            if position == times.size and bound == upto:
                return

    def replay(self, parts: Iterable[Mapping[str, Edges]], upto: int) -> Iterator[tuple[Result, Answers]]:
        """Process edges that were processed before, by this plan or another one, up to the same time.

        Only the instant `upto` has to be split into the same parts as before. What state there is then follows from
        the edges alone: every tuple has its largest expiry. Of the paths that were emitted before, nothing is known.
        """
        waiting = self._first_path_operators()
        for one in waiting:
            one.switch(False, self.time)
        for edges in parts:
            yield from self.process(edges, upto)
        for one in waiting:
            one.switch(True, self.time)
        for result in self.results:
            result.forget_paths(self.time)

    def restart(self, results: Sequence[Result]) -> list[tuple[Result, Answers]]:
        """In `changes` mode, what holds now of some results of which nothing has been emitted yet."""
        chosen = [stream for stream in self.results if stream.result in results]
        return [(stream.result, stream.restart(self.time, self.vertices)) for stream in chosen]

    @property
    def tells_late(self) -> bool:
        """Whether an answer may be known to hold for longer than its records say yet."""
        return bool(self._first_path_operators())

    def _first_path_operators(self) -> list[TreePathOperator]:
        made = self.operators.values()
        return [one for one in made if isinstance(one, TreePathOperator) and one.first_path]

    def _deletions(self, edges: Mapping[str, Edges]) -> Array:
        """The instants at which something is deleted, where a deletion may cut the path of a record."""
        if not self.cuts_paths:
            return np.zeros(0, np.int64)
        return np.unique(
            np.concatenate([np.zeros(0, np.int64), *(one.ts[one.op < 0] for one in edges.values())])
        )

    def _take(self, edges: Mapping[str, Edges], upto: int, horizon: int) -> Part:
        """Let a part run through the operators; what expired up to `horizon` is given back before."""
        self._begin(horizon)
        batches = {
            stream: self._intern(stream, one) for stream, one in edges.items() if stream in self.labels
        }
        self.graph.reserve_vertices(self.vertices.capacity)
        outputs: list[Rows | KeyedRows] = []
        later: dict[int, Callable[[], list[Rows]]] = {}
        most = 0
        for number, operator in enumerate(self.plan.operators):
            sources = [outputs[source] for source in operator.inputs]
            rows: Rows | KeyedRows
            match operator:
                case ScanOp():
                    rows = self._scan(operator, batches.get(operator.stream))
                case ReceiveOp():
                    rows = received(batches.get(operator.stream))
                case FilterOp():
                    rows = self._filter(operator, sources[0])
                case UnionOp():
                    rows = self._unite(number, sources)
                case PatternOp():
                    made = self.operators[number]
                    assert isinstance(made, PatternOperator)
                    keyed = made.process(self._merge(operator.inputs, outputs))
                    rows = as_pairs(keyed) if made.arity == 2 else keyed
                case PathOp():
                    walker = self.operators[number]
                    assert isinstance(walker, TreePathOperator | ClosureOperator | AutoPathOperator)
                    walker.reserve_vertices(self.vertices.capacity)
                    merged = self._merge(operator.inputs, outputs)
                    if isinstance(walker, TreePathOperator) or self._ahead(number) == 0:
                        rows = walker.process(merged, upto)
                    else:
                        started = walker.start(merged, upto)
                        rows = NO_ROWS
                        if callable(started):
                            later[number] = started
                        else:
                            rows = started
            self.rows_in[number] += sum(source.ts.size for source in sources)
            self.rows_out[number] += rows.ts.size
            most = max(most, rows.ts.size)
            if number in self.relations:
                assert isinstance(rows, Rows)
                rows = self.graph.update(self.relations[number], rows)
            outputs.append(rows)
        span = int(self.clock[0]), upto
        self.clock[0] = upto
        taken = sum(one.rows for one in edges.values())
        return Part(outputs, later, taken, most, span, min(self._deletions(edges).tolist(), default=None))

    def _finish(self, part: Part) -> Iterator[tuple[Result, Answers]]:
        """Hand out the answers of a part."""
        made = {number: later() for number, later in part.later.items()}
        most = part.most
        for number, parts in made.items():
            rows_out = sum(rows.ts.size for rows in parts)
            self.rows_out[number] += rows_out
            most = max(most, rows_out)
        self._adapt(part.taken, most)
        for stream in self.results:
            source = stream.result.input
            rows = made[source] if source in made else part.outputs[source]
            yield stream.result, stream.process(rows, part.span, self.vertices, part.deletion)
        for result in self.plan.results:
            if result.raw:
                yield result, self._tuples(result, as_keyed(part.outputs[result.input]))

    def _tuples(self, result: Result, rows: KeyedRows) -> Answers:
        """An operator's tuples as they are, by name."""
        names = [self.vertices.text(column) for column in rows.key.T]
        return Answers(result.label, tuple(names), rows.ts.copy(), rows.exp.copy(), rows.op.copy())

    def _begin(self, horizon: int) -> None:
        """Between two batches: give back what has expired, rows and vertex numbers alike."""
        self.graph.begin(horizon)
        if self.vertices.count > 2 * self.clock[2] + FEW_VERTICES:
            live = np.zeros(self.vertices.capacity, np.bool_)
            self.graph.mark(horizon, live)
            for made in self.operators.values():
                made.mark(horizon, live)
            for result in self.results:
                result.mark(live)
            self.vertices.sweep(live)
            self.clock[2] = self.vertices.count

    def _adapt(self, taken: int, rows_out: int) -> None:
        """Take fewer edges at a time while operators hand out very many rows for them, and more again later."""
        cut = int(self.clock[1])
        if taken == 0:
            return
        if rows_out > MOST_ROWS_OUT:
            self.clock[1] = max(LEAST_CUT, min(cut, taken * MOST_ROWS_OUT // (2 * rows_out)))
        elif rows_out < MOST_ROWS_OUT // 4:
            self.clock[1] = min(1 << 20, max(cut, 2 * taken))

    def _intern(self, stream: str, edges: Edges) -> StreamBatch:
        if edges.exp is not None:
            src, trg = self.vertices.intern(edges.src), self.vertices.intern(edges.trg)
            return StreamBatch(src, trg, np.zeros(edges.rows, np.int16), edges.ts, edges.op, edges.exp)
        label = match_labels(edges.label, [name.encode() for name in self.labels[stream]])
        if label.size and label.min() < 0:
            wanted = np.flatnonzero(label >= 0)
            edges, label = edges.take(wanted), label[wanted]
        return StreamBatch(
            self.vertices.intern(edges.src), self.vertices.intern(edges.trg), label, edges.ts, edges.op
        )

    def _scan(self, scan: ScanOp, batch: StreamBatch | None) -> Rows:
        if batch is None or batch.ts.size == 0:
            return NO_ROWS
        labels = self.labels[scan.stream]
        if len(labels) == 1:
            chosen = batch
        else:
            mask = batch.label == labels.index(scan.label)
            chosen = StreamBatch(*(column[mask] for column in batch[:5]))
        exp = chosen.ts // scan.slide * scan.slide + scan.window
        exp = np.where(chosen.op > 0, exp, chosen.ts)
        rows = Rows(
            chosen.src, chosen.trg, np.ascontiguousarray(chosen.ts), exp, np.ascontiguousarray(chosen.op)
        )
        return self._select(scan.condition.src, scan.condition.trg, scan.condition.loop, rows)

    def _filter(self, operator: FilterOp, rows: Rows | KeyedRows) -> Rows:
        assert isinstance(rows, Rows)
        return self._select(operator.condition.src, operator.condition.trg, operator.condition.loop, rows)

    def _select(self, src: str | int | None, trg: str | int | None, loop: bool, rows: Rows) -> Rows:
        if src is None and trg is None and not loop:
            return rows
        mask = np.ones(rows.ts.size, np.bool_)
        if src is not None:
            mask &= np.isin(rows.src, self._numbers(src))
        if trg is not None:
            mask &= np.isin(rows.trg, self._numbers(trg))
        if loop:
            mask &= rows.src == rows.trg
        return Rows(*(column[mask] for column in rows))

    def _unite(self, number: int, sources: list[Rows | KeyedRows]) -> Rows | KeyedRows:
        made = self.operators[number]
        assert isinstance(made, UnionOperator)
        keyed = made.process([as_keyed(rows) for rows in sources])
        return as_pairs(keyed) if keyed.key.shape[1] == 2 else keyed

    def _merge(self, inputs: tuple[int, ...], outputs: list[Rows | KeyedRows]) -> MergedRows:
        """The changes of an operator's inputs in order of time; each input once, however many atoms read it."""
        parts = []
        for source in dict.fromkeys(inputs):
            rows = outputs[source]
            assert isinstance(rows, Rows)
            relation = np.full(rows.ts.size, self.relations[source], np.int16)
            parts.append(MergedRows(relation, *rows))
        busy = [part for part in parts if part.ts.size]
        if len(busy) <= 1:
            return busy[0] if busy else parts[0]
        merged = MergedRows(*(np.concatenate(columns) for columns in zip(*busy, strict=True)))
        order = np.argsort(merged.ts, kind="stable")
        return MergedRows(*(column[order] for column in merged))

    # -----------------------------------------------------------------------------------------------------
    # State

    def snapshot(self) -> dict[str, Array]:
        """A copy of all state, between two batches of which the second was not announced."""
        assert not self.begun
        return {
            f"{owner}/{name}": array
            for owner, store in self.stores.items()
            for name, array in store.snapshot().items()
        }

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go on from a snapshot of a dataflow of the same plan, mode and choice of paths."""
        if not np.array_equal(arrays.get("clock/plan", ()), self.identity):
            raise StateError(
                "the snapshot belongs to another plan\nhint: its query, options and version must be the same"
            )
        by_owner: dict[str, dict[str, Array]] = {owner: {} for owner in self.stores}
        for key, array in arrays.items():
            owner, _, name = key.rpartition("/")
            if owner not in by_owner:
                raise StateError(f"the snapshot has state of {owner!r}, which this plan does not have")
            by_owner[owner][name] = array
        for owner, store in self.stores.items():
            store.restore(by_owner[owner])
        self._bind_clock()
        self.vertices.bind()
        self.graph.bind()
        for made in self.operators.values():
            made.bind()
        for result in self.results:
            result.bind()

    def labels_seen(self) -> dict[str, bool]:
        """For each label that a scan reads whether an edge had it; those of given vertices alone count as seen."""
        seen: dict[str, bool] = {}
        for number, operator in enumerate(self.plan.operators):
            if isinstance(operator, ScanOp):
                chosen = operator.condition != Condition()
                seen[operator.label] = (
                    seen.get(operator.label, False) or chosen or bool(self.rows_out[number])
                )
        return seen

    @property
    def time(self) -> int:
        """The time that all operators have reached, or -1."""
        return int(self.clock[0])

    @property
    def state_bytes(self) -> int:
        return self.budget.used

    def figures(self) -> list[OperatorFigures]:
        """For each operator what went in and out, and what it holds."""
        held = self.graph.valid_rows(self.time)
        figures = []
        for number, name in enumerate(self.plan.names):
            made = self.operators.get(number)
            rows = made.rows if made is not None else 0
            if number in self.relations:
                rows += int(held[self.relations[number]])
            size = made.store.nbytes if made is not None else 0
            choice = made.choice if isinstance(made, AutoPathOperator) else ""
            figures.append(
                OperatorFigures(
                    number, name, int(self.rows_in[number]), int(self.rows_out[number]), rows, size, choice
                )
            )
        return figures


def received(batch: StreamBatch | None) -> Rows:
    """Tuples that bring their intervals."""
    if batch is None or batch.exp is None:
        return NO_ROWS
    columns = (batch.src, batch.trg, batch.ts, batch.exp, batch.op)
    return Rows(*(np.require(column, requirements=("C", "W")) for column in columns))
