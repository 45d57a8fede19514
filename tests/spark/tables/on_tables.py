"""Answers in tables of Delta and Iceberg, by two starts of a run. `test_spark_tables.py` runs this file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from incidents import CLOSURE, generate, instants_held, write_tsv
from maven import jars
from pyspark.sql import SparkSession

import meander
from meander.spark.session import Session
from meander.spark.settings import local_spark

VERSION = ".".join(pyspark.__version__.split(".")[:2])
POMS = {name: Path(__file__).with_name(f"{name}-{VERSION}.xml") for name in ("delta", "iceberg")}
THERE = [name for name, pom in POMS.items() if pom.exists()]
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
COLUMNS = "src string, trg string, label string, ts bigint, exp bigint, op string"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    files = [str(file) for name in THERE for file in sorted(jars(POMS[name]).glob("*.jar"))]
    settings = {
        "spark__jars": ",".join(files),
        "spark__sql__extensions": ",".join(EXTENSIONS[name] for name in THERE),
        "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    if "iceberg" in THERE:
        settings |= {
            "spark__sql__catalog__lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark__sql__catalog__lake__type": "hadoop",
            "spark__sql__catalog__lake__warehouse": str(tmp_path_factory.mktemp("lake")),
        }
    session = local_spark("local[2]", **settings)
    yield session
    session.stop()


@pytest.mark.parametrize("name", THERE)
def test_a_table_has_the_answers_of_both_starts(spark: SparkSession, tmp_path: Path, name: str) -> None:
    rows = generate(17, 800)
    table = str(tmp_path / "answers")
    if name == "iceberg":
        table = "lake.answers.reached"
        spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg")

    def start(follow: bool) -> meander.spark.run.Run:
        session = Session(spark)
        session.stream("s", str(tmp_path / "in"))
        session.query(CLOSURE, "q")
        sinks = {"q": f"format:{name}?path={table}"}
        return session.start(str(tmp_path / "checkpoint"), sinks, follow=follow, batch_rows=300)

    write_tsv(tmp_path / "in" / "0.tsv", rows[:400])
    run = start(follow=True)
    run.process_available()
    run.stop()
    write_tsv(tmp_path / "in" / "1.tsv", rows[400:])
    assert start(follow=False).wait(300)
    if name == "iceberg":
        spark.catalog.refreshTable(table)  # the catalog of a session keeps a table for half a minute
    found = [row.asDict() for row in spark.read.format(name).load(table).collect()]
    assert len(found) > 100
    assert instants_held(found) == instants_held(meander.run(CLOSURE, rows))
