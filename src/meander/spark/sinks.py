"""Where answers go: files that a batch reaches once, whatever happens in between.

Spark runs a batch again when it was not committed, with the same edges, and hands it to the sinks a second time.
A sink here knows what it has: a line file keeps its length before and after the last batch in a record beside the
checkpoint, and cuts off what that batch had written when it comes again; a folder has one file for a batch, under
the batch's number. So a record is in the output once, after a crash too. What a batch says the second time counts,
as it may prove its answers by other paths, and these are what the cells remember. What cannot take anything back
(standard output, Kafka) may show the last batch twice after a crash.

A sink empties or cuts an output only where its record says that the run wrote it. An output that has content and no
record is refused, or replaced with `overwrite`; one whose record is missing from the checkpoint is refused.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.answers import INTEGERS
from meander.dataflow.files import local_path
from meander.dataflow.sinks import unwritable, writing
from meander.errors import ArgumentError, MeanderError, StateError
from meander.spark.checkpoint.locks import output_lock
from meander.spark.checkpoint.notes import START_OVER, read_note, write_note
from meander.spark.edge_codec import decode_rejects
from meander.spark.formats import ARROW, JSONL, Part, decode_table

PARTS = ".parts"
COPIED = 1 << 20  # bytes at a time
FINISHED = "finished"
TAIL = 1 << 16
"""By so many of its last bytes a file is known as the one that was written."""


@dataclass(frozen=True)
class Record:
    """Where the checkpoint notes how far a sink has come.

    `expected`: the checkpoint says that there is such a note; `overwrite`: without one, an output that has content is
    replaced; `held`: what the run holds while it writes.
    """

    path: Path
    expected: bool = False
    overwrite: bool = False
    held: ExitStack | None = None

    def read(self, kind: str) -> dict[str, Any] | None:
        """What a sink of this kind has noted, or None where it is new to the checkpoint."""
        try:
            known = read_note(self.path)
        except FileNotFoundError:
            if not self.expected:
                return None
            raise StateError(
                f"the note {self.path}, which says how far an output was written, is missing",
                hint=f"restore the checkpoint from a backup, or {START_OVER}",
            ) from None
        if known["kind"] != kind:
            raise ArgumentError(
                f"the answers so far went to {known['kind']} {known['path']}, and now they would go to {kind}",
                hint="name the same output, or start again with a new checkpoint",
            )
        return known

    def write(self, kind: str, path: Path, **fields: Any) -> None:
        write_note(self.path, {"kind": kind, "path": str(path.resolve())} | fields)

    def hold(self, output: Path) -> None:
        """Keep other runs from writing to an output."""
        if self.held is not None:
            self.held.enter_context(output_lock(output))

    def check_new(self, output: Path, has_content: bool) -> None:
        """Refuse an output of someone else."""
        if has_content and not self.overwrite:
            raise ArgumentError(
                f"{output} has content already, and a run with this checkpoint did not write it",
                hint="name another output, give the checkpoint that wrote it, or replace it with --overwrite",
            )


class Sink(Protocol):
    """Takes the encoded answers of one query, batch after batch."""

    how: str

    def begin(self) -> None:
        """All has been checked: what is to be replaced is emptied now."""

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        """Take a batch; where the last one comes again, it takes that one's place."""

    def finish(self) -> None:
        """No batch comes any more: the input has ended."""


