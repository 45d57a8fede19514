"""Streams as values: what the scans of a plan read, whole or hash-partitioned over cells."""

from __future__ import annotations

from dataclasses import dataclass

from meander.algebra.nodes import Receive, Share, Side, WScan
from meander.syntax.values import Property

SIDES: tuple[Side, ...] = ("src", "trg")


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream that a plan reads.

    With a `share` each cell reads only the edges that it has by it. A `derived` stream has the tuples that an earlier
    stage derives; the others come from outside.
    """

    name: str
    share: Share | None = None
    derived: bool = False

    @property
    def key(self) -> str:
        """A name that differs from those of other streams of a plan: by it a dataflow gets the stream's edges."""
        if self.share is None:
            return self.name
        return f"{self.name} by {share_key(self.share)}"


def share_key(share: Share) -> str:
    """A short text that differs from those of other shares of a run."""
    slices = (f"{part.side} {part.heavy} {part.size}/{part.stride}" for part in share.slices)
    return f"{', '.join(slices)} of {share.cells}"


@dataclass(frozen=True, slots=True)
class LabelClass:
    """Edges, or vertex tuples, with a label; None: with any."""

    label: str | None
    vertex: bool = False


@dataclass(frozen=True, slots=True)
class ClassUse:
    """The properties that a query reads of the rows of a class, and those by which it matches their deletions: all
    that it names on the stream."""

    of: LabelClass
    read: tuple[str, ...]
    named: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """What a run reads of a stream beside src, label, trg, ts and op: properties, and perhaps vertex tuples.

    Without `vertices` a row that has no `trg` is rejected. The rows of a `table` hold until they are replaced, and
    need no `ts`. Those of `tuples` are records of answers: they hold until their `exp`, may have their properties in
    one field, `properties`, and an `answer` of one vertex is a vertex tuple. A value that is not of its type rejects
    a row of which the property is read: `uses` says of which, and without any it is read of all rows.
    """

    properties: tuple[Property, ...] = ()
    vertices: bool = False
    table: bool = False
    tuples: bool = False
    uses: tuple[ClassUse, ...] = ()


PLAIN = StreamSchema()


def stream_of(node: WScan | Receive) -> StreamRef:
    """The stream that a plan node reads."""
    return StreamRef(node.stream, node.share, isinstance(node, Receive))
