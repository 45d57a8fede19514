"""Ingest: edges of one or more streams, put into order of event time.

Each stream has a clock, the greatest time seen on it minus the lateness that is allowed; an edge behind its
stream's clock is too late. The frontier (watermark) is the least clock of the open streams, and everything up to it
is released: sorted by time, edges of equal time in order of arrival. Whether an edge is too late depends on the
edges before it alone, not on how the stream was divided into chunks.

With `max_jump` an edge further ahead than that of its stream's greatest time so far is rejected, and does not count
for the greatest time; the first edge of a stream is never too far ahead. Without it, a jump of more than a thousand
windows is reported, once per stream: every edge that belongs before it will be too late.

Waiting edges are a list of runs, each sorted by time, in order of arrival. A release takes the front of every
run and merges these; so an edge is copied when it is released, not while it waits. A chunk that arrives in
order, with no lateness allowed, passes through without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from meander.dataflow.edges import (
    INFINITY,
    Edges,
    Reason,
    Reject,
    Text,
    by_time,
    concat_edges,
    frozen,
    reject_edge,
)
from meander.dataflow.property_columns import pack_columns, unpack_columns
from meander.errors import ArgumentError, StateError
from meander.kernels.clocks import advance_clock
from meander.kernels.jit import Array

NOTHING_SEEN = -1

SUSPICIOUS_WINDOWS = 1000
"""A jump of more windows than this is reported."""


class Jump(NamedTuple):
    """An edge whose time is suspiciously far ahead of the greatest time before it."""

    edge: Reject
    ts: int
    before: int


class Verdict(NamedTuple):
    """Of some edges: their stream's greatest time after each, `clock` before the first, and which are rejected."""

    reached: Array
    clock: int
    ahead: Array
    late: Array

    @property
    def usable(self) -> Array:
        usable: Array = ~(self.ahead | self.late)
        return usable


@dataclass
class Stream:
    """One stream's clock and the edges of it that wait, as sorted runs in order of arrival."""

    is_open: bool = True
    greatest: int = NOTHING_SEEN
    runs: list[Edges] = field(default_factory=list)


