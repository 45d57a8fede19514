"""The Spark session: a local one that Meander starts, or the user's, checked for the settings that Meander needs.

A session that Meander starts is local, listens on loopback alone, has no web interface by default, and has settings
that make a small micro-batch cheap. A user's session keeps its settings: a run is started with those that it needs,
and the session then has its own again. It is refused if a choice is incompatible, with the name of the setting and
the value that it needs.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from typing import cast

from pyspark import SparkConf
from pyspark.sql import SparkSession

from meander.dataflow.tally import counted
from meander.errors import ArgumentError, SparkError
from meander.spark import NEWEST, WITHOUT_SPARK, check_version
from meander.spark.compat import is_session
from meander.spark.workers.failures import translated
from meander.spark.workers.java import start_context
from meander.spark.workers.pool import DAEMON, MODULE

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
DEFAULT_PARTITIONS = 200
REMOTE_URL = re.compile(r"sc://(\[[^\]]+\]|[^:/;]+)(?::(\d+))?")
CONNECT_PORT = 15002
CONNECT_SECONDS = 10.0

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    PROVIDER: ROCKSDB,
    CHANGELOG: "true",
    PARTITIONS: "1",
    # Plans here have one exchange of a few rows: there is nothing to adapt, and planning for it takes time.
    "spark.sql.adaptive.enabled": "false",
    # The default for local files starts a process for each file's permissions; a rename is as atomic.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A second file beside every checkpoint file; the local disk's own checks are enough here.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    DAEMON: MODULE,
    # On a busy machine a Python worker needs long to import its modules.
    "spark.python.authenticate.socketTimeout": "120s",
}


def local_spark(master: str = "local[*,4]", memory: str = "2g", **settings: str) -> SparkSession:
    """A local Spark session, which tries a failed task again; under `spark-submit`, the session that it gives, and
    with SPARK_REMOTE one of that Spark Connect server.

    `settings` are more of Spark's settings, with `__` for each dot of a name.
    """
    if "SPARK_REMOTE" in os.environ:
        return connected_spark(os.environ["SPARK_REMOTE"])
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Java runs already, with the master and the settings of `spark-submit`.
        with translated():
            return SparkSession.builder.config(PROVIDER, ROCKSDB).getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = LOCAL_SETTINGS | {"spark.driver.memory": memory}
    chosen |= {name.replace("__", "."): value for name, value in settings.items()}
    conf = SparkConf().setMaster(master).setAppName("meander").setAll(list(chosen.items()))
    with translated():
        start_context(conf)
        return SparkSession.builder.config(conf=conf).getOrCreate()


def connected_spark(remote: str) -> SparkSession:
    """A session of a Spark Connect server, which has to answer: its client would try for ten minutes."""
    server = REMOTE_URL.match(remote)
    if server is not None:
        host, port = server.group(1).strip("[]"), int(server.group(2) or CONNECT_PORT)
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise SparkError(
                f"no Spark Connect server answers at {host}:{port}: {getattr(error, 'strerror', None) or error}",
                hint="start one, or correct or unset SPARK_REMOTE",
            ) from None
    with translated():
        return SparkSession.builder.remote(remote).getOrCreate()


def check_session(spark: object) -> None:
    """Refuse what is no session, and one that Meander does not run on; nothing is changed."""
    if not is_session(spark):
        raise ArgumentError(f"{spark!r} is not a SparkSession", hint="Session() starts a local Spark")
    session = cast(SparkSession, spark)
    home = os.environ.get("SPARK_HOME")
    where = f"SPARK_HOME is {home}" if home else "the session was started elsewhere"
    with translated():
        check_version(session.version, hint=f"{where}: use a Spark {NEWEST}; {WITHOUT_SPARK}")
        provider = session.conf.get(PROVIDER, "") or ROCKSDB
    if provider != ROCKSDB:
        raise ArgumentError(
            f"the Spark session keeps state with {provider.rsplit('.', 1)[-1]}, and Meander needs RocksDB",
            hint=f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def query_settings(cells: int) -> dict[str, str]:
    """The settings that a query has to be started with: its state store, and a partition for each cell."""
    return {PROVIDER: ROCKSDB, PARTITIONS: str(cells)}


def check_query_settings(spark: SparkSession, cells: int) -> None:
    """Refuse a session whose settings a query of answers cannot start with, and warn of slow ones."""
    if spark.conf.get(PROVIDER, "") != ROCKSDB:
        raise ArgumentError(
            "the Spark session has no state store for the query of a DataFrame: Meander needs RocksDB",
            hint=f'spark.conf.set("{PROVIDER}", "{ROCKSDB}"), or in a pipeline the same in `configuration`',
        )
    partitions = int(spark.conf.get(PARTITIONS, None) or DEFAULT_PARTITIONS)
    if partitions != cells:
        warnings.warn(
            f"a query of this DataFrame has {counted(partitions, 'partition')} for {counted(cells, 'cell')}: "
            + (
                "cells wait for each other"
                if partitions < cells
                else "those without a cell cost time in every batch"
            )
            + f'\nhint: spark.conf.set("{PARTITIONS}", "{cells}") before it is started',
            stacklevel=4,
        )
