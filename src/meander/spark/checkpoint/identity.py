"""The identity of a run: what its checkpoint belongs to, and which starts may resume it.

Beside Spark's own files a checkpoint has a folder `meander`: the ledger of input files, snapshots, how far each sink
has written, and `run.json`, which records the queries that the answers so far belong to. The same queries under
another plan or path operator resume from it; a query with another meaning is refused.

A query may be added: it is answered from the time on that the run has reached, over the edges that the run still
holds (the longest window of each stream before) and those to come; of a stream that no query read before, edges
earlier than that time are too late. Edges are held with the properties that queries read then, and tables without the
rows that were replaced, so an added query that reads more of a stream is refused. A query may be left out, and its
sink stays as it is; it cannot come back under its name, because the answers that it missed cannot be recovered.

Spark knows the sources that it reads itself (Kafka, streaming DataFrames) by their number: those stay the same.

With several cells each has no more of the window than its share reads: there the queries have to be the same, and
if another plan would send other edges between cells the run continues with the plan that it had. If the queries stay,
`repartitioning` can change the number of cells.

Spark's part of a checkpoint and Meander's are of no use without each other. If one of them is missing, or a note that
the other notes mention, nothing is read or written: a new start would empty the outputs, or repeat answers.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from meander.engine import CompiledQuery
from meander.errors import ArgumentError, StateError
from meander.options import RunOptions
from meander.physical.streams import StreamSchema
from meander.spark.checkpoint.generations import (
    FIRST,
    RUN,
    Generation,
    batch_files,
    current_generation,
    spark_folders,
)
from meander.spark.checkpoint.notes import missing_part, read_note, write_note
from meander.spark.checkpoint.storage import Location, children, remove_folder
from meander.syntax import to_datalog

WINDOW, TABLE, VERTICES = "a stream with a window", "a table", "a stream of vertices"
OPTIONS = {"mode": "--mode", "cells": "--cells", "time_unit": "--time-unit"}


def run_identity(
    queries: Sequence[CompiledQuery],
    options: RunOptions,
    exchanges: str = "",
    frames: Sequence[str] = (),
    schemas: Mapping[str, StreamSchema] = {},
) -> dict[str, Any]:
    """What must not change under a checkpoint: the meaning of each query, how its answers are emitted, the exchanges
    between cells, and which streams Spark reads itself. Beside it the plans that the exchanges follow from, and what
    is stored of each stream."""
    return {
        "queries": query_texts(queries),
        "mode": options.mode,
        "cells": options.cells,
        "time_unit": options.time_unit,
        "exchanges": exchanges,
        "plans": {query.name: query.requested_plan for query in queries},
        "frames": list(frames),
        "stored": stored_of(queries, schemas),
    }


def stored_of(
    queries: Sequence[CompiledQuery], schemas: Mapping[str, StreamSchema]
) -> dict[str, dict[str, Any]]:
    """By stream, what a run stores of its rows: properties and their types, and what the rows are read as."""
    declared = [stream for query in queries for stream in query.regular.streams]
    stored = {}
    for name, schema in schemas.items():
        kinds = {TABLE if stream.is_table else WINDOW for stream in declared if stream.name == name}
        stored[name] = {
            "properties": {value.name: str(value.type) for value in schema.properties},
            "kinds": sorted(kinds | ({VERTICES} if schema.vertices else set())),
        }
    return stored


def recorded_plans(
    folder: Location, queries: Sequence[CompiledQuery], exchanges: str
) -> dict[str, int | None] | None:
    """The plans whose edges the cells of an old run hold, if other plans of the same queries would read others.

    None if the plans may be used, or if a query is another one: `check_checkpoint` refuses that.
    """
    try:
        recorded = read_note(folder / RUN)
    except FileNotFoundError:
        return None
    if answered(recorded) != query_texts(queries) or recorded["exchanges"] == exchanges:
        return None
    plans: dict[str, int | None] = recorded["plans"]
    return plans


def recorded_cells(folder: Location) -> int | None:
    """The number of cells of the run of a checkpoint; None if there is none yet."""
    try:
        cells: int = read_note(folder / RUN)["cells"]
    except FileNotFoundError:
        return None
    return cells


def answered(recorded: Mapping[str, Any]) -> dict[str, str]:
    """The queries, as Datalog, that the last start of a recorded run has answered."""
    return {name: text for name, text in recorded["queries"].items() if name not in recorded["left"]}


def query_texts(queries: Sequence[CompiledQuery]) -> dict[str, str]:
    """Each query as Datalog: equal texts mean the same."""
    return {query.name: to_datalog(query.regular) for query in queries}


def check_parts(folder: Location) -> bool:
    """Whether there is a run in this folder; refuses a checkpoint of which a part is missing."""
    checkpoint = folder.parent
    try:
        exists = (folder / RUN).exists()
        generation = current_generation(folder) if exists else FIRST
        spark = generation.spark(checkpoint)
        entries = max((int(path.stem) for path in children(folder / "ledger", ".json")), default=0)
        has_offsets = any(map(batch_files, [spark] if exists else spark_folders(checkpoint)))
    except OSError as error:
        raise ArgumentError(f"the checkpoint {checkpoint} cannot be read: {error.strerror}") from None
    if exists:
        # With the second entry of a generation the offset of its first has been written.
        if entries > generation.entry + 1 and not has_offsets and read_note(folder / RUN)["spark_is_here"]:
            raise missing_part(spark / "offsets")
        return True
    if (checkpoint / "offsets").exists():
        raise StateError(
            f"{checkpoint} is the checkpoint of another Spark query, not of Meander",
            hint="choose an empty folder for --checkpoint",
        )
    if has_offsets or entries:
        raise missing_part(folder / RUN if folder.exists() else folder)
    return False


def check_checkpoint(folder: Location, identity: dict[str, Any]) -> str:
    """The id of the run in this folder, new or old; refuses an old one of another identity."""
    if not check_parts(folder):
        # A start that was refused or failed may have left some behind.
        remove_folder(folder / "sinks")
        return uuid.uuid4().hex
    recorded = read_note(folder / RUN)
    is_only = len(recorded["queries"].keys() | identity["queries"].keys()) == 1
    for name, text in identity["queries"].items():
        before = recorded["queries"].get(name, text)
        if before != text:
            another = "another query" if is_only else f"another text of the query {name}"
            raise StateError(
                f"the checkpoint {folder.parent} belongs to {another}; it was\n"
                f"{before.rstrip()}\nand is now\n{text.rstrip()}",
                hint="start the changed query with a new checkpoint; another --plan or --path-operator needs none",
            )
        if name in recorded["left"]:
            raise StateError(
                f"the query {name} was left out of an earlier start of the checkpoint {folder.parent}, and has "
                "missed answers since",
                hint="give it another name, or start it with a new checkpoint",
            )
    for field, option in OPTIONS.items():
        if recorded[field] != identity[field]:
            raise StateError(
                f"the checkpoint {folder.parent} was made with {option} {recorded[field]}, not {identity[field]}",
                hint=f"use {option} {recorded[field]}, or a new checkpoint",
            )
    if recorded["exchanges"] != identity["exchanges"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {recorded['cells']} cells, each with no more than the edges that it "
            "read then; now it would read others",
            hint="with several cells a run continues with the same queries and --paths, or a new checkpoint",
        )
    if recorded["frames"] != identity["frames"]:
        raise StateError(
            f"the checkpoint {folder.parent} has {_sources(recorded['frames'])}, and now there would be "
            f"{_sources(identity['frames'])}",
            hint="queries that read other streams of Kafka, or other streaming DataFrames, need a new checkpoint",
        )
    if not identity["queries"].keys() <= recorded["queries"].keys():
        check_stored(folder.parent, recorded.get("stored", {}), identity["stored"])
    return str(recorded["run"])


def check_same_queries(folder: Location, queries: Sequence[CompiledQuery], hint: str) -> None:
    """Refuse to change the number of cells together with the queries."""
    before, now = answered(read_note(folder / RUN)), query_texts(queries)
    changed = [name for name in before | now if (name in before) != (name in now)]
    if changed:
        raise StateError(
            f"the number of cells of the checkpoint {folder.parent} cannot change while queries are added or left "
            f"out: {', '.join(changed)}",
            hint=f"change one, and at the next start the other; or {hint}",
        )


def check_stored(
    checkpoint: Location, stored: Mapping[str, Any], read: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse queries that read more of a stream than is stored of the rows that have been read."""
    for stream in read.keys() & stored.keys():
        asked, held = read[stream], stored[stream]
        properties = ", ".join(f"{name} {kind}" for name, kind in held["properties"].items())
        kinds = " and ".join(held["kinds"])
        more = [
            f"{name} {kind} of the stream {stream}, and of that the checkpoint {checkpoint} holds "
            f"{properties or 'no properties'}"
            for name, kind in asked["properties"].items()
            if held["properties"].get(name) != kind
        ]
        more += [
            f"{stream} as {kind}, and the checkpoint {checkpoint} holds it as {kinds}"
            for kind in asked["kinds"]
            if kind not in held["kinds"]
        ]
        if more:
            raise StateError(
                f"a query that is added reads {more[0]}",
                hint="rows are not read a second time: start all queries with a new checkpoint",
            )


