"""What differs between sessions of Spark: classic or Spark Connect, and which settings of workers they offer.

A classic session is of the process that runs Spark's driver. A session of Spark Connect is a client of a driver
elsewhere: it has neither `sparkContext` nor `_jvm`. What a run takes from these makes it faster, and is done without
where they are missing: workers are then those of all of the session's queries, and load kernels when they are first
needed. Answers are the same.

The versions of Spark differ in little that Meander calls: Spark 4.1 knows no limits for sources in Python. It asks
for their latest offset without the one before, and for a query that ends with what is there it takes one batch of
each.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A source that a query can read to its end, in as many batches as it takes."""


EndsWithInput = SupportsTriggerAvailableNow


CONNECT = "pyspark.sql.connect."
LOCAL_MASTER = re.compile(r"local\[(\d+|\*)")
FORMAT_PACKAGES = {
    ("delta", "4.1"): "io.delta:delta-spark_4.1_2.13:4.4.0",
    ("delta", "4.2"): "io.delta:delta-spark_4.2_2.13:4.4.0",
    ("iceberg", "4.1"): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""By format and version of Spark, what has been tried."""

SOME_TASKS = 8
"""The tasks that read files where nothing is known of the cluster."""


def is_connect(given: object) -> bool:
    """Whether a session or DataFrame is of Spark Connect."""
    return type(given).__module__.startswith(CONNECT)


def is_session(given: object) -> bool:
    return isinstance(given, SparkSession) or (is_connect(given) and type(given).__name__ == "SparkSession")


def java_of(spark: SparkSession) -> Any:
    """Spark's Java classes; None where they cannot be reached."""
    return None if is_connect(spark) else spark.sparkContext._jvm


def started_with(spark: SparkSession, name: str) -> str | None:
    """A setting that the session was started with."""
    return None if is_connect(spark) else spark.sparkContext.getConf().get(name)


def parallel_tasks(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as it is known."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    known = spark.conf.get("spark.default.parallelism", None)
    if known:
        return int(known)
    local = LOCAL_MASTER.match(spark.conf.get("spark.master", None) or "")
    return int(local.group(1)) if local and local.group(1) != "*" else SOME_TASKS


def on_this_machine(spark: SparkSession) -> bool:
    """Whether driver, executors and this process are certainly on one machine."""
    return not is_connect(spark) and (spark.sparkContext.master or "").startswith("local[")


def use_this_python(spark: SparkSession) -> None:
    """Have workers on this machine run this process's Python, unless the user has chosen one.

    By default Spark takes `python3` from PATH, which as a rule is not the one of this environment. A server of Spark
    Connect has its own.
    """
    if not on_this_machine(spark) or any(
        name in os.environ for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    ):
        return
    if not any(started_with(spark, f"spark.pyspark.{name}") for name in ("python", "driver.python")):
        spark.sparkContext.pythonExec = sys.executable


@contextlib.contextmanager
def this_python(spark: SparkSession) -> Iterator[None]:
    """As `use_this_python`, for what is declared within."""
    if is_connect(spark):
        yield
        return
    before = spark.sparkContext.pythonExec
    use_this_python(spark)
    try:
        yield
    finally:
        spark.sparkContext.pythonExec = before


@contextlib.contextmanager
def worker_environment(spark: SparkSession, entries: Mapping[str, str]) -> Iterator[None]:
    """Operators that are declared within run in workers with these entries in their environment."""
    if is_connect(spark):
        yield
        return
    environment = spark.sparkContext.environment
    environment.update(entries)
    try:
        yield
    finally:
        for name in entries:
            del environment[name]


@contextlib.contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for what is started within; afterwards the session has its own again."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        with contextlib.suppress(*lost_connection()):
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)


def format_package(name: str, spark_version: str) -> str:
    """The package that brings a format of tables, for a version of Spark; "" if there is none yet."""
    return FORMAT_PACKAGES.get((name.lower(), ".".join(spark_version.split(".")[:2])), "")


def forget_empty_profiles() -> None:
    """Have the process that plans a source report no profile.

    From Spark 4.2 on it reports one even if nothing is profiled. A client of Spark Connect that waits for a pipeline,
    or for the events of queries, takes that for an answer that it does not know, and fails.
    """
    from pyspark.accumulators import _accumulatorRegistry as accumulators

    for number in [number for number, profile in accumulators.items() if number < 0 and not profile._value]:
        del accumulators[number]


def lost_connection() -> tuple[type[Exception], ...]:
    """The errors of a call to a Spark that has ended."""
    if "pyspark.errors.exceptions.connect" not in sys.modules:
        return Py4JError, ConnectionError
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    return Py4JError, ConnectionError, SparkConnectGrpcException
