"""The measurement of an engine on a workload, and the comparison of two engines' answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from meander.errors import MeanderError


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

    @property
    def rate(self) -> float:
        """Edges per second of wall time."""
        return self.edges / max(self.seconds, 1e-9)

    def as_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "version": self.version,
            "edges": self.edges,
            "seconds": round(self.seconds, 6),
            "cpu_seconds": round(self.cpu_seconds, 6),
            "p99": None if self.p99 is None else round(self.p99, 6),
            **self.details,
        }


def check_equal(what: str, sample: Measurement, other: Measurement) -> int:
    """Compare the answers of two engines at every slide that `sample` counted; returns the number of those slides.

    `other` may have counted only at slides where its answers changed: its last count holds in between. A benchmark of
    wrong answers is worthless, so a difference is an error.
    """
    changes = sorted(other.counts.items())
    at = -1
    for slide, expected in sorted(sample.counts.items()):
        while at + 1 < len(changes) and changes[at + 1][0] <= slide:
            at += 1
        count = changes[at][1] if at >= 0 else 0
        if count != expected:
            raise BenchError(
                f"{what}: at the end of slide {slide}, {sample.engine} has {expected} answers and "
                f"{other.engine} {count}",
                hint="one of them is wrong: nothing is reported for this query",
            )
    return len(sample.counts)
