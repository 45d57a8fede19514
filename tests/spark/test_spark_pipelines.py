"""Spark's declarative pipelines: a table of a pipeline can be the answers of a query."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from apart import HERE, NEEDS_JAVA, environment
from incidents import CLOSURE, generate, instants_held, write_tsv

import meander
from meander.spark.settings import PARTITIONS, PROVIDER, ROCKSDB

SPECIFICATION = """\
name: reached
storage: {storage}
configuration:
  {provider}: {rocksdb}
  {partitions}: "1"
  spark.meander.folder: {folder}
libraries:
  - glob:
      include: answers.py
"""


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.spark
@NEEDS_JAVA
def test_tables_of_a_pipeline_have_the_answers_of_queries(tmp_path: Path) -> None:
    # A stream has no end: without a later edge, edges of the last instant would wait for others.
    rows = [*generate(12, 400), ("last", "a", "edge", 1000)]
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "0.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    write_tsv(tmp_path / "tsv" / "0.tsv", rows)
    shutil.copy(HERE / "pipeline" / "answers.py", tmp_path)
    places = {"storage": (tmp_path / "storage").as_uri(), "folder": str(tmp_path)}
    settings = {"provider": PROVIDER, "rocksdb": ROCKSDB, "partitions": PARTITIONS}
    (tmp_path / "spark-pipeline.yml").write_text(SPECIFICATION.format(**places, **settings))
    pipelines = Path(sys.executable).with_name("spark-pipelines")
    command = [str(pipelines), "run", "--conf", "spark.remote=local[2]", "--conf", "spark.ui.enabled=false"]
    done = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    expected = instants_held(meander.run(CLOSURE, rows))
    records = pq.read_table(tmp_path / "spark-warehouse" / "by_frame").to_pylist()
    assert instants_held(records) == expected
    assert all(record["path"][0]["src"] == record["src"] for record in records)
    records = pq.read_table(tmp_path / "spark-warehouse" / "by_files").to_pylist()
    if pyspark.__version__.startswith("4.1."):
        # There an update of a pipeline reads one batch of a source in Python.
        assert instants_held(records).keys() < expected.keys()
    else:
        assert instants_held(records) == expected
