"""Local files: paths, and reading the bytes of files, compressed or not, up to the point of damage.

A path is one of the operating system's: `s3://…` and its like are refused here, for inputs and outputs alike, before
a folder named `s3:` is created or searched for.

Damage (a file that ends in the middle of its compressed data, or whose data contradict themselves) is not
raised when it is met: the reader first returns every byte that could be read, then keeps the error in
`error`. So the rows before the damage are used, and the run still ends with that error.
"""

from __future__ import annotations

import re
import zlib
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from meander.errors import ArgumentError, InputError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
DISK = "on a local or mounted disk"

Role = Literal["stream", "answers", "rejects", "metrics", "checkpoint"]
ROLES: dict[Role, tuple[str, str]] = {
    "stream": (
        f"a stream is a file or folder {DISK}, or kafka://host:port/topic",
        "mount it or copy it; in Python, Session.stream also takes a DataFrame that Spark reads from there",
    ),
    "answers": (
        f"answers go to a file or folder {DISK}, to kafka://host:port/topic, to format:NAME?…, or to -",
        "write to a mounted path; with --runner spark, format:NAME?path=… is written by Spark",
    ),
    "rejects": (f"rejects go to a .jsonl file {DISK}, or to -", "write to a mounted path"),
    "metrics": (f"metrics go to a file {DISK}", "write to a mounted path"),
    "checkpoint": (
        f"a checkpoint is a folder {DISK}, or s3a://bucket/folder",
        "use a path that all machines mount, or a store with the protocol of S3",
    ),
}
"""For each use of a path: what is accepted, and what to do instead of a scheme that is not."""

COMPRESSED_BLOCK = 1 << 18
UNPACKED_BLOCK = 1 << 20
GZIP_WINDOW = 31
GZIP_HEADER = 10  # bytes


class Meter:
    """How much of some files has been read, in bytes as they are on disk."""

    def __init__(self) -> None:
        self.bytes = 0


class ByteReader(Protocol):
    """Returns the bytes of a file; after the last ones `error` is set if more should have come."""

    error: InputError | None
    live: bool
    """Whether the bytes come from a program that is still writing: a reader then takes what is there."""

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes, none only at the end."""

    def close(self) -> None: ...


class PlainReader:
    """The bytes of a file as they are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: InputError | None = None
        self._file = open_file(path)
        self.live = not path.is_file()

    def tell(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.tell()

    def read(self, limit: int) -> bytes:
        try:
            return self._file.read(limit)
        except OSError as error:
            self.error = InputError(f"{self.path} cannot be read further: {error.strerror}")
            return b""

    def close(self) -> None:
        self._file.close()


class GzipReader:
    """The unpacked bytes of a gzip file of one or more members, checked by the checksum of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: InputError | None = None
        self.live = False
        self._file = open_file(path)
        self._member = zlib.decompressobj(GZIP_WINDOW)
        self._begun = False
        self._packed = b""
        self._unpacked = b""
        self._offset = 0

    def tell(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.tell()

    def read(self, limit: int) -> bytes:
        while not self._unpacked and self.error is None and self._refill():
            self._unpack()
        out, self._unpacked = self._unpacked[:limit], self._unpacked[limit:]
        return out

    def close(self) -> None:
        self._file.close()

    def _refill(self) -> bool:
        """Read packed bytes unless some are left; False at the end of the file."""
        if self._packed:
            return True
        try:
            self._packed = self._file.read(COMPRESSED_BLOCK)
        except OSError as error:
            self.error = InputError(f"{self.path} cannot be read further: {error.strerror}")
            return False
        if not self._packed and self._begun:
            self._damaged("it ends in the middle of its compressed data")
        return bool(self._packed)

    def _unpack(self) -> None:
        # Zeros between and after members are padding, which some tools write.
        if not self._begun:
            padding = len(self._packed) - len(self._packed.lstrip(b"\0")) if self._offset else 0
            self._packed = self._packed[padding:]
            self._offset += padding
            if not self._packed:
                return
        before = self._member.copy()
        packed = self._packed
        self._begun = True
        try:
            self._unpacked = self._member.decompress(packed, UNPACKED_BLOCK)
        except zlib.error:
            self._salvage(before, packed)
            return
        if self._member.eof:
            self._packed = self._member.unused_data
            self._member = zlib.decompressobj(GZIP_WINDOW)
            self._begun = False
        else:
            self._packed = self._member.unconsumed_tail
        self._offset += len(packed) - len(self._packed)

    def _salvage(self, member: zlib._Decompress, packed: bytes) -> None:
        """Unpack byte by byte, up to the first byte that is invalid."""
        unpacked = []
        for offset in range(len(packed)):
            try:
                unpacked.append(member.decompress(packed[offset : offset + 1]))
            except zlib.error:
                break
            self._offset += 1
        self._unpacked = b"".join(unpacked)
        if self._offset < GZIP_HEADER:
            self.error = InputError(
                f"{self.path} is not a gzip file", hint="take .gz off its name if it is not compressed"
            )
        else:
            self._damaged("its compressed data make no sense there, or fail their checksum")

    def _damaged(self, why: str) -> None:
        self.error = InputError(
            f"{self.path} is damaged at byte {self._offset}: {why}",
            hint="rows before that byte were used, and may be damaged too: get an undamaged copy, run again, and "
            "do not use the answers of this run",
        )


def open_file(path: Path) -> BinaryIO:
    """A file to read bytes from, or an error with the reason."""
    try:
        # A reader asks for large blocks; another buffer between would only copy them once more.
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def open_bytes(path: Path) -> PlainReader | GzipReader:
    """The reader for a text file, by its ending."""
    return GzipReader(path) if path.name.endswith(".gz") else PlainReader(path)


def local_path(given: str | PathLike[str], role: Role) -> Path:
    """The path, or an error if it has a scheme such as `s3://`, which Meander does not read or write."""
    url = fspath(given)
    scheme = SCHEME.match(url)
    if scheme is None:
        return Path(url)
    accepted, instead = ROLES[role]
    if scheme.group(1).lower() == "file":
        instead = "leave the scheme out: " + re.sub(r"^file:/*", "/", url, flags=re.IGNORECASE)
    raise ArgumentError(f"{url} cannot be used: {accepted}", hint=instead)
