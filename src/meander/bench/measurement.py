"""What one engine did on one workload, and when two of them disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from meander.errors import MeanderError

CLOCKS = ("wall", "cpu")


class BenchError(MeanderError):
    """A benchmark that cannot be trusted or cannot be run: engines disagree, or one of them failed."""


@dataclass(frozen=True)
class Measurement:
    """One run of one engine over the first `edges` edges of a workload.

    `counts` has the number of answers at the end of a slide, by the slide's number: at every slide, at those where it
    changed (Pathway), or at a sample (Meander).
    """

    engine: str
    edges: int
    seconds: float
    cpu_seconds: float
    counts: Mapping[int, int]
    p99: float | None = None  # of a slide, in seconds
    version: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def rate(self, clock: str = "wall") -> float:
        """Edges per second, by wall time or by processor time."""
        return self.edges / max(self.cpu_seconds if clock == "cpu" else self.seconds, 1e-9)

    def as_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "version": self.version,
            "edges": self.edges,
            "seconds": round(self.seconds, 4),
            "cpu_seconds": round(self.cpu_seconds, 4),
            "edges_per_second": round(self.rate(), 1),
            "p99_of_a_slide_seconds": None if self.p99 is None else round(self.p99, 6),
            **self.details,
        }


def check_equal(what: str, one: Measurement, other: Measurement) -> int:
    """Hold the answers of two engines against each other at every slide that `one` counted; how many those are.

    `other` may have counted only where its answers changed: in between, its last count stands. A benchmark of wrong
    answers is worthless, so a difference is an error.
    """
    changes = sorted(other.counts.items())
    at = -1
    for slide, count in sorted(one.counts.items()):
        while at + 1 < len(changes) and changes[at + 1][0] <= slide:
            at += 1
        found = changes[at][1] if at >= 0 else 0
        if found != count:
            raise BenchError(
                f"{what}: at the end of slide {slide}, {one.engine} has {count} answers and {other.engine} {found}",
                hint="one of them is wrong: nothing is reported for this query",
            )
    return len(one.counts)
