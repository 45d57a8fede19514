"""Large answers on their way from a cell to the driver, as files.

A row that a cell returns to Spark is copied half a dozen times until the driver has it. If both are on one machine, a
cell therefore writes large answers to a file and returns its path. A file belongs to one attempt of one task: files
of failed attempts are never read, and are deleted at the next start.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Row

from meander.dataflow.sinks.sink import Block
from meander.spark.messages import Kind


def set_aside(blocks: Iterable[bytes | memoryview], folder: str) -> bytes:
    """Write blocks to a file; returns its path."""
    path = Path(folder) / f"{uuid.uuid4().hex}.part"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(blocks)
    return str(path).encode()


@contextmanager
def contents(rows: Sequence[Row]) -> Iterator[list[Block]]:
    """The contents of rows of answers, in their order; files are deleted at the end, unless there was an error."""
    parts: list[Block] = [
        Path(bytes(row.data).decode()) if row.kind == Kind.SPOOLED else bytes(row.data) for row in rows
    ]
    yield parts
    for part in parts:
        if isinstance(part, Path):
            part.unlink()


def empty_spool(folder: str) -> None:
    """Delete the files that an earlier start has left behind."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
