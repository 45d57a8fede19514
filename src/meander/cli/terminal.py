"""Text for people: in color on a terminal, plain in a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from meander.errors import MeanderError

if TYPE_CHECKING:
    from meander.explain.sections import Section


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def print_sections(sections: Iterable[Section]) -> None:
    """An explanation on standard output."""
    # A run prints none, and does not wait for this import.
    from meander.explain.sections import Section, as_text

    if not is_terminal(sys.stdout):
        sys.stdout.write(as_text(sections))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for section in sections:
        if section.title:
            console.print(Text(section.title, style="bold underline"))
        text = Text(as_text([Section("", section.text)]))
        text.highlight_regex(r"[𝒲𝒫⋈σ∪]|#\d+ [A-Z]+\b", "bold cyan")
        text.highlight_regex(r"[├└│─]+", "dim")
        text.highlight_regex(r"(?m)^\*.*$", "bold green")
        text.highlight_regex(r"\^+$", "bold yellow")
        console.print(text)


def print_error(error: MeanderError) -> None:
    """An error on standard error: what is wrong, where, and what to do."""
    _print("error", "bold red", str(error))


def print_warning(message: str) -> None:
    _print("warning", "bold yellow", message)


def print_note(message: str) -> None:
    """A line of progress or advice, on standard error."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def _print(kind: str, style: str, message: str) -> None:
    if not is_terminal(sys.stderr):
        print_note(f"{kind}: {message}")
        return
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble((f"{kind}: ", style), message)
    text.highlight_regex(r"(?m)^hint: ", "bold")
    text.highlight_regex(r"(?m)^ *\|( *\^+)$", "bold red")
    Console(stderr=True, highlight=False, soft_wrap=True).print(text)
