"""DataFrames as input: their rows come in Arrow batches and leave as chunks in the same task.

The partitions of a DataFrame have no order among each other, so a cell merges them by time; within a partition, rows
keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StringType, TimestampNTZType, TimestampType

from meander.dataflow.tabular import (
    EDGE_FIELDS,
    INTEGER_TYPE,
    STRING_TYPE,
    TIMESTAMP_TYPE,
    check_field_type,
)
from meander.errors import ArgumentError, InputError
from meander.spark.garbage import settle_worker
from meander.spark.messages import CHUNK_TYPE, PARTITION_SHIFT, Chunk, chunk_rows, tick

Pack = Callable[[pa.RecordBatch, int], list[Chunk]]
"""From a batch of rows, and the position of its chunks, to chunks."""


def chunk_frame(
    frame: DataFrame,
    stream: str,
    *,
    cell: int,
    columns: dict[str, str],
    time_unit: str,
) -> DataFrame:
    """A user's DataFrame of edges as rows of chunks; `columns` maps fields of an edge to its columns."""

    def pack(batch: pa.RecordBatch, position: int) -> list[Chunk]:
        from meander.spark.input.reader import pack_batch

        return pack_batch(batch, stream, position, time_unit)

    return packed_frame(edge_columns(frame, stream, columns), cell, pack)


def record_frame(frame: DataFrame, stream: str, *, cell: int) -> DataFrame:
    """A DataFrame with one column of records as bytes, as rows of chunks."""

    def pack(batch: pa.RecordBatch, position: int) -> list[Chunk]:
        from meander.spark.input.reader import pack_lines

        return pack_lines(batch, stream, position)

    return packed_frame(frame, cell, pack)


def packed_frame(frame: DataFrame, cell: int, pack: Pack) -> DataFrame:
    """The rows of a DataFrame as rows of chunks, in the order of each partition."""

    def pack_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        position = (context.partitionId() if context is not None else 0) << PARTITION_SHIFT
        yield chunk_rows([tick(position)], cell)
        for batch in batches:
            yield chunk_rows(pack(batch, position), cell)
            position += 1
        settle_worker()

    return frame.mapInArrow(pack_partition, CHUNK_TYPE)


def edge_columns(frame: DataFrame, stream: str, columns: dict[str, str]) -> DataFrame:
    """The columns src, label, trg, ts and perhaps op of a DataFrame, under these names and with usable types."""
    unknown = [name for name in columns if name not in EDGE_FIELDS]
    if unknown:
        raise ArgumentError(
            f"not a field of an edge: {unknown[0]}",
            hint="columns= maps src, label, trg, ts and op to column names",
        )
    types = {column.name: column.dataType for column in frame.schema.fields}
    selected = []
    for name in EDGE_FIELDS:
        column = columns.get(name, name)
        if column not in types:
            if name == "op" and "op" not in columns:
                continue
            raise ArgumentError(
                f"the DataFrame of stream {stream} has no column {column}: it has {', '.join(frame.columns)}",
                hint=f'map the field to a column: columns={{"{name}": "…"}}',
            )
        check_type(stream, name, column, types[column])
        selected.append(F.col(f"`{column}`").alias(name))
    return frame.select(*selected)


def check_type(stream: str, field: str, column: str, kind: DataType) -> None:
    """Refuse a column whose type cannot hold this field of an edge."""
    try:
        check_field_type(
            field, spark_category(kind), f"the column {column} of stream {stream}", kind.simpleString()
        )
    except InputError as error:
        raise ArgumentError(error.message, hint=error.hint) from None


def spark_category(kind: DataType) -> str:
    """Which of the types of `FIELD_TYPES` a type of Spark is; "" for any other."""
    if isinstance(kind, StringType):
        return STRING_TYPE
    if isinstance(kind, IntegralType):
        return INTEGER_TYPE
    return TIMESTAMP_TYPE if isinstance(kind, TimestampType | TimestampNTZType) else ""
