"""`kafka://host:port/topic`: each answer is a record of JSON.

After a crash the last batch may be in the topic twice: Spark's Kafka sink does not promise more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.sinks.merging import merge_tables
from meander.dataflow.sinks.sink import SinkContext
from meander.errors import OutputError
from meander.spark.input.kafka import check_broker, connector_settings, parse_kafka_url
from meander.spark.output.dataframes import DataFrameSink


def in_order_of_time(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers of all cells in order of time; those of a cell are."""
    for table in merge_tables([pa.table(batch) for batch in batches]):
        yield from table.to_batches()


class KafkaSink(DataFrameSink):
    """Answers to a topic."""

    def __init__(self, url: str, schema: AnswerSchema) -> None:
        super().__init__(schema)
        self.servers, self.topic = parse_kafka_url(url)

    @classmethod
    def check(cls, target: Any) -> None:
        check_broker(target, OutputError)

    @classmethod
    def spark_settings(cls, target: Any) -> dict[str, str]:
        return connector_settings()

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        return cls(target, context.schema)

    def write(self, batch: int, answers: DataFrame) -> None:
        # A topic keeps the order of one writer: that of time, so that the records can be the tuples of another run.
        ordered = answers.coalesce(1).mapInArrow(in_order_of_time, answers.schema)
        records = ordered.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", self.topic).save()
