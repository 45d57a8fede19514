"""Cells: shares of the work, and the stateful operator that drives each on Spark.

A cell is one key of Spark's stateful operator. `Cell` gives a cell's step (`advance`) its chunks and a store that
outlives the worker; what the step does with them is the same with any other store.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from meander.errors import StateError
from meander.physical.plan import PhysicalPlan, ScanOp
from meander.physical.stages import Delivery, StagedPlan, base_stream, longest_windows
from meander.spark.checkpoint.notes import START_OVER, seal, unseal
from meander.spark.garbage import settle_worker
from meander.spark.messages import Chunk

if TYPE_CHECKING:
    from meander.dataflow.edges import Array, Edges


@dataclass(frozen=True)
class Job:
    """What every cell of a stage does. Sent to the workers with the operator.

    Of several stages the first has one cell, which puts edges in order and sends them on.
    """

    run: str
    plan: PhysicalPlan
    streams: tuple[str, ...]
    cells: tuple[int, ...]
    formats: Mapping[str, str]  # by query: how its answers are to be encoded
    lateness: int = 0
    max_jump: int | None = None
    windows: Mapping[str, int] = field(default_factory=dict)  # by stream: its longest window
    mode: str = "intervals"
    paths: bool = False
    memory: int | None = None
    threads: int = 1
    idle: float = 60.0
    started: float = 0.0
    time_unit: str = "s"
    merged: frozenset[str] = frozenset()
    in_full: frozenset[tuple[str, str]] = frozenset()  # results (query, head) that every cell has all of
    handover: bool = True  # whether workers leave each other their arrays, where there are several cells
    snapshots: str = ""
    spool: str = ""  # where large answers wait for the driver, if it is on the same machine
    snapshot_rows: int = 250_000
    stage: int = 0
    last: int = 0  # the number of the last stage
    deliveries: tuple[Delivery, ...] = ()  # what later stages read
    targets: tuple[int, ...] = ()  # the cells of each of these

    @property
    def stamp(self) -> str:
        """Tells snapshots of this plan and version from those of others."""
        known = (installed_version(), self.plan, self.mode, self.paths, self.cells)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    @property
    def cells_of_all_stages(self) -> int:
        return 1 + self.last * len(self.targets) if self.last else len(self.cells)

    def number(self, cell: int) -> int:
        """A cell's number among those of all stages."""
        before = 1 + (self.stage - 1) * len(self.cells) if self.stage else 0
        return before + self.cells.index(cell)

    def expiries(self, stream: str, edges: Edges) -> Array:
        """When each of some edges is let go of: by the last of the windows, or as derived tuples say."""
        if edges.exp is not None:
            return edges.exp
        scans = [
            one
            for one in self.plan.operators
            if isinstance(one, ScanOp) and base_stream(one.stream) == stream
        ]
        ends = [edges.ts // one.slide * one.slide + one.window for one in scans]
        latest: Array = np.maximum.reduce(ends) if ends else edges.ts
        return latest


def stage_jobs(
    staged: StagedPlan, keys: Sequence[int], *, run: str, formats: Mapping[str, str], **options: Any
) -> list[Job]:
    """The job of each stage; `keys` are those of the cells of every stage but the first of several, which has one."""
    windows = longest_windows(one for stage in staged.stages for one in stage.plan.operators)
    return [
        Job(
            run=run,
            plan=stage.plan,
            streams=staged.streams,
            cells=tuple(keys) if number else tuple(keys[:1]),
            formats=formats,
            in_full=stage.in_full,
            stage=number,
            last=len(staged.stages) - 1,
            deliveries=staged.deliveries,
            targets=tuple(keys),
            windows=windows,
            **options,
        )
        for number, stage in enumerate(staged.stages)
    ]


@functools.cache
def installed_version() -> str:
    try:
        return version("meander")
    except PackageNotFoundError:
        return ""


class CellStore(Protocol):
    """What outlives a cell's worker: Spark's state store, or a stand-in for it."""

    def read_head(self) -> bytes | None: ...
    def write_head(self, head: bytes) -> None: ...
    def read_ingest(self) -> bytes | None: ...
    def write_ingest(self, arrays: bytes) -> None: ...
    def read_piece(self, number: int) -> bytes: ...
    def write_piece(self, number: int, edges: bytes) -> None: ...
    def drop_piece(self, number: int) -> None: ...


class Output(NamedTuple):
    """A row that leaves a cell."""

    kind: str
    query: str
    head: str
    rows: int
    data: bytes


NUMBER = StructType([StructField("number", LongType())])
HEAD, INGEST = -1, -2
"""What stands in a cell's state beside its pieces, which have numbers from 0."""
CONTENT = StructType([StructField("content", BinaryType())])


class Cell(StatefulProcessor):
    """The stateful operator: Spark's state store under `advance`."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state of Spark's for all: to open one takes Spark about as long as everything that a small batch does.
        self._state = handle.getMapState("state", NUMBER, CONTENT)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        begun = time.perf_counter()
        # Imported where cells run: Spark also makes this operator in a process that only asks for its states.
        from meander.spark.cell.step import advance

        chunks = (Chunk(row.kind, row.stream, row.place, bytes(row.data), row.stage) for row in rows)
        for output in advance(self.job, key[0], self, chunks, begun):
            yield Row(**output._asdict())
        settle_worker()

    def close(self) -> None:
        pass

    def read_head(self) -> bytes | None:
        return self._read(HEAD)

    def write_head(self, head: bytes) -> None:
        self._write(HEAD, head)

    def read_ingest(self) -> bytes | None:
        return self._read(INGEST)

    def write_ingest(self, arrays: bytes) -> None:
        self._write(INGEST, arrays)

    def read_piece(self, number: int) -> bytes:
        content = self._read(number)
        if content is None:  # though the head lists it
            raise damaged_state()
        return content

    def write_piece(self, number: int, edges: bytes) -> None:
        self._write(number, edges)

    def drop_piece(self, number: int) -> None:
        self._state.removeKey((number,))

    def _read(self, number: int) -> bytes | None:
        row = self._state.getValue((number,))
        if row is None:
            return None
        content = unseal(bytes(row[0]))
        if content is None:
            raise damaged_state()
        return content

    def _write(self, number: int, content: bytes) -> None:
        self._state.updateValue((number,), (seal(content),))


def damaged_state() -> StateError:
    """The window's input is not what was stored: there is nothing to rebuild it from."""
    return StateError(
        "the state store in the folder spark of the checkpoint is damaged: it fails its checksum",
        hint=f"restore the checkpoint from a backup, or {START_OVER}",
    )
