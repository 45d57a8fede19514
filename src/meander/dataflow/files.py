"""Files as bytes: which ones a path means, and reading them, compressed or not, to the point of damage.

A path is one of the operating system's: `s3://…` and its like are refused here, for inputs and outputs alike, before
a folder named `s3:` is created or searched for.

Damage (a file that ends in the middle of its compressed data, or whose data contradict themselves) is not
raised where it is met: the reader first hands out every byte that could be read, then keeps the error in
`error`. So what stood before the damage is used, and the run still ends with that error.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from meander.errors import ArgumentError, InputError

ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet", ".tsv.gz", ".csv.gz", ".jsonl.gz")

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
DISK = "on a local or mounted disk"

Role = Literal["stream", "answers", "rejects", "metrics", "checkpoint"]
ROLES: dict[Role, tuple[str, str]] = {
    "stream": (
        f"a stream is a file or folder {DISK}, or kafka://host:port/topic",
        "mount it or copy it; in Python, Session.stream also takes a DataFrame that Spark reads from there",
    ),
    "answers": (
        f"answers go to a file or folder {DISK}, to kafka://host:port/topic, or to -",
        'write to a mounted path; in Python, a sink {"format": …, "path": …} is written by Spark',
    ),
    "rejects": (f"rejects go to a .jsonl file {DISK}, or to -", "write to a mounted path"),
    "metrics": (f"metrics go to a file {DISK}", "write to a mounted path"),
    "checkpoint": (f"a checkpoint is a folder {DISK}", "use a path that all machines mount"),
}
"""What a path is for: what is accepted there, and what to do instead where it has a scheme."""

COMPRESSED_BLOCK = 1 << 18
UNPACKED_BLOCK = 1 << 20
GZIP_WINDOW = 31


class Meter:
    """How much of some files has been read, in bytes as they are on disk."""

    def __init__(self) -> None:
        self.bytes = 0


class ByteReader(Protocol):
    """Hands out a file's bytes; after the last ones `error` says whether more should have come."""

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
        """Have packed bytes at hand; False at the end of the file."""
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
        """Unpack what can be unpacked, byte by byte, up to the one that makes no sense."""
        pieces = []
        for place in range(len(packed)):
            try:
                pieces.append(member.decompress(packed[place : place + 1]))
            except zlib.error:
                break
            self._offset += 1
        self._unpacked = b"".join(pieces)
        if self._offset < 10:
            self.error = InputError(
                f"{self.path} is not a gzip file\nhint: take .gz off its name if it is not compressed"
            )
        else:
            self._damaged("its compressed data make no sense there, or fail their checksum")

    def _damaged(self, why: str) -> None:
        self.error = InputError(
            f"{self.path} is damaged at byte {self._offset}: {why}\n"
            "hint: rows before that place were used, and may be damaged too: get an undamaged copy, run again, and "
            "do not use the answers of this run"
        )


def open_file(path: Path) -> BinaryIO:
    """A file to read bytes from, or an error that says why not."""
    try:
        # A reader asks for large blocks; another buffer between would only copy them once more.
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def open_bytes(path: Path) -> PlainReader | GzipReader:
    """The reader for a text file, by its ending."""
    return GzipReader(path) if path.name.endswith(".gz") else PlainReader(path)


def is_kafka(place: str) -> bool:
    return place.startswith("kafka://")


def local_path(given: str | PathLike[str], role: Role) -> Path:
    """The path, or an error where it has a scheme such as `s3://`, which Meander does not read or write."""
    place = fspath(given)
    scheme = SCHEME.match(place)
    if scheme is None:
        return Path(place)
    accepted, instead = ROLES[role]
    if scheme.group(1).lower() == "file":
        instead = "leave the scheme out: " + re.sub(r"^file:/*", "/", place, flags=re.IGNORECASE)
    raise ArgumentError(f"{place} cannot be used: {accepted}", hint=instead)


def input_files(place: str, *, follow: bool = False) -> list[Path]:
    """The files that a `--stream` path means: itself, or all files of a folder, sorted by name.

    A folder to `follow` may be empty for now, and holds files on their way in under other names.
    """
    if is_kafka(place):
        raise ArgumentError(f"{place} cannot be read by the local runner", hint="Kafka needs --runner spark")
    path = local_path(place, "stream")
    if follow and path.is_dir():
        return sorted(
            one
            for one in path.iterdir()
            if one.is_file() and not one.name.startswith((".", "_")) and one.name.endswith(ENDINGS)
        )
    if not path.exists():
        raise InputError(f"{place} does not exist\nhint: a stream is given as --stream NAME=PATH")
    if not path.is_dir():
        return [checked_ending(path)]
    entries = sorted(one for one in path.iterdir() if not one.name.startswith((".", "_")))
    if not entries:
        raise InputError(f"the folder {place} has no files\nhint: files that begin with . or _ do not count")
    for one in entries:
        if one.is_dir():
            raise ArgumentError(
                f"the folder {place} holds another folder, {one.name}\nhint: name the folder that has the files"
            )
    return [checked_ending(one) for one in entries]


def input_size(places: Iterable[str]) -> int | None:
    """How many bytes the files of all these have; None where there is nothing to count, or a pipe among them."""
    files = [path for place in places for path in input_files(place)]
    if not all(path.is_file() for path in files):
        return None
    return sum(path.stat().st_size for path in files) or None


def is_live(place: str) -> bool:
    """Whether a program may still be writing what a `--stream` path means, so that a reader has to wait for it."""
    return not all(path.is_file() for path in input_files(place))


def checked_ending(path: Path) -> Path:
    if not path.name.endswith(ENDINGS):
        raise ArgumentError(
            f"the ending of {path} says nothing of its format\nhint: endings are " + ", ".join(ENDINGS)
        )
    return path
