"""The stateful operator of Spark that runs a cell's step, over Spark's state store.

A cell is one key of the operator. `CellOperator` gives a step its chunks, and is the store that outlives the worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from meander.spark.cell.job import Job
from meander.spark.cell.store import damaged_state
from meander.spark.checkpoint.notes import seal, unseal
from meander.spark.garbage import settle_worker
from meander.spark.messages import Chunk

NUMBER = StructType([StructField("number", LongType())])
CONTENT = StructType([StructField("content", BinaryType())])
STATE = "state"
MANIFEST, INGEST = -1, -2
"""The keys in a cell's state besides the numbers of its blocks, which start at 0."""


class CellOperator(StatefulProcessor):
    """Runs the steps of the cells of a stage; Spark's state is their `CellStore`."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state of Spark's for all: to open one takes Spark about as long as everything that a small batch does.
        self._state = handle.getMapState(STATE, NUMBER, CONTENT)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        begun = time.perf_counter()
        # Imported where cells run: Spark also makes this operator in a process that only asks for its states.
        from meander.spark.cell.step import CellStep
        from meander.spark.workers.process_cache import process_cache

        received = list(rows)
        chunks = [Chunk(row.kind, row.stream, row.position, bytes(row.data), row.stage) for row in received]
        now = getattr(received[0], "now", None)
        clock = time.time if now is None else lambda: now
        step = CellStep(self.job, key[0], self, process_cache(), begun=begun, clock=clock)
        for row in step.run(chunks):
            yield Row(**(row._asdict() | {"kind": str(row.kind)}))
        settle_worker()

    def close(self) -> None:
        pass

    def read_manifest(self) -> bytes | None:
        return self._read(MANIFEST)

    def write_manifest(self, manifest: bytes) -> None:
        self._write(MANIFEST, manifest)

    def read_ingest(self) -> bytes | None:
        return self._read(INGEST)

    def write_ingest(self, arrays: bytes) -> None:
        self._write(INGEST, arrays)

    def read_block(self, number: int) -> bytes:
        content = self._read(number)
        if content is None:  # though the manifest lists it
            raise damaged_state()
        return content

    def write_block(self, number: int, edges: bytes) -> None:
        self._write(number, edges)

    def drop_block(self, number: int) -> None:
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
