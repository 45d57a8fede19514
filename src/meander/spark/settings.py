"""The Spark session: a local one that Meander starts, or the user's, checked for the settings that Meander needs.

A session that Meander starts is local, listens on loopback alone, has no web interface by default, and has settings
that make a small micro-batch cheap. A user's session keeps its settings, gets those that Meander needs and the user
has not chosen, and is refused if a choice is incompatible, with the name of the setting and the value that it needs.
"""

from __future__ import annotations

import os
import sys

from pyspark import SparkConf
from pyspark.sql import SparkSession

from meander.errors import ArgumentError
from meander.spark import SUPPORTED, WITHOUT_SPARK, check_version
from meander.spark.workers.failures import translated
from meander.spark.workers.java import start_context
from meander.spark.workers.pool import DAEMON, MODULE

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
    """A local Spark session, which tries a failed task again; under `spark-submit`, the session that it gives.

    `settings` are more of Spark's settings, with `__` for each dot of a name.
    """
    if "SPARK_REMOTE" in os.environ:
        raise no_connect()
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


def prepare_session(spark: object) -> None:
    """Prepare a session for stateful queries in Python, or refuse it and name the incompatible setting.

    A setting that the user has not chosen, and that Spark lets change while it runs, is set here.
    """
    refuse_connect(spark)
    if not isinstance(spark, SparkSession):
        raise ArgumentError(f"{spark!r} is not a SparkSession", hint="Session() starts a local Spark")
    home = os.environ.get("SPARK_HOME")
    where = f"SPARK_HOME is {home}" if home else "the session was started elsewhere"
    with translated():
        check_version(spark.version, hint=f"{where}: use a Spark {SUPPORTED}; {WITHOUT_SPARK}")
        provider = spark.conf.get(PROVIDER, "") or ""
        if not provider:
            spark.conf.set(PROVIDER, ROCKSDB)
        elif provider != ROCKSDB:
            raise ArgumentError(
                f"the Spark session keeps state with {provider.rsplit('.', 1)[-1]}, and Meander needs RocksDB",
                hint=f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
            )
        context = spark.sparkContext
        if (context.master or "").startswith("local[") and not chosen_python(spark):
            # By default Spark takes `python3` from PATH, which as a rule is not the one of this environment.
            context.pythonExec = sys.executable


def refuse_connect(given: object) -> None:
    """Refuse a session or DataFrame of Spark Connect."""
    if type(given).__module__.startswith("pyspark.sql.connect"):
        raise no_connect()


def no_connect() -> ArgumentError:
    return ArgumentError(
        "Meander does not run on Spark Connect yet: it needs a session of the process that runs Spark's driver",
        hint="start the session with .master(…) in place of .remote(…) and without SPARK_REMOTE, or by spark-submit",
    )


def chosen_python(spark: SparkSession) -> bool:
    """Whether the user has chosen the Python of the workers."""
    conf = spark.sparkContext.getConf()
    return any(name in os.environ for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")) or any(
        conf.contains(name) for name in ("spark.pyspark.python", "spark.pyspark.driver.python")
    )
