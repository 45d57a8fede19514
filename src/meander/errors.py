"""Every error that a user can cause.

One root class. An error tells what is wrong, where, and what to do (`hint`); an error in a query carries a
`Span` of the text and prints that part of it underlined.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a query's text."""

    start: int
    end: int


class MeanderError(Exception):
    """The root of all errors that Meander raises on purpose: what is wrong, and a hint how to fix it.

    `str(error)` has the hint on a line of its own. `exit_status` is the exit status of the command.
    """

    exit_status = 1

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class QueryError(MeanderError):
    """A query that cannot be accepted: what is wrong, where in the text, a hint, and what would be accepted."""

    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        span: Span | None = None,
        hint: str = "",
        accepted: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.span = span
        self.accepted = accepted

    def __str__(self) -> str:
        parts = [_printable(self.message)]
        if self.span is not None and self.text:
            parts.append(mark(self.text, self.span))
        if self.accepted:
            parts.append("accepted here: " + ", ".join(self.accepted))
        if self.hint:
            parts.append("hint: " + _printable(self.hint))
        return "\n".join(parts)


class ArgumentError(MeanderError):
    """An argument or option that cannot be used."""

    exit_status = 2


class InputError(MeanderError):
    """A file or stream that cannot be read at all (a row that cannot be used is a reject, not an error)."""


class OutputError(MeanderError):
    """An output, a checkpoint or a temporary file that cannot be written."""


class SparkError(MeanderError):
    """Spark is missing, is not supported, does not start, or fails."""


class StateError(MeanderError):
    """A snapshot or checkpoint that does not belong to this query, or cannot be read."""


class MemoryBudgetError(MeanderError):
    """The operators' state reached the memory budget; names the operator and its size."""


class StalledError(MeanderError):
    """An operator that asks for more room and makes no progress with it: a defect, never a silent loop."""


def mark(text: str, span: Span, *, width: int = 100) -> str:
    """The line of `text` on which `span` begins, with its number, and the span underlined.

    A tab is shown as four spaces and a wide character takes two columns, so that the carets stand under
    the span. A line longer than `width` characters is shortened to the part around the span. Of a span
    over several lines the part on its first line is underlined. An empty span has one caret.
    """
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)].rstrip()
    number = text.count("\n", 0, start) + 1
    column = min(start - line_start, len(line))
    stop = max(column, min(span.end - line_start, len(line)))

    left = max(0, min(column - width // 3, len(line) - width))
    right = min(len(line), left + width)
    before = ("…" if left else "") + _columns(line[left:column])
    marked = _columns(line[column : min(stop, right)])
    after = _columns(line[min(stop, right) : right]) + ("…" if right < len(line) else "")
    gutter = f"{number:>4} | "
    indent = " " * (len(gutter) - 2) + "| " + " " * _shown_width(before)
    return f"{gutter}{before}{marked}{after}\n{indent}{'^' * max(1, _shown_width(marked))}"


def _columns(part: str) -> str:
    """The part as a terminal can show it: tabs as spaces, unprintable characters as `·`."""
    return "".join(character if character.isprintable() else "·" for character in part.replace("\t", " " * 4))


def _shown_width(part: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in part)


def _printable(message: str) -> str:
    """The message with control characters and unusual spaces, which a name may contain, as escapes."""
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in message
    )
