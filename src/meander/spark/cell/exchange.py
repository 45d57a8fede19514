"""What cells send each other: the edges that cells of a stage read, as routed, and how far the sender is.

The cell that puts edges in order sends them on, and a cell that derives tuples for a later stage sends these.
Vertices travel by name, since each cell numbers them for itself, and in the order of time. Edges that several cells
of a stage read are encoded once. The sender's frontier goes to every cell, so that each has at least one row in every
batch; a cell advances to the least frontier that it receives.

A row for a later stage than the next passes through the cells between, which forward it unopened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from meander.dataflow.answers import Answers
from meander.dataflow.edges import Edges, by_time, concat_edges, nameless
from meander.dataflow.value_names import value_array
from meander.physical.stages import Delivery
from meander.spark.cell.routing import end_hashes, route
from meander.spark.edge_codec import decode_edges, encode_edges
from meander.spark.messages import (
    CHUNK_ROWS,
    PARTITION_SHIFT,
    Chunk,
    Kind,
    StageMessage,
    least_frontier,
)

# ---------------------------------------------------------------------------------------------------------
# Sending


def derived_edges(parts: Sequence[Answers]) -> Edges:
    """Derived tuples, as an operator emits them, in the form in which another stage receives them."""
    return concat_edges(
        [
            Edges(
                src=part.vertices[0],
                label=nameless(part.rows),
                trg=part.vertices[1],
                ts=part.ts,
                op=part.op,
                exp=part.exp,
                properties={column.name: value_array(column) for column in part.properties} or None,
            )
            for part in parts
        ]
    )


class Sender:
    """Sends a cell's edges to the cells of later stages.

    `counts`: the edges sent, those of them that were broadcast, and the rows that all cells together receive.
    """

    def __init__(self, deliveries: Sequence[Delivery], cells: Sequence[int], number: int) -> None:
        self.deliveries = deliveries
        self.cells = cells
        self.position = number << PARTITION_SHIFT
        self.counts = Counter({"sent": 0, "sent_to_all": 0, "sent_rows": 0})

    def send(self, streams: Mapping[str, Edges]) -> Iterator[StageMessage]:
        """The rows that bring each stage the edges that it reads."""
        for stage in sorted({delivery.stage for delivery in self.deliveries}):
            for stream, edges in streams.items():
                wanted = [
                    delivery
                    for delivery in self.deliveries
                    if (delivery.stage, delivery.stream) == (stage, stream)
                ]
                if not wanted or not edges.rows:
                    continue
                routed = route(edges, end_hashes(edges), wanted, len(self.cells))
                self.counts["sent"] += routed.read
                for part in routed.parts:
                    self.counts["sent_to_all"] += part.count if len(part.cells) == len(self.cells) else 0
                    self.counts["sent_rows"] += part.count * len(part.cells)
                    chosen = edges.take(part.rows)
                    for start in range(0, part.count, CHUNK_ROWS):
                        data = encode_edges(chosen.take(slice(start, start + CHUNK_ROWS)), lines=False)
                        for target in part.cells:
                            yield StageMessage(
                                self.cells[target], stage, Kind.EDGES, stream, self.position, data
                            )
                        self.position += 1


# ---------------------------------------------------------------------------------------------------------
# Receiving


def receive(chunks: Sequence[Chunk]) -> tuple[dict[str, Edges], int | None]:
    """The edges that a stage's cell received, by stream and in the order of time, and the frontier."""
    parts: dict[str, list[Edges]] = {}
    for chunk in chunks:
        if chunk.kind == Kind.EDGES:
            parts.setdefault(chunk.stream, []).append(decode_edges(chunk.data))
    edges = {stream: by_time(concat_edges(of_stream)) for stream, of_stream in parts.items()}
    return edges, least_frontier(chunks)
