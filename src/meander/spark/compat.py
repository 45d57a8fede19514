"""What differs between sessions of Spark: classic or Spark Connect, and which settings of workers they offer.

A classic session is of the process that runs Spark's driver. A session of Spark Connect is a client of a driver
elsewhere: it has neither `sparkContext` nor `_jvm`. What a run takes from these makes it faster, and is done without
where they are missing: workers are then those of all of the session's queries, and load kernels when they are first
needed. Answers are the same.

The versions of Spark differ in nothing else that Meander calls: `spark/input/files.py` keeps to the interface of
sources that all of them have.
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

CONNECT = "pyspark.sql.connect."
LOCAL_MASTER = re.compile(r"local\[(\d+|\*)")
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


def lost_connection() -> tuple[type[Exception], ...]:
    """The errors of a call to a Spark that has ended."""
    if "pyspark.errors.exceptions.connect" not in sys.modules:
        return Py4JError, ConnectionError
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    return Py4JError, ConnectionError, SparkConnectGrpcException
