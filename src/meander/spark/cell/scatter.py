"""From chunks, as tasks read them, to the rows that bring every cell the edges that it reads.

No cell orders the edges for the others. A reader hashes the names of a chunk once, routes its edges, and drops those
that no cell reads. To *every* cell it sends a summary of the chunk, from which each computes the same clocks,
watermark and lateness. Whether an edge is too late depends on the edges before it: on those of its chunk, which the
reader knows, and on those of earlier chunks, which only a cell knows. So one cell for each chunk, its judge, also
gets the chunk as it was read, and rejects what is too late; all others only drop it.

Edges leave in the order of time, and edges of equal time in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from meander.dataflow.edges import Array, Edges, by_time, match_labels
from meander.dataflow.tally import value_counts
from meander.physical.stages import Delivery
from meander.spark.cell.routing import end_hashes, route
from meander.spark.columns import pack, pack_arrivals, pack_edges, unpack, with_codes
from meander.spark.edge_codec import chunk_edges, encode_edges
from meander.spark.messages import PARTITION_SHIFT, Chunk, Kind, StageMessage

TO_ALL = frozenset({Kind.TICK, Kind.CLOSED})
"""The kinds of rows that every cell gets."""

FIRST_STAGE = 1
"""The number of the first stage of cells; stage 0 are the readers."""


class Summary(NamedTuple):
    """What every cell knows of a chunk.

    `step` is the largest difference between an edge's time and the greatest before it in the chunk. With `max_jump`
    the times of all edges are in `ts`, in order of arrival. `late` counts the edges that are too late because of
    earlier edges of the chunk: they were not sent.
    """

    judge: int
    rows: int
    first: int
    least: int
    greatest: int
    step: int
    late: int
    sent: int
    sent_to_all: int
    sent_rows: int
    values: dict[str, int]
    ts: Array | None = None

    def to_bytes(self) -> bytes:
        fields: dict[str, Any] = self._asdict()
        ts = fields.pop("ts")
        return pack(fields, {} if ts is None else {"ts": ts})

    @staticmethod
    def from_bytes(data: bytes) -> Summary:
        fields, arrays = unpack(data)
        return Summary(**fields, ts=arrays.get("ts"))


@dataclass(frozen=True)
class Scatter:
    """Sends what tasks read to the cells, whose keys are `cells`, by the deliveries of their stages."""

    cells: tuple[int, ...]
    deliveries: tuple[Delivery, ...]
    lateness: int = 0
    max_jump: int | None = None

    def send(self, chunks: Iterable[Chunk]) -> Iterator[StageMessage]:
        """The rows of some chunks."""
        for chunk in chunks:
            if chunk.kind == Kind.EDGES:
                yield from self._edges(chunk.stream, chunk_edges(chunk), chunk.position)
            else:
                for cell in (
                    self.cells if chunk.kind in TO_ALL else (self.cells[self._judge(chunk.position)],)
                ):
                    yield StageMessage(
                        cell, FIRST_STAGE, chunk.kind, chunk.stream, chunk.position, chunk.data
                    )

    def _read(self, stream: str, edges: Edges) -> Edges:
        """The edges that some cell reads."""
        labels = {delivery.label for delivery in self.deliveries if delivery.stream == stream}
        if None in labels:
            return edges
        is_read = match_labels(edges.label, [str(label).encode() for label in labels]) >= 0
        return edges if is_read.all() else edges.take(np.flatnonzero(is_read))

    def _judge(self, position: int) -> int:
        """The number of the cell that rejects the edges of a chunk that are too late."""
        return ((position >> PARTITION_SHIFT) + position) % len(self.cells)

    def _edges(self, stream: str, edges: Edges, position: int) -> Iterator[StageMessage]:
        if not edges.rows:
            return
        reached = np.maximum.accumulate(edges.ts)
        usable = edges.without_origin()
        row: Array | None = None
        late = 0
        if self.max_jump is not None:
            # What jumps ahead does not make others late, and depends on earlier chunks.
            row = np.argsort(edges.ts, kind="stable")
            usable = usable.take(row)
        elif not np.array_equal(reached, edges.ts):
            kept = edges.ts >= reached - self.lateness
            late = edges.rows - int(kept.sum())
            usable = by_time(usable.take(kept) if late else usable)
        if usable.rows and row is None:
            usable = self._read(stream, usable)
        usable = with_codes(usable)
        sent = {"sent": 0, "sent_to_all": 0, "sent_rows": 0}
        for stage in sorted({delivery.stage for delivery in self.deliveries}):
            wanted = [
                delivery
                for delivery in self.deliveries
                if (delivery.stage, delivery.stream) == (stage, stream)
            ]
            if not wanted:
                continue
            routed = route(usable, end_hashes(usable), wanted, len(self.cells))
            sent["sent"] += routed.read
            for part in routed.parts:
                sent["sent_to_all"] += part.count if len(part.cells) == len(self.cells) else 0
                sent["sent_rows"] += part.count * len(part.cells)
                numbers = None if row is None else row[part.rows]
                data = pack_edges(usable.take(part.rows), row=numbers)
                for target in part.cells:
                    yield StageMessage(self.cells[target], stage, Kind.EDGES, stream, position, data)
        summary = Summary(
            judge=self._judge(position),
            rows=edges.rows,
            first=int(edges.ts[0]),
            least=int(edges.ts.min()),
            greatest=int(reached[-1]),
            step=int(np.diff(reached).max(initial=0)),
            late=late,
            values=value_counts(edges),
            ts=None if self.max_jump is None else edges.ts,
            **sent,
        ).to_bytes()
        for cell in self.cells:
            yield StageMessage(cell, FIRST_STAGE, Kind.SUMMARY, stream, position, summary)
        arrivals = pack_arrivals(edges) or encode_edges(edges, lines=True)
        yield StageMessage(
            self.cells[self._judge(position)], FIRST_STAGE, Kind.ARRIVALS, stream, position, arrivals
        )
