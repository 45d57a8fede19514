"""The instant that is still open, and where it was split into parts.

In `changes` mode an answer that holds at the end of a part of the input is emitted, and a later part of the same
instant may delete it; its `-` is emitted once that instant is over. So what has been emitted within the open instant
follows from its edges and from where they were split. Without a deletion the split has no effect: what held at its
end still holds. A cell's head therefore records each split of the open instant that a deletion follows, as the
number of edges of each stream before it, and a rebuild processes the instant in the same parts. A query that is added
starts between two parts, with what holds then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from meander.dataflow.edges import Edges
from meander.physical.plan import Result
from meander.spark.cell.manifest import Head


def note_part(head: Head, edges: Mapping[str, Edges], time: int) -> None:
    """Record a part of the input, after which time has advanced to `time`."""
    if time > head.time:
        head.time, head.open_rows, head.splits, head.added = time, {}, [], []
    last = {stream: some.take(slice(first_at(some, time), None)) for stream, some in edges.items()}
    if head.open_rows and any((some.op < 0).any() for some in last.values()):
        head.splits.append(dict(head.open_rows))
    for stream, some in last.items():
        if some.rows:
            head.open_rows[stream] = head.open_rows.get(stream, 0) + some.rows


def note_added(head: Head, results: Iterable[Result]) -> None:
    """Record that results are added before the next part."""
    for one in results:
        if head.splits[-1:] != [head.open_rows]:
            head.splits.append(dict(head.open_rows))
        head.added.append((one.query, one.head, len(head.splits)))


def parts_of(head: Head, edges: Mapping[str, Edges]) -> Iterator[dict[str, Edges]]:
    """The last edges of a cell in the order of time, split where the open instant was.

    Of the instant's edges there may be fewer than were recorded: the first are part of a snapshot.
    """
    begin = dict.fromkeys(edges, 0)
    for split in head.splits:
        end = {}
        for stream, some in edges.items():
            later = head.open_rows.get(stream, 0) - split.get(stream, 0)
            end[stream] = max(some.rows - later, first_at(some, head.time))
        yield {stream: some.take(slice(begin[stream], end[stream])) for stream, some in edges.items()}
        begin = end
    yield {stream: some.take(slice(begin[stream], None)) for stream, some in edges.items()}


def first_at(edges: Edges, time: int) -> int:
    """The position of the first edge at `time` or later."""
    return int(np.searchsorted(edges.ts, time))
