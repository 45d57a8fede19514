"""Operator state between two batches: the cache that it stays in, and how it is rebuilt.

`StateCache` holds the state of the cells that this process had last. Spark gives a cell to whichever worker is free.
With several cells, the arrays of their operators are therefore views of files in a folder of the executor, and an
index beside them names their token. It is removed while a batch changes the arrays. A worker that gets the cell next,
and reads the token of the cell's manifest in the index, copies the arrays and continues. Without a match the state is
rebuilt from the last snapshot and the blocks of input since, or from all blocks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.ingest import Ingest
from meander.dataflow.state import Array
from meander.engine import open_dataflow
from meander.errors import StateError
from meander.physical.plan import Result
from meander.physical.stages import stream_operators
from meander.spark.cell.backfill import replay
from meander.spark.cell.job import Job
from meander.spark.cell.manifest import CellManifest
from meander.spark.cell.routing import partition_streams
from meander.spark.cell.store import CellStore, damaged_state, read_snapshot, unpack_arrays
from meander.spark.checkpoint.notes import read_note, write_note
from meander.spark.edge_codec import decode_edges

INDEX = "arrays.json"


@dataclass
class LiveState:
    """The state of a cell in this process, and the token that it stands for."""

    token: int
    stamp: str
    ingest: Ingest
    dataflow: Dataflow
    shared_folder: Path | None = None
    rebuilt: bool = True  # for the batch that is processed now
    load_seconds: float = 0.0  # of a snapshot, for the same batch
    backfill: list[tuple[Result, Answers]] = field(default_factory=list)  # records to emit with the next part


class StateCache:
    """The state of the cells that a process has had, by run and cell.

    In `shared`, a folder of the machine, workers leave each other the arrays of cells of which a stage has several.
    """

    def __init__(self, shared: Path | None = None) -> None:
        self.shared = shared
        self._states: dict[tuple[str, int], LiveState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def take(self, job: Job, cell: int, token: int) -> LiveState | None:
        """Remove the state of a cell; None unless it has this token and can continue under the job.

        It is out of the cache while it changes: a batch that fails leaves nothing behind under a token.
        """
        state = self._states.pop((job.run, job.number(cell)), None)
        if state is None or (state.token, state.stamp) != (token, job.live_stamp):
            return None
        return state

    def put(self, job: Job, cell: int, state: LiveState) -> None:
        self._states[job.run, job.number(cell)] = state

    def forget(self, position: int | None = None) -> None:
        """Drop all states, or one of them, as when a worker ends."""
        if position is None:
            self._states.clear()
        elif self._states:
            del self._states[sorted(self._states)[position % len(self._states)]]

    def folder(self, job: Job, cell: int) -> Path | None:
        """Where the arrays of a cell are shared, if they are."""
        if self.shared is None or len(job.cells) == 1:
            return None
        return self.shared / f"meander-{job.run[:16]}" / f"cell-{job.number(cell)}"


# ---------------------------------------------------------------------------------------------------------
# Arrays that workers share


def publish_arrays(folder: Path, token: int, stamp: str, dataflow: Dataflow) -> None:
    """Declare the arrays in the folder to be those of the token, under the plan of the stamp."""
    arrays = [
        [owner, name, str(store.folder), array.dtype.str, list(array.shape)]
        for owner, store in dataflow.stores.items()
        for name, array in store.arrays.items()
        if name not in store.scratch
    ]
    write_note(folder / INDEX, {"token": token, "stamp": stamp, "arrays": arrays})


def withdraw_arrays(folder: Path) -> None:
    """The arrays are about to change."""
    (folder / INDEX).unlink(missing_ok=True)


def adopt_arrays(folder: Path, token: int, stamp: str) -> dict[str, Array] | None:
    """The published arrays of the token under this plan, or None."""
    try:
        index = read_note(folder / INDEX)
        if (index["token"], index["stamp"]) != (token, stamp):
            return None
        arrays: dict[str, Array] = {}
        for owner, name, store_folder, dtype, shape in index["arrays"]:
            size = int(np.prod(shape, dtype=np.int64))
            arrays[f"{owner}/{name}"] = (
                np.asarray(np.memmap(Path(store_folder) / f"{name}.bin", dtype, "r", shape=tuple(shape)))
                if size
                else np.empty(shape, dtype)
            )
    except (OSError, ValueError, KeyError, StateError):
        return None
    return arrays


# ---------------------------------------------------------------------------------------------------------
# Rebuilding


def rebuild(
    job: Job, cell: int, manifest: CellManifest, store: CellStore, shared_folder: Path | None
) -> LiveState:
    """The state of the manifest's token: published arrays, or the last snapshot and the blocks since, or all
    blocks."""
    # Mapped before the new dataflow replaces the files by its own.
    published = adopt_arrays(shared_folder, manifest.token, job.stamp) if shared_folder is not None else None
    dataflow = open_dataflow(job.plan, job.options, folder=shared_folder)
    ingest = restore_ingest(job, manifest, store)
    state = LiveState(manifest.token, job.live_stamp, ingest, dataflow, shared_folder)
    if published is not None:
        dataflow.restore(published)
    if published is not None or not job.plan.operators:
        state.rebuilt = False
        return state
    first_block = 0
    # Which expiries were underreported follows from all blocks, not from a snapshot and the blocks since.
    if manifest.snapshot and not manifest.may_underreport_expiry and not dataflow.may_underreport_expiry:
        begun = time.perf_counter()
        snapshot = read_snapshot(job.snapshot_path(cell, manifest.snapshot), job.stamp)
        if snapshot is not None:
            dataflow.restore(snapshot)
            first_block = manifest.snapshot_block
            state.load_seconds = time.perf_counter() - begun
    by_stream: dict[str, list[Edges]] = {}
    for block in manifest.blocks:
        if block.number >= first_block:
            by_stream.setdefault(block.stream, []).append(decode_edges(store.read_block(block.number)))
    edges = {stream: concat_edges(parts) for stream, parts in by_stream.items()}
    if edges or manifest.time > dataflow.time:
        parts = (edges_of_plan(job, cell, part) for part in manifest.parts_of(edges))
        state.backfill = replay(dataflow, parts, manifest)
    return state


def edges_of_plan(job: Job, cell: int, edges: Mapping[str, Edges]) -> dict[str, Edges]:
    """The edges of the streams, and of the cell's shares of streams, that the plan reads."""
    sources = [operator.source for operator in stream_operators(job.plan.operators)]
    return partition_streams(edges, list(dict.fromkeys(sources)), job.cells.index(cell))


def restore_ingest(job: Job, manifest: CellManifest, store: CellStore) -> Ingest:
    """The ingest as the last batch left it. A stream that was not read then begins now."""
    options = job.options
    ingest = Ingest(job.streams, lateness=options.lateness, max_jump=options.max_jump, windows=job.windows)
    stored = store.read_ingest()
    if stored is not None:
        arrays = unpack_arrays("ingest", np.frombuffer(stored, np.uint8))
        if arrays is None:
            raise damaged_state()
        before = Ingest(manifest.streams)
        before.restore(arrays)
        ingest.frontier = before.frontier
        ingest.streams |= {name: stream for name, stream in before.streams.items() if name in ingest.streams}
    return ingest
