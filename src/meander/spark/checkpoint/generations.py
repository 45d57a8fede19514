"""Generations of a checkpoint: with another number of cells a new one begins, with a Spark checkpoint of its own.

The number of partitions of Spark's state store is fixed for a Spark checkpoint. So each generation has its own beside
that of the first: `spark`, `spark-1`, …. Its cells begin with *seeds* in the folder `meander/seeds/N`, the state that
`redistribute` has made for them. The ledger, the journals of sinks and the numbers of batches belong to all.

Which generation is the current one is a field of `run.json`. Its seeds are written before that, and what earlier ones
have left is deleted when it has committed a batch: a start that was killed in between is repeated, or over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from meander.spark.checkpoint.notes import read_note
from meander.spark.checkpoint.storage import Location, children, remove_folder

RUN = "run.json"
SEEDS, SNAPSHOTS, STATISTICS = "seeds", "snapshots", "statistics"
SPARK = re.compile(r"spark(-\d+)?")
OFFSET = re.compile(r'"entry":\s*(\d+)')


@dataclass(frozen=True)
class Generation:
    """The batches of a checkpoint that have run with one number of cells."""

    number: int = 0
    batches: int = 0  # how many the generations before it have committed
    entry: int = 0  # the last entry of the ledger that these have read
    seeded: bool = False  # whether its cells begin with seeds; not if nothing was read before

    @property
    def suffix(self) -> str:
        return f"-{self.number}" if self.number else ""

    def spark(self, checkpoint: Location) -> Location:
        """The folder that Spark has for it."""
        return checkpoint / f"spark{self.suffix}"

    def statistics(self, folder: Location) -> Location:
        """The note with the statistics of the input that the layout of its joins follows from."""
        return folder / f"{STATISTICS}{self.suffix}.json"

    def seeds(self, folder: Location) -> Location:
        """The folder of its seeds, if it has any."""
        return folder / SEEDS / str(self.number)


FIRST = Generation()


def current_generation(folder: Location) -> Generation:
    """The generation of the run whose part of the checkpoint this is; the first if there is no run yet."""
    try:
        return Generation(**read_note(folder / RUN).get("generation", {}))
    except FileNotFoundError:
        return FIRST


def spark_folders(checkpoint: Location) -> Sequence[Location]:
    """The folders that Spark has for any generation."""
    return [path for path in children(checkpoint) if SPARK.fullmatch(path.name)]


def forget_ended(checkpoint: Location, generation: Generation) -> None:
    """Delete what earlier generations have left, if the current one does not need it any more."""
    spark, folder = generation.spark(checkpoint), checkpoint / "meander"
    if not generation.number or not batch_files(spark, "commits"):
        return
    remove_folder(folder / SEEDS)
    for path in spark_folders(checkpoint):
        if path.name != spark.name:
            remove_folder(path)
    for path in children(folder, ".json"):
        if path.name.startswith(STATISTICS) and path.name != generation.statistics(folder).name:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------------
# Spark's log of batches


def batch_files(spark: Location, log: str = "offsets") -> Sequence[Location]:
    """Spark's log of the batches that it has begun (or, in `commits`, of those that are done), in their order."""
    files = [path for path in children(spark / log) if path.name.isdigit()]
    return sorted(files, key=lambda path: int(path.name))


def is_committed(spark: Location) -> bool:
    """Whether Spark has begun and ended some batches, and none is left to run again."""
    begun, done = batch_files(spark), batch_files(spark, "commits")
    return bool(begun and done) and begun[-1].name == done[-1].name


def committed(spark: Location) -> tuple[int, int]:
    """How many batches Spark has begun and ended, and the last entry of the ledger that these have read."""
    done = batch_files(spark, "commits")
    if not done:
        return 0, 0
    last = done[-1].name
    return int(last) + 1, last_entry([path for path in batch_files(spark) if path.name == last])


def last_entry(offsets: Sequence[Location]) -> int:
    """The number of the last entry of the ledger that belongs to the last of some batches."""
    text = offsets[-1].read_bytes().decode(errors="replace") if offsets else ""
    return max((int(number) for number in OFFSET.findall(text)), default=0)
