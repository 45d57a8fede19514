"""Text files: blocks of bytes that a kernel splits into rows in place; the edges are spans of the block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import (
    Edges,
    Origin,
    Reason,
    Reject,
    Text,
    constant_text,
    empty_edges,
    frozen,
    reject_edge,
    shown,
)
from meander.dataflow.files import ByteReader, open_bytes
from meander.dataflow.layout import StreamLayout
from meander.dataflow.property_columns import excuse_unread, from_spans, reject_reason
from meander.dataflow.sources.registry import file_format
from meander.dataflow.sources.source import FileFormat, ReadOptions
from meander.dataflow.tabular import Chunk
from meander.errors import InputError
from meander.kernels.jit import Array
from meander.kernels.parsing import (
    BAD_VALUE,
    FINE,
    LABEL,
    LINE,
    NEWLINE,
    SRC,
    TRG,
    VALUES,
    Rows,
    make_rows,
    number_lines,
)
from meander.kernels.parsing_values import Spans

LEAST_BLOCK = 1 << 16
MOST_BLOCK = 1 << 24
BYTES_PER_ROW = 64
TAIL_ROOM = 64
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_FIRST_LINE = 1 << 20


@dataclass
class Block:
    """A buffer with `size` bytes of text, a newline after them, and free space for a tail from `tail` on.

    The text of a `final` block is the end of a file.
    """

    data: Array
    size: int
    final: bool
    tail: int
    beyond_ascii: bool


Parser = Callable[[Block, int, Rows], tuple[int, int]]
"""Fills the rows from an offset of the block on; returns the offset at which to continue, and the number of rows."""


class TextFormat(FileFormat):
    """A format whose rows are lines."""

    @abstractmethod
    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        """The parser for a file that begins with `head`, and the part of `head` that is left for it to parse."""

    def check(self, path: Path, layout: StreamLayout) -> None:
        reader = open_bytes(path)
        try:
            _, head = TextReader(path, reader, layout, 1).begin()
            if not head and reader.error is not None:
                raise reader.error
        finally:
            reader.close()

    def read(self, path: Path, options: ReadOptions) -> Iterator[Chunk]:
        meter = options.meter
        reader = open_bytes(path)
        before = meter.bytes
        try:
            for chunk in TextReader(path, reader, options.layout, options.batch_rows).chunks():
                if path.is_file():
                    meter.bytes = before + reader.tell()
                yield chunk
        finally:
            reader.close()


class TextReader:
    """The chunks of one text file.

    `start` is the byte of the file at which the reader begins, and `line` the number of lines that the reader puts
    before the text from there on. With `start` None the text is not from a file, and rows have no line numbers.
    """

    def __init__(
        self,
        path: Path,
        reader: ByteReader,
        layout: StreamLayout,
        batch_rows: int,
        *,
        start: int | None = 0,
        line: int = 0,
    ) -> None:
        self.path = path
        self.reader = reader
        self.layout = layout
        self.batch_rows = batch_rows
        self.ended = False
        self.start = start
        self.line = -line

    def chunks(self) -> Iterator[Chunk]:
        room = min(max(BYTES_PER_ROW * self.batch_rows, LEAST_BLOCK), MOST_BLOCK)
        parse, rest = self.begin()
        room = max(room, len(rest))
        properties = len(self.layout.types)
        texts = 2 + properties
        while True:
            # A row adds no more to the tail than its own length, unless several properties read one column.
            block = self._fill(np.empty(texts * room + TAIL_ROOM, np.uint8), rest, room)
            at, count = 0, 1
            while count:
                rows = make_rows(min(self.batch_rows, (block.size - at) // 2 + 1), properties)
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
                yield empty_edges(), [Reject(self.layout.stream, Reason.UNPARSABLE, shown(rest), *where)]
            raise self.reader.error

    def begin(self) -> tuple[Parser, bytes]:
        """The parser for this file, and the bytes that have been read but not used."""
        head = b""
        while len(head) < len(BYTE_ORDER_MARK) and not self.ended:
            head += self._read(LEAST_BLOCK)
        text_format = file_format(self.path)
        assert isinstance(text_format, TextFormat)
        return text_format.parser(self, head.removeprefix(BYTE_ORDER_MARK))

    def peek_line(self, head: bytes) -> tuple[bytes, bytes]:
        """The first line that is not empty (or as much of it as can be read), and all bytes that have been read."""
        while True:
            line, newline, _ = head.lstrip(b"\r\n").partition(b"\n")
            if newline or self.ended:
                return line, head
            head += self._read(LEAST_BLOCK)

    def read_line(self, head: bytes) -> tuple[bytes, bytes]:
        """The first line that is not empty, and the bytes that have been read after it; `head` was read before."""
        while True:
            line, newline, rest = head.lstrip(b"\r\n").partition(b"\n")
            if self.ended and not newline and self.reader.error is not None:
                raise self.reader.error
            if newline or self.ended:
                self.line += head.count(b"\n") - rest.count(b"\n")
                return line, rest
            head += self._read(LEAST_BLOCK)

    def _read(self, limit: int) -> bytes:
        data = self.reader.read(limit)
        self.ended = not data
        return data

    def _fill(self, buffer: Array, rest: bytes, room: int) -> Block:
        """Fill the buffer with the rest of the last block and the bytes that follow, `room` bytes at most."""
        size = len(rest)
        buffer[:size] = np.frombuffer(rest, np.uint8)
        data = rest
        # One whole line of a live source is enough to continue with.
        while size < room and not self.ended and not (self.reader.live and b"\n" in data):
            data = self._read(room - size)
            buffer[size : size + len(data)] = np.frombuffer(data, np.uint8)
            size += len(data)
        buffer[size] = NEWLINE
        final = self.ended and self.reader.error is None
        return Block(buffer, size, final, size + 1, bool(buffer[: size + 1].max() >= 0x80))

    def _chunk(self, data: Array, rows: Rows, number: Array) -> Chunk:
        layout, count = self.layout, number.size
        src, label, trg, line = (
            Text(data, rows.start[field, :count], rows.end[field, :count], rows.kind[field, :count])
            for field in (SRC, LABEL, TRG, LINE)
        )
        verdict = rows.verdict[:count]
        edges = Edges(
            src=src,
            label=label if layout.label is None else constant_text(layout.label, count),
            trg=trg,
            ts=rows.ts[:count],
            op=rows.op[:count],
            line=line,
            origin=None if self.start is None else Origin(str(self.path), self.start, number),
            vertex=rows.vertex[:count] if layout.schema.vertices else None,
        )
        if layout.types:
            edges = edges._replace(properties=_property_columns(rows, edges, verdict, layout))
        if not verdict.any():
            return edges, []
        rejects = [
            reject_edge(edges, int(row), layout.stream, reject_reason(layout, int(verdict[row])))
            for row in np.flatnonzero(verdict)
        ]
        return edges.take(verdict == FINE), rejects


def _property_columns(rows: Rows, edges: Edges, verdict: Array, layout: StreamLayout) -> dict[str, pa.Array]:
    """The columns of properties; rows with a value of another type get a verdict."""
    columns = {}
    for number, (name, kind) in enumerate(layout.types.items()):
        start, end, kinds = (
            column[VALUES + number, : verdict.size] for column in (rows.start, rows.end, rows.kind)
        )
        columns[name] = from_spans(
            Spans(edges.src.data, start, end, kinds), kind, verdict, BAD_VALUE + number, layout.digits
        )
        excuse_unread(layout, number, edges, verdict)
    return columns


def first_line(path: Path) -> str:
    """The first line of a text file that is not empty; "" if the file cannot be read."""
    try:
        reader = open_bytes(path)
    except InputError:
        return ""
    content = b""
    try:
        while len(content) < LONGEST_FIRST_LINE and b"\n" not in content.lstrip(b"\r\n"):
            block = reader.read(LEAST_BLOCK)
            if not block:
                break
            content += block
    finally:
        reader.close()
    return shown(content.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n").partition(b"\n")[0]).rstrip("\r")
