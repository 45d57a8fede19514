"""How work and data are divided among cells, and what cells send each other.

A cell owns the vertices whose hash is its number. The cell that puts edges in order sends them on, and a cell that
derives tuples for a later stage sends these: broadcast, or to the owners of an end. Vertices travel by name, since
each cell numbers them for itself, and in the order of time. A chunk that all cells of a stage read is encoded once.
The sender's frontier goes to every cell, so that each has at least one row in every batch; a cell advances to the
least frontier that it receives.

A row for a later stage than the next passes through the cells between, which forward it unopened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from meander.algebra.nodes import Side
from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.edges import Array, Edges, Text, by_time, concat_edges, match_labels, nameless
from meander.dataflow.value_names import value_array
from meander.kernels.interning import hash_names
from meander.kernels.spans import wrapping
from meander.physical.stages import Delivery
from meander.physical.streams import SIDES, StreamRef
from meander.spark.edge_codec import decode_edges, encode_edges
from meander.spark.messages import (
    CHUNK_ROWS,
    PARTITION_SHIFT,
    Chunk,
    Kind,
    StageMessage,
    least_frontier,
)

MIX = np.uint64(0x9E3779B97F4A7C15)


# ---------------------------------------------------------------------------------------------------------
# Hash partitioning


def owners(text: Text, cells: int) -> Array:
    """For each name the number of the cell that owns its vertex."""
    hashes = np.empty(text.rows, np.uint64)
    with wrapping():
        hash_names(*text, hashes)
    # The tables of a cell are indexed by the hash as it is: mixed once more, or a cell would fill few of its slots.
    numbers: Array = (hashes * MIX >> np.uint64(32)) % np.uint64(cells)
    return numbers


def own_answers(answers: Answers, cell: int, cells: int) -> Answers:
    """The answers that a cell owns by their first vertex; the first cell owns an answer without vertices."""
    if not answers.vertices:
        return take_answers(answers, np.full(answers.rows, cell == 0))
    return take_answers(answers, owners(answers.vertices[0], cells) == cell)


def partition_streams(
    edges: Mapping[str, Edges], sources: Sequence[StreamRef], cell: int, cells: int
) -> dict[str, Edges]:
    """The edges of the streams that a plan reads, by their keys; each is a stream of `edges` or a cell's share."""
    shares = {}
    for source in sources:
        whole = edges.get(source.name)
        if whole is not None:
            shares[source.key] = (
                whole
                if source.side is None
                else whole.take(owners(getattr(whole, source.side), cells) == cell)
            )
    return shares


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


def is_by_side(side: Side, delivery: Delivery) -> bool:
    """Whether tuples go to the owners of their ends on this side."""
    return side in delivery.sides


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
                for targets, part in self._divide(edges, wanted):
                    for start in range(0, part.rows, CHUNK_ROWS):
                        data = encode_edges(part.take(slice(start, start + CHUNK_ROWS)), lines=False)
                        for target in targets:
                            yield StageMessage(
                                self.cells[target], stage, Kind.EDGES, stream, self.position, data
                            )
                        self.position += 1

    def _divide(self, edges: Edges, wanted: Sequence[Delivery]) -> Iterator[tuple[Sequence[int], Edges]]:
        """The parts of a stream's edges, each with the numbers of the cells that read it."""
        cells = len(self.cells)
        of_all = [delivery for delivery in wanted if delivery.label is None]
        wanted = [delivery for delivery in wanted if delivery.label is not None]
        label = match_labels(edges.label, [str(delivery.label).encode() for delivery in wanted])

        def having(is_so: Callable[[Delivery], bool]) -> Array:
            # The last flag is that of labels that nothing names, whose number is -1.
            flags = np.array([*map(is_so, wanted), False]) | any(map(is_so, of_all))
            mask: Array = flags[label]
            return mask

        broadcast = having(lambda delivery: delivery.broadcast)
        if broadcast.any():
            count = int(broadcast.sum())
            self.counts["sent_to_all"] += count
            self.counts["sent_rows"] += count * cells
            yield range(cells), edges if count == edges.rows else edges.take(broadcast)
        targets = {}
        for side in SIDES:
            by_side = having(partial(is_by_side, side)) & ~broadcast
            if by_side.any():
                targets[side] = np.where(by_side, owners(getattr(edges, side), cells), cells)
        for cell in range(cells):
            mask = np.zeros(edges.rows, np.bool_)
            for numbers in targets.values():
                mask |= numbers == cell
            if mask.any():
                self.counts["sent_rows"] += int(mask.sum())
                yield (cell,), edges.take(mask)
        self.counts["sent"] += edges.rows if of_all else int((label >= 0).sum())


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
