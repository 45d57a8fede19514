"""Every error that a user can cause.

One root class. An error says what was wrong, where, and what to do; an error in a query carries a `Span`
of the text and prints that part of it underlined.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a query's text."""

    start: int
    end: int


class MeanderError(Exception):
    """The root of all errors that Meander raises on purpose; `exit_status` is the command's status."""

    exit_status = 1


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
        super().__init__(message)
        self.message = message
        self.text = text
        self.span = span
        self.hint = hint
        self.accepted = accepted

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None and self.text:
            parts.append(mark(self.text, self.span))
        if self.accepted:
            parts.append("accepted here: " + ", ".join(self.accepted))
        if self.hint:
            parts.append("hint: " + self.hint)
        return "\n".join(parts)


class ArgumentError(MeanderError):
    """An argument or option that cannot be used."""

    exit_status = 2


class InputError(MeanderError):
    """A file or stream that cannot be read at all (a row that cannot be used is a reject, not an error)."""


class StateError(MeanderError):
    """A snapshot or checkpoint that does not belong to this query, or cannot be read."""


class MemoryBudgetError(MeanderError):
    """The operators' state reached the memory budget; names the operator and its size."""


def mark(text: str, span: Span, *, width: int = 100) -> str:
    """The line of `text` that holds `span`, with its number, and the span underlined.

    A line longer than `width` is cut to the part around the span.
    """
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    if line_end < 0:
        line_end = len(text)
    number = text.count("\n", 0, start) + 1
    column = start - line_start
    length = max(1, min(span.end, line_end) - start)
    line = text[line_start:line_end].replace("\t", " ")
    left = max(0, column - width // 2) if len(line) > width else 0
    shown = line[left : left + width]
    before = "…" if left else ""
    after = "…" if left + width < len(line) else ""
    gutter = f"{number:>4} | "
    under = " " * (len(before) + column - left) + "^" * max(1, min(length, width - (column - left)))
    return f"{gutter}{before}{shown}{after}\n{' ' * (len(gutter) - 2)}| {under}"