class Ingest:
    """Receives edges as they arrive, and releases them in order; rejects those that are too late."""

    def __init__(
        self,
        streams: Sequence[str],
        *,
        lateness: int = 0,
        max_jump: int | None = None,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        """`windows` has the longest window of each stream, for jumps to be reported."""
        if lateness < 0:
            raise ArgumentError(
                f"a lateness of {lateness} is negative", hint="--lateness is a duration, such as 5m"
            )
        self.lateness = lateness
        self.max_jump = max_jump
        self.suspicious = (
            {name: SUSPICIOUS_WINDOWS * window for name, window in (windows or {}).items()}
            if max_jump is None
            else {}
        )
        self._jumps: list[Jump] = []
        self.streams = {name: Stream() for name in streams}
        self.frontier = NOTHING_SEEN
        """Everything up to here has been released."""

    @property
    def held(self) -> int:
        """How many edges wait."""
        return sum(run.rows for stream in self.streams.values() for run in stream.runs)

    def push(self, name: str, edges: Edges) -> list[Reject]:
        """Add edges of a stream in order of arrival; returns those that are too late or jump ahead."""
        stream = self._stream(name)
        if edges.rows == 0:
            return []
        ts = edges.ts
        in_order = bool((ts[1:] >= ts[:-1]).all())
        floor = max(self.frontier, stream.greatest - self.lateness)
        clock = stream.greatest if stream.greatest >= 0 else int(ts[0])
        limit = self.suspicious.get(name, INFINITY) if self.max_jump is None else self.max_jump
        if in_order and ts[0] >= floor and ts[-1] - clock <= limit:
            stream.greatest = max(stream.greatest, int(ts[-1]))
            stream.runs.append(edges.without_origin())
            return []
        verdict = self.judge(ts, stream.greatest)
        rejects = self.reject(name, edges, verdict)
        stream.greatest = int(verdict.reached[-1])
        if rejects:
            edges = edges.take(verdict.usable)
        self.admit(name, edges)
        return rejects

    def judge(self, ts: Array, clock: int) -> Verdict:
        """Which edges of these times are too late or jump ahead, where `clock` is their stream's greatest time."""
        reached = self.clocks(ts, clock)
        ahead = ts > reached
        late = ~ahead & ((ts < reached - self.lateness) | (ts < self.frontier))
        return Verdict(reached, clock, ahead, late)

    def reject(self, name: str, edges: Edges, verdict: Verdict) -> list[Reject]:
        """The rejects among some edges; a suspicious jump among them is noted."""
        rejects = [
            reject_edge(edges, int(row), name, Reason.JUMPS_AHEAD if verdict.ahead[row] else Reason.TOO_LATE)
            for row in np.flatnonzero(~verdict.usable)
        ]
        if self.max_jump is None:
            self._look_for_jump(name, edges, verdict)
        return rejects

    def admit(self, name: str, edges: Edges) -> None:
        """Add edges that are usable."""
        if edges.rows:
            self._stream(name).runs.append(by_time(edges.without_origin()))

    def clocks(self, ts: Array, clock: int) -> Array:
        """The greatest time after each of these edges, those that jump ahead left out; `clock` is the one before."""
        reached = np.empty(ts.size, np.int64)
        limit = INFINITY if self.max_jump is None else self.max_jump
        advance_clock(np.array(ts, np.int64), clock, limit, reached)
        return reached

    def is_suspicious(self, name: str, jump: int) -> bool:
        """Whether a jump of this size on a stream is to be reported."""
        return jump > self.suspicious.get(name, INFINITY)

    def take_jumps(self) -> list[Jump]:
        """The suspicious jumps that have not been reported yet."""
        jumps, self._jumps = self._jumps, []
        return jumps

    def _look_for_jump(self, name: str, edges: Edges, verdict: Verdict) -> None:
        """Note the first jump of more than a thousand windows; later jumps of the stream are not reported."""
        if name not in self.suspicious:
            return
        before = np.concatenate([[verdict.clock], verdict.reached[:-1]])
        jumps = np.flatnonzero((before >= 0) & (edges.ts - before > self.suspicious[name]))
        if jumps.size:
            row = int(jumps[0])
            edge = reject_edge(edges, row, name, Reason.JUMPS_AHEAD)
            self._jumps.append(Jump(edge, int(edges.ts[row]), int(before[row])))
            del self.suspicious[name]

    def close(self, name: str) -> None:
        """The stream has ended, or is silent: it no longer holds the others back."""
        self._stream(name).is_open = False

    def open(self, name: str) -> None:
        """A silent stream has edges again: the frontier waits for it from now on."""
        self._stream(name).is_open = True

    def release(self) -> tuple[dict[str, Edges], int | None]:
        """The edges up to the frontier, for each stream that has any, and the frontier (None: nothing known yet).

        With all streams closed that is everything, and the frontier is `INFINITY`.
        """
        reached = self._reached()
        if reached is not None:
            self.frontier = max(self.frontier, reached)
        released = {}
        for name, stream in self.streams.items():
            ready, stream.runs = _split_runs(stream.runs, self.frontier)
            if ready:
                released[name] = by_time(concat_edges(ready))
        return released, None if self.frontier < 0 else self.frontier

    def _reached(self) -> int | None:
        """The least clock of the open streams; None if one of them has had no edge."""
        waiting = [stream.greatest for stream in self.streams.values() if stream.is_open]
        if not waiting:
            return INFINITY
        return None if NOTHING_SEEN in waiting else min(waiting) - self.lateness

    def _stream(self, name: str) -> Stream:
        if name not in self.streams:
            raise ArgumentError(
                f"there is no stream {name}", hint="the query's streams are " + ", ".join(self.streams)
            )
        return self.streams[name]

    def snapshot(self) -> dict[str, Array]:
        """Clocks and waiting edges as plain arrays, by name."""
        streams = list(self.streams.values())
        arrays = {
            "greatest": np.array([stream.greatest for stream in streams], np.int64),
            "open": np.array([stream.is_open for stream in streams], np.bool_),
            "frontier": np.array([self.frontier], np.int64),
        }
        for number, stream in enumerate(streams):
            if not stream.runs:
                continue
            edges = by_time(concat_edges(stream.runs))
            arrays |= {f"{number}.ts": edges.ts.copy(), f"{number}.op": edges.op.copy()}
            if edges.properties is not None:
                arrays[f"{number}.properties"] = pack_columns(edges.properties)
            if edges.vertex is not None:
                arrays[f"{number}.vertex"] = edges.vertex.copy()
            for column, text in (("src", edges.src), ("label", edges.label), ("trg", edges.trg)):
                data, offsets = text.packed()
                arrays |= {
                    f"{number}.{column}.data": data,
                    f"{number}.{column}.offsets": offsets,
                    f"{number}.{column}.kind": text.kind.copy(),
                }
        return arrays

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore a snapshot of an ingest of the same streams."""
        if "greatest" not in arrays or arrays["greatest"].size != len(self.streams):
            raise StateError("the snapshot of the ingest is of other streams than this query's")
        self.frontier = int(arrays["frontier"][0])
        for number, stream in enumerate(self.streams.values()):
            stream.greatest = int(arrays["greatest"][number])
            stream.is_open = bool(arrays["open"][number])
            if f"{number}.ts" not in arrays:
                stream.runs = []
                continue
            names = []
            for column in ("src", "label", "trg"):
                data, offsets, kind = (
                    np.array(arrays[f"{number}.{column}.{part}"]) for part in ("data", "offsets", "kind")
                )
                names.append(Text(frozen(data), offsets[:-1], offsets[1:], kind))
            src, label, trg = names
            properties, vertex = arrays.get(f"{number}.properties"), arrays.get(f"{number}.vertex")
            edges = Edges(
                src=src,
                label=label,
                trg=trg,
                ts=np.array(arrays[f"{number}.ts"]),
                op=np.array(arrays[f"{number}.op"]),
                properties=None if properties is None else unpack_columns(properties),
                vertex=None if vertex is None else np.array(vertex),
            )
            stream.runs = [edges] if edges.rows else []


def _split_runs(runs: list[Edges], frontier: int) -> tuple[list[Edges], list[Edges]]:
    """The part of the runs up to the frontier, and the part that waits."""
    ready: list[Edges] = []
    waiting: list[Edges] = []
    for run in runs:
        count = int(np.searchsorted(run.ts, frontier, side="right"))
        if count:
            ready.append(run if count == run.rows else run.take(slice(None, count)))
        if count < run.rows:
            waiting.append(run if count == 0 else run.take(slice(count, None)))
        # Runs of like size are merged, so that many small chunks leave few runs, and no edge is moved often.
        while len(waiting) > 1 and waiting[-2].rows < 2 * waiting[-1].rows:
            waiting[-2:] = [by_time(concat_edges(waiting[-2:]))]
    return ready, waiting
