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
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from meander.errors import ArgumentError, StateError
from meander.spark.ledger import write_atomically
from meander.syntax import to_datalog
from meander.syntax.query import RegularQuery

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
        known = json.loads((folder / "run.json").read_text())
    except OSError:
        return None
    if known["queries"] != texts(queries) or known.get("exchanges", exchanges) == exchanges:
        return None
    plans: dict[str, int | None] | None = known.get("plans")
    return plans


def texts(queries: Sequence[Named]) -> dict[str, str]:
    return {query.name: to_datalog(query.regular) for query in queries}


def check_checkpoint(folder: Path, meaning: dict[str, Any]) -> str:
    """The identity of the run in this folder, new or old; refuses an old one of another meaning."""
    path = folder / "run.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sinks").mkdir(exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"the checkpoint {folder.parent} cannot be written: {error.strerror}") from None
    if not path.exists():
        if (folder.parent / "offsets").exists():
            raise StateError(
                f"{folder.parent} is the checkpoint of another Spark query, not of Meander\n"
                "hint: choose an empty folder for --checkpoint"
            )
        run = uuid.uuid4().hex
        write_atomically(path, json.dumps(meaning | {"run": run, "left": []}, indent=1))
        return run
    known = json.loads(path.read_text())
    for name, text in meaning["queries"].items():
        before = known["queries"].get(name, text)
        if before != text:
            raise StateError(
                f"the checkpoint {folder.parent} belongs to another query {name or ''}".rstrip()
                + f"; it was\n{before.rstrip()}\nand is now\n{text.rstrip()}\n"
                "hint: start the changed query with a new checkpoint; another --plan or --path-operator needs none"
            )
        if name in known.get("left", []):
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
    if known.get("exchanges", "") != meaning["exchanges"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {known['cells']} cells, each with no more than the edges that it "
            "read then; now it would read others\n"
            "hint: with several cells a run goes on with the same queries and --paths, or a new checkpoint"
        )
    if known.get("frames", meaning["frames"]) != meaning["frames"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {_sources(known['frames'])}, and now there would be "
            f"{_sources(meaning['frames'])}\n"
            "hint: queries that read other streams of Kafka, or other streaming DataFrames, need a new checkpoint"
        )
    return str(known["run"])


def _sources(frames: Sequence[str]) -> str:
    return f"{', '.join(frames) or 'no stream'} as read by Spark"


def note_queries(folder: Path, meaning: dict[str, Any]) -> None:
    """The run of this folder goes on with these queries."""
    path = folder / "run.json"
    known = json.loads(path.read_text())
    known["left"] = [name for name in known["queries"] | meaning["queries"] if name not in meaning["queries"]]
    known["queries"] |= meaning["queries"]
    known.setdefault("plans", meaning["plans"])
    write_atomically(path, json.dumps(known, indent=1))
