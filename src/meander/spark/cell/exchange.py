"""What cells send each other: the tuples that a stage derives for a later one, routed as a reader routes edges.

Vertices travel by name, since each cell numbers them for itself: each name once per chunk (see `columns`), and rows
in the order of time. Tuples that several cells of a stage read are encoded once.

A row for a later stage than the next passes through the cells between, which forward it unopened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from meander.dataflow.answers import Answers
from meander.dataflow.edges import Edges, concat_edges, nameless
from meander.dataflow.value_names import value_array
from meander.physical.stages import Delivery
from meander.spark.cell.routing import end_hashes, route
from meander.spark.columns import pack_edges, with_codes
from meander.spark.messages import CHUNK_ROWS, PARTITION_SHIFT, Kind, StageMessage


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
    """Sends a cell's derived tuples to the cells of later stages.

    `counts`: the tuples sent, and the rows that all cells together receive.
    """

    def __init__(self, deliveries: Sequence[Delivery], cells: Sequence[int], number: int) -> None:
        self.deliveries = deliveries
        self.cells = cells
        self.position = number << PARTITION_SHIFT
        self.counts = Counter({"derived": 0, "derived_rows": 0})

    def send(self, streams: Mapping[str, Edges]) -> Iterator[StageMessage]:
        """The rows that bring each stage the tuples that it reads."""
        for stage in sorted({delivery.stage for delivery in self.deliveries}):
            for stream, edges in streams.items():
                wanted = [
                    delivery
                    for delivery in self.deliveries
                    if (delivery.stage, delivery.stream) == (stage, stream)
                ]
                if not wanted or not edges.rows:
                    continue
                edges = with_codes(edges)
                routed = route(edges, end_hashes(edges), wanted, len(self.cells))
                self.counts["derived"] += routed.read
                for part in routed.parts:
                    self.counts["derived_rows"] += part.count * len(part.cells)
                    chosen = edges.take(part.rows)
                    for start in range(0, part.count, CHUNK_ROWS):
                        data = pack_edges(chosen.take(slice(start, start + CHUNK_ROWS)))
                        for target in part.cells:
                            yield StageMessage(
                                self.cells[target], stage, Kind.EDGES, stream, self.position, data
                            )
                        self.position += 1
