"""Where edges come from: files that Meander reads itself, and any DataFrame that a user brings.

Files are a Python data source of Spark: its reader on the driver keeps the ledger. With one cell it hands out the
list of a batch's segments, and the cell reads them. With several, tasks read and each cell gets chunks. Both use
the readers of the in-process runner: nothing in between makes a row of an edge, a line's text is at hand for its
reject, and the order of lines is kept.

A DataFrame's rows come in Arrow batches and leave as chunks in the same task. Its partitions have no order
among each other, so a cell merges them by time (`merged`); within one, rows keep theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import DataType, IntegralType, StringType, StructType, TimestampNTZType, TimestampType

from meander.errors import ArgumentError
from meander.spark.garbage import settle_worker
from meander.spark.input.ledger import WHOLE, Entry, Ledger, Segment
from meander.spark.messages import (
    CHUNK_TYPE,
    PARTITION_SHIFT,
    bytes_read,
    chunk_row,
    chunk_rows,
    closed,
    input_changed,
    segment_list,
    tick,
)

FORMAT = "meander_edges"
NEEDED = ("src", "label", "trg", "ts")


@dataclass(frozen=True)
class Intake:
    """What the source of files needs to know; `streams` are all of the run, `places` those read from files.

    All goes to one cell, which reads the files itself unless `by_tasks`.
    """

    ledger: str
    streams: tuple[str, ...]
    places: dict[str, str]
    cell: int
    bounded: tuple[str, ...]
    batch_rows: int
    time_unit: str
    tick: float | None
    tasks: int
    by_tasks: bool


def edge_frame(spark: SparkSession, intake: Intake) -> DataFrame:
    """The streaming DataFrame of chunks of all streams that are read from files."""
    spark.dataSource.register(EdgeSource)
    return spark.readStream.format(FORMAT).option("intake", json.dumps(asdict(intake))).load()


class EdgeSource(DataSource):
    """Files as rows of chunks."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return CHUNK_TYPE

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        intake = self._intake()
        # Spark asks for a simple reader where there is none of this kind.
        return EdgeReader(intake) if intake.by_tasks else super().streamReader(schema)

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return SegmentLister(self._intake())

    def _intake(self) -> Intake:
        fields = json.loads(self.options["intake"])
        for name in ("streams", "bounded"):
            fields[name] = tuple(fields[name])
        return Intake(**fields)


@dataclass
class Share(InputPartition):
    """The part of a batch that one task reads; the first task also wakes the cell, and says why there is no more."""

    number: int
    segments: tuple[Segment, ...]
    closed: tuple[str, ...]
    error: str


