"""Readers: a file, or a folder of files, to chunks of edges and the rejects found beside them.

Text files are read in blocks; a kernel splits a block into rows in place, and the edges are spans of it. The
rules that all formats share:

- A row is a line. Empty lines are skipped, a carriage return before the newline is no part of the row, and the
  last line needs no newline. A byte order mark at the beginning of a file is skipped.
- `.tsv` has no quoting, `.csv` has quotes as usual but no newline inside them. In both, vertices are strings; in
  `.jsonl` and `.parquet` they are what they are there, and the string "7" is another vertex than the integer 7.
- An empty name is a missing field. A NUL is a character like any other.
- In a damaged file the rows before the damage are used, the line that the damage cuts is a reject, and then
  the error is raised.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.edges import (
    VERDICTS,
    Edges,
    Origin,
    Reason,
    Reject,
    Text,
    as_text,
    empty_edges,
    frozen,
    reject_edge,
    shown,
)
from meander.dataflow.files import ByteReader, Meter, input_files, open_bytes
from meander.dataflow.tabular import NEEDED, Chunk, check_columns, from_arrow, judge_row
from meander.errors import ArgumentError, InputError
from meander.kernels.parsing import (
    FINE,
    LABEL,
    LINE,
    NEWLINE,
    OP,
    SRC,
    TIME,
    TRG,
    UNDECIDED,
    Rows,
    judge_rows,
    make_rows,
    number_lines,
    split_csv,
    split_tsv,
)
from meander.kernels.parsing_json import split_jsonl

Array = np.ndarray[Any, Any]

LEAST_BLOCK = 1 << 16
MOST_BLOCK = 1 << 24
BYTES_A_ROW = 64
TAIL_ROOM = 64
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

CSV_PLACES = {"src": SRC, "label": LABEL, "trg": TRG, "ts": TIME, "op": OP}
CODES = {reason: verdict for verdict, reason in VERDICTS.items()}


@dataclass
class Block:
    """A buffer with `size` bytes of text, a newline after them, and a tail from `tail` on.

    `final` says that the text is the end of a file.
    """

    data: Array
    size: int
    final: bool
    tail: int
    beyond_ascii: bool


Parser = Callable[[Block, int, Rows], tuple[int, int]]
"""Fills the rows from a place of the block on; returns where to go on and how many rows there are."""


def open_source(
    place: str,
    *,
    stream: str = "",
    batch_rows: int = 65536,
    time_unit: str = "s",
    meter: Meter | None = None,
) -> Iterator[Chunk]:
    """The edges of a file or folder in chunks of at most `batch_rows`, each with the rejects met on the way.

    `meter` receives how much of the files has been read (of files, not of pipes).
    What `check_source` finds is raised at once; the rest while reading.
    """
    if time_unit not in ("s", "ms", "us"):
        raise ArgumentError(f"{time_unit} is no unit of time\nhint: --time-unit is s, ms or us")
    return _read_all(check_source(place), stream, max(1, batch_rows), time_unit, meter or Meter())


def check_source(place: str, *, follow: bool = False) -> list[Path]:
    """The files of a path, each known to exist, to be readable, and to have the columns of edges.

    That is what can be known before a run has an output, and long before Spark has started.
    """
    files = input_files(place, follow=follow)
    for path in files:
        if path.is_file():  # what is read from a pipe is gone
            _check_head(path)
    return files


def _check_head(path: Path) -> None:
    if path.name.endswith(".parquet"):
        with _open_parquet(path):
            return
    reader = open_bytes(path)
    try:
        _, head = TextReader(path, reader, "", 1).begin()
        if not head and reader.error is not None:
            raise reader.error
    finally:
        reader.close()


def _read_all(
    files: list[Path], stream: str, batch_rows: int, time_unit: str, meter: Meter
) -> Iterator[Chunk]:
    for path in files:
        if not path.is_file():
            yield from _read_text(path, stream, batch_rows, Meter())
            continue
        end = meter.bytes + path.stat().st_size
        if path.name.endswith(".parquet"):
            yield from _read_parquet(path, stream, batch_rows, time_unit, meter)
        else:
            yield from _read_text(path, stream, batch_rows, meter)
        meter.bytes = end


def _read_text(path: Path, stream: str, batch_rows: int, meter: Meter) -> Iterator[Chunk]:
    reader = open_bytes(path)
    before = meter.bytes
    try:
        for chunk in TextReader(path, reader, stream, batch_rows).chunks():
            if path.is_file():
                meter.bytes = before + reader.tell()
            yield chunk
    finally:
        reader.close()


class TextReader:
    """The chunks of one text file.

    `start` is the byte of the file at which the reader begins, and `line` the number of lines that the reader puts
    before what is there. With `start` None the text is of no file, and where a row stands is not known.
    """

    def __init__(
        self,
        path: Path,
        reader: ByteReader,
        stream: str,
        batch_rows: int,
        *,
        start: int | None = 0,
        line: int = 0,
    ) -> None:
        self.path = path
        self.reader = reader
        self.stream = stream
        self.batch_rows = batch_rows
        self.ended = False
        self.start = start
        self.line = -line

    def chunks(self) -> Iterator[Chunk]:
        room = min(max(BYTES_A_ROW * self.batch_rows, LEAST_BLOCK), MOST_BLOCK)
        parse, rest = self.begin()
        while True:
            # What a row puts into the tail is never longer than the row, so twice the text is enough.
            block = self._fill(np.empty(2 * room + TAIL_ROOM, np.uint8), rest, room)
            at, count = 0, 1
            while count:
                rows = make_rows(min(self.batch_rows, (block.size - at) // 2 + 1))
                begin = at
                at, count = parse(block, at, rows)
                number = np.empty(count, np.int64)
                self.line = number_lines(block.data, begin, at, count, self.line, rows, number)
                if count:
                    yield self._chunk(frozen(block.data), rows, number)
            rest = block.data[at : block.size].tobytes()
            if self.ended:
                break
            if len(rest) == room:
                room *= 2
        if self.reader.error is not None:
            if rest:
                where = ("", 0, 0) if self.start is None else (str(self.path), self.line + 1, self.start)
                yield empty_edges(), [Reject(self.stream, Reason.UNPARSABLE, shown(rest), *where)]
            raise self.reader.error

    def begin(self) -> tuple[Parser, bytes]:
        """The parser for this file, and what has been read of it but not used."""
        head = b""
        while len(head) < len(BYTE_ORDER_MARK) and not self.ended:
            head += self._read(LEAST_BLOCK)
        head = head.removeprefix(BYTE_ORDER_MARK)
        name = self.path.name.removesuffix(".gz")
        if name.endswith(".tsv"):
            return _parse_tsv, head
        if name.endswith(".jsonl"):
            return _parse_jsonl, head
        while True:
            line, newline, rest = head.lstrip(b"\r\n").partition(b"\n")
            if self.ended and not newline and self.reader.error is not None:
                raise self.reader.error
            if newline or self.ended:
                self.line += head.count(b"\n") - rest.count(b"\n")
                return self._csv_parser(line), rest
            head += self._read(LEAST_BLOCK)

    def _csv_parser(self, header: bytes) -> Parser:
        names = [name.strip() for name in next(csv.reader([shown(header).rstrip("\r")]), [])]
        missing = [name for name in NEEDED if name not in names]
        if missing and names:
            raise InputError(
                f"the header of {self.path} has no column {missing[0]}: it has {', '.join(names)}\n"
                "hint: the first line of a .csv file is src,label,trg,ts or src,label,trg,ts,op, in any order"
            )
        doubled = [name for name in CSV_PLACES if names.count(name) > 1]
        if doubled:
            raise InputError(f"the header of {self.path} has more than one column {doubled[0]}")
        places = np.array([CSV_PLACES.get(name, -1) for name in names], np.int64)

        def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
            at, count, block.tail = split_csv(
                block.data, at, block.size, block.final, block.tail, places, rows
            )
            judge_rows(block.data, count, block.beyond_ascii, rows)
            return at, count

        return parse

    def _read(self, limit: int) -> bytes:
        piece = self.reader.read(limit)
        self.ended = not piece
        return piece

    def _fill(self, buffer: Array, rest: bytes, room: int) -> Block:
        """Put the rest of the last block and what comes next into the buffer, `room` bytes at most."""
        size = len(rest)
        buffer[:size] = np.frombuffer(rest, np.uint8)
        piece = rest
        # Of a live source one whole line is enough to go on with.
        while size < room and not self.ended and not (self.reader.live and b"\n" in piece):
            piece = self._read(room - size)
            buffer[size : size + len(piece)] = np.frombuffer(piece, np.uint8)
            size += len(piece)
        buffer[size] = NEWLINE
        final = self.ended and self.reader.error is None
        return Block(buffer, size, final, size + 1, bool(buffer[: size + 1].max() >= 0x80))

    def _chunk(self, data: Array, rows: Rows, number: Array) -> Chunk:
        count = number.size
        src, label, trg, line = (
            Text(data, rows.start[field, :count], rows.end[field, :count], rows.kind[field, :count])
            for field in (SRC, LABEL, TRG, LINE)
        )
        origin = None if self.start is None else Origin(str(self.path), self.start, number)
        edges = Edges(src, label, trg, rows.ts[:count], rows.op[:count], line, origin=origin)
        verdict = rows.verdict[:count]
        if not verdict.any():
            return edges, []
        rejects = [
            reject_edge(edges, int(row), self.stream, VERDICTS[int(verdict[row])])
            for row in np.flatnonzero(verdict)
        ]
        return edges.take(verdict == FINE), rejects


def _parse_tsv(block: Block, at: int, rows: Rows) -> tuple[int, int]:
    at, count = split_tsv(block.data, at, block.size, block.final, rows)
    judge_rows(block.data, count, block.beyond_ascii, rows)
    return at, count


def _parse_jsonl(block: Block, at: int, rows: Rows) -> tuple[int, int]:
    at, count, block.tail = split_jsonl(
        block.data, at, block.size, block.final, block.beyond_ascii, block.tail, rows
    )
    for row in np.flatnonzero(rows.verdict[:count] == UNDECIDED):
        block.tail = _judge_object(block.data, block.tail, rows, int(row))
    return at, count


def _judge_object(buffer: Array, tail: int, rows: Rows, row: int) -> int:
    """Judge a line of JSON that the kernel left undecided; its names go to the tail."""
    raw = buffer[rows.start[LINE, row] : rows.end[LINE, row]].tobytes()
    reason: str | None
    try:
        fields = json.loads(raw.decode())
        edge = [fields.get(name) for name in NEEDED]
        if "op" in fields:
            edge.append(fields["op"])
        reason = judge_row(edge)
    except UnicodeDecodeError:
        reason = Reason.NOT_UTF8
    except (ValueError, AttributeError, RecursionError):
        reason = Reason.UNPARSABLE
    if reason is not None:
        rows.verdict[row] = CODES[reason]
        return tail
    for field in (SRC, LABEL, TRG):
        name = as_text([edge[field]])
        rows.start[field, row] = tail
        buffer[tail : tail + name.data.size] = name.data
        tail += name.data.size
        rows.end[field, row] = tail
        rows.kind[field, row] = name.kind[0]
    rows.ts[row] = edge[3]
    rows.op[row] = -1 if edge[4:] == ["-"] else 1
    rows.verdict[row] = FINE
    return tail


def _read_parquet(path: Path, stream: str, batch_rows: int, time_unit: str, meter: Meter) -> Iterator[Chunk]:
    before, size = meter.bytes, path.stat().st_size
    read = 0
    with _open_parquet(path) as file:
        columns = [name for name in file.schema_arrow.names if name in CSV_PLACES]
        for batch in file.iter_batches(batch_size=batch_rows, columns=columns):
            chunk = from_arrow(
                batch, stream=stream, time_unit=time_unit, where=str(path), path=str(path), first=read + 1
            )
            read += batch.num_rows
            meter.bytes = before + size * read // max(1, file.metadata.num_rows)
            yield chunk


@contextmanager
def _open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file with the columns of edges; damage met while it is open is an error that names it."""
    try:
        with pq.ParquetFile(path) as file:
            check_columns(file.schema_arrow, str(path))
            yield file
    except (pa.ArrowException, OSError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path} cannot be read as Parquet: {first}") from None
