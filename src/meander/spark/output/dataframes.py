"""Sinks that receive answers as a DataFrame: any format that Spark writes, and functions of the user.

Spark promises less for these than a file of Meander does: after a crash the last batch may be written twice, unless
the format, or the function, recognizes the number of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import parse_qsl

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.sinks.sink import Encoding, Sink, SinkContext
from meander.errors import ArgumentError
from meander.spark import SUPPORTED
from meander.spark.compat import format_package
from meander.spark.input.kafka import connector_settings
from meander.spark.messages import Kind
from meander.spark.output.encode import decode_table

FORMAT_HINT = "write format:NAME?OPTION=VALUE&…, such as format:delta?path=/data/answers&mergeSchema=true"


class DataFrameSink(Sink[DataFrame]):
    """A sink whose batches are DataFrames with the fields of an answer as columns."""

    def __init__(self, schema: AnswerSchema) -> None:
        self.schema = schema
        self.encoding = frame_encoding(schema)


class FunctionSink(DataFrameSink):
    """A function of (DataFrame, batch number)."""

    def __init__(self, function: Callable[[DataFrame, int], Any], schema: AnswerSchema) -> None:
        super().__init__(schema)
        self.function = function

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        return cls(target, context.schema)

    def write(self, batch: int, answers: DataFrame) -> None:
        self.function(answers, batch)


class FormatSink(DataFrameSink):
    """A format of Spark with its options: `format:NAME?OPTION=VALUE&…`, or {"format": NAME, OPTION: VALUE, …}."""

    def __init__(self, name: str, options: Mapping[str, Any], schema: AnswerSchema) -> None:
        super().__init__(schema)
        self.name = name
        self.options = options

    @classmethod
    def check(cls, target: Any) -> None:
        parse_format(target)

    @classmethod
    def spark_settings(cls, target: Any) -> dict[str, str]:
        name, _ = parse_format(target)
        return connector_settings() if name.lower() == "kafka" else {}

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        name, options = parse_format(target)
        assert context.spark is not None
        check_format(context.spark(), name)
        return cls(name, options, context.schema)

    def write(self, batch: int, answers: DataFrame) -> None:
        writer = answers.write.format(self.name).mode("append")
        for option, value in self.options.items():
            writer = writer.option(option, value)
        writer.save()


def parse_format(target: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a Spark format, and its options. In a URL, `%26` is an `&` and `%25` a `%` of a value."""
    if isinstance(target, Mapping):
        options = dict(target)
        return str(options.pop("format")), options
    name, _, query = target.partition(":")[2].partition("?")
    try:
        # A `+` is not a space here: paths and connection strings have both.
        pairs = (
            parse_qsl(query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=True) if query else []
        )
    except ValueError:
        raise ArgumentError(f"{target}: an option has no value", hint=FORMAT_HINT) from None
    if not name:
        raise ArgumentError(f"{target}: the name of the format is missing", hint=FORMAT_HINT)
    return name, dict(pairs)


def check_format(spark: SparkSession, name: str) -> None:
    """Refuse a format that this Spark does not know."""
    try:
        spark.read.format(name).load()
    except Exception as error:  # Spark has no class of its own for this one.
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            return  # It is known, and misses what only reading needs.
        package = format_package(name, spark.version)
        if not package and any(format_package(name, version) for version in SUPPORTED):
            versions = " or ".join(version for version in SUPPORTED if format_package(name, version))
            raise ArgumentError(
                f"Spark does not know the format {name}, which has no package for Spark {spark.version} yet",
                hint=f"use Spark {versions}, or another sink",
            ) from None
        raise ArgumentError(
            f"Spark does not know the format {name}",
            hint=f"start Spark with --packages {package} and the settings of {name}"
            if package
            else "start Spark with the --packages that bring it",
        ) from None


def frame_encoding(schema: AnswerSchema) -> Encoding:
    """How cells encode answers that become a DataFrame."""
    return Encoding.INTEGER_FRAME if schema.has_integers else Encoding.STRING_FRAME


def answers_of_query(outputs: DataFrame, query: str, schema: AnswerSchema) -> DataFrame:
    """The answers of a query as a DataFrame, from the output rows of the cells."""
    return answer_frame(
        outputs.where((F.col("kind") == str(Kind.ANSWERS)) & (F.col("query") == query)), schema
    )


def answer_frame(outputs: DataFrame, schema: AnswerSchema) -> DataFrame:
    """Output rows of cells, each with many encoded answers, as rows of answers."""
    arrow = spark_arrow(schema)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column("data"):
                yield from decode_table(data.as_py()).cast(arrow).to_batches()

    return outputs.select("data").mapInArrow(unpack, from_arrow_schema(arrow))


def spark_arrow(schema: AnswerSchema) -> pa.Schema:
    """The Arrow schema of answers with the 32-bit offsets that Spark expects."""
    return pa.schema([(field.name, _narrow(field.type)) for field in schema.arrow])


def _narrow(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_narrow(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _narrow(field.type)) for field in kind])
    return kind
