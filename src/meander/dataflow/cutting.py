"""Cutting a batch into parts, so that the output of a part fits the processor's caches.

A part ends between two instants, so it is a batch like any other. Its size adapts to the output of the operators.
With paths, a part also ends before each deletion that may retract a path, and after an instant that is already open;
a row of a table deletes the one that it replaces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meander.dataflow.edges import Edges
from meander.dataflow.state import Array, Fields, Store
from meander.errors import StateError

NO_TIMES = np.zeros(0, np.int64)


class Part(NamedTuple):
    """Edges by stream, in order of time, and the time up to which no others come."""

    edges: dict[str, Edges]
    upto: int
    deletion: int | None  # the instant of the first deletion, if deletions may retract paths

    @property
    def rows(self) -> int:
        return sum(edges.rows for edges in self.edges.values())


@dataclass(frozen=True, slots=True)
class CutLimits:
    """The sizes of parts: fewer edges while operators emit more than `most_out` rows, more again below a fourth."""

    first: int = 1 << 11
    least: int = 16
    most: int = 1 << 20
    most_out: int = 250_000


class CutState(Fields):
    rows: int = 0  # of a part


class Cutter:
    limits = CutLimits()

    def __init__(self, store: Store, *, paths: bool, retracts_paths: bool, tables: Collection[str]) -> None:
        self.state = CutState(store, "cut")
        self.state.rows = self.limits.first
        self.paths = paths
        self.retracts_paths = retracts_paths
        self.tables = tables

    def cut(self, edges: Mapping[str, Edges], reached: int, upto: int | None) -> Iterator[Part]:
        """The parts of a batch that follows time `reached`; none if `upto` is None."""
        times = sorted_times(edges)
        if upto is None:
            return
        if upto < reached or (times.size and not reached <= times[0] <= times[-1] <= upto):
            given = f"edges from {times[0]} to {times[-1]}" if times.size else "no edges"
            raise StateError(
                f"{given} and time up to {upto} cannot follow the time {reached} that is reached",
                hint="Ingest puts edges in order",
            )
        if times.size <= self.state.rows and not self.paths:
            yield Part(dict(edges), upto, None)
            return
        deletions = self._deletions(edges)
        position = 0
        begin = dict.fromkeys(edges, 0)
        while True:
            bound = self._bound(times, position, deletions, reached, upto)
            part = {}
            for stream, rows in edges.items():
                end = int(np.searchsorted(rows.ts, bound, side="right"))
                whole = (begin[stream], end) == (0, rows.rows)
                part[stream] = rows if whole else rows.take(slice(begin[stream], end))
                begin[stream] = end
            position = int(np.searchsorted(times, bound, side="right"))
            yield Part(part, bound, min(self._deletions(part).tolist(), default=None))
            reached = bound
            if position == times.size and bound == upto:
                return

    def _bound(self, times: Array, position: int, deletions: Array, reached: int, upto: int) -> int:
        """The time at which the part ends that begins with `times[position]`."""
        last = position + self.state.rows - 1
        bound = int(times[last]) if last < times.size - 1 else upto
        if position < times.size:
            later = deletions[np.searchsorted(deletions, times[position], side="right") :]
            bound = min([bound, *(later[:1] - 1).tolist()])
            if self.paths and times[position] == reached:
                bound = reached
        return bound

    def _deletions(self, edges: Mapping[str, Edges]) -> Array:
        """The instants of deletions, if a deletion may retract the path of a record; a row of a table may delete the
        one that it replaces."""
        if not self.retracts_paths:
            return NO_TIMES
        deleting = [
            rows.ts if stream in self.tables else rows.ts[rows.op < 0] for stream, rows in edges.items()
        ]
        return np.unique(np.concatenate([NO_TIMES, *deleting]))

    def adapt(self, rows_in: int, rows_out: int) -> None:
        """Choose the size of the next parts by the output of one."""
        limits, rows = self.limits, self.state.rows
        if rows_in == 0:
            return
        if rows_out > limits.most_out:
            self.state.rows = max(limits.least, min(rows, rows_in * limits.most_out // (2 * rows_out)))
        elif rows_out < limits.most_out // 4:
            self.state.rows = min(limits.most, max(rows, 2 * rows_in))


def sorted_times(edges: Mapping[str, Edges]) -> Array:
    """The times of all edges, in order."""
    times = [rows.ts for rows in edges.values()]
    return times[0] if len(times) == 1 else np.sort(np.concatenate([NO_TIMES, *times]), kind="stable")
