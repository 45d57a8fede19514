"""What a checkpoint belongs to: the meaning of its queries, and the identity of its run.

Beside Spark's own files a checkpoint has a folder `meander`: what has been read of files, snapshots, how far each
sink has come, and `run.json`, which says what the answers so far were answers to. The same queries under another
plan or path operator go on from it; a query that means something else is refused.

A query may be added: it is answered from the time on that the run has reached, over the edges that the run still
holds (the longest window of each stream before) and those to come; of a stream that no query read before, edges
earlier than that time are too late. A query may be left out, and its sink stays as it is; it cannot come back under
its name, because what it missed cannot be made up for.

Spark knows the sources that it reads itself (Kafka, streaming DataFrames) by their number: those stay the same.

With several cells each has no more of the window than its share reads: there the queries have to be the same, and
where another plan would send other edges between cells the run goes on with the plan that it had.

Spark's part of a checkpoint and Meander's are of no use without each other. Where one of them is missing, or a note
that the other notes speak of, nothing is read or written: a new beginning would empty the outputs, or repeat answers.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from meander.errors import ArgumentError, StateError
from meander.spark.checkpoint.notes import missing_part, read_note, write_note
from meander.syntax import to_datalog
from meander.syntax.query import RegularQuery

RUN = "run.json"
OFFSET = re.compile(r'"entry":\s*(\d+)')
WORDS = {"mode": "--mode", "cells": "--cells", "time_unit": "--time-unit"}


class Named(Protocol):
    name: str
    regular: RegularQuery
    plan: int | None


def meaning_of(
    queries: Sequence[Named],
    mode: str,
    cells: int,
    time_unit: str,
    exchanges: str = "",
    frames: Sequence[str] = (),
) -> dict[str, Any]:
    """What must not change under a checkpoint: each query's meaning, how its answers are told, what cells send
    each other, and which streams Spark reads itself. Beside it the plans that say what cells send."""
    return {
        "queries": texts(queries),
        "mode": mode,
        "cells": cells,
        "time_unit": time_unit,
        "exchanges": exchanges,
        "plans": {query.name: query.plan for query in queries},
        "frames": list(frames),
    }


def kept_plans(folder: Path, queries: Sequence[Named], exchanges: str) -> dict[str, int | None] | None:
    """The plans that an old run's cells have their edges for, where other plans of the same queries read others.

    None where there is nothing to keep to, or another query: that is for `check_checkpoint` to refuse.
    """
    try:
        known = read_note(folder / RUN)
    except FileNotFoundError:
        return None
    if known["queries"] != texts(queries) or known["exchanges"] == exchanges:
        return None
    plans: dict[str, int | None] = known["plans"]
    return plans


def texts(queries: Sequence[Named]) -> dict[str, str]:
    return {query.name: to_datalog(query.regular) for query in queries}


def check_parts(folder: Path) -> bool:
    """Whether there is a run in this folder; refuses a checkpoint of which a part is missing."""
    checkpoint = folder.parent
    try:
        exists = (folder / RUN).exists()
        entries = sum(1 for _ in (folder / "ledger").glob("*.json"))
        has_offsets = bool(offset_files(checkpoint))
    except OSError as error:
        raise ArgumentError(f"the checkpoint {checkpoint} cannot be read: {error.strerror}") from None
    if exists:
        # With the second entry the offset of the first has been written.
        if entries > 1 and not has_offsets and read_note(folder / RUN)["spark_is_here"]:
            raise missing_part(checkpoint / "spark" / "offsets")
        return True
    if (checkpoint / "offsets").exists():
        raise StateError(
            f"{checkpoint} is the checkpoint of another Spark query, not of Meander",
            hint="choose an empty folder for --checkpoint",
        )
    if has_offsets or entries:
        raise missing_part(folder / RUN if folder.exists() else folder)
    return False


def offset_files(checkpoint: Path, folder: str = "offsets") -> list[Path]:
    """Spark's notes of what its batches read (or, in `commits`, of those that are done), in their order."""
    files = [one for one in (checkpoint / "spark" / folder).glob("*") if one.name.isdigit()]
    return sorted(files, key=lambda one: int(one.name))


