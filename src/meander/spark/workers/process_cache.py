"""The cache of operator state of a Python worker: the one object that outlives a batch in its process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pyspark import SparkFiles

from meander.spark.cell.recovery import StateCache


@cache
def process_cache() -> StateCache:
    """The cache of this process; workers of one executor share arrays in a folder that Spark removes at its end."""
    return StateCache(Path(SparkFiles.getRootDirectory()))
