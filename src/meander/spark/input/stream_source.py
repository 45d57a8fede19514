"""The source of a stream, as a session names it: a path, a URL, or a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.columns import property_types, url_types
from meander.dataflow.sources.registry import needs_spark, open_url
from meander.physical.streams import StreamSchema
from meander.spark.checkpoint.storage import Location
from meander.spark.input.dataframes import Send, chunk_frame, column_types, edge_columns, record_frame
from meander.syntax.values import ValueType

ARRIVAL = "order of arrival"
"""The column by which the rows of a static DataFrame are ordered within an instant."""


@dataclass(frozen=True)
class StreamSource:
    """Where a stream's edges come from: a location or a DataFrame, the names of its columns, and perhaps the label of
    all of its rows.

    `records` are edges as bytes in one column; a `bounded` location does not grow.
    """

    location: str = ""
    frame: DataFrame | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
    records: bool = False
    bounded: bool = False

    @property
    def by_spark(self) -> bool:
        """Whether Spark reads it: Meander reads files, and DataFrames that do not grow, itself."""
        return needs_spark(self.location) or (self.frame is not None and self.frame.isStreaming)

    @property
    def has_integers(self) -> bool:
        """Whether all vertices are integers, by the types of the columns."""
        if self.frame is None:
            return False
        types = {column.name: column.dataType for column in self.frame.schema.fields}
        return all(isinstance(types.get(self.columns.get(end, end)), IntegralType) for end in ("src", "trg"))

    def layout(self, stream: str, schema: StreamSchema, time_unit: str) -> StreamLayout:
        """How the rows are read."""
        return StreamLayout(stream, time_unit, schema, dict(self.columns), self.label)

    def property_types(self) -> dict[str, ValueType | None]:
        """The types of the properties that the source's columns give; none if its columns have no types."""
        if self.frame is not None:
            return property_types(column_types(self.frame), self.columns)
        return url_types(self.location, self.columns)

    def check(self, layout: StreamLayout, *, follow: bool) -> None:
        """Refuse a location that cannot be read or reached, and a DataFrame without the columns."""
        if self.location:
            open_url(self.location).check(layout, follow=follow)
        elif self.frame is not None:
            edge_columns(self.frame, layout)

    def spark_settings(self) -> dict[str, str]:
        """Settings that a Spark session needs for this source, if Meander starts it."""
        return open_url(self.location).spark_settings() if needs_spark(self.location) else {}

    def materialize(self, spark: SparkSession, layout: StreamLayout, folder: Location) -> StreamSource:
        """The same source as a location that is read, or as a streaming DataFrame.

        A static DataFrame is written to the folder in order of time, as files that do not grow.
        """
        if needs_spark(self.location):
            frame = open_url(self.location).records(spark)
            return replace(self, location="", frame=frame, records=True)
        if self.frame is None or self.frame.isStreaming:
            return self
        if not is_written(folder):
            edges = edge_columns(self.frame, layout)
            # Rows of one instant stay in their order.
            numbered = edges.withColumn(ARRIVAL, F.monotonically_increasing_id())
            ordered = numbered.orderBy("ts", ARRIVAL).drop(ARRIVAL) if "ts" in edges.columns else edges
            ordered.write.mode("overwrite").parquet(str(folder))
        return StreamSource(location=str(folder), label=self.label, bounded=True)

    def chunks(self, layout: StreamLayout, send: Send) -> DataFrame:
        """The edges of a streaming DataFrame as rows of chunks."""
        assert self.frame is not None
        as_chunks = record_frame if self.records else chunk_frame
        return as_chunks(self.frame, layout, send)


def is_written(folder: Location) -> bool:
    """Whether Spark has written all files of a folder."""
    return (folder / "_SUCCESS").exists()
