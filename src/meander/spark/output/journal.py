"""The journal of a sink in the checkpoint: how far it has written, so that each batch is in the output exactly once.

A sink empties or cuts an output only if its journal says that the run wrote it. An output that has content and no
journal is refused, or replaced with `overwrite`; one whose journal is missing from the checkpoint is refused.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from meander.dataflow.sinks.journal import Journal
from meander.errors import ArgumentError, StateError
from meander.spark.checkpoint.locks import output_lock
from meander.spark.checkpoint.notes import START_OVER, read_note, write_note
from meander.spark.checkpoint.storage import Location


class CheckpointJournal(Journal):
    """A journal in one note of the checkpoint.

    `expected`: the checkpoint has recorded that there is such a note. `overwrite`: without one, an output that has
    content is replaced. `locks` holds the locks of outputs for as long as the run writes to them.
    """

    durable = True

    def __init__(
        self,
        path: Location,
        *,
        expected: bool = False,
        overwrite: bool = False,
        locks: ExitStack | None = None,
    ) -> None:
        super().__init__(overwrite=overwrite)
        self.path = path
        self.expected = expected
        self.locks = locks

    def read(self, kind: str) -> dict[str, Any] | None:
        try:
            known = read_note(self.path)
        except FileNotFoundError:
            if not self.expected:
                return None
            raise StateError(
                f"the note {self.path}, which says how far an output was written, is missing",
                hint=f"restore the checkpoint from a backup, or {START_OVER}",
            ) from None
        if known["kind"] != kind:
            raise ArgumentError(
                f"the answers so far went to {known['kind']} {known['path']}, and now they would go to {kind}",
                hint="name the same output, or start again with a new checkpoint",
            )
        return known

    def write(self, kind: str, path: Path, **fields: Any) -> None:
        write_note(self.path, {"kind": kind, "path": str(path.resolve())} | fields)

    def lock(self, output: Path) -> None:
        if self.locks is not None:
            self.locks.enter_context(output_lock(output))

    def check_unused(self, output: Path, has_content: bool) -> None:
        if has_content and not self.overwrite:
            raise ArgumentError(
                f"{output} has content already, and a run with this checkpoint did not write it",
                hint="name another output, give the checkpoint that wrote it, or replace it with --overwrite",
            )
