"""`.jsonl`, `.jsonl.gz`, pipes and devices: lines of JSON, one record per line."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from meander.dataflow.sinks.journal import Journal
from meander.dataflow.sinks.sink import Block, Encoding, Sink, SinkContext
from meander.dataflow.sinks.standard_output import copy_blocks
from meander.dataflow.sinks.write_errors import writing
from meander.errors import ArgumentError, StateError

TAIL_BYTES = 1 << 16
"""A file is recognized by a checksum of as many of its last bytes."""


class UnbufferedFile:
    """A file whose `write` writes everything at once: nothing waits in a buffer when it fails."""

    def __init__(self, path: Path, mode: str) -> None:
        self._file = open(path, mode, buffering=0)  # noqa: SIM115 (closed by `close`)

    def write(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        return len(data)

    def flush(self) -> None:
        """There is no buffer."""

    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def truncate(self, length: int) -> None:
        self._file.truncate(length)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class LineFile(Sink[Iterable[Block]]):
    """Lines appended to one file, which can be read while it grows and has whole lines only.

    The journal has the length of the file before and after the last batch: a batch that is repeated, or that failed
    half way, is cut off first.
    """

    encoding = Encoding.LINES
    kind = "the file"

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        return cls(Path(target), context.journal)

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self.journal = journal
        self.is_compressed = path.suffix == ".gz"
        self.batch, self.before, self.length = -1, 0, 0
        self.is_new = True
        self._gzip: gzip.GzipFile | None = None
        known = journal.read(self.kind)
        if known is not None and known["length"] and not path.exists():
            raise StateError(
                f"the answers so far went to {known['path']}, and {path} is not there",
                hint="name the same output, or move it there first, or start again with a new checkpoint",
            )
        with writing(path, ArgumentError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = UnbufferedFile(path, "ab")
        try:
            self._check(known)
        except BaseException:
            self._file.close()
            raise

    def _check(self, known: dict[str, Any] | None) -> None:
        """Refuse a file that is not the one of the journal, or that another run has written."""
        self.journal.lock(self.path)
        size = self._file.size()
        if known is None or not (known["length"] or known["path"] == str(self.path.resolve())):
            self.journal.check_unused(self.path, size > 0)
            return
        self.is_new = False
        self.batch, self.before, self.length = known["batch"], known["before"], known["length"]
        if size < self.length:
            raise StateError(
                f"{self.path} has {size} bytes, and the checkpoint says that {self.length} were written",
                hint="put the file back as it was, or start again with a new checkpoint",
            )
        if self._tail(self.length) != known["tail"]:
            raise StateError(
                f"{self.path} is another file than was written, or has changed before its byte {self.length}",
                hint="put the file back as it was, or start again with a new checkpoint",
            )

    def begin(self) -> None:
        if self.is_new:
            self._file.truncate(0)
            self._note(-1, 0)

    def write(self, batch: int, answers: Iterable[Block]) -> None:
        if batch < self.batch:
            return
        if batch == self.batch:
            self._note(batch - 1, self.before)
        self.before = self.length
        with writing(self.path):
            if self.journal.durable:
                self._file.truncate(self.length)
            try:
                self._append(answers)
            except BaseException:
                self._file.truncate(self.length)
                raise
            self._note(batch, self._file.size())

    def _append(self, blocks: Iterable[Block]) -> None:
        if not self.is_compressed:
            copy_blocks(blocks, self._file)
        else:
            if self._gzip is None:
                self._gzip = gzip.GzipFile(fileobj=self._file, mode="wb")
            copy_blocks(blocks, self._gzip)
        if self.journal.durable:
            # A gzip file may have many members, one for each batch.
            self._end_gzip_member()
            self._file.sync()

    def _end_gzip_member(self) -> None:
        if self._gzip is not None:
            member, self._gzip = self._gzip, None
            member.close()

    def _note(self, batch: int, length: int) -> None:
        self.batch, self.length = batch, length
        if self.journal.durable:
            tail = self._tail(length)
            self.journal.write(
                self.kind, self.path, batch=batch, before=self.before, length=length, tail=tail
            )

    def _tail(self, length: int) -> int:
        """A checksum of the last bytes before `length`."""
        if not length:
            return 0
        with open(self.path, "rb") as file:
            file.seek(max(0, length - TAIL_BYTES))
            return zlib.crc32(file.read(min(TAIL_BYTES, length)))

    def close(self) -> None:
        with writing(self.path):
            self._end_gzip_member()
            self._file.close()


class LinePipe(Sink[Iterable[Block]]):
    """Lines to a named pipe or a device, which cannot take anything back."""

    encoding = Encoding.LINES

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        if context.journal.durable:
            raise ArgumentError(
                f"{target} is a pipe or a device: after a restart what was written to it could not be taken back",
                hint="--out - writes to standard output, and --runner local to a pipe or a device",
            )
        return cls(Path(target))

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path, ArgumentError):
            self._file = UnbufferedFile(path, "wb")

    def write(self, batch: int, answers: Iterable[Block]) -> None:
        with writing(self.path):
            copy_blocks(answers, self._file)

    def close(self) -> None:
        self._file.close()