class LineFile:
    """Lines appended to one file."""

    how = JSONL
    kind = "the file"

    def __init__(self, path: Path, record: Record) -> None:
        self.path = path
        self.record = record
        self.batch, self.before, self.length = -1, 0, 0
        self.is_new = True
        known = record.read(self.kind)
        if known is not None and known["length"] and not path.exists():
            raise StateError(
                f"the answers so far went to {known['path']}, and {path} is not there",
                hint="name the same output, or move it there first, or start again with a new checkpoint",
            )
        with writing(path, ArgumentError):
            path.parent.mkdir(parents=True, exist_ok=True)
            open(path, "ab").close()
        record.hold(path)
        size = path.stat().st_size
        if known is not None and (known["length"] or known["path"] == str(path.resolve())):
            self.batch, self.before, self.length = known["batch"], known["before"], known["length"]
            if size < self.length:
                raise StateError(
                    f"{path} has {size} bytes, and the checkpoint says that {self.length} were written",
                    hint="put the file back as it was, or start again with a new checkpoint",
                )
            if self._tail(self.length) != known["tail"]:
                raise StateError(
                    f"{path} is another file than was written, or has changed before its byte {self.length}",
                    hint="put the file back as it was, or start again with a new checkpoint",
                )
            self.is_new = False
            return
        record.check_new(path, size > 0)

    def begin(self) -> None:
        if self.is_new:
            os.truncate(self.path, 0)
            self._note(-1, 0)

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        if batch < self.batch:
            return
        if batch == self.batch:
            self._note(batch - 1, self.before)
        self.before = self.length
        with writing(self.path), open(self.path, "r+b") as file:
            file.truncate(self.length)
            file.seek(self.length)
            try:
                end = self._append(file, parts)
            except OSError:
                # Nothing of a batch that does not fit is left, so that the file has whole lines.
                os.ftruncate(file.fileno(), self.length)
                raise
        self._note(batch, end)

    def _append(self, file: IO[bytes], parts: Sequence[Part]) -> int:
        """Write the parts to the disk; where they end."""
        if self.path.suffix == ".gz" and parts:
            # A gzip file may have many members, one after the other.
            with gzip.GzipFile(fileobj=file, mode="wb") as packed:
                copy_parts(parts, packed)
        else:
            copy_parts(parts, file)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()

    def _note(self, batch: int, length: int) -> None:
        self.batch, self.length = batch, length
        tail = self._tail(length)
        self.record.write(self.kind, self.path, batch=batch, before=self.before, length=length, tail=tail)

    def _tail(self, length: int) -> int:
        """A checksum of the last bytes before `length`."""
        if not length:
            return 0
        with open(self.path, "rb") as file:
            file.seek(max(0, length - TAIL))
            return zlib.crc32(file.read(min(TAIL, length)))

    def finish(self) -> None:
        pass


