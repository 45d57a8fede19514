"""Fingerprints of input files: they detect a file that has changed since it was read.

A fingerprint has a checksum of the part that was read, and the attributes of the file at that time. While the
attributes are the same, nothing is read again. If they differ, the part that was read is compared: all of it, or, of
a file that has only grown during the run, its last bytes. Growing is allowed, and so is removing a file that has been
read to its end.
"""

from __future__ import annotations

import os
import stat
import zlib
from typing import NamedTuple

from meander.errors import InputError
from meander.spark.checkpoint.storage import Location, ObjectState

BLOCK = 1 << 20
TAIL = 1 << 16


FileState = os.stat_result | ObjectState


class Fingerprint(NamedTuple):
    """The first `end` bytes of a file, by their checksum and that of the last of them, and the file's state then."""

    end: int
    checksum: int
    tail: int
    inode: int
    size: int
    modified: int
    changed: int


def take_fingerprint(path: Location, end: int | None, before: Fingerprint | None) -> Fingerprint | None:
    """The fingerprint of a file that has been read up to `end`, or whole; None of a pipe or device.

    Bytes that are in the fingerprint `before` are not read again.
    """
    state: FileState = path.stat()
    if not stat.S_ISREG(state.st_mode):
        return None
    end = state.st_size if end is None else end
    start, checksum = (before.end, before.checksum) if before is not None else (0, 0)
    checksum = checksum_of(path, start, end, checksum)
    tail = checksum_of(path, max(0, end - TAIL), end)
    return Fingerprint(end, checksum, tail, *state_of(state))


def check_fingerprint(
    path: Location, known: Fingerprint, state: FileState, *, whole: bool, thorough: bool
) -> Fingerprint:
    """The present fingerprint; refuses a file whose part that was read is no longer the same.

    A file that was read `whole` must not grow. `thorough` compares the whole part that was read, even if the file
    has only grown.
    """
    now = state_of(state)
    if now == known[3:]:
        return known
    if state.st_size < known.end:
        raise changed(path, f"{known.end} bytes of it were read, and now it has {state.st_size}")
    if whole and state.st_size > known.end:
        raise changed(path, f"it was read whole with {known.end} bytes, and now it has {state.st_size}")
    grown = state.st_ino == known.inode and state.st_size > known.size
    if grown and not thorough:
        same = checksum_of(path, max(0, known.end - TAIL), known.end) == known.tail
    else:
        same = checksum_of(path, 0, known.end) == known.checksum
    if not same:
        raise changed(path, f"its first {known.end} bytes are not those that were read")
    return Fingerprint(*known[:3], *now)


def state_of(state: FileState) -> tuple[int, int, int, int]:
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def checksum_of(path: Location, start: int, end: int, checksum: int = 0) -> int:
    """The checksum of bytes `start` to `end` of a file, after those of `checksum`."""
    left = end - start
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while left > 0 and (block := file.read(min(BLOCK, left))):
            checksum = zlib.crc32(block, checksum)
            left -= len(block)
    return checksum


def changed(path: Location | str, how: str) -> InputError:
    return InputError(
        f"{path} has changed since it was read: {how}",
        hint="a file may grow, and be removed once it is read to its end: put it back as it was and new rows into "
        "another file, or start over with a new --checkpoint",
    )
