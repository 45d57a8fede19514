"""Where answers go: files that a batch reaches once, whatever happens in between.

Spark runs a batch again when it was not committed, with the same edges, and hands it to the sinks a second time.
A sink here knows what it has: a line file keeps its length before and after the last batch in a record beside the
checkpoint, and cuts off what that batch had written when it comes again; a folder has one file for a batch, under
the batch's number. So a record is in the output once, after a crash too. What a batch says the second time counts,
as it may prove its answers by other paths, and these are what the cells remember. What cannot take anything back
(standard output, Kafka) may show the last batch twice after a crash.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.answers import INTEGERS
from meander.dataflow.files import local_path
from meander.dataflow.sinks import unwritable, writing
from meander.errors import ArgumentError, MeanderError, StateError
from meander.spark.codec import decode_rejects
from meander.spark.formats import ARROW, JSONL, Part, decode_table
from meander.spark.ledger import write_atomically

PARTS = ".parts"
COPIED = 1 << 20  # bytes at a time


class Sink(Protocol):
    """Takes the encoded answers of one query, batch after batch."""

    how: str

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        """Take a batch; where the last one comes again, it takes that one's place."""

    def finish(self) -> None:
        """No batch comes any more: the input has ended."""


class LineFile:
    """Lines appended to one file."""

    how = JSONL

    def __init__(self, path: Path, record: Path) -> None:
        self.path = path
        self.record = record
        self.batch, self.before, self.length = -1, 0, 0
        if record.exists():
            known = json.loads(record.read_text())
            self.batch, self.before, self.length = known["batch"], known["before"], known["length"]
            size = path.stat().st_size if path.exists() else 0
            if size < self.length:
                raise StateError(
                    f"{path} has {size} bytes, and the checkpoint says that {self.length} were written\n"
                    "hint: put the file back as it was, or start again with a new checkpoint"
                )
        else:
            with writing(path, ArgumentError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"")

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
        fields = {"batch": batch, "before": self.before, "length": length}
        write_atomically(self.record, json.dumps(fields))

    def finish(self) -> None:
        pass


class StandardOutput:
    """Lines to standard output."""

    how = JSONL

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

    def __init__(self, path: Path, record: Path) -> None:
        self.path = path
        with writing(path, ArgumentError):
            path.mkdir(parents=True, exist_ok=True)
        if not record.exists() and any(path.glob("part-*.parquet")):
            raise ArgumentError(
                f"the folder {path} has answers already", hint="empty it, or name another one"
            )
        write_atomically(record, "{}")

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        path = self.path / f"part-{batch:09}.parquet"
        if not parts:
            path.unlink(missing_ok=True)
            return
        write_parquet(one_table([decode_table(part) for part in parts]), path)

    def finish(self) -> None:
        pass


class ParquetFile:
    """One Parquet file: parts in a folder beside it, which become the file when the input has ended."""

    how = ARROW

    def __init__(self, path: Path, record: Path, empty: pa.Schema) -> None:
        self.path = path
        self.empty = empty
        folder = path.with_name(f".{path.name}{PARTS}")
        if not record.exists():
            shutil.rmtree(folder, ignore_errors=True)
        self.parts = Folder(folder, record)

    def write(self, batch: int, parts: Sequence[Part]) -> None:
        self.parts.write(batch, parts)

    def finish(self) -> None:
        if self.path.exists() and not self.parts.path.exists():
            return
        files = sorted(self.parts.path.glob("part-*.parquet"))
        table = one_table([pq.read_table(one) for one in files]) if files else self.empty.empty_table()
        write_parquet(table, self.path)
        shutil.rmtree(self.parts.path, ignore_errors=True)


class Rejects:
    """Rejects as lines of JSON, to any sink of lines."""

    how = JSONL

    def __init__(self, lines: Sink) -> None:
        self.lines = lines

    def write(self, batch: int, parts: Sequence[bytes]) -> None:
        text = [
            json.dumps(reject._asdict(), ensure_ascii=False) + "\n"
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
            pq.write_table(table, draft)
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


def open_sink(place: str, record: Path, *, bounded: bool, empty: pa.Schema) -> Sink:
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
