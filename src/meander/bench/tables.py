"""A report of measurements in three shapes: tables in the terminal, Markdown for the docs, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meander.bench.hardware import sentence
from meander.bench.measurement import Measurement
from meander.bench.workloads import Workload
from meander.errors import ArgumentError
from meander.syntax.durations import format_duration

PEERS = ("Pathway", "DuckDB")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
VALUES_MARKS = "<!-- measured with values: begin -->", "<!-- measured with values: end -->"
SPARK_MARKS = "<!-- measured on Spark: begin -->", "<!-- measured on Spark: end -->"

Sections = Sequence[tuple[str, list[list[str]]]]


@dataclass(frozen=True)
class Comparison:
    """A peer, and Meander on exactly the edges that the peer processed; their answers agreed at `slides` slides."""

    peer: Measurement
    own: Measurement
    slides: int

    def times(self, clock: str) -> float:
        """Meander's rate as a multiple of the peer's."""
        return self.own.rate(clock) / self.peer.rate(clock)


@dataclass
class Row:
    """All measurements of one workload. `fault` describes what went wrong, if anything did."""

    workload: Workload
    edges: int
    own: Measurement | None = None
    peers: dict[str, Comparison] = field(default_factory=dict)
    fault: str = ""


@dataclass
class Report:
    """A run of the benchmark."""

    machine: dict[str, str | int]
    window: int
    slide: int
    path_operator: str
    clock: str
    command: str
    rows: list[Row] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "window_seconds": self.window,
            "slide_seconds": self.slide,
            "path_operator": self.path_operator,
            "clock": self.clock,
            "command": self.command,
            "workloads": [_row_as_dict(row, self.clock) for row in self.rows],
        }

    def sections(self) -> list[tuple[str, list[list[str]]]]:
        """For each data set a title and a table, the header first."""
        peers = [name for name in PEERS if any(name in row.peers for row in self.rows)]
        by_data: dict[str, tuple[str, list[list[str]]]] = {}
        for row in self.rows:
            data = row.workload.data
            if data.name not in by_data:
                title = (
                    f"{data.about}; window {format_duration(self.window)}, slide {format_duration(self.slide)}, "
                    f"path operator {self.path_operator}"
                )
                by_data[data.name] = (title, [self._header(peers)])
            by_data[data.name][1].append(self._cells(row, peers))
        return list(by_data.values())

    def _header(self, peers: Sequence[str]) -> list[str]:
        header = ["query", "edges", "Meander edges/s", "of that, reading", "p99 of a slide"]
        for peer in peers:
            header += [f"{peer} edges/s", "Meander, same edges", "times"]
        return header

    def _cells(self, row: Row, peers: Sequence[str]) -> list[str]:
        cells = [row.workload.query, f"{row.edges:,}"]
        if row.own is None:
            cells += ["–", "–", "–"]
        else:
            cells += [
                _rate(row.own, row.edges, self.clock),
                _input_share(row.own),
                _milliseconds(row.own.p99),
            ]
        for peer in peers:
            comparison = row.peers.get(peer)
            if comparison is None:
                cells += ["–", "–", "–"]
            else:
                rate = _rate(comparison.peer, row.edges, self.clock)
                same_edges = comparison.own.rate(self.clock)
                cells += [rate, f"{same_edges:,.0f}", f"{comparison.times(self.clock):,.1f}"]
        return cells

    def notes(self) -> list[str]:
        """What a reader of the tables should know."""
        clock = "wall time" if self.clock == "wall" else "processor time"
        notes = [
            f"Rates are edges of the query's labels by {clock}: for Meander from the file's bytes to answers, for "
            "the peers with the data loaded beforehand. A number in brackets is the number of edges that the "
            "engine processed in the time limit; Meander is then measured on the same edges too. If there are "
            "figures for a peer, the numbers of answers agreed.",
        ]
        notes += [
            f"{row.workload.data.name} {row.workload.query}: {row.fault}" for row in self.rows if row.fault
        ]
        return notes


def _rate(measured: Measurement, edges: int, clock: str) -> str:
    stopped = f" ({measured.edges:,})" if measured.edges < edges else ""
    return f"{measured.rate(clock):,.0f}{stopped}"


def _input_share(measured: Measurement) -> str:
    """The share of the time that reading the file took."""
    parts = measured.details.get("parts", {})
    spent = sum(parts.values())
    return f"{parts['read'] / spent:.0%}" if spent else "–"


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:,.1f} ms"


def _row_as_dict(row: Row, clock: str) -> dict[str, Any]:
    return {
        "data": row.workload.data.name,
        "query": row.workload.query,
        "edges": row.edges,
        "fault": row.fault or None,
        "meander": None if row.own is None else row.own.as_dict(),
        "peers": {
            name: {
                "peer": comparison.peer.as_dict(),
                "meander": comparison.own.as_dict(),
                "times": round(comparison.times(clock), 2),
                "slides_checked": comparison.slides,
            }
            for name, comparison in row.peers.items()
        },
    }


def print_report(report: Report) -> None:
    """The tables and notes on standard output."""
    print_sections(report.sections(), [sentence(report.machine), *report.notes()])


def print_sections(sections: Sections, notes: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    for title, (header, *lines) in sections:
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for column, name in enumerate(header):
            table.add_column(name, justify="left" if column == 0 else "right")
        for line in lines:
            table.add_row(*line)
        console.print(table)
    for note in notes:
        console.print(note, soft_wrap=True)


def as_markdown(report: Report) -> str:
    """The tables, the machine and the notes as Markdown."""
    parts = [sentence(report.machine), f"```\n{report.command}\n```"]
    return "\n\n".join([*parts, *sections_as_markdown(report.sections()), *report.notes()])


def sections_as_markdown(sections: Sections) -> list[str]:
    parts = []
    for title, (header, *lines) in sections:
        rule = ["---"] + ["---:"] * (len(header) - 1)
        rows = "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *lines])
        parts.append(f"**{title}**\n\n{rows}")
    return parts


def write_markdown(report: Report, path: Path) -> None:
    """Put the tables into a file."""
    write_between_marks(as_markdown(report), path, "# Benchmarks")


def write_between_marks(content: str, path: Path, title: str, marks: tuple[str, str] = (BEGIN, END)) -> None:
    """Write text between the two marks in a file, or create the file."""
    begin, end = marks
    replacement = f"{begin}\n\n{content}\n\n{end}"
    text = path.read_text(encoding="utf-8") if path.is_file() else f"{title}\n\n{begin}\n{end}\n"
    if begin not in text or end not in text:
        raise ArgumentError(
            f"{path} has no marks for the tables", hint=f"put the lines {begin} and {end} into it"
        )
    replaced = re.sub(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: replacement, text, flags=re.DOTALL)
    path.write_text(replaced, encoding="utf-8")


def write_json(report: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
