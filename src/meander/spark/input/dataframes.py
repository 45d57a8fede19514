"""DataFrames as input: their rows come in Arrow batches and leave as chunks in the same task.

The partitions of a DataFrame have no order among each other, so a cell merges them by time; within a partition, rows
keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from meander.dataflow.layout import ANSWER, PROPERTIES, StreamLayout
from meander.dataflow.path_texts import STEP
from meander.dataflow.property_columns import check_readable
from meander.dataflow.tabular import (
    FIELD_TYPES,
    INTEGER_TYPE,
    STRING_TYPE,
    TIMESTAMP_TYPE,
    check_field_type,
)
from meander.errors import ArgumentError, InputError
from meander.spark.garbage import settle_worker
from meander.spark.input.files import Sending
from meander.spark.messages import CHUNK_TYPE, PARTITION_SHIFT, Chunk, chunk_rows, message_rows, tick
from meander.syntax.values import ValueType

FRAME_TYPES = {**FIELD_TYPES, "ts": (INTEGER_TYPE, TIMESTAMP_TYPE)}
"""The types of a DataFrame's columns: text is not ordered by time, and Spark converts it itself (`to_timestamp`)."""

VALUE_TYPES: Mapping[tuple[type[DataType], ...], ValueType] = {
    (StringType,): ValueType.STRING,
    (IntegralType,): ValueType.INT,
    (FractionalType,): ValueType.FLOAT,
    (BooleanType,): ValueType.BOOL,
    (TimestampType, TimestampNTZType, DateType): ValueType.TIME,
}

Parse = Callable[[pa.RecordBatch], list[Chunk]]
"""From a batch of rows to chunks."""

Send = Callable[[list[Chunk]], pa.RecordBatch]
"""From chunks to the rows that Spark sends to cells."""


def chunk_frame(frame: DataFrame, layout: StreamLayout, send: Send) -> DataFrame:
    """A user's DataFrame of edges as rows of chunks."""
    renamed = layout.renamed()

    def parse(batch: pa.RecordBatch) -> list[Chunk]:
        from meander.spark.input.reader import batch_chunks

        return batch_chunks(batch, renamed)

    return packed_frame(edge_columns(frame, layout), send, parse)


def record_frame(frame: DataFrame, layout: StreamLayout, send: Send) -> DataFrame:
    """A DataFrame with one column of records as bytes, as rows of chunks."""

    def parse(batch: pa.RecordBatch) -> list[Chunk]:
        from meander.spark.input.reader import line_chunks

        return line_chunks(batch, layout)

    return packed_frame(frame, send, parse)


def send_to_one(cell: int) -> Send:
    """To a single cell, which puts edges in order."""

    def send(chunks: list[Chunk]) -> pa.RecordBatch:
        from meander.spark.edge_codec import packed_chunk

        return chunk_rows(map(packed_chunk, chunks), cell)

    return send


def send_to_several(scatter: Sending) -> Send:
    """To the cells that read the edges."""
    return lambda chunks: message_rows(scatter.send(chunks))


def packed_frame(frame: DataFrame, send: Send, parse: Parse) -> DataFrame:
    """The rows of a DataFrame as rows of chunks, in the order of each partition."""

    def pack_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        position = (context.partitionId() if context is not None else 0) << PARTITION_SHIFT
        yield send([tick(position)])
        for batch in batches:
            chunks = parse(batch)
            yield send([chunk._replace(position=position + at) for at, chunk in enumerate(chunks)])
            position += len(chunks)
        settle_worker()

    return frame.mapInArrow(pack_partition, CHUNK_TYPE)


def edge_columns(frame: DataFrame, layout: StreamLayout) -> DataFrame:
    """The fields of edges and the properties of a DataFrame, under their own names and with usable types."""
    stream = layout.stream
    types = {column.name: column.dataType for column in frame.schema.fields}
    selected = []
    nested = record_columns(frame, layout)
    for name, column in layout.columns_read.items():
        if name in nested:
            check_type(layout, name, column, nested[name][0])
            selected.append(nested[name][1].alias(name))
            continue
        if column not in types:
            needed = name in layout.required and ANSWER not in nested
            if not needed and name not in layout.named_properties and name not in layout.columns:
                continue
            raise ArgumentError(
                f"the DataFrame of stream {stream} has no column {column}: it has {', '.join(frame.columns)}",
                hint=f'map the field to a column: columns={{"{name}": "…"}}',
            )
        check_type(layout, name, column, types[column])
        selected.append(F.col(f"`{column}`").alias(name))
    selected += [nested[name][1].alias(name) for name in (PROPERTIES, ANSWER) if name in nested]
    return frame.select(*selected)


def record_columns(frame: DataFrame, layout: StreamLayout) -> dict[str, tuple[DataType, Column]]:
    """The fields of records that edges do not have, and the properties in one of them, each with its type.

    The properties of a tuple have the names under which they are read.
    """
    if not layout.schema.tuples:
        return {}
    types = {column.name: column.dataType for column in frame.schema.fields}
    found: dict[str, tuple[DataType, Column]] = {}
    if isinstance(types.get(ANSWER), ArrayType):
        found[ANSWER] = types[ANSWER], F.col(ANSWER)
    fields = types.get(PROPERTIES)
    if isinstance(fields, StructType):
        found[PROPERTIES] = fields, F.col(PROPERTIES)
        for name in layout.named_properties:
            column = layout.column(name)
            if column in fields.names:
                kind = fields[column].dataType
                value = F.col(f"{PROPERTIES}.`{column}`")
                if types.get(column) == kind:
                    value = F.coalesce(value, F.col(f"`{column}`"))
                found[name] = kind, value
    return found


def check_type(layout: StreamLayout, name: str, column: str, kind: DataType) -> None:
    """Refuse a column whose type cannot hold this field or property."""
    described = f"the column {column} of stream {layout.stream}"
    try:
        if name in FIELD_TYPES:
            check_field_type(name, spark_category(kind), described, kind.simpleString(), FRAME_TYPES[name])
        else:
            given = spark_value_type(kind)
            check_readable(
                given, isinstance(kind, NullType), layout.types[name], described, kind.simpleString()
            )
    except InputError as error:
        raise ArgumentError(error.message, hint=error.hint) from None


def column_types(frame: DataFrame) -> dict[str, ValueType | None]:
    """The columns of a DataFrame, and the fields of `properties`, with the types of their values."""
    types = {column.name: column.dataType for column in frame.schema.fields}
    fields = types.get(PROPERTIES)
    if isinstance(fields, StructType):
        types |= {field.name: field.dataType for field in fields.fields}
    return {name: spark_value_type(kind) for name, kind in types.items()}


def spark_category(kind: DataType) -> str:
    """Which of the types of `FIELD_TYPES` a type of Spark is; "" for any other."""
    if isinstance(kind, StringType):
        return STRING_TYPE
    if isinstance(kind, IntegralType):
        return INTEGER_TYPE
    return TIMESTAMP_TYPE if isinstance(kind, TimestampType | TimestampNTZType | DateType) else ""


def spark_value_type(kind: DataType) -> ValueType | None:
    """The type of the values of a Spark column; None for one that no property has."""
    if isinstance(kind, ArrayType):
        step = kind.elementType
        fields = set(step.names) if isinstance(step, StructType) else set()
        is_path = isinstance(step, ArrayType) or set(STEP[:3]) <= fields <= set(STEP)
        return ValueType.PATH if is_path else None
    for spark_types, value_type in VALUE_TYPES.items():
        if isinstance(kind, spark_types):
            return value_type
    return None
