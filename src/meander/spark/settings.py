"""The Spark session: one of our own, set up for this, or the user's, checked for what is needed.

An own session is local, listens on loopback alone, has no web interface unless asked, and has settings that
make a small micro-batch cheap. A user's session keeps its settings; what cannot work with them is refused with
the name of the setting and the value that it needs.
"""

from __future__ import annotations

import logging
import os
import sys

from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from meander.errors import ArgumentError
from meander.spark.launching import start_context
from meander.spark.pools import DAEMON, MODULE

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"

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
    # Plans here have one exchange of a few rows: there is nothing to adapt, and looking for it takes time.
    "spark.sql.adaptive.enabled": "false",
    # The default for local files starts a process for each file's permissions; a rename is as atomic.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A second file beside every checkpoint file; the local disk's own checks are enough here.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    DAEMON: MODULE,
    # On a busy machine a Python worker takes its time to import what it needs.
    "spark.python.authenticate.socketTimeout": "120s",
}


def local_spark(master: str = "local[*,4]", memory: str = "2g", **settings: str) -> SparkSession:
    """A local Spark session, which tries a failed task again; under `spark-submit`, the session that it gives.

    `settings` are more of Spark's settings, with `__` for each dot of a name.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Java runs already, and was told where to work and with what.
        return SparkSession.builder.config(PROVIDER, ROCKSDB).getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = LOCAL_SETTINGS | {"spark.driver.memory": memory}
    chosen |= {name.replace("__", "."): value for name, value in settings.items()}
    conf = SparkConf().setMaster(master).setAppName("meander").setAll(list(chosen.items()))
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        start_context(conf)
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkException as error:
        if "JAVA_GATEWAY_EXITED" in str(error):
            raise ArgumentError(
                "Spark did not start: it needs Java 17 or later\n"
                "hint: install a JDK or set JAVA_HOME; --runner local needs no Java"
            ) from None
        raise


def check_settings(spark: SparkSession) -> None:
    """Refuse a session in which a stateful query in Python cannot run, naming the setting."""
    provider = spark.conf.get(PROVIDER, "")
    if provider != ROCKSDB:
        raise ArgumentError(
            f"the Spark session keeps state with {str(provider).rsplit('.', 1)[-1]}, which holds no lists or maps\n"
            f'hint: spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
        )
