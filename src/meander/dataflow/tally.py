"""Counts of a run's input: how much was used, how much was not, and the first example of each reason.

Both runners keep a `Tally`, and both end with the same `summary` of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from meander.dataflow.edges import Edges, Reason, Reject
from meander.dataflow.ingest import SUSPICIOUS_WINDOWS, Jump
from meander.dataflow.layout import ANSWER_LABEL, EXPIRY, StreamLayout
from meander.dataflow.sources.registry import ENDINGS, file_format
from meander.dataflow.state import format_bytes
from meander.dataflow.tabular import Chunk
from meander.errors import InputError
from meander.syntax.durations import about_duration
from meander.syntax.values import ALL_PROPERTIES, ValueType

READABLE = (Reason.TOO_LATE, Reason.JUMPS_AHEAD)
"""The reasons why an edge that could be read is not used."""

WIDEST_TEXT = 120
FARTHEST_START = 1 << 30
"""For a message, lines are not counted up to a byte further into a file than this."""

TIMES = "times are integers, zero or more, in the unit that --time-unit names, or text of ISO 8601"
VALUES = (
    "a property has the type that the query declares, or the type of what it is compared with, as `meander explain` "
    "shows (1000 is INT, 1000.0 is FLOAT); without a value, leave it empty or null"
)
REQUIRED = (
    "every row has src, label, trg and ts; in streams with vertices one without trg is a vertex, and rows of a TABLE "
    "need no ts"
)

HINTS = {
    Reason.TOO_LATE: "--lateness DUR accepts edges that arrive up to DUR after a newer one; if the newer one's time "
    "is wrong, --max-jump DUR rejects that one instead",
    Reason.JUMPS_AHEAD: "a longer --max-jump accepts it; --time-unit is s, ms or us",
    Reason.BAD_TIME: TIMES,
    Reason.NEGATIVE: TIMES,
    Reason.OUT_OF_RANGE: TIMES,
    Reason.BAD_OP: "op is + or -",
    Reason.BAD_VERTEX: "a vertex is a string or a 64-bit integer",
    Reason.BAD_LABEL: "a label is a string",
    Reason.NOT_UTF8: "text has to be UTF-8",
    Reason.NO_EDGE: "an answer of two vertices is an edge; one of a single vertex is a vertex tuple, with the label "
    f"{ANSWER_LABEL}, for a query with an atom such as NAME.{ANSWER_LABEL}(x)",
}


@dataclass
class Tally:
    """Counts of a run. `edges` are those that could be read, late ones and those that jump ahead included."""

    edges: int = 0
    answers: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    examples: dict[str, Reject] = field(default_factory=dict)
    values: dict[tuple[str, str], int] = field(default_factory=dict)
    """By stream and property that the run reads: the edges that had a value of it."""
    types: dict[tuple[str, str], ValueType] = field(default_factory=dict)

    @property
    def late(self) -> int:
        return self.reasons.get(Reason.TOO_LATE, 0)

    @property
    def rejected(self) -> int:
        """Rows that were not used for another reason than lateness."""
        return sum(self.reasons.values()) - self.late

    @property
    def rows(self) -> int:
        """All input, usable or not."""
        return self.edges + sum(count for reason, count in self.reasons.items() if reason not in READABLE)

    @property
    def used(self) -> int:
        return self.rows - sum(self.reasons.values())

    @property
    def properties_unseen(self) -> list[str]:
        """A sentence about each property that no edge has had."""
        return [
            f"no {self._usable_edge} of the stream {stream} had a value of {name}, which the query reads"
            for (stream, name), count in self.values.items()
            if not count
        ]

    @property
    def _usable_edge(self) -> str:
        """What a sentence about all edges calls one: rejected ones may have had what the others have not."""
        return "edge that could be used" if self.reasons else "edge"

    def unseen(self, labels: Sequence[str]) -> list[str]:
        """A sentence about the labels that no edge has had, if there are any, and about each such property; none
        without edges."""
        if not self.edges:
            return []
        sentence = f"no {self._usable_edge} had the label {' or '.join(labels)}, which the query reads"
        return [*([sentence] if labels else ()), *self.properties_unseen]

    def type_of(self, reject: Reject) -> ValueType | None:
        """The type as which the property is read that has a bad value; None for other rejects."""
        return self.types.get((reject.stream, reject.reason.removeprefix(Reason.bad_value(""))))

    def read_properties(self, layouts: Mapping[str, StreamLayout]) -> None:
        """The run reads these properties: none has had a value yet."""
        for stream, layout in layouts.items():
            self.types |= {(stream, name): kind for name, kind in layout.types.items()}
            for name in layout.named_properties:
                self.values.setdefault((stream, name), 0)

    def add_values(self, stream: str, edges: Edges) -> None:
        for name, count in value_counts(edges).items():
            self.values[stream, name] = self.values.get((stream, name), 0) + count

    def counting(self, stream: str, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The same chunks; the values of their properties are counted."""
        for chunk in chunks:
            self.add_values(stream, chunk[0])
            yield chunk

    def add_rejects(self, rejects: Sequence[Reject]) -> None:
        for reason, count in Counter(reject.reason for reject in rejects).items():
            self.add_reason(next(reject for reject in rejects if reject.reason == reason), count)

    def add_reason(self, first: Reject, count: int) -> None:
        """Count rejects of one reason; `first` is the first of them."""
        self.reasons[first.reason] = self.reasons.get(first.reason, 0) + count
        self.examples.setdefault(first.reason, first)

    def check_used(self) -> None:
        """Raise an error if there was input and nothing of it could be used."""
        if self.rows and not self.used:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())
            raise InputError(f"no row of the input could be used: {reasons}")


