"""`.parquet` and folders: answers as Parquet, in one file or in a folder of parts.

A Parquet file has one type of vertices: integers for as long as all of them are, and strings from the first batch on
that has a string. A file appears under its name when it is complete; until then it has a hidden name beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.answers import INTEGERS, AnswerSchema
from meander.dataflow.sinks.journal import Journal
from meander.dataflow.sinks.sink import Encoding, Sink, SinkContext
from meander.dataflow.sinks.write_errors import writing
from meander.errors import ArgumentError, MeanderError, StateError

GROUP_ROWS = 1 << 17
PART_ROWS = 1 << 20

START_OVER = "start over with a new --checkpoint, and another --out or --overwrite"

FINISHED = "finished"
"""In the journal of a Parquet file, in place of its last part: the file is complete."""


class ParquetPart:
    """One Parquet file that is being written under a hidden name, in row groups of `GROUP_ROWS`.

    `shown` is the path that messages name, if it is another one.
    """

    def __init__(self, path: Path, schema: pa.Schema, shown: Path | None = None) -> None:
        self.path = path
        self.shown = shown or path
        self.schema = schema
        self.rows = 0
        self._draft = path.with_name(f".{path.name}")
        self._waiting: list[pa.Table] = []
        try:
            with writing(self.shown):
                self._writer = pq.ParquetWriter(self._draft, schema, write_page_checksum=True)
        except MeanderError:
            self._draft.unlink(missing_ok=True)
            raise

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table if table.schema == self.schema else table.cast(self.schema))
        self.rows += table.num_rows
        if sum(waiting.num_rows for waiting in self._waiting) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            with writing(self.shown):
                self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting = []

    def close(self) -> None:
        """Complete the file and give it its name."""
        self._flush()
        with writing(self.shown):
            self._writer.close()
            self._draft.replace(self.path)

    def discard(self) -> None:
        """Leave nothing of the file."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._draft.unlink(missing_ok=True)


