"""What the pipeline costs beyond Spark: measured on a small graph, with a real Spark."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from meander.bench import spark_run
from meander.bench.__main__ import main
from meander.bench.spark_run import RATED, YOUNG, SparkReport
from meander.bench.tables import SPARK_MARKS

pytestmark = pytest.mark.spark


def test_three_tables_with_their_ratios() -> None:
    report = SparkReport(
        {"Q1": {"edges": 1_000, "meander": 5_000.0, "noop": 8_000.0, "ratio": 0.625, YOUNG: 0.9}},
        {"with Meander": 400.4, "beyond": 150.0},
        {"edges in the window": 500_000, "snapshot loaded": 0.5, "state is back": 1.0, "ratio": 2.0},
    )
    tables = [table for _, table in report.sections()]
    assert tables[0][1] == ["Q1", "1,000", "5,000", "8,000", "0.62", "0.90"]
    assert tables[1][1:] == [["with Meander", "400"], ["beyond", "150"]]
    assert tables[2][1] == ["500,000", "0.50", "1.00", "2.00"]


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("java") is None and "JAVA_HOME" not in os.environ,
    reason="Spark needs Java, and there is none",
)
def test_the_pipeline_is_measured_beside_the_same_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_run, "ROUNDS", 1)
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    words = "--only spark --data trees --prefix 2000 --batches 2"
    assert main([*words.split(), "--json", str(figures), "--write", str(page)]) == 0
    report = json.loads(figures.read_text(encoding="utf-8"))
    assert list(report["rates"]) == list(RATED)
    assert all(row["ratio"] > 0 for row in report["rates"].values())
    batch = report["batch"]
    assert batch["beyond"] == batch["with Meander"] - batch["the same without"]
    assert batch["of all: stateful operator"] >= batch["of that, Python"] > 0
    restart = report["restart"]
    assert restart["whole start"] >= restart["state is back"] >= restart["snapshot loaded"] > 0
    assert SPARK_MARKS[0] in page.read_text(encoding="utf-8")
    # The line may be broken where it is too long for a terminal.
    assert "beside reading the same file to noop" in " ".join(capsys.readouterr().out.split())
