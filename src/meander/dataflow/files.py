"""Files as bytes: which ones a path means, and reading them, compressed or not, to the point of damage.

Damage (a file that ends in the middle of its compressed data, or whose data contradict themselves) is not
raised where it is met: the reader first hands out every byte that could be read, then keeps the error in
`error`. So what stood before the damage is used, and the run still ends with that error.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from meander.errors import ArgumentError, InputError

ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet", ".tsv.gz", ".csv.gz", ".jsonl.gz")

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


def input_files(place: str) -> list[Path]:
    """The files that a `--stream` path means: itself, or all files of a folder, sorted by name."""
    if place.startswith("kafka://"):
        raise ArgumentError(f"{place} cannot be read by the local runner\nhint: Kafka needs --runner spark")
    path = Path(place)
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
