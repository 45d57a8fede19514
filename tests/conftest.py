"""Being here puts this folder on the import path: tests of all folders share the modules beside this file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from small_disk import SmallDisk

# `make test` draws the same cases every time; the slow tests set `derandomize=False` and draw new ones.
# None of them is timed: a first example compiles kernels, and machines are slow at times.
settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")

# Each Spark here lives for seconds: what Java compiles well for the long run, and collects with many threads, would
# take more processor time than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests on Spark come first: few and long, they would be what is waited for in the end."""
    on_spark = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in on_spark)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of 2 MB at `tmp_path / "disk"`."""
    disk = SmallDisk(tmp_path / "disk", "2m")
    yield disk
    disk.close()
