"""`-`: lines of JSON to standard output."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from meander.dataflow.sinks.sink import Block, Encoding, Sink, SinkContext
from meander.dataflow.sinks.write_errors import unwritable


class StandardOutput(Sink[Iterable[Block]]):
    """Lines to standard output, flushed after each batch; when its reader leaves, the sink is `done`."""

    encoding = Encoding.LINES

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        return cls()

    def write(self, batch: int, answers: Iterable[Block]) -> None:
        if self.done:
            return
        try:
            copy_blocks(answers, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except OSError as error:
            self.done = True
            # Python would flush the rest of the buffer when it ends, and complain about the error again.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
            if not isinstance(error, BrokenPipeError):
                raise unwritable("standard output", error) from None


def copy_blocks(blocks: Iterable[Block], to: Any) -> None:
    """Write all blocks to a file object, one after the other."""
    for block in blocks:
        if isinstance(block, Path):
            with open(block, "rb") as file:
                shutil.copyfileobj(file, to, 1 << 20)
        else:
            to.write(block)
