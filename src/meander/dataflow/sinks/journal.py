"""Journals: how far a sink has written, so that a later run can continue there.

The local runner keeps no journal: a run that stops is over, and the next one replaces its output. On Spark the
journal is part of the checkpoint (`spark/output/journal.py`), and makes writing a batch idempotent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meander.errors import ArgumentError


class Journal:
    """The journal of a run that cannot be resumed: it remembers nothing.

    With a `durable` journal a sink must have a batch on disk when `write` returns, and must be able to replace it.
    """

    durable = False

    def __init__(self, *, overwrite: bool = False) -> None:
        self.overwrite = overwrite

    def read(self, kind: str) -> dict[str, Any] | None:
        """The entry that a sink of this kind wrote last, or None if the sink is new to the journal."""
        return None

    def write(self, kind: str, path: Path, **fields: Any) -> None:
        """Replace the entry."""

    def lock(self, output: Path) -> None:
        """Keep other runs from writing to an output."""

    def check_unused(self, output: Path, has_content: bool) -> None:
        """Refuse an output that this run did not write. A file may be replaced; a folder may hold other files."""
        if has_content and output.is_dir() and not self.overwrite:
            raise ArgumentError(
                f"the folder {output} has answers already",
                hint="name another one, or replace them with --overwrite",
            )
