"""How a run is going, on standard error: a line that rewrites itself on a terminal, and a summary at the end."""

from __future__ import annotations

import sys
import time

from meander.cli.terminal import is_terminal, print_note
from meander.dataflow.state import format_bytes

_BETWEEN = 0.25


class Progress:
    """Figures of a run in motion."""

    def __init__(self) -> None:
        self.shown = is_terminal(sys.stderr)
        self.begun = time.monotonic()
        self.last = self.begun
        self.edges = self.answers = self.rejects = self.state = 0

    def add(self, edges: int = 0, answers: int = 0, rejects: int = 0, state: int | None = None) -> None:
        """Take what is new since the last time; `state` is what is held now, in bytes."""
        self.edges += edges
        self.answers += answers
        self.rejects += rejects
        self.state = self.state if state is None else state
        now = time.monotonic()
        if self.shown and now - self.last >= _BETWEEN:
            self.last = now
            sys.stderr.write(f"\r{self._line(now)}\x1b[K")
            sys.stderr.flush()

    def finish(self) -> None:
        """The summary."""
        self.clear()
        print_note(self._line(time.monotonic()))

    def clear(self) -> None:
        """Take the moving line away, before something else is written."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _line(self, now: float) -> str:
        seconds = max(now - self.begun, 1e-9)
        rejected = f"{self.rejects:,} rejected, " if self.rejects else ""
        return (
            f"{self.edges:,} edges ({self.edges / seconds:,.0f}/s), {rejected}{self.answers:,} answers, "
            f"{format_bytes(self.state)} of state, {seconds:.1f} s"
        )
