"""Streams as values: what the scans of a plan read, whole or hash-partitioned over cells."""

from __future__ import annotations

from dataclasses import dataclass

from meander.algebra.nodes import Receive, Side, WScan

SIDES: tuple[Side, ...] = ("src", "trg")


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream that a plan reads.

    With a `side` it is hash-partitioned: each cell reads the edges whose vertex on that side it owns. A `derived`
    stream has the tuples that an earlier stage derives; the others come from outside.
    """

    name: str
    side: Side | None = None
    derived: bool = False

    @property
    def key(self) -> str:
        """A name that differs from those of other streams of a plan: by it a dataflow gets the stream's edges."""
        return self.name if self.side is None else f"{self.name} by {self.side}"


def stream_of(node: WScan | Receive) -> StreamRef:
    """The stream that a plan node reads."""
    return StreamRef(node.stream, node.side, isinstance(node, Receive))
