"""Large answers on their way from a cell to the driver, as files.

What a cell hands to Spark is copied half a dozen times until the driver has it. Where both are on one machine, a
cell therefore writes large answers to a file and hands out its name. A file is of one attempt of one task: those of
attempts that failed are never named, and go with the next start.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Row

from meander.spark.formats import Part
from meander.spark.messages import SPOOLED


def set_aside(blocks: Iterable[bytes | memoryview], folder: str) -> bytes:
    """Put blocks into a file; its name."""
    path = Path(folder) / f"{uuid.uuid4().hex}.part"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(blocks)
    return str(path).encode()


@contextmanager
def contents(rows: Sequence[Row]) -> Iterator[list[Part]]:
    """What rows of answers hold, in their order; files are deleted at the end, unless something went wrong."""
    parts: list[Part] = [
        Path(bytes(row.data).decode()) if row.kind == SPOOLED else bytes(row.data) for row in rows
    ]
    yield parts
    for part in parts:
        if isinstance(part, Path):
            part.unlink()


def empty_spool(folder: str) -> None:
    """Delete what an earlier start has left behind."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
