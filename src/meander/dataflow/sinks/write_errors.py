"""Errors of the file system while writing, as errors of Meander with a hint."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from meander.errors import MeanderError, OutputError

MORE_SPACE = "free some space on its disk, or write to another disk"
WRITE_HINTS = {
    errno.ENOSPC: MORE_SPACE,
    errno.EDQUOT: MORE_SPACE,
    errno.EACCES: "write to a path that you may write to",
    errno.EROFS: "write to another disk",
}


@contextmanager
def writing(path: Path | str, kind: type[MeanderError] = OutputError) -> Iterator[None]:
    """Translate errors of the file system, and of Arrow writing to it."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise unwritable(path, error, kind) from None


def unwritable(
    path: Path | str, error: OSError | pa.ArrowException, kind: type[MeanderError] = OutputError
) -> MeanderError:
    """The error that explains why a path cannot be written, and what to do."""
    code = getattr(error, "errno", None)
    return kind(
        f"{path} cannot be written: {os.strerror(code) if code else error}",
        hint=WRITE_HINTS.get(code or 0, ""),
    )
