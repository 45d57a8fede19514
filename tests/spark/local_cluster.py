"""A run on executors of their own, for a test that kills one: `python local_cluster.py FOLDER`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from incidents import CLOSURE, open_session

from meander.spark.settings import local_spark


def main(folder: Path) -> None:
    environment = {"spark__executorEnv__PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    spark = local_spark("local-cluster[2,1,1024]", memory="1g", **environment)
    session = open_session(spark, {"s": folder / "s.tsv"}, {"q": (CLOSURE, None)})
    sinks = {"q": str(folder / "out.jsonl")}
    run = session.start(
        str(folder / "checkpoint"),
        sinks,
        follow=False,
        cells=2,
        batch_rows=100,
        metrics=str(folder / "metrics"),
    )
    run.wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
