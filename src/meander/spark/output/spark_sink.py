"""Answers as DataFrames: the sinks that Spark writes, and the answers of a query as a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from meander.dataflow.files import is_kafka
from meander.errors import ArgumentError
from meander.spark.formats import ARROW_INTEGERS, ARROW_STRINGS, answer_type, decode_table, spark_schema
from meander.spark.kafka import kafka_writer
from meander.spark.messages import Kind


@dataclass
class SparkSink:
    """A sink that Spark writes: a function of (DataFrame, batch number), or a format with its options."""

    take: Callable[[DataFrame, int], Any]
    arity: int
    paths: bool
    integers: bool

    @property
    def how(self) -> str:
        return ARROW_INTEGERS if self.integers else ARROW_STRINGS

    @staticmethod
    def of(given: Any, arity: int, *, paths: bool, integers: bool) -> SparkSink:
        if callable(given):
            take = given
        elif isinstance(given, Mapping) and "format" in given:
            take = format_writer(dict(given))
        elif isinstance(given, str) and is_kafka(given):
            take = kafka_writer(given)
        else:
            raise ArgumentError(
                f"{given!r} is no sink",
                hint='a path, a function of (DataFrame, batch number), or {"format": …, …} with Spark\'s options',
            )
        return SparkSink(take, arity, paths, integers)

    def write(self, outputs: DataFrame, query: str, batch: int) -> None:
        of_query = outputs.where((F.col("kind") == str(Kind.ANSWERS)) & (F.col("query") == query))
        self.take(unpack(of_query, self.arity, paths=self.paths, integers=self.integers), batch)


def format_writer(options: dict[str, Any]) -> Callable[[DataFrame, int], None]:
    kind = options.pop("format")

    def take(frame: DataFrame, batch: int) -> None:
        writer = frame.write.format(kind).mode("append")
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.save()

    return take


def check_format(spark: SparkSession, kind: str) -> None:
    """Refuse a format that this Spark does not know."""
    try:
        spark.read.format(kind).load()
    except Exception as error:  # Spark has no class of its own for this one.
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            return  # It is known, and misses what only reading needs.
        if kind.lower() == "delta":
            raise ArgumentError(
                f"Spark has no Delta: its package is not there, or not made for Spark {spark.version}",
                hint="start Spark with --packages io.delta:delta-spark_2.13:VERSION and Delta's two settings; "
                "delta-spark up to 4.4 is for Spark up to 4.2",
            ) from None
        raise ArgumentError(
            f"Spark does not know the format {kind}", hint="start Spark with the --packages that bring it"
        ) from None


def unpack(outputs: DataFrame, arity: int, *, paths: bool, integers: bool) -> DataFrame:
    """Rows of encoded answers as rows of answers."""
    schema = spark_schema(arity, paths=paths, integers=integers)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column("data"):
                yield from decode_table(data.as_py()).cast(schema).to_batches()

    return outputs.select("data").mapInArrow(rows, answer_type(arity, paths=paths, integers=integers))
