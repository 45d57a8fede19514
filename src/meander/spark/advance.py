"""The step of a cell: one batch of chunks, through ingest and dataflow, to rows of answers.

In every batch a cell gets its chunks, puts them in order, and hands them to the same ingest and dataflow as the
in-process runner. What leaves is rows of chunks again: answers, rejects, and one row of figures. Operator state
stays in this process under a token (see `state`); where that is not the store's, it is made again.

With several stages (see `exchange`) only the first has an ingest. The others take what they are sent, up to the
frontier that they are told, and what all but the last hand out is on its way to cells of later stages.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, Reject, concat_edges
from meander.dataflow.ingest import Ingest
from meander.physical.plan import Result
from meander.spark.cells import CellStore, Job, Output
from meander.spark.chunks import (
    ANSWERS,
    CLOSED,
    EDGES,
    ERROR,
    FIGURES,
    PARTITION_SHIFT,
    REJECTS,
    TICK,
    Chunk,
    Parcel,
)
from meander.spark.codec import decode_edges, decode_rejects, encode_edges, encode_rejects
from meander.spark.exchange import Sent, derived_edges, receive, send, tell_frontier
from meander.spark.formats import encode_answers
from meander.spark.handover import cell_folder, hand_over, take_over, withdraw
from meander.spark.retelling import retold
from meander.spark.shares import own_answers, with_shares
from meander.spark.state import (
    Head,
    Piece,
    pack_arrays,
    read_snapshot,
    unpack_arrays,
    write_snapshot,
)


@dataclass
class Live:
    """Operator state in this process, and the token that it stands under."""

    token: int
    stamp: str
    ingest: Ingest
    dataflow: Dataflow
    folder: Path | None = None
    rebuilt: bool = True
    retold: list[tuple[Result, Answers]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


LIVE: dict[tuple[str, int], Live] = {}
"""The cells whose state this process holds, by run and cell."""


def advance(
    job: Job, cell: int, store: CellStore, chunks: Iterable[Chunk], begun: float | None = None
) -> Iterator[Output | Parcel]:
    """One batch of one cell. State in the store and in `LIVE` is of the next batch once all outputs are taken.

    The last stage hands out `Output`s, the others `Parcel`s. `begun` is when the cell got the batch, by
    `time.perf_counter`.
    """
    begun = time.perf_counter() if begun is None else begun
    if job.stage == job.last:
        yield from step(job, cell, store, chunks, begun)
        return
    for one in step(job, cell, store, chunks, begun):
        if isinstance(one, Output):
            # Through the stages after this one, each of which would hand it on as it is.
            yield Parcel(job.targets[0], job.last, one.kind, "", 0, one.data)
        else:
            yield one


def step(
    job: Job, cell: int, store: CellStore, chunks: Iterable[Chunk], begun: float
) -> Iterator[Output | Parcel]:
    """As `advance`, with an `Output` for each row that is on its way out."""
    stored = store.read_head()
    head = Head() if stored is None else Head.from_bytes(stored)
    # Taken out while it changes: a batch that fails leaves nothing behind under a token.
    live = LIVE.pop((job.run, job.number(cell)), None)
    if live is None or (live.token, live.stamp) != (head.token, live_stamp(job)):
        live = rebuild(job, cell, head, store)
    else:
        live.rebuilt = False
    if live.folder is not None:
        withdraw(live.folder)
    ready = time.perf_counter()

    batch = []
    for one in sorted(chunks, key=lambda chunk: chunk.place):
        if one.stage != job.stage:
            yield Parcel(cell, one.stage, *one[:4])
        elif one.kind in (REJECTS, ERROR, FIGURES):
            rows = len(decode_rejects(one.data)) if one.kind == REJECTS else 1
            yield Output(one.kind, "", "", rows, one.data)
        batch.append(one)
    counts = dict.fromkeys(("edges", "late", "rejected", "answers"), 0)
    sent = Sent()
    if job.stage == 0:
        late = ingest_chunks(job, head, live.ingest, batch, counts)
        if late:
            yield Output(REJECTS, "", "", len(late), encode_rejects(late))
        released, frontier = live.ingest.release()
        yield from send(released, job.deliveries, job.targets, 0, sent)
    else:
        released, frontier = receive([one for one in batch if one.stage == job.stage])
        counts["edges"] = sum(edges.rows for edges in released.values())
    pushed = time.perf_counter()
    derived: dict[str, list[Answers]] = {}
    taken = live.dataflow.process(share_of(job, cell, released), frontier)
    for result, answers in chain(live.retold, taken):
        if len(job.cells) > 1 and (result.query, result.head) in job.in_full:
            answers = own_answers(answers, job.cells.index(cell), len(job.cells))
        if result.raw:
            derived.setdefault(result.head, []).append(answers)
        elif answers.rows:
            counts["answers"] += answers.rows
            data = encode_answers(answers, job.formats.get(result.query, "arrow"))
            yield Output(ANSWERS, result.query, result.head, answers.rows, data)
    if job.stage < job.last:
        tuples = {stream: derived_edges(parts) for stream, parts in derived.items()}
        yield from send(tuples, job.deliveries, job.targets, job.number(cell), sent)
        yield from tell_frontier(frontier, job.stage + 1, job.targets)
    processed = time.perf_counter()

    if job.plan.operators:
        keep(job, head, store, released, live.dataflow.time)
    live.retold = []
    head.time = live.dataflow.time
    head.streams = list(job.streams)
    head.results = [[one.query, one.head] for one in job.plan.results]
    head.token = live.token = secrets.randbits(62)
    head.tells_late = live.dataflow.tells_late
    if job.snapshots and not head.tells_late and head.rows_since_snapshot >= job.snapshot_rows:
        take_snapshot(job, cell, head, live.dataflow)
    if job.stage == 0:
        store.write_ingest(b"".join(pack_arrays("ingest", live.ingest.snapshot())))
    for name, count in counts.items():
        head.counts[name] = head.counts.get(name, 0) + count
    store.write_head(head.to_bytes())
    if live.folder is not None:
        hand_over(live.folder, live.token, job.stamp, live.dataflow)
    LIVE[job.run, job.number(cell)] = live
    live.seconds = {
        "rebuild": ready - begun,
        "load": live.seconds.get("load", 0.0) if live.rebuilt else 0.0,
        "ingest": pushed - ready,
        "dataflow": processed - pushed,
        "keep": time.perf_counter() - processed,
    }
    yield figures(job, cell, head, live, counts | sent.counts)


def ingest_chunks(
    job: Job, head: Head, ingest: Ingest, batch: list[Chunk], counts: dict[str, int]
) -> list[Reject]:
    """Take what has arrived, and see which streams have ended; what is too late comes back."""
    late: list[Reject] = []
    for stream, edges in arrivals(job, batch):
        counts["edges"] += edges.rows
        late += ingest.push(stream, edges)
    counts["late"] = len(late)
    counts["rejected"] = sum(len(decode_rejects(one.data)) for one in batch if one.kind == REJECTS)
    ended = [one.stream for one in batch if one.kind == TICK and one.data == CLOSED]
    watch_streams(job, head, ingest, {one.stream for one in batch if one.kind == EDGES}, ended)
    return late


def share_of(job: Job, cell: int, edges: Mapping[str, Edges]) -> Mapping[str, Edges]:
    """The edges of the streams that the plan reads."""
    return with_shares(edges, job.plan.streams, job.cells.index(cell), len(job.cells))


def arrivals(job: Job, batch: list[Chunk]) -> Iterator[tuple[str, Edges]]:
    """The edges of a batch, stream by stream, in order of arrival.

    Partitions of a DataFrame have no order among each other. They are merged by the greatest time that each has
    reached, which keeps the order in each and makes no edge late that would not be late alone.
    """
    for stream in job.streams:
        chunks = [one for one in batch if one.kind == EDGES and one.stream == stream]
        if stream not in job.merged or len({one.place >> PARTITION_SHIFT for one in chunks}) < 2:
            for one in chunks:
                yield stream, edges_of(one)
            continue
        partitions: dict[int, list[Edges]] = {}
        for one in chunks:
            partitions.setdefault(one.place >> PARTITION_SHIFT, []).append(edges_of(one))
        parts = [concat_edges(edges) for edges in partitions.values()]
        reached = np.concatenate([np.maximum.accumulate(part.ts) for part in parts])
        yield stream, concat_edges(parts).take(np.argsort(reached, kind="stable"))


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


def keep(job: Job, head: Head, store: CellStore, released: Mapping[str, Edges], time_reached: int) -> None:
    """Put the edges that the dataflow has taken into the store, and take out what has expired.

    What expires at the time reached stays: until that instant is over, its end is not told in `changes` mode.
    """
    for stream, edges in released.items():
        expiries = job.expiries(stream, edges)
        if edges.exp is None:
            # In order of time: what has expired already stands at the front.
            expired = int(np.searchsorted(expiries, time_reached))
            edges, expiries = edges.take(slice(expired, None)), expiries[expired:]
        if edges.rows:
            expiry = int(expiries.max())
            if edges.exp is not None and edges.op.min() < 0:
                # What shortens earlier tuples stays as long as they do.
                expiry = max([expiry, *(one.expiry for one in head.pieces if one.stream == stream)])
            piece = head.add(stream, edges.rows, expiry)
            if piece.expiry >= time_reached:
                store.write_piece(piece.number, encode_edges(edges, lines=False, compressed=True))
    for gone in head.drop_expired(time_reached - 1):
        store.drop_piece(gone.number)
    for stream in released:
        while pieces := head.mergeable(stream):
            merge_pieces(head, store, pieces)


def merge_pieces(head: Head, store: CellStore, pieces: list[Piece]) -> None:
    edges = concat_edges([decode_edges(store.read_piece(one.number)) for one in pieces])
    made = head.merge(pieces)
    for one in pieces:
        if one.number != made.number:
            store.drop_piece(one.number)
    store.write_piece(made.number, encode_edges(edges, lines=False, compressed=True))


def rebuild(job: Job, cell: int, head: Head, store: CellStore) -> Live:
    """The state that the head's token stands for: as another worker left it, or the last snapshot and the pieces
    since, or all pieces."""
    folder = cell_folder(job.run, job.number(cell)) if job.handover and len(job.cells) > 1 else None
    # Mapped before the new dataflow puts its own files in their place.
    left = take_over(folder, head.token, job.stamp) if folder is not None else None
    dataflow = Dataflow(
        job.plan,
        mode=job.mode,
        paths=job.paths,
        memory=job.memory,
        folder=folder,
        threads=job.threads,
    )
    live = Live(head.token, live_stamp(job), restored_ingest(job, head, store), dataflow, folder)
    if left is not None:
        dataflow.restore(left)
    if left is not None or not job.plan.operators:
        live.rebuilt = False
        return live
    since = 0
    # What was said late is not known from a snapshot and the pieces since, only from all of them.
    if head.snapshot and not head.tells_late and not dataflow.tells_late:
        begun = time.perf_counter()
        snapshot = read_snapshot(snapshot_path(job, cell, head.snapshot), job.stamp)
        if snapshot is not None:
            dataflow.restore(snapshot)
            since = head.snapshot_number
            live.seconds["load"] = time.perf_counter() - begun
    by_stream: dict[str, list[Edges]] = {}
    for piece in head.pieces:
        if piece.number >= since:
            by_stream.setdefault(piece.stream, []).append(decode_edges(store.read_piece(piece.number)))
    edges = {stream: concat_edges(parts) for stream, parts in by_stream.items()}
    if edges or head.time > dataflow.time:
        live.retold = retold(dataflow.replay(share_of(job, cell, edges), head.time), head, job.mode)
    return live


def live_stamp(job: Job) -> str:
    """Tells state that can go on under this job from that of another start of the same run."""
    return f"{job.stamp}/{job.lateness}/{job.memory}/{job.threads}"


def restored_ingest(job: Job, head: Head, store: CellStore) -> Ingest:
    """The ingest as the last batch left it. A stream that was not read then begins now."""
    ingest = Ingest(job.streams, lateness=job.lateness)
    stored = store.read_ingest()
    if stored is not None:
        arrays = unpack_arrays("ingest", np.frombuffer(stored, np.uint8))
        assert arrays is not None, "the store hands back what was written to it"
        before = Ingest(head.streams)
        before.restore(arrays)
        ingest.frontier = before.frontier
        ingest.streams |= {name: one for name, one in before.streams.items() if name in ingest.streams}
    return ingest


def take_snapshot(job: Job, cell: int, head: Head, dataflow: Dataflow) -> None:
    name = f"{head.token:016x}"
    write_snapshot(snapshot_path(job, cell, name), job.stamp, dataflow.snapshot())
    head.snapshot = name
    head.snapshot_number = head.next_number


def snapshot_path(job: Job, cell: int, name: str) -> Path:
    return Path(job.snapshots) / f"cell-{job.number(cell)}" / f"{name}.snapshot"


def figures(job: Job, cell: int, head: Head, live: Live, counts: Mapping[str, int]) -> Output:
    """What the cell has done in this batch and holds now, as a row of JSON."""
    operators = [one._asdict() for one in live.dataflow.figures()]
    fields = {
        "stage": job.stage,
        "cell": job.cells.index(cell),
        "time": live.dataflow.time,
        **counts,
        "window_rows": sum(one.rows for one in head.pieces),
        "window_pieces": len(head.pieces),
        "state_rows": sum(one["state_rows"] for one in operators),
        "state_bytes": live.dataflow.state_bytes,
        "rebuilt": live.rebuilt,
        "seconds": {name: round(seconds, 6) for name, seconds in live.seconds.items()},
        "operators": operators,
    }
    return Output(FIGURES, "", "", 1, json.dumps(fields).encode())
