"""What cells send each other: edges in order, and derived tuples, each to the cells that read it.

The cell that puts edges in order sends them on, and a cell that derives tuples for a later stage sends these. Both go
by name, for each cell numbers vertices for itself, and in the order of time. What all cells of a stage read is
encoded once. With them goes the sender's frontier to every cell, so that each has at least one row in every batch;
a cell advances to the least frontier that it is told.

A row for a later stage than the next goes through the cells between, which hand it on unopened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.edges import Array, Edges, by_time, concat_edges, match_labels, nameless
from meander.physical.stages import Delivery
from meander.spark.cell.shares import owners
from meander.spark.edge_codec import decode_edges, encode_edges
from meander.spark.messages import CHUNK_ROWS, EDGES, FRONTIER, PARTITION_SHIFT, Chunk, Parcel

UNKNOWN = -1
"""A frontier that says nothing yet."""


def derived_edges(parts: Sequence[Answers]) -> Edges:
    """Derived tuples, as an operator hands them out, on their way to another stage."""
    return concat_edges(
        [
            Edges(part.vertices[0], nameless(part.rows), part.vertices[1], part.ts, part.op, exp=part.exp)
            for part in parts
        ]
    )


class Sent:
    """How many edges a cell has sent: different ones, to all cells of a stage, and over all cells together."""

    def __init__(self) -> None:
        self.counts = {"sent": 0, "sent_to_all": 0, "sent_rows": 0}


def send(
    streams: Mapping[str, Edges],
    deliveries: Sequence[Delivery],
    cells: Sequence[int],
    sender: int,
    sent: Sent,
) -> Iterator[Parcel]:
    """The rows that bring each stage what it reads of the streams; `cells` are the keys of each stage's cells."""
    place = sender << PARTITION_SHIFT
    for stage in sorted({one.stage for one in deliveries}):
        for stream, edges in streams.items():
            wanted = [one for one in deliveries if (one.stage, one.stream) == (stage, stream)]
            if not wanted or not edges.rows:
                continue
            for targets, part in divide(edges, wanted, len(cells), sent):
                for start in range(0, part.rows, CHUNK_ROWS):
                    data = encode_edges(part.take(slice(start, start + CHUNK_ROWS)), lines=False)
                    for target in targets:
                        yield Parcel(cells[target], stage, EDGES, stream, place, data)
                    place += 1


def divide(
    edges: Edges, wanted: Sequence[Delivery], cells: int, sent: Sent
) -> Iterator[tuple[Sequence[int], Edges]]:
    """The parts of a stream's edges, each with the numbers of the cells that read it."""
    if edges.exp is None:
        label = match_labels(edges.label, [one.label.encode() for one in wanted])
    else:
        label = np.zeros(edges.rows, np.int16)

    def chosen(flags: list[bool]) -> Array:
        # The last flag is that of labels that nobody asks for, whose number is -1.
        mask: Array = np.array([*flags, False])[label]
        return mask

    to_all = chosen([one.to_all for one in wanted])
    if to_all.any():
        count = int(to_all.sum())
        sent.counts["sent_to_all"] += count
        sent.counts["sent_rows"] += count * cells
        yield range(cells), edges if count == edges.rows else edges.take(to_all)
    targets = {}
    for side in ("src", "trg"):
        by_side = chosen([side in one.sides for one in wanted])
        if by_side.any():
            targets[side] = np.where(by_side, owners(getattr(edges, side), cells), cells)
    for cell in range(cells):
        mask = np.zeros(edges.rows, np.bool_)
        for numbers in targets.values():
            mask |= numbers == cell
        if mask.any():
            sent.counts["sent_rows"] += int(mask.sum())
            yield (cell,), edges.take(mask)
    sent.counts["sent"] += int((label >= 0).sum())


def tell_frontier(frontier: int | None, stage: int, cells: Sequence[int]) -> Iterator[Parcel]:
    """A row for every cell of a stage: how far the sender has come."""
    data = str(UNKNOWN if frontier is None else frontier).encode()
    for cell in cells:
        yield Parcel(cell, stage, FRONTIER, "", 0, data)


def receive(batch: Sequence[Chunk]) -> tuple[dict[str, Edges], int | None]:
    """What a stage's cell was sent, by stream and in the order of time, and how far time has come."""
    parts: dict[str, list[Edges]] = {}
    for one in batch:
        if one.kind == EDGES:
            parts.setdefault(one.stream, []).append(decode_edges(one.data))
    frontier = min(int(one.data) for one in batch if one.kind == FRONTIER)
    edges = {stream: by_time(concat_edges(some)) for stream, some in parts.items()}
    return edges, None if frontier == UNKNOWN else frontier
