"""Files as a data source of Spark, in Python: its reader on the driver keeps the ledger of what has been read.

With one cell the reader emits the list of a batch's segments, and the cell reads them. With several cells, tasks
read, and send each cell the edges that it reads. Both use the readers of the local runner: no row is created per
edge, the text of a line is available for its reject, and the order of lines is kept.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import StructType

from meander.spark.checkpoint.storage import Location, location, settings_of, stored_settings
from meander.spark.compat import EndsWithInput, forget_empty_profiles
from meander.spark.garbage import settle_worker
from meander.spark.input.ledger import WHOLE, Entry, Ledger, Segment
from meander.spark.messages import (
    CHUNK_TYPE,
    PARTITION_SHIFT,
    Chunk,
    StageMessage,
    bytes_read,
    chunk_row,
    closed,
    input_changed,
    message_rows,
    segment_list,
    tick,
)

FORMAT = "meander_edges"
TASK_BYTES = 1 << 20
"""A task is worth its start from about as many bytes on."""


@dataclass(frozen=True)
class Intake:
    """The settings of the source of files; `streams` are all of the run, `paths` those of streams read from files.

    A single cell reads the files itself. To several, tasks send what they read by `scatter`, packed for their
    processes. Reading begins after the entry `after` of the ledger, and ends with the entry `until`, if there is one.
    """

    ledger: Location
    streams: tuple[str, ...]
    paths: dict[str, str]
    cell: int
    bounded: tuple[str, ...]
    batch_rows: int
    layouts: dict[str, Any]  # by stream: its layout as JSON
    tick: float | None
    tasks: int
    scatter: str = ""
    after: int = 0
    until: int | None = None


def edge_frame(spark: SparkSession, intake: Intake) -> DataFrame:
    """The streaming DataFrame of chunks of all streams that are read from files."""
    spark.dataSource.register(EdgeSource)
    fields = json.dumps(asdict(intake) | {"ledger": str(intake.ledger)})
    # Settings of a store are options of their own: Spark then knows by their names which to redact.
    reader = spark.readStream.format(FORMAT).options(**settings_of(intake.ledger))
    return reader.option("intake", fields).load()


class EdgeSource(DataSource):
    """Files as rows of chunks."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        forget_empty_profiles()
        return CHUNK_TYPE

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        intake = self._intake()
        # Spark asks for a simple reader if there is none of this kind.
        return EdgeReader(intake) if intake.scatter else super().streamReader(schema)

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return SegmentLister(self._intake())

    def _intake(self) -> Intake:
        forget_empty_profiles()
        fields = json.loads(self.options["intake"])
        for name in ("streams", "bounded"):
            fields[name] = tuple(fields[name])
        fields["ledger"] = location(fields["ledger"], stored_settings(self.options))
        return Intake(**fields)


@dataclass
class TaskInput(InputPartition):
    """The part of a batch that one task reads; the first task also wakes the cell, and reports why input ends."""

    number: int
    segments: tuple[Segment, ...]
    closed: tuple[str, ...]
    error: str


