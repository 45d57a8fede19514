"""`kafka://host:port/topic`: each answer is a record of JSON.

After a crash the last batch may be in the topic twice: Spark's Kafka sink does not promise more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.sinks.sink import SinkContext
from meander.errors import OutputError
from meander.spark.input.kafka import check_broker, connector_settings, parse_kafka_url
from meander.spark.output.dataframes import DataFrameSink


def in_order_of_time(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers of all cells in order of time, those of equal times in the order in which they come.

    Spark batches rows anew, so a batch may have answers of several cells.
    """
    table = pa.Table.from_batches(rows) if (rows := list(batches)) else None
    if table is not None:
        order = np.argsort(table.column("ts").to_numpy(), kind="stable")
        yield from table.combine_chunks().take(pa.array(order)).to_batches()


FIRST_PARTITION = 0
"""Kafka keeps the order of records within a partition only: that of time, so that they can be the tuples of another
run."""


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
        ordered = answers.coalesce(1).mapInArrow(in_order_of_time, answers.schema)
        value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        records = ordered.select(value.alias("value"), F.lit(FIRST_PARTITION).alias("partition"))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", self.topic).save()
