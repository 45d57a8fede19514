"""A section of the page, what it consists of, and how figures are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from meander.bench.results import Record, Results

Cells = list[str]
NONE = "–"


class Table(NamedTuple):
    """A table, its header first. All columns but the first are aligned to the right."""

    title: str
    rows: list[Cells]

    def markdown(self) -> str:
        header, *lines = self.rows
        rule = ["---"] + ["---:"] * (len(header) - 1)
        rows = "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *lines])
        return f"**{self.title}**\n\n{rows}"


class Plot(NamedTuple):
    """A picture in a file of its own."""

    name: str
    about: str
    svg: str


@dataclass
class Section:
    """What one experiment shows: text, tables and plots in their order, and its results in brief.

    `findings` and `limits` are sentences that are taken from the figures; `limits` are about where another
    choice is better.
    """

    title: str
    about: str
    parts: list[Table | Plot | str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)


Maker = Callable[[Results], Section | None]
"""Makes the section of an experiment; None where nothing of it was measured."""


@dataclass(frozen=True)
class Graph:
    """A graph on which an experiment was made."""

    name: str
    about: str
    dense: bool


def graphs(results: Results, experiment: str) -> list[Graph]:
    return list(
        dict.fromkeys(
            Graph(record["data"], record["about"], record["dense"]) for record in results.of(experiment)
        )
    )


def records(
    results: Results, experiment: str, kind: str | None = None, graph: Graph | None = None
) -> Iterator[Record]:
    """The measurements of an experiment that did not fail."""
    for record in results.of(experiment):
        if (
            "failure" not in record
            and (kind is None or record["kind"] == kind)
            and (graph is None or record["data"] == graph.name)
        ):
            yield record


def variants(record: Record) -> dict[str, dict[str, Any]]:
    """The variants of a record that did not fail, by name."""
    measured: dict[str, dict[str, Any]] = record["result"]["variants"]
    return {name: variant for name, variant in measured.items() if "failure" not in variant}


def rate(measured: dict[str, Any] | None) -> float:
    """Edges per second."""
    return 0.0 if measured is None else measured["edges"] / max(measured["seconds"], 1e-9)


def shown_rate(measured: dict[str, Any] | None) -> str:
    return NONE if measured is None else f"{rate(measured):,.0f}"


def shown_p99(measured: dict[str, Any] | None) -> str:
    return NONE if measured is None or measured["p99"] is None else milliseconds(measured["p99"])


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def times(ratio: float) -> str:
    """A ratio, with as many digits as matter."""
    return f"{ratio:,.0f}" if ratio >= 20 else f"{ratio:,.1f}" if ratio >= 2 else f"{ratio:.2f}"


def span(values: Sequence[float], show: Callable[[float], str] = times) -> str:
    """The least and the greatest: "2 to 7"; a single value if they look alike."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def edges_of(measured: Sequence[Record]) -> str:
    """The numbers of edges that records are of."""
    numbers = sorted({record["result"]["edges"] for record in measured})
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
