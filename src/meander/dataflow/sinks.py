"""Sinks: where the answers of a local run go.

By the path's ending: `.jsonl` and `.jsonl.gz` (one record a line), `.parquet`, a folder (Parquet files, of a
limited number of records each), or `-` for standard output (lines of JSON). A file of lines can be read while
it grows, and has whole lines only, even if the disk is full. A Parquet file appears under its name when it is
closed, whole; until then it has a hidden name beside it. Closing after an error is the same as closing at the
end: what was written up to the last batch is there.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.answers import INTEGERS, STRINGS, Answers, all_integers, answer_schema, as_table
from meander.dataflow.edges import Reject
from meander.dataflow.files import is_kafka, local_path
from meander.dataflow.jsonl import jsonl_blocks, jsonl_bytes
from meander.errors import ArgumentError, MeanderError, OutputError

__all__ = ["Sink", "jsonl_bytes", "open_rejects", "open_sink"]

GROUP_ROWS = 1 << 17
PART_ROWS = 1 << 20

ENDINGS_HINT = "answers go to a .jsonl, .jsonl.gz or .parquet file, a folder, or - for standard output"
MORE_SPACE = "free some space on its disk, or write to another disk"
WRITE_HINTS = {
    errno.ENOSPC: MORE_SPACE,
    errno.EDQUOT: MORE_SPACE,
    errno.EACCES: "write to a path that you may write to",
    errno.EROFS: "write to another disk",
}


class Lines(Protocol):
    """Something that takes blocks of whole lines; `done` when nobody reads them any more."""

    done: bool

    def write(self, blocks: Iterable[bytes | memoryview]) -> None: ...

    def close(self) -> None: ...


class LineFile:
    """Lines in a file that can be read while it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = False
        with writing(path, ArgumentError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._can_take_back = path.is_file()  # a pipe or a device cannot

    def write(self, blocks: Iterable[bytes | memoryview]) -> None:
        for block in blocks:
            with writing(self.path):
                self._write_whole(block)

    def _write_whole(self, block: bytes | memoryview) -> None:
        """Write all of the block, or take back what was written of it."""
        begin = self._file.tell() if self._can_take_back else None
        rest = memoryview(block)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            if begin is not None:
                self._file.seek(begin)
                self._file.truncate()
            raise

    def close(self) -> None:
        self._file.close()


class PackedLineFile:
    """Lines in a gzip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = False
        with writing(path, ArgumentError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = gzip.open(path, "wb")  # noqa: SIM115 (closed by `close`)

    def write(self, blocks: Iterable[bytes | memoryview]) -> None:
        for block in blocks:
            with writing(self.path):
                self._file.write(block)

    def close(self) -> None:
        with writing(self.path):
            self._file.close()


class StandardOutput:
    """Lines to standard output, at once; a reader who goes away ends them quietly."""

    def __init__(self) -> None:
        self.done = False

    def write(self, blocks: Iterable[bytes | memoryview]) -> None:
        if self.done:
            return
        try:
            for block in blocks:
                sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
        except OSError as error:
            self.done = True
            # What is still in the buffer would be written, and complained about, when Python ends.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
            if not isinstance(error, BrokenPipeError):
                raise unwritable("standard output", error) from None

    def close(self) -> None:
        """Standard output is not ours to close."""


class Sink(ABC):
    """Takes the answers of one query, batch after batch; use it in a `with` block, so that it is closed."""

    @property
    def done(self) -> bool:
        """Whether nobody reads the answers any more, so that the run may end."""
        return False

    @abstractmethod
    def write(self, answers: Answers) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JsonlSink(Sink):
    """One record a line."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    @property
    def done(self) -> bool:
        return self.lines.done

    def write(self, answers: Answers) -> None:
        if answers.rows and not self.done:
            self.lines.write(jsonl_blocks(answers))

    def close(self) -> None:
        self.lines.close()


class ParquetSink(Sink):
    """One Parquet file.

    Its vertices are integers for as long as all are. The first string among them makes all of them strings:
    what was written before is then written once more. Without answers it has the columns of the `usual` shape:
    the arity, and whether there are paths.
    """

    def __init__(self, path: Path, usual: tuple[int, bool] = (2, False)) -> None:
        self.path = path
        self.usual = usual
        self.rows = 0
        self._draft = path.with_name(f".{path.name}.draft")
        self._shape: tuple[int, bool] | None = None
        self._vertex: pa.DataType | None = None
        self._waiting: list[pa.Table] = []
        self._broken = False
        with writing(path, ArgumentError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._draft.touch()
        self._writer: pq.ParquetWriter | None = None

    def write(self, answers: Answers) -> None:
        shape = (len(answers.vertices), answers.path is not None)
        if self._shape is not None and self._shape != shape:
            raise ArgumentError(
                f"{self.path} cannot hold answers of {_shape_words(*shape)} beside those of "
                f"{_shape_words(*self._shape)}\nhint: a .jsonl file can"
            )
        self._shape = shape
        if answers.rows == 0:
            return
        if self._vertex is None:
            self._vertex = INTEGERS if all_integers(answers) else STRINGS
        elif self._vertex == INTEGERS and not all_integers(answers):
            self._widen()
        self._waiting.append(as_table(answers, vertex=self._vertex))
        self.rows += answers.rows
        if sum(table.num_rows for table in self._waiting) >= GROUP_ROWS:
            self._flush()

    def _schema(self) -> pa.Schema:
        arity, paths = self._shape if self._shape is not None else self.usual
        return answer_schema(arity, paths=paths, vertex=STRINGS if self._vertex is None else self._vertex)

    def _flush(self) -> None:
        schema = self._schema()
        with self._writing():
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._draft, schema)
            self._writer.write_table(pa.concat_tables([schema.empty_table(), *self._waiting]))
        self._waiting = []

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Errors of writing as ours; a Parquet file that could not be written cannot be read either, and is gone."""
        try:
            with writing(self.path):
                yield
        except MeanderError:
            self._broken = True
            self._draft.unlink(missing_ok=True)
            raise

    def _widen(self) -> None:
        """From here on vertices are strings."""
        self._vertex = STRINGS
        schema = self._schema()
        self._waiting = [table.cast(schema) for table in self._waiting]
        if self._writer is None:
            return
        narrow = self._draft.with_name(f"{self._draft.name}.narrow")
        with self._writing():
            self._writer.close()
            self._draft.replace(narrow)
            self._writer = pq.ParquetWriter(self._draft, schema)
            with pq.ParquetFile(narrow) as file:
                for group in range(file.num_row_groups):
                    self._writer.write_table(file.read_row_group(group).cast(schema))
            narrow.unlink()

    def close(self) -> None:
        if self._broken:
            return
        if self._waiting or self._writer is None:
            self._flush()
        with self._writing():
            assert self._writer is not None
            self._writer.close()
            self._draft.replace(self.path)


def _shape_words(arity: int, paths: bool) -> str:
    return f"arity {arity} with paths" if paths else f"arity {arity}"


class FolderSink(Sink):
    """A folder of Parquet files `part-000000000.parquet` and so on, each with a limited number of records."""

    def __init__(self, path: Path, usual: tuple[int, bool] = (2, False), *, overwrite: bool = False) -> None:
        self.path = path
        self.usual = usual
        with writing(path, ArgumentError):
            path.mkdir(parents=True, exist_ok=True)
            for part in path.glob("part-*.parquet"):
                if not overwrite:
                    raise ArgumentError(
                        f"the folder {path} has answers already",
                        hint="name another one, or replace them with --overwrite",
                    )
                part.unlink()
        self._number = 0
        self._part = self._next_part()

    def _next_part(self) -> ParquetSink:
        return ParquetSink(self.path / f"part-{self._number:09}.parquet", self.usual)

    def write(self, answers: Answers) -> None:
        if self._part.rows >= PART_ROWS:
            self._part.close()
            self._number += 1
            self._part = self._next_part()
        self._part.write(answers)

    def close(self) -> None:
        self._part.close()


class RejectSink:
    """Rejects as lines of JSON with `stream`, `reason` and `text`, and how many there were."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.count = 0

    def write(self, rejects: Iterable[Reject]) -> None:
        text = [json.dumps(reject.record, ensure_ascii=False) + "\n" for reject in rejects]
        self.count += len(text)
        if text:
            self.lines.write(["".join(text).encode()])

    def close(self) -> None:
        self.lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_sink(place: str, usual: tuple[int, bool] = (2, False), *, overwrite: bool = False) -> Sink:
    """The sink that an `--out` path means; `usual` are the arity of the answers, and whether they have paths.

    A file is replaced. A folder that has answers is refused, or emptied of them with `overwrite`.
    """
    if place == "-":
        return JsonlSink(StandardOutput())
    if is_kafka(place):
        raise ArgumentError(
            f"{place} cannot be written by the local runner", hint="Kafka needs --runner spark"
        )
    path = local_path(place, "answers")
    if path.is_dir() or (path.suffix == "" and not path.exists()):
        return FolderSink(path, usual, overwrite=overwrite)
    is_pipe_or_device = path.exists() and not path.is_file()
    if is_pipe_or_device or path.name.endswith((".jsonl", ".jsonl.gz")):
        return JsonlSink(line_file(path))
    if path.suffix == ".parquet":
        return ParquetSink(path, usual)
    raise ArgumentError(f"the ending of {place} says nothing of its format", hint=ENDINGS_HINT)


def open_rejects(place: str) -> RejectSink:
    """The sink that a `--rejects` path means."""
    check_rejects(place)
    return RejectSink(StandardOutput() if place == "-" else line_file(Path(place)))


def check_rejects(place: str) -> None:
    """Refuse what rejects cannot go to."""
    path = local_path(place, "rejects")
    if place != "-" and (not path.name.endswith((".jsonl", ".jsonl.gz")) or path.is_dir()):
        raise ArgumentError(
            f"rejects cannot go to {place}", hint="they go to a .jsonl or .jsonl.gz file, or to -"
        )


def line_file(path: Path) -> Lines:
    return PackedLineFile(path) if path.suffix == ".gz" else LineFile(path)


@contextmanager
def writing(path: Path | str, kind: type[MeanderError] = OutputError) -> Iterator[None]:
    """Errors of the file system, and of Arrow writing to it, as ours."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise unwritable(path, error, kind) from None


def unwritable(
    path: Path | str, error: OSError | pa.ArrowException, kind: type[MeanderError] = OutputError
) -> MeanderError:
    """The error that says why a path cannot be written, and what to do."""
    code = getattr(error, "errno", None)
    return kind(
        f"{path} cannot be written: {os.strerror(code) if code else error}",
        hint=WRITE_HINTS.get(code or 0, ""),
    )
