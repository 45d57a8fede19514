"""The step of a cell: one batch of chunks, through ingest and dataflow, to rows of answers.

In every batch a cell gets its chunks, puts them in order, and processes them by the same ingest and dataflow as the
in-process runner. It emits rows of chunks again: answers, rejects, and one row of figures. Operator state stays in a
`StateCache` under a token (see `recovery`); if that is not the store's, it is rebuilt.

With several cells all stages have an ingest, and all but the last send their tuples to cells of later stages (see
`exchange`).
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.edges import Edges, concat_edges
from meander.errors import MemoryBudgetError, StateError
from meander.spark.cell.admission import Admission
from meander.spark.cell.compaction import drop_ended, drop_replaced, sum_up
from meander.spark.cell.exchange import Sender, derived_edges
from meander.spark.cell.ingest import Released, order_input, receive_input
from meander.spark.cell.job import FOREVER, Job
from meander.spark.cell.manifest import MOST_ROWS, WHOLE, CellManifest, InputBlock
from meander.spark.cell.recovery import (
    LiveState,
    StateCache,
    edges_of_plan,
    publish_arrays,
    rebuild,
    withdraw_arrays,
)
from meander.spark.cell.routing import own_answers
from meander.spark.cell.scatter import FIRST_STAGE
from meander.spark.cell.store import CellStore, pack_arrays, read_seed, write_snapshot
from meander.spark.edge_codec import decode_edges, encode_edges
from meander.spark.messages import (
    Chunk,
    Output,
    StageMessage,
    failure_row,
    figures_row,
)
from meander.spark.output.encode import Encoder

Row = Output | StageMessage


class Stopwatch:
    """The seconds spent in each phase: `lap` charges the time since the lap before to a phase."""

    def __init__(self, begun: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if begun is None else begun

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


COUNTS = ("edges", "arrived", "late", "rejected", "answers", "bytes", "sent", "sent_to_all", "sent_rows")


class CellStep:
    """One batch of one cell: `load → ingest → process → persist`.

    State in the store and in the cache is that of the next batch once all rows have been taken. `begun` is when the
    cell got the batch, by `time.perf_counter`; `clock` is the wall time, by which a stream is idle.
    """

    def __init__(
        self,
        job: Job,
        cell: int,
        store: CellStore,
        cache: StateCache,
        *,
        begun: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.job = job
        self.cell = cell
        self.store = store
        self.cache = cache
        self.clock = clock
        self.stopwatch = Stopwatch(begun)
        self.counts = Counter(dict.fromkeys(COUNTS, 0))
        self.values: Counter[tuple[str, str]] = (
            Counter()
        )  # by stream and property: the edges that have a value
        self.encoder = Encoder(job.formats, job.spool)
        self.sender = Sender(job.deliveries, job.targets, job.number(cell))
        self.manifest: CellManifest
        self.state: LiveState
        self.frontier: int | None = None
        self.processed: dict[str, list[Edges]] = {}  # by stream: the edges that the dataflow has got
        self.derived: dict[str, list[Answers]] = {}  # by derived stream: the tuples for later stages

    def run(self, chunks: Iterable[Chunk]) -> Iterator[Row]:
        """Process a batch. The last stage emits `Output`s, the others `StageMessage`s.

        A memory budget that is reached and state that is damaged are reported in a row, not raised: Spark would
        only retry the same batch.
        """
        try:
            for row in self._rows(chunks):
                yield self._addressed(row)
        except (MemoryBudgetError, StateError) as error:
            yield self._addressed(failure_row(error))

    def _rows(self, chunks: Iterable[Chunk]) -> Iterator[Row]:
        self.load()
        self.stopwatch.lap("rebuild")
        for part in self.ingest(chunks):
            if isinstance(part, Released):
                yield from self.process(part)
            else:
                yield part
        yield from self.finish()
        self.stopwatch.lap("ingest")
        self.persist()
        self.stopwatch.lap("keep")
        yield self.figures()

    def _addressed(self, row: Row) -> Row:
        """A row for the driver goes through the stages after this one, which forward it."""
        if isinstance(row, StageMessage) or self.job.stage == self.job.last:
            return row
        return StageMessage(self.job.targets[0], self.job.last, row.kind, "", 0, row.data)

    # -----------------------------------------------------------------------------------------------------
    # load

    def load(self) -> None:
        """Read the manifest, and get the operator state that it names: from the cache, or rebuilt."""
        stored = self.store.read_manifest()
        if stored is None and self.job.seeds:
            read_seed(self.job.seed_path(self.cell), self.store)
            stored = self.store.read_manifest()
        self.manifest = CellManifest() if stored is None else CellManifest.from_bytes(stored)
        state = self.cache.take(self.job, self.cell, self.manifest.token)
        if state is None:
            folder = self.cache.folder(self.job, self.cell)
            state = rebuild(self.job, self.cell, self.manifest, self.store, folder)
        else:
            state.rebuilt, state.load_seconds = False, 0.0
        if state.shared_folder is not None:
            withdraw_arrays(state.shared_folder)
        self.state = state

    # -----------------------------------------------------------------------------------------------------
    # ingest

    def ingest(self, chunks: Iterable[Chunk]) -> Iterator[Row | Released]:
        """The batch's edges in the order of time, and rows that are emitted as they are."""
        ordered = sorted(chunks, key=lambda chunk: chunk.position)
        if self.job.stage:
            admission = Admission(
                ingest=self.state.ingest,
                number=self.job.cells.index(self.cell),
                unordered=self.job.unordered,
                judges=self.job.stage == FIRST_STAGE,
                counts=self.counts,
                values=self.values,
            )
            return receive_input(
                self.job, self.cell, self.manifest, self.state.ingest, ordered, admission, self.clock
            )
        return order_input(
            self.job, self.manifest, self.state.ingest, ordered, self.counts, self.values, self.clock
        )

    # -----------------------------------------------------------------------------------------------------
    # process

    def process(self, part: Released) -> Iterator[Row]:
        """Run a part of the input through the dataflow, and emit its answers."""
        job, dataflow = self.job, self.state.dataflow
        edges, self.frontier = part
        for stream, of_stream in edges.items():
            self.processed.setdefault(stream, []).append(of_stream)
        if job.options.mode == "changes" and job.plan.operators and self.frontier is not None:
            self.manifest.record_part(edges, self.frontier, job.tables)
        self.stopwatch.lap("ingest")
        results = dataflow.process(edges_of_plan(job, self.cell, edges), self.frontier)
        for result, answers in chain(self.state.backfill, results):
            if len(job.cells) > 1 and (result.query, result.head) in job.in_full:
                answers = own_answers(answers, job.cells.index(self.cell), len(job.cells))
            if result.raw:
                self.derived.setdefault(result.head, []).append(answers)
            elif answers.rows:
                self.counts["answers"] += answers.rows
                yield from self.encoder.put(result, answers)
        self.state.backfill = []
        self.stopwatch.lap("dataflow")

    def finish(self) -> Iterator[Row]:
        """Emit the rows that waited for the end of the batch: answers being encoded, derived tuples, the frontier."""
        yield from self.encoder.rest()
        if self.job.stage < self.job.last:
            yield from self.sender.send(
                {stream: derived_edges(tuples) for stream, tuples in self.derived.items()}
            )

    # -----------------------------------------------------------------------------------------------------
    # persist

    def persist(self) -> None:
        """Store the state of the next batch, and put the operator state into the cache under a new token."""
        job, manifest, state = self.job, self.manifest, self.state
        dataflow = state.dataflow
        if job.plan.operators:
            self._store_input(dataflow.time)
        manifest.time = dataflow.time
        manifest.streams = list(job.streams)
        manifest.results = [(result.query, result.head) for result in job.plan.results]
        manifest.token = state.token = secrets.randbits(62)
        manifest.may_underreport_expiry = dataflow.may_underreport_expiry
        if manifest.may_underreport_expiry:
            # Nothing is rebuilt from a snapshot then, and it would keep blocks from being compacted.
            manifest.snapshot, manifest.snapshot_block = "", 0
        if (
            job.snapshots
            and not manifest.may_underreport_expiry
            and manifest.rows_since_snapshot >= job.options.snapshot_rows
        ):
            self._take_snapshot()
        self.store.write_ingest(b"".join(pack_arrays("ingest", state.ingest.snapshot())))
        for name, count in self.counts.items():
            manifest.counts[name] = manifest.counts.get(name, 0) + count
        self.store.write_manifest(manifest.to_bytes())
        if state.shared_folder is not None:
            publish_arrays(state.shared_folder, state.token, job.stamp, dataflow)
        self.cache.put(job, self.cell, state)

    def _store_input(self, reached: int) -> None:
        """Store the edges that the dataflow has got as blocks of input, and drop the blocks that have expired.

        A block that expires at the time reached stays: until that instant is over, `changes` mode has not emitted
        the ends of its answers.
        """
        manifest = self.manifest
        for stream, parts in self.processed.items():
            edges = concat_edges([self._unexpired(stream, part, reached) for part in parts])
            if edges.rows:
                block = manifest.add(stream, edges.rows, self._expiry(stream, edges, manifest.blocks))
                if block.expiry >= reached:
                    self._write_block(block, edges)
        for block in manifest.drop_expired(reached - 1):
            self.store.drop_block(block.number)
        for stream in self.processed:
            while blocks := manifest.compactable(stream):
                self._compact(blocks, reached, blocks[-1].tier + 1)
            blocks = manifest.replaceable(stream)
            if never_expire(blocks):
                self._compact(blocks, reached, WHOLE)

    def _unexpired(self, stream: str, edges: Edges, reached: int) -> Edges:
        """The edges that may still be valid, of some in order of time."""
        if self.job.brings_expiries(stream, edges):
            return edges
        # Expired edges are at the front.
        return edges.take(slice(int(np.searchsorted(self.job.expiries(stream, edges), reached)), None))

    def _expiry(self, stream: str, edges: Edges, blocks: Iterable[InputBlock]) -> int:
        """When a block of edges that follows some blocks has expired."""
        expiry = int(self.job.expiries(stream, edges).max())
        if self.job.brings_expiries(stream, edges) and edges.op.min() < 0:
            # A retraction stays as long as the earlier tuples that it shortens.
            expiry = max([expiry, *(block.expiry for block in blocks if block.stream == stream)])
        return expiry

    def _compact(self, blocks: list[InputBlock], reached: int, tier: int) -> None:
        """Replace blocks by blocks of a tier; what never expires by what is left of it at the time reached."""
        manifest = self.manifest
        edges = concat_edges([decode_edges(self.store.read_block(block.number)) for block in blocks])
        if never_expire(blocks):
            stream = blocks[0].stream
            settled = self.job.settled(stream, edges, reached)
            from_start = manifest.is_first(blocks[0])
            if edges.exp is not None:
                edges = sum_up(edges, settled, reached, from_start=from_start)
            elif self.job.brings_expiries(stream, edges):
                ends = self.job.expiries(stream, edges)
                edges = drop_ended(edges, ends, settled, reached, from_start=from_start)
            else:
                edges = drop_replaced(edges, settled, from_start=from_start)
        size = max(MOST_ROWS, -(-edges.rows // len(blocks)))
        parts = [edges.take(slice(start, start + size)) for start in range(0, edges.rows, size)]
        earlier = [block for block in manifest.blocks if block.number <= blocks[-1].number]
        expiries = [self._expiry(blocks[0].stream, part, earlier) for part in parts]
        for block in blocks:
            self.store.drop_block(block.number)
        sizes = [(part.rows, expiry) for part, expiry in zip(parts, expiries, strict=True)]
        for block, part in zip(manifest.replace(blocks, sizes, tier), parts, strict=True):
            self._write_block(block, part)

    def _write_block(self, block: InputBlock, edges: Edges) -> None:
        self.store.write_block(block.number, encode_edges(edges, lines=False, compressed=True))

    def _take_snapshot(self) -> None:
        name = f"{self.manifest.token:016x}"
        arrays = self.state.dataflow.snapshot()
        write_snapshot(self.job.snapshot_path(self.cell, name), self.job.stamp, arrays)
        self.manifest.snapshot = name
        self.manifest.snapshot_block = self.manifest.next_block

    # -----------------------------------------------------------------------------------------------------
    # figures

    def figures(self) -> Output:
        """What the cell has done in this batch and holds now."""
        dataflow, manifest = self.state.dataflow, self.manifest
        operators = [operator._asdict() for operator in dataflow.figures()]
        seconds = {"load": self.state.load_seconds, **self.stopwatch.seconds}
        return figures_row(
            {
                "stage": self.job.stage,
                "cell": self.job.cells.index(self.cell),
                "time": dataflow.time,
                **self.counts,
                **self.sender.counts,
                "bytes": manifest.counts["bytes"],
                "labels": dataflow.labels_seen(),
                "values": [[*key, count] for key, count in self.values.items()],
                "window_rows": sum(block.rows for block in manifest.blocks),
                "window_pieces": len(manifest.blocks),
                "state_rows": sum(operator["state_rows"] for operator in operators),
                "state_bytes": dataflow.state_bytes,
                "rebuilt": self.state.rebuilt,
                "seconds": {
                    phase: round(seconds.get(phase, 0.0), 6)
                    for phase in ("rebuild", "load", "ingest", "dataflow", "keep")
                },
                "operators": operators,
            }
        )


def never_expire(blocks: Iterable[InputBlock]) -> bool:
    """Whether some of the edges of some blocks hold until they are replaced or retracted."""
    return any(block.expiry >= FOREVER for block in blocks)
