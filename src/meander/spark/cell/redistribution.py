"""Another number of cells for a run: the input that its cells hold goes to new ones, and nothing is emitted twice.

The window's input is the truth about a run. An edge may be stored by several cells, in several stages: it is taken
from the first cell of the first stage that still needs it, as each stage drops what its own windows have left. The
cell also has all other edges of the label between the same ends, in their order. The new cells
process what has been processed before, stage after stage, so that each stores what it would have stored; what they
emit on the way was emitted then. Edges that wait for the watermark wait again.

In `changes` mode the end of an answer is emitted when its instant is over, and how an instant was split into parts is
known to each cell for its own edges alone. While a deletion is part of the open instant, the number stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from meander.dataflow.edges import Array, Edges, by_time, concat_edges, match_labels
from meander.dataflow.ingest import Ingest, Stream
from meander.errors import StateError
from meander.physical.stages import Delivery
from meander.spark.cell.admission import merged_tuples
from meander.spark.cell.ingest import Released
from meander.spark.cell.job import Job, latest_ends
from meander.spark.cell.manifest import CellManifest
from meander.spark.cell.recovery import StateCache, restore_ingest
from meander.spark.cell.routing import end_hashes, route
from meander.spark.cell.step import CellStep, Row
from meander.spark.cell.store import CellStore, InMemoryStore, pack_arrays
from meander.spark.edge_codec import decode_edges
from meander.spark.messages import Chunk, Kind, StageMessage, cell_failure

StageCell = tuple[int, int]
"""A stage, and the key of a cell in it."""


def redistribute(
    old: Sequence[Job], stores: Mapping[StageCell, CellStore], new: Sequence[Job]
) -> dict[StageCell, InMemoryStore]:
    """The stores of new cells, from those of the old cells of the same queries between two batches."""
    held = HeldInput(old, stores)
    received: dict[StageCell, list[Chunk]] = {}
    made = {}
    for job in new:
        quiet = replace(job, snapshots="", seeds="", spool="")
        window, waiting = (shares_of(job, edges) for edges in (held.window, held.waiting))
        for number, cell in enumerate(job.cells):
            store = made[job.stage, cell] = InMemoryStore()
            derived = merged_tuples(received.get((job.stage, cell), []))
            step = SeedStep(quiet, cell, store, window[number] | derived, held.manifest.time)
            for row in step.run([]):
                if row.kind == Kind.CELL_FAILED:
                    raise cell_failure(row.data)
                if isinstance(row, StageMessage) and row.kind == Kind.EDGES:
                    received.setdefault((row.stage, row.cell), []).append(row.chunk)
            held.hand_over(store, waiting[number], first=job is new[0] and number == 0, job=job)
    return made


class HeldInput:
    """What the cells of a run hold between two batches: each edge of the window, and each that waits, once."""

    def __init__(self, jobs: Sequence[Job], stores: Mapping[StageCell, CellStore]) -> None:
        window: dict[str, list[Edges]] = {}
        waiting: dict[str, list[Edges]] = {}
        self.counts: Counter[str] = Counter()
        self.may_underreport_expiry = False
        manifests = []
        for job in jobs:
            for number, cell in enumerate(job.cells):
                store = stores[job.stage, cell]
                stored = store.read_manifest()
                manifest = CellManifest() if stored is None else CellManifest.from_bytes(stored)
                if manifest.splits or manifest.added:
                    raise open_instant()
                unanswered = [
                    result.query
                    for result in job.plan.results
                    if (result.query, result.head) not in manifest.results
                ]
                if unanswered:
                    raise not_yet_answered(unanswered)
                manifests.append(manifest)
                self.counts.update(manifest.counts)
                self.may_underreport_expiry |= manifest.may_underreport_expiry
                for block in manifest.blocks:
                    if block.stream in job.streams:
                        edges = decode_edges(store.read_block(block.number))
                        window.setdefault(block.stream, []).append(
                            held_first(jobs, job, number, block.stream, edges, manifest.time)
                        )
                self.ingest = restore_ingest(job, manifest, store)
                for stream, state in self.ingest.streams.items():
                    for run in state.runs:
                        waiting.setdefault(stream, []).append(
                            held_first(jobs, job, number, stream, run, manifest.time)
                        )
        self.manifest = manifests[0]
        self.window = {stream: by_time(concat_edges(parts)) for stream, parts in window.items()}
        self.waiting = {stream: by_time(concat_edges(parts)) for stream, parts in waiting.items()}

    def hand_over(self, store: CellStore, waiting: Mapping[str, Edges], *, first: bool, job: Job) -> None:
        """Let a new cell know what the old cells knew of the streams; its first edges are stored already."""
        stored = store.read_manifest()
        assert stored is not None
        manifest = CellManifest.from_bytes(stored)
        manifest.last_heard = dict(self.manifest.last_heard)
        manifest.idle_streams = list(self.manifest.idle_streams)
        manifest.ended_streams = list(self.manifest.ended_streams)
        manifest.may_underreport_expiry |= self.may_underreport_expiry
        manifest.counts = dict(self.counts) if first else dict.fromkeys(self.counts, 0)
        store.write_manifest(manifest.to_bytes())
        ingest = Ingest(job.streams)
        ingest.frontier = self.ingest.frontier
        for name, stream in self.ingest.streams.items():
            runs = [waiting[name]] if name in waiting and waiting[name].rows else []
            ingest.streams[name] = Stream(stream.is_open, stream.greatest, runs)
        store.write_ingest(b"".join(pack_arrays("ingest", ingest.snapshot())))


def held_first(jobs: Sequence[Job], job: Job, number: int, stream: str, edges: Edges, reached: int) -> Edges:
    """Of the edges that a cell holds at the time reached, those that are taken from this cell."""
    if len(job.cells) == 1:
        return edges
    is_first = np.zeros(edges.rows, np.bool_)
    for part in route(edges, end_hashes(edges), deliveries_to(job, stream), len(job.cells)).parts:
        if min(part.cells) == number:
            is_first[part.rows] = True
    return edges.take(is_first & (needed_first(jobs, stream, edges, reached) == job.stage))


def needed_first(jobs: Sequence[Job], stream: str, edges: Edges, reached: int) -> Array:
    """For each edge of a stream the stage that it is taken from: the first that has it in a window at the time
    reached, or else the first that keeps some rows for longer; the first that read it, if none needs it."""
    readers = [(job, is_read(job, stream, edges)) for job in jobs]
    needs = [
        *((job.stage, read & in_window(job, stream, edges, reached)) for job, read in readers),
        *((job.stage, read) for job, read in readers if keeps_rows(job, stream)),
        *((job.stage, read) for job, read in readers),
    ]
    stages = np.zeros(edges.rows, np.int64)
    for stage, needed in needs:
        stages[(stages == 0) & needed] = stage
    return stages


def is_read(job: Job, stream: str, edges: Edges) -> Array:
    """Which edges of a stream the cells of a stage receive."""
    labels = [delivery.label for delivery in deliveries_to(job, stream)]
    if None in labels:
        return np.ones(edges.rows, np.bool_)
    read: Array = match_labels(edges.label, [str(label).encode() for label in labels]) >= 0
    return read


def in_window(job: Job, stream: str, edges: Edges, reached: int) -> Array:
    """Which edges of a stream are, at the time reached, in a window of a stage, and surely stored by it."""
    windows = [scan for scan in job.scans(stream) if not scan.table and not scan.tuples]
    if not windows:
        return np.zeros(edges.rows, np.bool_)
    return latest_ends(windows, edges) >= reached


def keeps_rows(job: Job, stream: str) -> bool:
    """Whether a stage reads a stream as a table or as tuples, which hold for as long as they say."""
    return any(scan.table or scan.tuples for scan in job.scans(stream))


def shares_of(job: Job, streams: Mapping[str, Edges]) -> list[dict[str, Edges]]:
    """For each cell of a stage the edges that it reads, in order of time."""
    if len(job.cells) == 1:
        return [{stream: edges for stream, edges in streams.items() if stream in job.streams}]
    parts: list[dict[str, list[Edges]]] = [{} for _ in job.cells]
    for stream, edges in streams.items():
        wanted = deliveries_to(job, stream)
        if not wanted:
            continue
        for part in route(edges, end_hashes(edges), wanted, len(job.cells)).parts:
            for number in part.cells:
                parts[number].setdefault(stream, []).append(edges.take(part.rows))
    return [
        {stream: by_time(concat_edges(of_stream)) for stream, of_stream in of_cell.items()}
        for of_cell in parts
    ]


def deliveries_to(job: Job, stream: str) -> list[Delivery]:
    """How the edges of a stream get to the cells of a stage."""
    return [
        delivery for delivery in job.deliveries if (delivery.stage, delivery.stream) == (job.stage, stream)
    ]


class SeedStep(CellStep):
    """The step of a new cell over edges that old cells have processed, up to the time that these have reached."""

    def __init__(self, job: Job, cell: int, store: CellStore, edges: Mapping[str, Edges], time: int) -> None:
        super().__init__(job, cell, store, StateCache())
        self._released = Released(edges, None if time < 0 else time)

    def ingest(self, chunks: Iterable[Chunk]) -> Iterator[Row | Released]:
        yield self._released


def open_instant() -> StateError:
    return StateError(
        "the number of cells cannot change while the instant that the run has reached, and that may not be over, "
        "has deletions",
        hint="continue with the same --cells until later edges have arrived, then stop and change it",
    )


def not_yet_answered(queries: Sequence[str]) -> StateError:
    return StateError(
        "the number of cells cannot change before a query that was added has had its first batch, with the answers "
        f"that held by then: {', '.join(dict.fromkeys(queries))}",
        hint="continue with the same --cells until later edges have arrived, then stop and change it",
    )
