"""A run over a static DataFrame, whose copy is in the checkpoint: `python static_copy.py FOLDER CELLS`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from incidents import CLOSURE
from local_cluster import checkpoint_of, open_spark

from meander.spark.session import Session


def main(folder: Path, cells: int) -> None:
    spark = open_spark("local[2]")
    rows = [line.split("\t") for line in (folder / "s.tsv").read_text().splitlines()]
    edges = [(src, label, trg, int(ts)) for src, label, trg, ts in rows]
    session = Session(spark)
    session.stream("s", spark.createDataFrame(edges, "src string, label string, trg string, ts long"))
    session.query(CLOSURE, "q")
    for _ in range(2):  # the second has nothing left to do
        run = session.start(
            checkpoint_of(folder), {"q": str(folder / "out.jsonl")}, follow=False, cells=cells
        )
        run.wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
