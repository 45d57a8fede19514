"""The source of a stream, as a session names it: a path, a URL, or a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegralType

from meander.dataflow.sources.registry import needs_spark, open_url
from meander.spark.input.dataframes import chunk_frame, edge_columns, record_frame


@dataclass(frozen=True)
class StreamSource:
    """Where a stream's edges come from: a location, or a DataFrame and the names of its columns.

    `records` are edges as bytes in one column; a `bounded` location does not grow.
    """

    location: str = ""
    frame: DataFrame | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
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

    def check(self, *, follow: bool) -> None:
        """Refuse a location that cannot be read or reached."""
        if self.location:
            open_url(self.location).check(follow=follow)

    def spark_settings(self) -> dict[str, str]:
        """Settings that a Spark session needs for this source, if Meander starts it."""
        return open_url(self.location).spark_settings() if needs_spark(self.location) else {}

    def materialize(self, spark: SparkSession, name: str, folder: Path) -> StreamSource:
        """The same source as a location that is read, or as a streaming DataFrame.

        A static DataFrame is written to the folder in order of time, as files that do not grow.
        """
        if needs_spark(self.location):
            return StreamSource(frame=open_url(self.location).records(spark), records=True)
        if self.frame is None or self.frame.isStreaming:
            return self
        if not is_written(folder):
            edges = edge_columns(self.frame, name, dict(self.columns))
            edges.orderBy("ts").write.mode("overwrite").parquet(str(folder))
        return StreamSource(location=str(folder), bounded=True)

    def chunks(self, name: str, cell: int, time_unit: str) -> DataFrame:
        """The edges of a streaming DataFrame as rows of chunks for a cell."""
        assert self.frame is not None
        if self.records:
            return record_frame(self.frame, name, cell=cell)
        return chunk_frame(self.frame, name, cell=cell, columns=dict(self.columns), time_unit=time_unit)


def is_written(folder: Path) -> bool:
    """Whether Spark has written all files of a folder."""
    return (folder / "_SUCCESS").exists()