def summary(
    tally: Tally, seconds: float, state_bytes: int, *, resumed: bool = False, rejects_kept: bool = False
) -> list[str]:
    """The last lines of a run: the first example of each reason with a hint, then the figures."""
    lines = []
    for reason, first in tally.examples.items():
        lines.append(reason_line(tally, reason))
        hint = hint_for(first, tally.type_of(first))
        lines += [f"hint: {hint}"] if hint else []
    if tally.examples and not rejects_kept:
        lines.append("hint: --rejects FILE.jsonl keeps all of them, each with its reason and its text")
    since = "since this run resumed: " if resumed else ""
    return [*lines, since + figures_line(tally, seconds, state_bytes)]


def reason_line(tally: Tally, reason: str) -> str:
    """How many rows were rejected for a reason, and the first of them."""
    count, first = tally.reasons[reason], tally.examples[reason]
    kind = tally.type_of(first)
    read_as = "" if kind is None else f", which is read as {kind}"
    which = "the first in " if count > 1 else "in "
    noun = counted(count, "edge" if reason in READABLE else "row")
    return f"{reason}{read_as}: {noun}, {which}{position_of(first)}: {printable(first.text)}"


def rejects_summary(tally: Tally, hint: str) -> list[str]:
    """The message for a run that keeps no rejects: their number, and the first of each reason; none without any."""
    rejected = sum(tally.reasons.values())
    if not rejected:
        return []
    reasons = "; ".join(reason_line(tally, reason) for reason in tally.examples)
    return [f"{counted(rejected, 'row')} of the input could not be used: {reasons}\nhint: {hint}"]


def figures_line(tally: Tally, seconds: float, state_bytes: int) -> str:
    rate = round(tally.edges / max(seconds, 1e-9))
    per_second = f" ({rate:,}/s)" if rate else ""
    return (
        f"{counted(tally.edges, 'edge')}{per_second}, {tally.late:,} late, {tally.rejected:,} rejected, "
        f"{counted(tally.answers, 'answer')}, {format_bytes(state_bytes)} of state, {seconds:.1f} s"
    )


def jump_message(jump: Jump, unit: str) -> str:
    """The warning about a time that is suspiciously far ahead."""
    return (
        f"the time of stream {jump.edge.stream} jumps from {jump.before} to {jump.ts}, "
        f"{about_duration(jump.ts - jump.before, unit)} and more than {SUSPICIOUS_WINDOWS:,} windows ahead, in "
        f"{position_of(jump.edge)}: {printable(jump.edge.text)}\n"
        "hint: edges of earlier times are too late from here on; --max-jump DUR rejects an edge that is further ahead"
    )


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 edge, 2,000 edges."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def hint_for(reject: Reject, kind: ValueType | None = None) -> str:
    """How to avoid rejects such as this one; `kind` is the type as which a property with a bad value is read."""
    if reject.reason.startswith(Reason.bad_value("")):
        name = reject.reason.removeprefix(Reason.bad_value(""))
        declaration = (
            f"STREAM {reject.stream} ({name} FLOAT) …, in G-CORE ON {reject.stream} ({name} FLOAT) …"
        )
        return VALUES + (
            f"; for numbers with fractions declare {declaration}" if kind is ValueType.INT else ""
        )
    if reject.reason.startswith(Reason.missing("")):
        return REQUIRED
    if reject.reason not in (Reason.MISSING, Reason.UNPARSABLE):
        return HINTS.get(reject.reason, "")
    path = Path(reject.path)
    if path.name.endswith(ENDINGS):
        return file_format(path).hint_for_row(reject.text)
    return "an edge has src, label, trg, ts and perhaps op"


def value_counts(edges: Edges) -> dict[str, int]:
    """By property the number of edges that have a value of it."""
    columns = edges.properties or {}
    hidden = (EXPIRY.name, ALL_PROPERTIES.name)
    return {name: len(column) - column.null_count for name, column in columns.items() if name not in hidden}


def position_of(reject: Reject) -> str:
    """The position of a row in the input, as exactly as it is known."""
    if not reject.line:
        return f"stream {reject.stream}"
    if not reject.path:
        return f"row {reject.line:,} of stream {reject.stream}"
    if reject.path.endswith(".parquet"):
        return f"row {reject.line:,} of {reject.path}"
    before = lines_before(reject.path, reject.start)
    if before is None:
        return f"line {reject.line:,} after byte {reject.start} of {reject.path}"
    return f"line {before + reject.line:,} of {reject.path}"


def lines_before(path: str, start: int) -> int | None:
    """The number of lines of a file that end before a byte; None if that is too far, or the file is gone."""
    if start > FARTHEST_START:
        return None
    lines = 0
    if start == 0:
        return lines
    try:
        with open(path, "rb") as file:
            while start > 0 and (block := file.read(min(start, 1 << 20))):
                lines += block.count(b"\n")
                start -= len(block)
    except OSError:
        return None
    return lines


def printable(text: str) -> str:
    """The text on one line: control characters as escapes, and cut off if it is long."""
    shown = text if len(text) <= WIDEST_TEXT else text[:WIDEST_TEXT] + "…"
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in shown
    )
