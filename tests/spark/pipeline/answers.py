"""A declarative pipeline whose tables are answers: over a DataFrame, and over files that Meander reads.

`test_spark_pipelines.py` runs it. While a function of a pipeline runs, Spark analyzes nothing: so the DataFrames are
made before.
"""

from __future__ import annotations

from pathlib import Path

from incidents import CLOSURE
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from meander.spark.session import Session

EDGES = "src string, label string, trg string, ts bigint"

spark = SparkSession.active()
session = Session(spark)
folder = Path(spark.conf.get("spark.meander.folder"))
session.stream("s", spark.readStream.schema(EDGES).csv(str(folder / "csv")))
reached_by_frame = session.query(CLOSURE, "by_frame").dataframe(paths=True)

files = Session(spark)
files.stream("s", str(folder / "tsv"))
reached_by_files = files.query(CLOSURE, "by_files").dataframe(folder=str(folder / "state"), batch_rows=150)


@dp.table
def by_frame() -> DataFrame:
    return reached_by_frame


@dp.table
def by_files() -> DataFrame:
    return reached_by_files
