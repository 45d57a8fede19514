"""Large answers on their way from a cell to the driver, as files.

What a cell hands to Spark is copied half a dozen times until the driver has it. Where both are on one machine, a
cell therefore writes large answers to a file and hands out its name. A file is of one attempt of one task: those of
attempts that failed are never named, and go with the next start.
"""

from __future__ import annotations

import mmap
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Row

from meander.spark.cells import Job, Output
from meander.spark.chunks import ANSWERS, SPOOLED, Parcel
from meander.spark.formats import ARROW, JSONL, Part

LEAST_BYTES = 1 << 18


def set_aside(output: Output | Parcel, job: Job) -> Output | Parcel:
    """The same output, or, where it is large and goes to a sink of the driver's, one that names a file with it."""
    if not job.spool or not isinstance(output, Output) or len(output.data) < LEAST_BYTES:
        return output
    if output.kind != ANSWERS or job.formats.get(output.query) not in (JSONL, ARROW):
        return output
    path = Path(job.spool) / f"{uuid.uuid4().hex}.part"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(output.data)
    return output._replace(kind=SPOOLED, data=str(path).encode())


@contextmanager
def contents(rows: Sequence[Row]) -> Iterator[list[Part]]:
    """What rows of answers hold, in their order; files are deleted at the end, unless something went wrong."""
    files = [Path(bytes(row.data).decode()) if row.kind == SPOOLED else None for row in rows]
    yield [bytes(row.data) if path is None else mapped(path) for row, path in zip(rows, files, strict=True)]
    for path in files:
        if path is not None:
            path.unlink()


def mapped(path: Path) -> memoryview:
    """The bytes of a file that is not empty, without a copy."""
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def empty_spool(folder: str) -> None:
    """Delete what an earlier start has left behind."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
