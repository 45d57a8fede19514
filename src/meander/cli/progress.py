"""The progress of a run on standard error: a bar or a changing line on a terminal, otherwise a line now and then.

If the input is bounded, a bar shows the share that has been read and the time left. The run ends
with the summary of `meander.dataflow.tally`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from meander.cli.terminal import is_terminal, print_note

if TYPE_CHECKING:
    # It imports the kernels, which the message that a run starts does not wait for.
    from meander.dataflow.tally import Tally

BETWEEN_LINES = 10.0
MOST_BETWEEN_LINES = 600.0
"""Seconds between two lines without a terminal, at first and in a run of hours."""

REDRAWS_PER_SECOND = 4


class Progress:
    """A run's progress. `total` is the size of its input in bytes, None if it is not bounded."""

    def __init__(
        self,
        total: int | None = None,
        *,
        answers_on_terminal: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.clock = clock
        self.begun = clock()
        # Answers written to the same terminal would break up a bar.
        self._live = _bar(total is not None) if is_terminal(sys.stderr) and not answers_on_terminal else None
        self._task = self._live.add_task("", total=total, figures="") if self._live is not None else None
        self._last = self.begun if self._live is None else float("-inf")
        self._withheld: tuple[Tally, int, int] | None = None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, tally: Tally, state_bytes: int, done: int = 0) -> None:
        """Show the current figures, unless shown a moment ago; `done` bytes of the input have been read."""
        from meander.dataflow.tally import figures_line

        now = self.clock()
        if now - self._last < self._pause(now):
            self._withheld = (tally, state_bytes, done)
            return
        self._withheld = None
        figures = figures_line(tally, now - self.begun, state_bytes)
        if self._live is not None:
            completed = min(done, self.total) if self.total else 0
            self._live.update(self._task, completed=completed, figures=figures)
        elif done == self.total:
            return  # The summary follows, with the same figures.
        else:
            print_note(self._share(done, now - self.begun) + figures)
        self._last = now

    def show_withheld(self) -> None:
        """Show the figures of the last batch if they came too soon after others and no batch has followed."""
        if self._withheld is not None:
            self.show(*self._withheld)

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Hide the bar while something else is written to the terminal."""
        moving = self._live is not None and self._live.live.is_started
        self.__exit__()
        try:
            yield
        finally:
            if moving:
                self.__enter__()

    def finish(
        self, tally: Tally, state_bytes: int, *, resumed: bool = False, rejects_kept: bool = False
    ) -> None:
        """Print the summary."""
        from meander.dataflow.tally import summary

        seconds = self.clock() - self.begun
        for line in summary(tally, seconds, state_bytes, resumed=resumed, rejects_kept=rejects_kept):
            print_note(line)

    def _pause(self, now: float) -> float:
        """Seconds until the figures are shown again."""
        if self._live is not None:
            return 1 / REDRAWS_PER_SECOND
        return min(MOST_BETWEEN_LINES, max(BETWEEN_LINES, (now - self.begun) / 10))

    def _share(self, done: int, seconds: float) -> str:
        if not self.total or not 0 < done <= self.total:
            return ""
        left = seconds * (self.total - done) / done
        return f"{done / self.total:.0%}, about {left:.0f} s left: "


def _bar(bounded: bool) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = (
        [BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn()]
        if bounded
        else [SpinnerColumn()]
    )
    return Progress(
        *columns,
        TextColumn("{task.fields[figures]}", markup=False),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=REDRAWS_PER_SECOND,
        redirect_stdout=False,
        redirect_stderr=False,
    )
