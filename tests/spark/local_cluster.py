"""A run with two cells on two executors, for tests that kill its processes: `python local_cluster.py FOLDER INPUT`.

INPUT is a file or folder in FOLDER. The checkpoint is in FOLDER too, or at the URL in the variable CHECKPOINT, which
is reached by the settings of Hadoop in HADOOP (JSON) and the jars in JARS.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from incidents import CLOSURE, open_session
from pyspark.sql import SparkSession

from meander.spark.settings import local_spark

EXECUTORS = "local-cluster[2,1,1024]"


def open_spark(master: str) -> SparkSession:
    given = json.loads(os.environ.get("HADOOP", "{}"))
    settings = {f"spark.hadoop.{name}": value for name, value in given.items()}
    settings["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    if "JARS" in os.environ:
        settings["spark.jars"] = ",".join(sorted(str(jar) for jar in Path(os.environ["JARS"]).glob("*.jar")))
    return local_spark(
        master, memory="1g", **{name.replace(".", "__"): value for name, value in settings.items()}
    )


def checkpoint_of(folder: Path) -> str:
    return os.environ.get("CHECKPOINT", str(folder / "checkpoint"))


def main(folder: Path, given: str) -> None:
    spark = open_spark(EXECUTORS)
    session = open_session(spark, {"s": folder / given}, {"q": (CLOSURE, None)})
    run = session.start(
        checkpoint_of(folder),
        {"q": str(folder / "out.jsonl")},
        follow=False,
        cells=2,
        batch_rows=100,
        snapshot_rows=50,
        metrics=str(folder / "metrics"),
    )
    run.wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
