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
from meander.dataflow.edges import Edges, concat_edges
from meander.dataflow.ingest import Ingest
from meander.errors import MemoryBudgetError, StateError
from meander.physical.plan import Result
from meander.spark.cell.backfill import rebuilt
from meander.spark.cell.exchange import Sent, derived_edges, send, tell_frontier
from meander.spark.cell.handover import cell_folder, hand_over, take_over, withdraw
from meander.spark.cell.ingest import Released, take_in, take_up
from meander.spark.cell.instants import note_part, parts_of
from meander.spark.cell.job import CellStore, Job, Output, damaged_state
from meander.spark.cell.manifest import Head, Piece, pack_arrays, read_snapshot, unpack_arrays, write_snapshot
from meander.spark.cell.shares import own_answers, with_shares
from meander.spark.edge_codec import decode_edges, encode_edges
from meander.spark.encoding import Encoder
from meander.spark.messages import FIGURES, FULL, Chunk, Parcel


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
        yield from attempt(job, cell, store, chunks, begun)
        return
    for one in attempt(job, cell, store, chunks, begun):
        if isinstance(one, Output):
            # Through the stages after this one, each of which would hand it on as it is.
            yield Parcel(job.targets[0], job.last, one.kind, "", 0, one.data)
        else:
            yield one


def attempt(
    job: Job, cell: int, store: CellStore, chunks: Iterable[Chunk], begun: float
) -> Iterator[Output | Parcel]:
    """As `step`. A budget that is reached and state that is damaged are told, not raised: Spark would only try the
    same again."""
    try:
        yield from step(job, cell, store, chunks, begun)
    except (MemoryBudgetError, StateError) as error:
        fields = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
        yield Output(FULL, "", "", 0, json.dumps(fields).encode())


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

    rows = sorted(chunks, key=lambda chunk: chunk.place)
    counts = dict.fromkeys(("edges", "late", "rejected", "answers", "bytes"), 0)
    sent = Sent()
    taken: dict[str, list[Edges]] = {}
    derived: dict[str, list[Answers]] = {}
    frontier: int | None = None
    in_dataflow = 0.0
    encoder = Encoder(job)
    parts = take_up(job, cell, rows, counts) if job.stage else take_in(job, head, live.ingest, rows, counts)
    for part in parts:
        if not isinstance(part, Released):
            yield part
            continue
        edges, frontier = part
        for stream, some in edges.items():
            taken.setdefault(stream, []).append(some)
        if job.stage == 0:
            yield from send(edges, job.deliveries, job.targets, 0, sent)
        if job.mode == "changes" and job.plan.operators and frontier is not None:
            note_part(head, edges, frontier)
        entered = time.perf_counter()
        for result, answers in chain(
            live.retold, live.dataflow.process(share_of(job, cell, edges), frontier)
        ):
            if len(job.cells) > 1 and (result.query, result.head) in job.in_full:
                answers = own_answers(answers, job.cells.index(cell), len(job.cells))
            if result.raw:
                derived.setdefault(result.head, []).append(answers)
            elif answers.rows:
                counts["answers"] += answers.rows
                yield from encoder.put(result, answers)
        live.retold = []
        in_dataflow += time.perf_counter() - entered
    yield from encoder.rest()
    if job.stage < job.last:
        tuples = {stream: derived_edges(some) for stream, some in derived.items()}
        yield from send(tuples, job.deliveries, job.targets, job.number(cell), sent)
        yield from tell_frontier(frontier, job.stage + 1, job.targets)
    processed = time.perf_counter()

    if job.plan.operators:
        keep(job, head, store, taken, live.dataflow.time)
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
        "ingest": processed - ready - in_dataflow,
        "dataflow": in_dataflow,
        "keep": time.perf_counter() - processed,
    }
    yield figures(job, cell, head, live, counts | sent.counts)


def share_of(job: Job, cell: int, edges: Mapping[str, Edges]) -> Mapping[str, Edges]:
    """The edges of the streams that the plan reads."""
    return with_shares(edges, job.plan.streams, job.cells.index(cell), len(job.cells))


def keep(job: Job, head: Head, store: CellStore, taken: Mapping[str, list[Edges]], time_reached: int) -> None:
    """Put the edges that the dataflow has taken into the store, and take out what has expired.

    What expires at the time reached stays: until that instant is over, its end is not told in `changes` mode.
    """
    for stream, parts in taken.items():
        edges = concat_edges([unexpired(job, stream, part, time_reached) for part in parts])
        if edges.rows:
            expiry = int(job.expiries(stream, edges).max())
            if edges.exp is not None and edges.op.min() < 0:
                # What shortens earlier tuples stays as long as they do.
                expiry = max([expiry, *(one.expiry for one in head.pieces if one.stream == stream)])
            piece = head.add(stream, edges.rows, expiry)
            if piece.expiry >= time_reached:
                store.write_piece(piece.number, encode_edges(edges, lines=False, compressed=True))
    for gone in head.drop_expired(time_reached - 1):
        store.drop_piece(gone.number)
    for stream in taken:
        while pieces := head.mergeable(stream):
            merge_pieces(head, store, pieces)


def unexpired(job: Job, stream: str, edges: Edges, time_reached: int) -> Edges:
    """Those of some edges in order of time that may be valid yet."""
    if edges.exp is not None:
        return edges
    # What has expired already stands at the front.
    return edges.take(slice(int(np.searchsorted(job.expiries(stream, edges), time_reached)), None))


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
        parts = (share_of(job, cell, part) for part in parts_of(head, edges))
        live.retold = rebuilt(dataflow, parts, head)
    return live


def live_stamp(job: Job) -> str:
    """Tells state that can go on under this job from that of another start of the same run."""
    return f"{job.stamp}/{job.lateness}/{job.max_jump}/{job.memory}/{job.threads}"


def restored_ingest(job: Job, head: Head, store: CellStore) -> Ingest:
    """The ingest as the last batch left it. A stream that was not read then begins now."""
    ingest = Ingest(job.streams, lateness=job.lateness, max_jump=job.max_jump, windows=job.windows)
    stored = store.read_ingest()
    if stored is not None:
        arrays = unpack_arrays("ingest", np.frombuffer(stored, np.uint8))
        if arrays is None:
            raise damaged_state()
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
        "bytes": head.counts["bytes"],
        "labels": live.dataflow.labels_seen(),
        "window_rows": sum(one.rows for one in head.pieces),
        "window_pieces": len(head.pieces),
        "state_rows": sum(one["state_rows"] for one in operators),
        "state_bytes": live.dataflow.state_bytes,
        "rebuilt": live.rebuilt,
        "seconds": {name: round(seconds, 6) for name, seconds in live.seconds.items()},
        "operators": operators,
    }
    return Output(FIGURES, "", "", 1, json.dumps(fields).encode())