class StandardOutput:
    """Lines to standard output."""

    how = JSONL

    def begin(self) -> None:
        pass

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        try:
            copy_parts(parts, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable("standard output", error) from None

    def finish(self) -> None:
        pass


class Folder:
    """One Parquet file for each batch that has answers."""

    how = ARROW

    def __init__(self, path: Path, record: Record, kind: str = "the folder") -> None:
        self.path = path
        self.record = record
        self.kind = kind
        known = record.read(kind)
        with writing(path, ArgumentError):
            path.mkdir(parents=True, exist_ok=True)
        record.hold(path)
        self.is_new = known is None or not known["last"]
        if known is None:
            record.check_new(path, bool(self.files()))
        elif known["last"]:
            # The folder may have been moved, with all that is in it.
            last = path / known["last"]
            if not last.is_file() or last.stat().st_size != known["size"]:
                raise StateError(
                    f"{last}, to which answers were written, is missing or has changed",
                    hint="put the folder back as it was, or start again with a new checkpoint",
                )

    def begin(self) -> None:
        if self.is_new:
            for part in self.files():
                part.unlink()
            self._note("", 0)

    def files(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def _note(self, last: str, size: int) -> None:
        self.record.write(self.kind, self.path, last=last, size=size)

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        path = self.path / f"part-{batch:09}.parquet"
        if not parts:
            if path.exists():
                path.unlink()
                last = self.files()[-1:]
                self._note(last[0].name if last else "", last[0].stat().st_size if last else 0)
            return
        write_parquet(one_table([decode_table(part) for part in parts]), path)
        self._note(path.name, path.stat().st_size)

    def finish(self) -> None:
        pass


class ParquetFile:
    """One Parquet file: parts in a folder beside it, which become the file when the input has ended."""

    how = ARROW
    kind = "the Parquet file"

    def __init__(self, path: Path, record: Record, empty: pa.Schema) -> None:
        self.path = path
        self.empty = empty
        self.record = record
        folder = path.with_name(f".{path.name}{PARTS}")
        known = record.read(self.kind)
        self.finished = known is not None and known["last"] == FINISHED
        if self.finished and path.exists():
            return
        if known is None:
            record.check_new(path, path.exists() and path.stat().st_size > 0)
        elif known["last"] and not folder.exists():
            raise StateError(
                f"{path if self.finished else folder}, to which answers were written, is missing",
                hint="put it back as it was, or start again with a new checkpoint",
            )
        self.parts = Folder(folder, record, self.kind)

    def begin(self) -> None:
        if not self.finished:
            self.parts.begin()

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        if not self.finished:
            self.parts.write(batch, parts)

    def finish(self) -> None:
        if self.finished:
            return
        files = self.parts.files()
        try:
            tables = [pq.read_table(one, page_checksum_verification=True) for one in files]
        except (OSError, pa.ArrowException) as error:
            raise StateError(
                f"the answers that wait in {self.parts.path} are damaged: {error}",
                hint=START_OVER,
            ) from None
        write_parquet(one_table(tables) if tables else self.empty.empty_table(), self.path)
        self.record.write(self.kind, self.path, last=FINISHED, size=0)
        self.finished = True
        shutil.rmtree(self.parts.path, ignore_errors=True)


class Rejects:
    """Rejects as lines of JSON, to any sink of lines."""

    how = JSONL

    def __init__(self, lines: Sink) -> None:
        self.lines = lines

    def begin(self) -> None:
        self.lines.begin()

    def write(self, batch: int, parts: Sequence[bytes]) -> None:
        text = [
            json.dumps(reject.record, ensure_ascii=False) + "\n"
            for part in parts
            for reject in decode_rejects(part)
        ]
        self.lines.write(batch, ["".join(text).encode()])

    def finish(self) -> None:
        self.lines.finish()


class Collected:
    """Answers handed to a function of the driver, as a table for each batch."""

    how = ARROW

    def __init__(self, take: Callable[[pa.Table], Any]) -> None:
        self.take = take

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        if parts:
            self.take(one_table([decode_table(part) for part in parts]))

    def finish(self) -> None:
        pass


def copy_parts(parts: Sequence[Part], to: IO[bytes] | gzip.GzipFile) -> None:
    """All parts, one after the other."""
    for part in parts:
        if isinstance(part, Path):
            with open(part, "rb") as file:
                shutil.copyfileobj(file, to, COPIED)
        else:
            to.write(part)


def write_parquet(table: pa.Table, path: Path) -> None:
    """The table as a file that is there whole, or not at all."""
    draft = path.with_name(f".{path.name}")
    try:
        with writing(path):
            pq.write_table(table, draft, write_page_checksum=True)
            draft.replace(path)
    except MeanderError:
        draft.unlink(missing_ok=True)
        raise


def one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows in one table; where some have integer vertices and others strings, all are strings."""
    if len({table.schema for table in tables}) > 1:
        wide = next(one.schema for one in tables if not _integer(one.schema))
        tables = [one if one.schema == wide else one.cast(wide) for one in tables]
    return pa.concat_tables(tables)


def _integer(schema: pa.Schema) -> bool:
    first = schema.field(0).type
    return bool((first.value_type if pa.types.is_large_list(first) else first) == INTEGERS)


def open_sink(place: str, record: Record, *, bounded: bool, empty: pa.Schema) -> Sink:
    """The sink that a path means, by its ending."""
    if place == "-":
        return StandardOutput()
    path = local_path(place, "answers")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ArgumentError(
            f"{place} is a pipe or a device: after a restart what was written to it could not be taken back\n"
            "hint: --out - writes to standard output, and --runner local to a pipe or a device"
        )
    if place.endswith((".jsonl", ".jsonl.gz")) and not path.is_dir():
        return LineFile(path, record)
    if place.endswith(".parquet") and bounded and not path.is_dir():
        return ParquetFile(path, record, empty)
    if path.is_dir() or path.suffix == ".parquet" or (path.suffix == "" and not path.exists()):
        return Folder(path, record)
    raise ArgumentError(
        f"the ending of {place} says nothing of its format\n"
        "hint: answers go to a .jsonl or .parquet file, a folder, kafka://host:port/topic, or - for standard output"
    )
