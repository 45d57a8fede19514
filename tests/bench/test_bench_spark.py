"""What the pipeline costs beyond Spark: measured on a small graph, with a real Spark."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from meander.bench.data import load
from meander.bench.measures import spark
from meander.bench.workloads import DATA_SETS, Workload

DAY = 86_400

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ,
        reason="Spark needs Java, and there is none",
    ),
]


def measured(part: str, *queries: str) -> dict[str, Any]:
    data = DATA_SETS["trees"]
    workloads = [Workload(data, query) for query in queries]
    graph = load(data).prefix(2_000, DAY)
    return spark.measure(part, graph, workloads, window=30 * DAY, slide=DAY, rounds=1, batches=2)


def test_rates_are_beside_those_of_the_same_spark() -> None:
    rates = measured("rates", "Q1", "Q6")
    assert list(rates) == ["Q1", "Q6"]
    for row in rates.values():
        assert row["ratio"] == pytest.approx(row["meander"] / row["noop"])


def test_a_small_batch_has_parts() -> None:
    batch = measured("batch", "Q7")
    assert batch["beyond"] == batch["with Meander"] - batch["the same without"]
    assert batch["of all: stateful operator"] >= batch["of that, Python"] > 0


def test_a_restart_is_measured_from_its_snapshot() -> None:
    restart = measured("restart", "Q5")
    assert restart["whole start"] >= restart["state is back"] >= restart["snapshot loaded"] > 0


def test_the_parts_of_a_profile_add_up() -> None:
    parts = measured("profile", "Q6")
    total = parts.pop("total")
    assert sum(parts.values()) == pytest.approx(total)
    assert parts["cell: dataflow (interning, operators, naming)"] > 0