class SegmentLister(SimpleDataSourceStreamReader, EndsWithInput):
    """For one cell: a batch is a row of the driver that lists its segments, and the cell reads them."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = open_ledger(self.intake)
        return self._ledger

    def initialOffset(self) -> dict[str, int]:
        return {"entry": self.intake.after}

    def prepareForTriggerAvailableNow(self) -> None:
        pass  # `read` gives batch after batch until there is no more

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[object, ...]], dict[str, int]]:
        end = {"entry": self.ledger.advance(start["entry"])}
        return iter(list(self.readBetweenOffsets(start, end))), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[object, ...]]:
        if start == end:
            return iter(())
        entry = entry_between(self.ledger, start, end)
        chunks = [segment_list(entry.segments), *map(closed, entry.closed)]
        if entry.error:
            chunks.append(input_changed(entry.error))
        return iter([chunk_row(chunk, self.intake.cell) for chunk in chunks])

    def commit(self, end: dict[str, int]) -> None:
        self.ledger.forget(end["entry"])


class EdgeReader(DataSourceStreamReader, EndsWithInput):
    """An offset is the number of the last entry of the ledger that belongs to it.

    Spark 4.1 asks for the latest offset without saying which it had before, so the reader remembers what Spark knows.
    """

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self._ledger: Ledger | None = None
        self._known: int | None = None

    @property
    def ledger(self) -> Ledger:
        # Tasks have the reader too, and do not use the ledger.
        if self._ledger is None:
            self._ledger = open_ledger(self.intake)
        return self._ledger

    def initialOffset(self) -> dict[str, int]:
        self._known = self.intake.after
        return {"entry": self._known}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:
        if start is not None:
            known = start["entry"]
        elif self._known is not None:
            known = self._known
        else:
            # At a restart Spark 4.1 first plans or commits the last batch that it knows. Without that, the last entry
            # is the only one that it may not know yet.
            known = max(0, self.ledger.last - 1)
        self._known = self.ledger.advance(known)
        return {"entry": self._known}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._known = max(self._known or 0, end["entry"])
        entry = entry_between(self.ledger, start, end)
        return [
            TaskInput(number, segments, *((entry.closed, entry.error) if number == 0 else ((), "")))
            for number, segments in enumerate(split(entry.segments, self.intake.tasks) or [()])
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TaskInput)
        # Imported by the tasks that read, not by the driver's process that only keeps the ledger.
        from meander.dataflow.layout import StreamLayout
        from meander.spark.input.reader import read_chunks, size_of

        base = partition.number << PARTITION_SHIFT
        layouts = {name: StreamLayout.from_json(fields) for name, fields in self.intake.layouts.items()}
        scatter = unpack_scatter(self.intake.scatter)
        segments, checkpoint = partition.segments, self.intake.ledger
        first = [bytes_read(size_of(segments, checkpoint), base)]
        if partition.number == 0:
            first += [tick(), *map(closed, partition.closed)]
            first += [input_changed(partition.error)] if partition.error else []
        for count, chunk in enumerate(read_chunks(segments, layouts.__getitem__, checkpoint), start=base):
            yield message_rows(scatter.send([*first, chunk._replace(position=count)]))
            first = []
        if first:
            yield message_rows(scatter.send(first))
        settle_worker()

    def commit(self, end: dict[str, int]) -> None:
        self._known = max(self._known or 0, end["entry"])
        self.ledger.forget(end["entry"])

    def stop(self) -> None:
        pass


class Sending(Protocol):
    """Routes what tasks read to several cells."""

    def send(self, chunks: Iterable[Chunk]) -> Iterator[StageMessage]:
        """The rows of some chunks."""


def pack_scatter(scatter: Sending) -> str:
    """Packed to be one of a source's options, which are text."""
    return base64.b64encode(pickle.dumps(scatter)).decode()


def unpack_scatter(packed: str) -> Sending:
    scatter: Sending = pickle.loads(base64.b64decode(packed))
    return scatter


def open_ledger(intake: Intake) -> Ledger:
    return Ledger(
        intake.ledger,
        intake.paths,
        intake.streams,
        frozenset(intake.bounded),
        intake.batch_rows,
        intake.tick,
        until=intake.until,
    )


def entry_between(ledger: Ledger, start: dict[str, int], end: dict[str, int]) -> Entry:
    """The entries between two offsets, combined into one."""
    entries = [ledger.entry(number) for number in range(start["entry"] + 1, end["entry"] + 1)]
    return Entry(
        tuple(segment for entry in entries for segment in entry.segments),
        tuple(stream for entry in entries for stream in entry.closed),
        next((entry.error for entry in entries if entry.error), ""),
    )


def split(segments: Sequence[Segment], tasks: int) -> list[tuple[Segment, ...]]:
    """The segments in order, in at most `tasks` groups of about the same number of bytes, at least `TASK_BYTES`."""
    if not segments:
        return []
    sizes = np.array(
        [TASK_BYTES if segment.end == WHOLE else segment.end - segment.start for segment in segments],
        np.int64,
    )
    total = int(sizes.sum())
    count = min(tasks, max(1, total // TASK_BYTES), len(segments))
    groups: dict[int, list[Segment]] = {}
    for segment, group in zip(
        segments, ((np.cumsum(sizes) - 1) * count // max(1, total)).tolist(), strict=True
    ):
        groups.setdefault(group, []).append(segment)
    return [tuple(group) for group in groups.values()]
