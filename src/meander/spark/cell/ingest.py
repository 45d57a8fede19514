"""From the rows of a batch to edges in the order of time.

The first stage puts what has arrived in order, for which it has an ingest; cells of later stages are sent edges in
order. Rows that are no edges leave as they came.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from meander.dataflow.edges import Edges, Reason, concat_edges
from meander.dataflow.ingest import Ingest
from meander.spark.cell.exchange import receive
from meander.spark.cell.job import Job, Output
from meander.spark.cell.manifest import Head
from meander.spark.edge_codec import count_rejects, decode_edges, encode_rejects
from meander.spark.input.reader import unfold
from meander.spark.messages import (
    CHANGED,
    CLOSED,
    EDGES,
    ERROR,
    FIGURES,
    FULL,
    JUMP,
    PARTITION_SHIFT,
    READ,
    REJECTS,
    TICK,
    Chunk,
    Parcel,
)


class Released(NamedTuple):
    """Edges in the order of time, by stream, and how far time has come with them (None: nothing known yet)."""

    edges: Mapping[str, Edges]
    frontier: int | None


def take_in(
    job: Job, head: Head, ingest: Ingest, rows: list[Chunk], counts: dict[str, int]
) -> Iterator[Output | Released]:
    """A batch's edges, put in order, and what cannot be used of it.

    The edges of a single stream go on chunk by chunk, and meanwhile the next chunk is read. Several streams wait for
    each other, and go on at the end of the batch.
    """
    alone = len(job.streams) == 1 and job.last == 0
    spoke: set[str] = set()
    for one in merged(job, ingest, unfold(rows, job.time_unit)):
        if one.kind != EDGES:
            yield from passed_on(one)
            counts["rejected"] += count_rejects(one.data) if one.kind == REJECTS else 0
            counts["bytes"] += int(one.data) if one.kind == READ else 0
            continue
        edges = edges_of(one)
        spoke.add(one.stream)
        counts["edges"] += edges.rows
        rejects = ingest.push(one.stream, edges)
        if rejects:
            late = sum(reject.reason == Reason.TOO_LATE for reject in rejects)
            counts["late"] += late
            counts["rejected"] += len(rejects) - late
            yield Output(REJECTS, "", "", len(rejects), encode_rejects(rejects))
        for jump in ingest.take_jumps():
            yield Output(JUMP, "", "", 1, json.dumps(jump).encode())
        if alone:
            yield Released(*ingest.release())
    ended = [one.stream for one in rows if one.kind == TICK and one.data == CLOSED]
    watch_streams(job, head, ingest, spoke, ended)
    yield Released(*ingest.release())


def take_up(
    job: Job, cell: int, rows: list[Chunk], counts: dict[str, int]
) -> Iterator[Output | Parcel | Released]:
    """What a cell of a later stage was sent, and what it hands on."""
    mine = [one for one in rows if one.stage == job.stage]
    for one in rows:
        if one.stage != job.stage:
            yield Parcel(cell, one.stage, *one[:4])
        else:
            yield from passed_on(one)
    released = Released(*receive(mine))
    counts["edges"] = sum(edges.rows for edges in released.edges.values())
    yield released


def passed_on(one: Chunk) -> Iterator[Output]:
    """A row that leaves as it came."""
    if one.kind in (REJECTS, ERROR, CHANGED, FIGURES, FULL, JUMP):
        rows = count_rejects(one.data) if one.kind == REJECTS else 1
        yield Output(one.kind, "", "", rows, one.data)


def merged(job: Job, ingest: Ingest, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same chunks, with one in the place of those of a DataFrame.

    Partitions of a DataFrame have no order among each other. They are merged by the greatest time that each has
    reached (without edges that jump ahead), which keeps the order in each and makes no edge late that would not be
    late alone.
    """
    partitions: dict[str, dict[int, list[Edges]]] = {}
    for one in chunks:
        if one.kind == EDGES and one.stream in job.merged:
            by_number = partitions.setdefault(one.stream, {})
            by_number.setdefault(one.place >> PARTITION_SHIFT, []).append(edges_of(one))
        else:
            yield one
    for stream, by_number in partitions.items():
        parts = [concat_edges(edges) for edges in by_number.values()]
        reached = np.concatenate([ingest.clocks(stream, part.ts) for part in parts])
        edges = concat_edges(parts).take(np.argsort(reached, kind="stable")) if len(parts) > 1 else parts[0]
        yield Chunk(EDGES, stream, 0, b"", edges=edges)


def edges_of(chunk: Chunk) -> Edges:
    return decode_edges(chunk.data) if chunk.edges is None else chunk.edges


def watch_streams(job: Job, head: Head, ingest: Ingest, spoke: set[str], ended: list[str]) -> None:
    """Close the streams that have ended, and those silent for too long; open those that speak again."""
    now = time.time()
    for stream in spoke:
        head.heard[stream] = now
    for stream in ended:
        if stream not in head.ended:
            head.ended.append(stream)
            ingest.close(stream)
    waiting = [one for one in job.streams if one not in head.ended]
    silent = [one for one in waiting if now - max(head.heard.get(one, 0.0), job.started) > job.idle]
    if waiting and len(silent) == len(waiting):
        # Time comes from the streams: without any it stands where the furthest of them is, and does not run out.
        silent.remove(max(silent, key=lambda one: ingest.streams[one].greatest))
    for stream in waiting:
        if stream in silent and stream not in head.idle:
            head.idle.append(stream)
            ingest.close(stream)
        elif stream not in silent and stream in head.idle:
            head.idle.remove(stream)
            ingest.open(stream)