class ParquetFolder(Sink[Iterable[pa.Table]]):
    """A folder of Parquet files `part-000000000.parquet` and so on.

    With a durable journal there is one part for each batch that has answers, under the number of the batch: a batch
    that is repeated replaces its part. Otherwise a part has at most about `part_rows` rows.
    """

    encoding = Encoding.TABLES

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Self:
        return cls(Path(target), context.journal, context.schema, part_rows=PART_ROWS)

    def __init__(
        self,
        path: Path,
        journal: Journal,
        schema: AnswerSchema,
        *,
        kind: str = "the folder",
        shown: Path | None = None,
        part_rows: int | None = None,
    ) -> None:
        """`shown` is the output that messages name, if it is not the folder."""
        self.path = path
        self.shown = shown
        self.journal = journal
        self.schema = schema.arrow
        self.kind = kind
        self.part_rows = part_rows
        self._names: list[str] | None = None
        self._part: ParquetPart | None = None
        self._parts = 0
        known = journal.read(kind)
        with writing(path, ArgumentError):
            path.mkdir(parents=True, exist_ok=True)
        journal.lock(path)
        self.is_new = known is None or not known["last"]
        if known is None:
            journal.check_unused(path, bool(self.files()))
        elif known["last"]:
            # The folder may have been moved, with everything in it.
            last = path / known["last"]
            if not last.is_file() or last.stat().st_size != known["size"]:
                raise StateError(
                    f"{last}, to which answers were written, is missing or has changed",
                    hint="put the folder back as it was, or start again with a new checkpoint",
                )

    def files(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def begin(self) -> None:
        if self.is_new:
            for part in self.files():
                part.unlink()
            self._note(None)

    def write(self, batch: int, answers: Iterable[pa.Table]) -> None:
        tables = unified([self._checked(table) for table in answers if table.num_rows])
        if not self.journal.durable:
            self._append(tables)
            return
        path = self._part_path(batch)
        if tables:
            write_part(path, tables[0].schema, tables, self.shown)
            self._note(path)
        elif path.exists():
            path.unlink()
            self._note(max(self.files(), default=None))

    def _checked(self, table: pa.Table) -> pa.Table:
        """The table, if it has the columns of the answers before it."""
        if self._names is None:
            self._names = table.schema.names
        elif self._names != table.schema.names:
            columns, before = ", ".join(table.schema.names), ", ".join(self._names)
            output = self.shown or self.path
            raise ArgumentError(
                f"{output} cannot hold answers with the columns {columns} beside those with {before}",
                hint="a .jsonl file can",
            )
        return table

    def _append(self, tables: Sequence[pa.Table]) -> None:
        for table in tables:
            part = self._part
            if part is not None and (
                (has_integers(part.schema) and not has_integers(table.schema))
                or (self.part_rows is not None and part.rows >= self.part_rows)
            ):
                self._part = None
                part.close()
            if self._part is None:
                self._part = self._next_part(table.schema)
            self._part.write(table)

    def _next_part(self, schema: pa.Schema) -> ParquetPart:
        self._parts += 1
        return ParquetPart(self._part_path(self._parts - 1), schema, self.shown)

    def _part_path(self, number: int) -> Path:
        return self.path / f"part-{number:09}.parquet"

    def _note(self, last: Path | None) -> None:
        name, size = ("", 0) if last is None else (last.name, last.stat().st_size)
        self.journal.write(self.kind, self.path, last=name, size=size)

    def finish(self) -> None:
        """Complete the last part; if there are no answers, write one with the columns of the query."""
        if self.journal.durable:
            return
        part = self._part if self._parts else self._next_part(self.schema)
        self._part = None
        if part is not None:
            part.close()

    def close(self) -> None:
        if self._part is not None:
            self._part.discard()


class ParquetFile(Sink[Iterable[pa.Table]]):
    """One Parquet file: parts in a hidden folder beside it, which become the file when the input has ended."""

    encoding = Encoding.TABLES
    kind = "the Parquet file"

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Sink[Any]:
        """Input that does not end never completes a file: its answers go to a folder of this name."""
        if not context.bounded:
            return ParquetFolder.open(target, context)
        return cls(Path(target), context.journal, context.schema)

    def __init__(self, path: Path, journal: Journal, schema: AnswerSchema) -> None:
        self.path = path
        self.journal = journal
        self.schema = schema.arrow
        folder = path.with_name(f".{path.name}.parts")
        known = journal.read(self.kind)
        self.finished = known is not None and known["last"] == FINISHED
        if self.finished and path.exists():
            return
        if known is None:
            journal.check_unused(path, path.exists() and path.stat().st_size > 0)
        elif known["last"] and not folder.exists():
            raise StateError(
                f"{path if self.finished else folder}, to which answers were written, is missing",
                hint="put it back as it was, or start again with a new checkpoint",
            )
        with writing(path, ArgumentError):
            folder.mkdir(parents=True, exist_ok=True)
            if not journal.durable:  # left by a run that was killed
                shutil.rmtree(folder)
        self.parts = ParquetFolder(folder, journal, schema, kind=self.kind, shown=path)

    def begin(self) -> None:
        if not self.finished:
            self.parts.begin()

    def write(self, batch: int, answers: Iterable[pa.Table]) -> None:
        if not self.finished:
            self.parts.write(batch, answers)

    def finish(self) -> None:
        if self.finished:
            return
        self.parts.finish()
        files = self.parts.files()
        if len(files) == 1 and not self.journal.durable:
            with writing(self.path):
                files[0].replace(self.path)
        else:
            self._merge(files)
        self.journal.write(self.kind, self.path, last=FINISHED, size=0)
        self.finished = True
        shutil.rmtree(self.parts.path, ignore_errors=True)

    def _merge(self, files: Sequence[Path]) -> None:
        try:
            schemas = [pq.read_schema(file) for file in files]
            schema = widest(schemas) if schemas else self.schema
            write_part(self.path, schema, (table for file in files for table in row_groups(file)))
        except (OSError, pa.ArrowException) as error:
            raise StateError(
                f"the answers that wait in {self.parts.path} are damaged: {error}",
                hint=START_OVER,
            ) from None

    def close(self) -> None:
        if self.finished:
            return
        self.parts.close()
        if not self.journal.durable:
            shutil.rmtree(self.parts.path, ignore_errors=True)


def write_part(path: Path, schema: pa.Schema, tables: Iterable[pa.Table], shown: Path | None = None) -> None:
    """Write a file that is there completely, or not at all."""
    part = ParquetPart(path, schema, shown)
    try:
        for table in tables:
            part.write(table)
        part.close()
    except BaseException:
        part.discard()
        raise


def row_groups(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group)


def unified(tables: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """The tables with one type of vertices: integers if all have integers, and strings otherwise."""
    if len(tables) <= 1 or len({table.schema for table in tables}) == 1:
        return tables
    schema = widest([table.schema for table in tables])
    return [table if table.schema == schema else table.cast(schema) for table in tables]


def widest(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The schema into which tables of all these schemas can be cast."""
    return next((schema for schema in schemas if not has_integers(schema)), schemas[0])


def has_integers(schema: pa.Schema) -> bool:
    """Whether vertices are integers."""
    first = schema.field(0).type
    return bool((first.value_type if pa.types.is_large_list(first) else first) == INTEGERS)