class SegmentLister(SimpleDataSourceStreamReader):
    """For one cell: a batch is a row that lists its segments, made on the driver, and the cell reads them."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = open_ledger(self.intake)
        return self._ledger

    def initialOffset(self) -> dict[str, int]:
        return {"entry": 0}

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


class EdgeReader(DataSourceStreamReader):
    """An offset is the number of the last entry of the ledger that belongs to it."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        # Tasks have the reader too, and no use for the ledger.
        if self._ledger is None:
            self._ledger = open_ledger(self.intake)
        return self._ledger

    def initialOffset(self) -> dict[str, int]:
        return {"entry": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"entry": self.ledger.advance(start["entry"])}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        whole = entry_between(self.ledger, start, end)
        pieces = split(whole.segments, self.intake.tasks) or [()]
        return [
            Share(number, tuple(piece), *((whole.closed, whole.error) if number == 0 else ((), "")))
            for number, piece in enumerate(pieces)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        base = partition.number << PARTITION_SHIFT
        if partition.number == 0:
            ticks = [closed(stream) for stream in partition.closed]
            if partition.error:
                ticks.append(input_changed(partition.error))
            yield chunk_rows(ticks or [tick()], self.intake.cell)
        # Imported by the tasks that read, not by the driver's process that only keeps the ledger.
        from meander.spark.input.reader import read_chunks, size_of

        yield chunk_rows([bytes_read(size_of(partition.segments), base)], self.intake.cell)
        for count, chunk in enumerate(read_chunks(partition.segments, self.intake.time_unit), start=base):
            yield chunk_rows([chunk._replace(position=count)], self.intake.cell)
        settle_worker()

    def commit(self, end: dict[str, int]) -> None:
        self.ledger.forget(end["entry"])

    def stop(self) -> None:
        pass


def open_ledger(intake: Intake) -> Ledger:
    return Ledger(
        Path(intake.ledger),
        intake.places,
        intake.streams,
        frozenset(intake.bounded),
        intake.batch_rows,
        intake.tick,
    )


def entry_between(ledger: Ledger, start: dict[str, int], end: dict[str, int]) -> Entry:
    """All that lies between two offsets as one entry."""
    entries = [ledger.entry(number) for number in range(start["entry"] + 1, end["entry"] + 1)]
    return Entry(
        tuple(one for entry in entries for one in entry.segments),
        tuple(one for entry in entries for one in entry.closed),
        next((entry.error for entry in entries if entry.error), ""),
    )


def split(segments: Sequence[Segment], tasks: int) -> list[tuple[Segment, ...]]:
    """The segments in order, in at most `tasks` runs of about the same number of bytes.

    A segment of text is worth cutting only where a task has enough to do.
    """
    sizes = np.array([one.end - one.start if one.end != WHOLE else 1 << 20 for one in segments], np.int64)
    total = int(sizes.sum())
    count = min(tasks, max(1, total >> 20), max(1, len(segments)))
    if not segments:
        return []
    group = (np.cumsum(sizes) - 1) * count // max(1, total)
    return [
        piece
        for number in range(count)
        if (piece := tuple(one for one, at in zip(segments, group.tolist(), strict=True) if at == number))
    ]


def chunk_frame(
    frame: DataFrame,
    stream: str,
    *,
    cell: int,
    columns: dict[str, str],
    time_unit: str,
) -> DataFrame:
    """A user's DataFrame of edges as rows of chunks; `columns` says which of its columns is which field."""
    chosen = edge_columns(frame, stream, columns)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        place = partition << PARTITION_SHIFT
        yield chunk_rows([tick(place)], cell)
        from meander.spark.input.reader import pack_batch

        for batch in batches:
            yield chunk_rows(pack_batch(batch, stream, place, time_unit), cell)
            place += 1
        settle_worker()

    return chosen.mapInArrow(pack, CHUNK_TYPE)


def record_frame(frame: DataFrame, stream: str, *, cell: int) -> DataFrame:
    """A DataFrame with one column of records as bytes, as rows of chunks."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from meander.spark.input.reader import pack_lines

        context = TaskContext.get()
        place = (context.partitionId() if context is not None else 0) << PARTITION_SHIFT
        yield chunk_rows([tick(place)], cell)
        for batch in batches:
            yield chunk_rows(pack_lines(batch, stream, place), cell)
            place += 1
        settle_worker()

    return frame.mapInArrow(pack, CHUNK_TYPE)


def edge_columns(frame: DataFrame, stream: str, columns: dict[str, str]) -> DataFrame:
    """The columns src, label, trg, ts and perhaps op of a DataFrame, under these names and with usable types."""
    unknown = [name for name in columns if name not in (*NEEDED, "op")]
    if unknown:
        raise ArgumentError(
            f"{unknown[0]} is no field of an edge\nhint: columns= maps src, label, trg, ts and op to column names"
        )
    types = {one.name: one.dataType for one in frame.schema.fields}
    chosen = []
    for name in (*NEEDED, "op"):
        column = columns.get(name, name)
        if column not in types:
            if name == "op" and "op" not in columns:
                continue
            raise ArgumentError(
                f"the DataFrame of stream {stream} has no column {column}: it has {', '.join(frame.columns)}\n"
                f'hint: say which column is which: columns={{"{name}": "…"}}'
            )
        check_type(stream, name, column, types[column])
        chosen.append(F.col(f"`{column}`").alias(name))
    return frame.select(*chosen)


def check_type(stream: str, name: str, column: str, kind: DataType) -> None:
    text = isinstance(kind, StringType)
    integer = isinstance(kind, IntegralType)
    allowed = {
        "src": text or integer,
        "trg": text or integer,
        "ts": integer or isinstance(kind, TimestampType | TimestampNTZType),
    }.get(name, text)
    if not allowed:
        wanted = {"src": "a string or an integer", "trg": "a string or an integer"}
        wanted["ts"] = "an integer or a timestamp"
        raise ArgumentError(
            f"the column {column} of stream {stream} is of type {kind.simpleString()}; "
            f"{name} has to be {wanted.get(name, 'a string')}"
        )