def is_committed(checkpoint: Path) -> bool:
    """Whether Spark has begun and ended some batches, and none is left to run again."""
    begun, done = offset_files(checkpoint), offset_files(checkpoint, "commits")
    return bool(begun and done) and begun[-1].name == done[-1].name


def last_offset(checkpoint: Path) -> int:
    """The number of the last entry of the ledger that Spark has heard of."""
    text = offset_files(checkpoint)[-1].read_text(errors="replace") if offset_files(checkpoint) else ""
    return max((int(number) for number in OFFSET.findall(text)), default=0)


def check_checkpoint(folder: Path, meaning: dict[str, Any]) -> str:
    """The identity of the run in this folder, new or old; refuses an old one of another meaning."""
    if not check_parts(folder):
        # What a start that was refused or failed has left behind.
        shutil.rmtree(folder / "sinks", ignore_errors=True)
        return uuid.uuid4().hex
    known = read_note(folder / RUN)
    for name, text in meaning["queries"].items():
        before = known["queries"].get(name, text)
        if before != text:
            raise StateError(
                f"the checkpoint {folder.parent} belongs to another text of the query {name}; it was\n"
                f"{before.rstrip()}\nand is now\n{text.rstrip()}",
                hint="start the changed query with a new checkpoint; another --plan or --path-operator needs none",
            )
        if name in known["left"]:
            raise StateError(
                f"the query {name} was left out of an earlier start of the checkpoint {folder.parent}, and has "
                "missed answers since\nhint: give it another name, or start it with a new checkpoint"
            )
    for field, option in WORDS.items():
        if known[field] != meaning[field]:
            raise StateError(
                f"the checkpoint {folder.parent} was made with {option} {known[field]}, not {meaning[field]}\n"
                f"hint: use {option} {known[field]}, or a new checkpoint"
            )
    if known["exchanges"] != meaning["exchanges"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {known['cells']} cells, each with no more than the edges that it "
            "read then; now it would read others\n"
            "hint: with several cells a run goes on with the same queries and --paths, or a new checkpoint"
        )
    if known["frames"] != meaning["frames"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {_sources(known['frames'])}, and now there would be "
            f"{_sources(meaning['frames'])}\n"
            "hint: queries that read other streams of Kafka, or other streaming DataFrames, need a new checkpoint"
        )
    return str(known["run"])


def _sources(frames: Sequence[str]) -> str:
    return f"{', '.join(frames) or 'no stream'} as read by Spark"


def noted_sinks(folder: Path) -> frozenset[str]:
    """The sinks of the run in this folder, by the names of their notes."""
    try:
        return frozenset(read_note(folder / RUN)["sinks"])
    except FileNotFoundError:
        return frozenset()


def note_queries(folder: Path, meaning: dict[str, Any], run: str, sinks: Sequence[str] = ()) -> None:
    """The run of this folder goes on with these queries and sinks, or begins with them."""
    path = folder / RUN
    known = read_note(path) if path.exists() else meaning | {"run": run, "sinks": [], "spark_is_here": False}
    known["left"] = [name for name in known["queries"] | meaning["queries"] if name not in meaning["queries"]]
    known["queries"] |= meaning["queries"]
    known["sinks"] = sorted({*known["sinks"], *sinks})
    write_note(path, known)


def note_spark(folder: Path) -> None:
    """The Spark query has begun: whether its part of the checkpoint is beside ours, not in Hadoop's."""
    known = read_note(folder / RUN)
    if not known["spark_is_here"] and (folder.parent / "spark" / "metadata").exists():
        write_note(folder / RUN, known | {"spark_is_here": True})
