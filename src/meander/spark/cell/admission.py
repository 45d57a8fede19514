"""Which of the edges that a cell receives it may use, by the summaries of all chunks.

Every cell gets the same summaries in the same order, so each computes the same clocks and the same watermark as a
single cell does, and drops the same edges as too late or as jumping ahead. The judge of a chunk also rejects them,
and counts the chunk.

Chunks of a stream are taken in order of arrival. The partitions of an unordered stream have no order among each
other: each has a clock of its own for a batch, so that no edge is late that would not be late alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from meander.dataflow.edges import Array, Edges, Reason, by_time, concat_edges
from meander.dataflow.ingest import Ingest, Verdict
from meander.spark.cell.scatter import Summary
from meander.spark.columns import is_packed, unpack_arrivals, unpack_edges
from meander.spark.edge_codec import decode_edges, rejects_row
from meander.spark.messages import PARTITION_SHIFT, Chunk, Kind, Output, jump_row


class ChunkKey(NamedTuple):
    """A chunk among those of a batch."""

    stream: str
    position: int

    @property
    def partition(self) -> int:
        return self.position >> PARTITION_SHIFT


@dataclass
class Admission:
    """Takes the chunks of a batch of several cells into the ingest of the cell of this number."""

    ingest: Ingest
    number: int
    unordered: frozenset[str]
    judges: bool  # whether this cell rejects and counts: those of one stage do
    counts: Counter[str] = field(default_factory=Counter)
    values: Counter[tuple[str, str]] = field(default_factory=Counter)
    heard: set[str] = field(default_factory=set)  # the streams that had a chunk

    def take(self, chunks: Sequence[Chunk]) -> Iterator[Output]:
        """Admit the edges of all chunks, which are in order of their positions; emits rejects."""
        summaries, parts, arrivals = {}, dict[ChunkKey, list[bytes]](), {}
        for chunk in chunks:
            key = ChunkKey(chunk.stream, chunk.position)
            if chunk.kind == Kind.SUMMARY:
                summaries[key] = Summary.from_bytes(chunk.data)
            elif chunk.kind == Kind.EDGES:
                parts.setdefault(key, []).append(chunk.data)
            elif chunk.kind == Kind.ARRIVALS:
                arrivals[key] = chunk.data
        jumping = self._verdicts(summaries) if self.ingest.max_jump is not None else {}
        admitted: dict[str, list[Edges]] = {}
        before = {stream: clocks.greatest for stream, clocks in self.ingest.streams.items()}
        clocks: dict[tuple[str, int], int] = {}
        for key, summary in summaries.items():
            stream = self.ingest.streams[key.stream]
            self.heard.add(key.stream)
            clock = stream.greatest
            if key.stream in self.unordered:
                clock = clocks.get((key.stream, key.partition), before[key.stream])
            verdict = jumping.get(key)
            if verdict is None:
                clocks[key.stream, key.partition] = max(clock, summary.greatest)
                stream.greatest = max(stream.greatest, summary.greatest)
            floor = max(self.ingest.frontier, clock - self.ingest.lateness)
            for data in parts.get(key, ()):
                edges = usable_edges(data, floor, verdict)
                if edges.rows:
                    admitted.setdefault(key.stream, []).append(edges)
            if self.judges and summary.judge == self.number:
                self._count(key.stream, summary)
                yield from self._reject(key.stream, summary, clock, floor, verdict, arrivals[key])
        for name, edges_of in admitted.items():
            self.counts["edges"] += sum(edges.rows for edges in edges_of)
            self.ingest.admit(name, concat_edges(edges_of))

    def _count(self, stream: str, summary: Summary) -> None:
        self.counts["arrived"] += summary.rows
        for name in ("sent", "sent_to_all", "sent_rows"):
            self.counts[name] += getattr(summary, name)
        for name, count in summary.values.items():
            self.values[stream, name] += count

    def _reject(
        self, stream: str, summary: Summary, clock: int, floor: int, verdict: Verdict | None, arrivals: bytes
    ) -> Iterator[Output]:
        """Reject what cannot be used of a chunk as it was read, which is only looked at if there is any."""
        if verdict is None:
            jumps = [summary.step, summary.first - clock if clock >= 0 else 0]
            is_suspicious = self.ingest.is_suspicious(stream, max(jumps))
            if not summary.late and summary.least >= floor and not is_suspicious:
                return
        elif verdict.usable.all():
            return
        edges = unpack_arrivals(arrivals) if is_packed(arrivals) else decode_edges(arrivals)
        rejects = self.ingest.reject(stream, edges, verdict or self.ingest.judge(edges.ts, clock))
        late = sum(reject.reason == Reason.TOO_LATE for reject in rejects)
        self.counts["late"] += late
        self.counts["rejected"] += len(rejects) - late
        if rejects:
            yield rejects_row(rejects)
        yield from map(jump_row, self.ingest.take_jumps())

    def _verdicts(self, summaries: dict[ChunkKey, Summary]) -> dict[ChunkKey, Verdict]:
        """With `max_jump`, the verdict on each chunk by the times of all edges; the clocks advance."""
        verdicts: dict[ChunkKey, Verdict] = {}
        by_stream: dict[str, list[ChunkKey]] = {}
        for key in summaries:
            by_stream.setdefault(key.stream, []).append(key)
        for name, keys in by_stream.items():
            stream = self.ingest.streams[name]
            times = [as_times(summaries[key]) for key in keys]
            order = self._order_of_arrival(stream.greatest, keys, times) if name in self.unordered else None
            ts = np.concatenate(times)
            whole = self.ingest.judge(ts if order is None else ts[order], stream.greatest)
            if whole.reached.size:
                stream.greatest = int(whole.reached[-1])
            if order is not None:
                back = np.empty(order.size, np.int64)
                back[order] = np.arange(order.size)
                whole = Verdict(whole.reached[back], whole.clock, whole.ahead[back], whole.late[back])
            begin = 0
            for key, of_chunk in zip(keys, times, strict=True):
                rows = slice(begin, begin + of_chunk.size)
                clock = whole.clock if begin == 0 else int(whole.reached[begin - 1])
                verdicts[key] = Verdict(whole.reached[rows], clock, whole.ahead[rows], whole.late[rows])
                begin += of_chunk.size
        return verdicts

    def _order_of_arrival(self, clock: int, keys: Sequence[ChunkKey], times: Sequence[Array]) -> Array:
        """How the edges of partitions are merged: by the greatest time that each partition has reached."""
        reached = []
        last: dict[int, int] = {}
        for key, ts in zip(keys, times, strict=True):
            reached.append(self.ingest.clocks(ts, last.get(key.partition, clock)))
            last[key.partition] = int(reached[-1][-1])
        return np.argsort(np.concatenate(reached), kind="stable")


def as_times(summary: Summary) -> Array:
    assert summary.ts is not None, "a run with a greatest jump sends all times"
    return summary.ts


def usable_edges(data: bytes, floor: int, verdict: Verdict | None) -> Edges:
    """The edges of a part of a chunk, without those that are before `floor` or that the verdict rejects."""
    edges, row = unpack_edges(data)
    if verdict is not None:
        assert row is not None
        usable = verdict.usable[row]
        return edges if usable.all() else edges.take(usable)
    # They are in order of time.
    late = int(np.searchsorted(edges.ts, floor))
    return edges.take(slice(late, None)) if late else edges


def merged_tuples(chunks: Sequence[Chunk]) -> dict[str, Edges]:
    """The tuples that earlier stages have derived, by stream, in order of time."""
    parts: dict[str, list[Edges]] = {}
    for chunk in chunks:
        parts.setdefault(chunk.stream, []).append(decode_edges(chunk.data))
    return {stream: by_time(concat_edges(of_stream)) for stream, of_stream in parts.items()}
