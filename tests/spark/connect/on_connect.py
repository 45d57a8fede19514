"""Runs and DataFrames of a session of Spark Connect. `test_spark_connect.py` runs this file in a process of its own.

(In one process Spark's functions are those of classic sessions or those of Spark Connect.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from incidents import CLOSURE, TRIANGLE, canonical, generate, instants_held, read_records, write_tsv
from pyspark.sql import SparkSession

import meander
from meander.errors import ArgumentError, MeanderError
from meander.spark.session import Session
from meander.spark.settings import PARTITIONS, PROVIDER, ROCKSDB


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.remote("local[2]").config("spark.driver.host", "127.0.0.1")
    # On a busy machine a Python worker needs long to import its modules.
    builder = builder.config("spark.python.authenticate.socketTimeout", "120s")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    assert type(session).__module__.startswith("pyspark.sql.connect")
    yield session
    session.stop()


def test_a_run_of_two_cells_stops_and_resumes_and_continues_in_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = generate(31, 900, deletions=True)
    write_tsv(tmp_path / "in" / "0.tsv", rows[:500])
    settings = {name: spark.conf.get(name, None) for name in (PARTITIONS, PROVIDER)}

    def start(cells: int, **options: Any) -> Any:
        session = Session(spark)
        session.stream("s", str(tmp_path / "in"))
        session.query(CLOSURE, "q")
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells=cells, batch_rows=300, **options)

    run = start(2, metrics=str(tmp_path / "metrics.jsonl"))
    run.process_available()
    run.stop()
    assert sum(figures["edges"] for figures in read_records(tmp_path / "metrics.jsonl")) >= 500
    write_tsv(tmp_path / "in" / "1.tsv", rows[500:700])
    run = start(2)
    run.process_available()
    run.stop()
    write_tsv(tmp_path / "in" / "2.tsv", [*rows[700:], ("only", "three")])
    run = start(1, follow=False, rejects=str(tmp_path / "rejects.jsonl"))
    assert run.wait(300)
    assert canonical(read_records(tmp_path / "out.jsonl")) == canonical(meander.run(CLOSURE, rows))
    assert [reject["reason"] for reject in read_records(tmp_path / "rejects.jsonl")] == ["missing field"]
    assert {name: spark.conf.get(name, None) for name in settings} == settings


def test_static_frames_and_sinks_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    rows = generate(5, 300)
    session = Session(spark)
    session.stream("s", spark.createDataFrame(rows, "src string, label string, trg string, ts bigint"))
    session.query(TRIANGLE, "triangle")
    session.query("STREAM s WINDOW 7\nAnswer(x, y) <- a(x, y).", "edges")
    seen: list[dict[str, Any]] = []
    run = session.start(
        sinks={
            "triangle": lambda answers, batch: seen.extend(row.asDict() for row in answers.collect()),
            "edges": {"format": "json", "path": str(tmp_path / "edges")},
        }
    )
    assert run.wait(300)
    assert instants_held(seen) == instants_held(meander.run(TRIANGLE, rows))
    written = [row.asDict() for row in spark.read.json(str(tmp_path / "edges")).collect()]
    expected = meander.run("STREAM s WINDOW 7\nAnswer(x, y) <- a(x, y).", rows)
    assert instants_held(written) == instants_held(expected)


def test_a_batch_that_could_not_be_written_is_written_by_the_next_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = generate(8, 400)
    write_tsv(tmp_path / "s.tsv", rows)
    seen: dict[int, list[dict[str, Any]]] = {}

    def write(answers: Any, batch: int) -> None:
        seen[batch] = [row.asDict() for row in answers.collect()]
        if batch == 1 and not fixed:
            raise ValueError("no table of that name")

    def start() -> Any:
        session = Session(spark)
        session.stream("s", str(tmp_path / "s.tsv"))
        session.query(CLOSURE, "q")
        return session.start(str(tmp_path / "checkpoint"), {"q": write}, follow=False, batch_rows=150)

    fixed = False
    with pytest.raises(MeanderError, match="no table of that name"):
        start().wait(300)
    assert sorted(seen) == [0, 1]
    fixed = True
    assert start().wait(300)
    got = canonical([record for batch in sorted(seen) for record in seen[batch]])
    assert got == canonical(meander.run(CLOSURE, rows))


def test_a_frame_of_answers_changes_no_setting(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*generate(4, 300), ("last", "a", "edge", 1000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    session = Session(spark)
    frame = spark.readStream.schema("src string, label string, trg string, ts bigint")
    session.stream("s", frame.csv(str(tmp_path / "in")))
    query = session.query(CLOSURE, "q")
    with pytest.raises(ArgumentError, match="no state store for the query of a DataFrame"):
        query.dataframe()
    spark.conf.set(PROVIDER, ROCKSDB)
    with pytest.warns(UserWarning, match="has 200 partitions for 1 cell"):
        query.dataframe()
    spark.conf.set(PARTITIONS, "1")
    answers = query.dataframe(paths=True)
    sink = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    started = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        started.processAllAvailable()
        got = [row.asDict() for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    finally:
        started.stop()
        spark.conf.unset(PROVIDER)
        spark.conf.unset(PARTITIONS)
    assert instants_held(got) == instants_held(meander.run(CLOSURE, rows))