def _sources(frames: Sequence[str]) -> str:
    return f"{', '.join(frames) or 'no stream'} as read by Spark"


def recorded_sinks(folder: Location) -> frozenset[str]:
    """The sinks of the run in this folder, by the names of their notes."""
    try:
        return frozenset(read_note(folder / RUN)["sinks"])
    except FileNotFoundError:
        return frozenset()


def record_queries(folder: Location, identity: dict[str, Any], run: str, sinks: Sequence[str] = ()) -> None:
    """Record the queries and sinks with which the run of this folder begins or continues."""
    path = folder / RUN
    recorded = (
        read_note(path) if path.exists() else identity | {"run": run, "sinks": [], "spark_is_here": False}
    )
    recorded["left"] = [
        name for name in recorded["queries"] | identity["queries"] if name not in identity["queries"]
    ]
    recorded["queries"] |= identity["queries"]
    # Of a stream that is read again later, the rows until then have what was read of them.
    recorded["stored"] = recorded.get("stored", {}) | identity["stored"]
    recorded["sinks"] = sorted({*recorded["sinks"], *sinks})
    write_note(path, recorded)


def record_spark(folder: Location) -> None:
    """Record, once the Spark query has started, that its part of the checkpoint is beside ours, not in Hadoop's."""
    recorded = read_note(folder / RUN)
    spark = current_generation(folder).spark(folder.parent)
    if not recorded["spark_is_here"] and (spark / "metadata").exists():
        write_note(folder / RUN, recorded | {"spark_is_here": True})


def begin_generation(folder: Location, generation: Generation, identity: dict[str, Any]) -> None:
    """Record that the run of this folder continues in another generation, which has its own cells and exchanges."""
    own = {name: identity[name] for name in ("cells", "exchanges", "plans")}
    begun = {"generation": asdict(generation), "spark_is_here": False}
    write_note(folder / RUN, read_note(folder / RUN) | own | begun)
