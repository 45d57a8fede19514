"""From the rows of a batch to edges in the order of time.

A single cell orders the edges that have arrived, by its ingest. Of several cells each has an ingest for the edges
that it reads, and all agree on time by the summaries of chunks (see `admission`). Rows that hold no edges are
forwarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from meander.dataflow.edges import Edges, Reason, concat_edges
from meander.dataflow.ingest import Ingest
from meander.dataflow.tally import value_counts
from meander.spark.cell.admission import Admission, merged_tuples
from meander.spark.cell.job import Job
from meander.spark.cell.manifest import CellManifest
from meander.spark.cell.scatter import FIRST_STAGE
from meander.spark.checkpoint.storage import location
from meander.spark.edge_codec import chunk_edges, count_rejects, rejects_row
from meander.spark.input.reader import read_segments
from meander.spark.messages import (
    OUTBOUND,
    PARTITION_SHIFT,
    Chunk,
    Kind,
    Output,
    StageMessage,
    byte_count,
    jump_row,
    tick,
    tick_time,
)


class Released(NamedTuple):
    """Edges in the order of time, by stream, and the frontier that they lead to (None: not known yet)."""

    edges: Mapping[str, Edges]
    frontier: int | None


def order_input(
    job: Job,
    manifest: CellManifest,
    ingest: Ingest,
    chunks: list[Chunk],
    counts: Counter[str],
    values: Counter[tuple[str, str]],
    clock: Callable[[], float],
) -> Iterator[Output | Released]:
    """In a single cell: a batch's edges in order, and rows about those that cannot be used; `values` counts the
    edges that have a value, by stream and property.

    The edges of a single stream are released chunk by chunk, and meanwhile the next chunk is read. Several streams
    wait for each other until the end of the batch.
    """
    alone = len(job.streams) == 1
    heard: set[str] = set()
    for chunk in merge_partitions(job, ingest, read_segments(chunks, job.layout, location(job.snapshots))):
        if chunk.kind != Kind.EDGES:
            yield from forward(chunk)
            counts["rejected"] += count_rejects(chunk.data) if chunk.kind == Kind.REJECTS else 0
            counts["bytes"] += byte_count(chunk) if chunk.kind == Kind.BYTES_READ else 0
            continue
        edges = chunk_edges(chunk)
        heard.add(chunk.stream)
        counts["edges"] += edges.rows
        counts["arrived"] += edges.rows
        for name, count in value_counts(edges).items():
            values[chunk.stream, name] += count
        rejects = ingest.push(chunk.stream, edges)
        if rejects:
            late = sum(reject.reason == Reason.TOO_LATE for reject in rejects)
            counts["late"] += late
            counts["rejected"] += len(rejects) - late
            yield rejects_row(rejects)
        yield from map(jump_row, ingest.take_jumps())
        if alone:
            yield Released(*ingest.release())
    ended = [chunk.stream for chunk in chunks if chunk.kind == Kind.CLOSED]
    close_streams(job, manifest, ingest, heard, ended, clock())
    yield Released(*ingest.release())


def receive_input(
    job: Job,
    cell: int,
    manifest: CellManifest,
    ingest: Ingest,
    chunks: list[Chunk],
    admission: Admission,
    clock: Callable[[], float],
) -> Iterator[Output | StageMessage | Released]:
    """In a stage of several cells: the edges that readers have sent to the cell and the tuples that earlier stages
    have derived for it, in order, and the rows that the cell forwards.

    All cells are at the same watermark at the end of a batch: they have the same summaries.
    """
    own = [chunk for chunk in chunks if chunk.stage == job.stage]
    for chunk in chunks:
        if chunk.stage != job.stage:
            yield StageMessage(cell, chunk.stage, chunk.kind, chunk.stream, chunk.position, chunk.data)
        elif chunk.kind == Kind.BYTES_READ:
            admission.counts["bytes"] += byte_count(chunk)
        else:
            yield from forward(chunk)
            if job.stage == FIRST_STAGE and chunk.kind == Kind.REJECTS:
                admission.counts["rejected"] += count_rejects(chunk.data)
    now = tick_time(own)
    now = clock() if now is None else now
    if job.stage == FIRST_STAGE:
        for stage in range(FIRST_STAGE + 1, job.last + 1):
            for chunk in (*own, tick(now=now)):
                if chunk.kind in (Kind.SUMMARY, Kind.CLOSED, Kind.TICK):
                    yield StageMessage(cell, stage, chunk.kind, chunk.stream, chunk.position, chunk.data)
    yield from admission.take([chunk for chunk in own if chunk.stream in job.streams])
    ended = [chunk.stream for chunk in own if chunk.kind == Kind.CLOSED]
    close_streams(job, manifest, ingest, admission.heard, ended, now)
    edges, frontier = ingest.release()
    derived = merged_tuples(
        [chunk for chunk in own if chunk.kind == Kind.EDGES and chunk.stream not in job.streams]
    )
    admission.counts["edges"] += sum(tuples.rows for tuples in derived.values())
    yield Released(edges | derived, frontier)


def forward(chunk: Chunk) -> Iterator[Output]:
    """A row that is on its way to the driver."""
    if chunk.kind in OUTBOUND:
        rows = count_rejects(chunk.data) if chunk.kind == Kind.REJECTS else 1
        yield Output(chunk.kind, "", "", rows, chunk.data)


def merge_partitions(job: Job, ingest: Ingest, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same chunks; those of a DataFrame's partitions are merged into one for each stream.

    Partitions of a DataFrame have no order among each other. They are merged by the greatest time that each has
    reached (without edges that jump ahead), which keeps the order in each and makes no edge late that would not be
    late alone.
    """
    partitions: dict[str, dict[int, list[Edges]]] = {}
    for chunk in chunks:
        if chunk.kind == Kind.EDGES and chunk.stream in job.unordered:
            by_number = partitions.setdefault(chunk.stream, {})
            by_number.setdefault(chunk.position >> PARTITION_SHIFT, []).append(chunk_edges(chunk))
        else:
            yield chunk
    for stream, by_number in partitions.items():
        parts = [concat_edges(edges) for edges in by_number.values()]
        clock = ingest.streams[stream].greatest
        reached = np.concatenate([ingest.clocks(part.ts, clock) for part in parts])
        edges = concat_edges(parts).take(np.argsort(reached, kind="stable")) if len(parts) > 1 else parts[0]
        yield Chunk(Kind.EDGES, stream, 0, b"", edges=edges)


def close_streams(
    job: Job, manifest: CellManifest, ingest: Ingest, heard: set[str], ended: list[str], now: float
) -> None:
    """Close the streams that have ended, and those silent for longer than `idle`; open those heard again."""
    for stream in heard:
        manifest.last_heard[stream] = now
    for stream in ended:
        if stream not in manifest.ended_streams:
            manifest.ended_streams.append(stream)
            ingest.close(stream)
    waiting = [stream for stream in job.streams if stream not in manifest.ended_streams]
    silent = [
        stream
        for stream in waiting
        if now - max(manifest.last_heard.get(stream, 0.0), job.started) > job.options.idle
    ]
    if waiting and len(silent) == len(waiting):
        # Event time comes from the streams: the furthest of them holds it, or it would run out.
        silent.remove(max(silent, key=lambda stream: ingest.streams[stream].greatest))
    for stream in waiting:
        if stream in silent and stream not in manifest.idle_streams:
            manifest.idle_streams.append(stream)
            ingest.close(stream)
        elif stream not in silent and stream in manifest.idle_streams:
            manifest.idle_streams.remove(stream)
            ingest.open(stream)
