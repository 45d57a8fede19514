"""From where edges stand to chunks: segments of files, batches of a DataFrame, records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from meander.dataflow.edges import Edges, Reason, Reject, empty_edges
from meander.dataflow.files import open_file
from meander.dataflow.sources import TextReader, open_source
from meander.dataflow.tabular import from_arrow
from meander.errors import InputError
from meander.spark.edge_codec import encode_edges, encode_rejects
from meander.spark.input.fingerprints import changed
from meander.spark.input.ledger import WHOLE, Segment
from meander.spark.messages import CHUNK_ROWS, EDGES, ERROR, READ, REJECTS, SEGMENTS, Chunk


def read_chunks(segments: Iterable[Segment], time_unit: str, *, packed: bool = True) -> Iterator[Chunk]:
    """The chunks of segments, in order; their places are for the caller to give.

    Edges are packed to travel, or else at hand as they were read.
    """
    for segment in segments:
        try:
            for edges, rejects in read_segment(segment, time_unit):
                if packed:
                    yield from chunks_of(edges, rejects, segment.stream, 0, lines=True)
                    continue
                if rejects:
                    yield Chunk(REJECTS, segment.stream, 0, encode_rejects(rejects))
                if edges.rows:
                    yield Chunk(EDGES, segment.stream, 0, b"", edges=edges)
        except InputError as error:
            # What stood before the damage is still processed; then the run ends with the error.
            yield Chunk(ERROR, segment.stream, 0, str(error).encode())


def unfold(chunks: Iterable[Chunk], time_unit: str) -> Iterator[Chunk]:
    """The same chunks; in the place of segments, what is in them, in its order."""
    for one in chunks:
        if one.kind != SEGMENTS:
            yield one
            continue
        segments = [Segment(*fields) for fields in json.loads(one.data)]
        yield Chunk(READ, "", one.place, str(size_of(segments)).encode())
        yield from read_ahead(read_chunks(segments, time_unit, packed=False))


def size_of(segments: Iterable[Segment]) -> int:
    """How many bytes of files the segments are."""
    return sum(file_size(one.path) if one.end == WHOLE else one.end - one.start for one in segments)


def file_size(path: str) -> int:
    """The size of a file, 0 if it is gone."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def read_ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same chunks, each of them read while the one before it is in use."""
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(next, chunks, None)
        while (one := waiting.result()) is not None:
            waiting = reader.submit(next, chunks, None)
            yield one


def pack_batch(batch: pa.RecordBatch, stream: str, place: int, time_unit: str) -> list[Chunk]:
    """The chunks of a batch of a DataFrame with the columns of edges."""
    edges, rejects = from_arrow(batch, stream=stream, time_unit=time_unit, where=f"stream {stream}")
    return list(chunks_of(edges, rejects, stream, place, lines=False))


def pack_lines(batch: pa.RecordBatch, stream: str, place: int) -> list[Chunk]:
    """The chunks of a batch of records, whose one column has an edge as bytes: JSON, or fields with tabs between."""
    values: list[bytes | None] = batch.column(0).to_pylist()
    lines = [b" ".join(value.splitlines()) for value in values if value]
    rejects = [Reject(stream, Reason.MISSING, "")] * (len(values) - len(lines))
    name = Path("records.jsonl" if lines and lines[0].lstrip().startswith(b"{") else "records.tsv")
    chunks = list(chunks_of(empty_edges(), rejects, stream, place, lines=True))
    reader = TextReader(name, LineReader(b"\n".join(lines)), stream, CHUNK_ROWS, start=None)
    for edges, found in reader.chunks():
        chunks += chunks_of(edges, found, stream, place, lines=True)
    return chunks


class LineReader:
    """Bytes that are at hand already."""

    def __init__(self, content: bytes) -> None:
        self.error: InputError | None = None
        self.live = False
        self._content = content

    def read(self, limit: int) -> bytes:
        piece, self._content = self._content[:limit], self._content[limit:]
        return piece

    def close(self) -> None:
        pass


def chunks_of(
    edges: Edges, rejects: list[Reject], stream: str, place: int, *, lines: bool
) -> Iterator[Chunk]:
    if rejects:
        yield Chunk(REJECTS, stream, place, encode_rejects(rejects))
    if edges.rows:
        yield Chunk(EDGES, stream, place, encode_edges(edges, lines=lines))


class SegmentReader:
    """The bytes of a part of a text file; a part of a .csv file after the first begins with the file's header."""

    def __init__(self, segment: Segment) -> None:
        path = Path(segment.path)
        self._path = path
        self.error: InputError | None = None
        self.live = False
        self._file = open_file(path)
        self._head = b""
        if segment.start and path.name.endswith(".csv"):
            self._head = header_line(path)
        self.header_lines = self._head.count(b"\n")
        self._file.seek(segment.start)
        self._left = segment.end - segment.start

    def read(self, limit: int) -> bytes:
        if self._head:
            piece, self._head = self._head[:limit], self._head[limit:]
            return piece
        piece = self._file.read(min(limit, self._left))
        self._left -= len(piece)
        if self._left and not piece:
            self.error = changed(self._path, f"it ends {self._left} bytes before the end that it had")
        return piece

    def close(self) -> None:
        self._file.close()


def header_line(path: Path) -> bytes:
    """The first line of a file that is not empty, with its newline."""
    with open(path, "rb") as file:
        for line in file:
            if line.strip(b"\r\n"):
                return line
    return b""


def read_segment(segment: Segment, time_unit: str) -> Iterator[tuple[Edges, list[Reject]]]:
    """The edges of a segment, with the rejects found beside them."""
    if segment.end == WHOLE:
        yield from open_source(
            segment.path, stream=segment.stream, batch_rows=CHUNK_ROWS, time_unit=time_unit
        )
        return
    reader = SegmentReader(segment)
    text = TextReader(
        Path(segment.path),
        reader,
        segment.stream,
        CHUNK_ROWS,
        start=segment.start,
        line=reader.header_lines,
    )
    try:
        yield from text.chunks()
    finally:
        reader.close()
