"""From sources of edges to chunks: segments of files, batches of a DataFrame, records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from meander.dataflow.edges import Edges, Reason, Reject, empty_edges
from meander.dataflow.files import open_file
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.parquet import ParquetFormat
from meander.dataflow.sources.reader import read_file
from meander.dataflow.sources.registry import file_format
from meander.dataflow.sources.source import ReadOptions
from meander.dataflow.sources.text import TextReader
from meander.dataflow.tabular import from_arrow
from meander.errors import InputError
from meander.spark.checkpoint.storage import Location, ObjectPath, sibling
from meander.spark.edge_codec import rejects_chunk
from meander.spark.input.fingerprints import changed
from meander.spark.input.ledger import WHOLE, Segment
from meander.spark.messages import CHUNK_ROWS, Chunk, Kind, bytes_read, listed_segments, lost_rows

NO_STORE = Path()
"""In place of a checkpoint: all files are on disks."""

LayoutOf = Callable[[str], StreamLayout]
"""The layout of a stream's rows, by its name."""


def read_chunks(
    segments: Iterable[Segment], layout: LayoutOf, checkpoint: Location = NO_STORE
) -> Iterator[Chunk]:
    """The chunks of segments, in order, all at position 0; `layout` gives that of a stream.

    A file in a store is read as the `checkpoint` that is there too.
    """
    for segment in segments:
        stream = segment.stream
        try:
            for edges, rejects in read_segment(segment, layout(stream), checkpoint):
                yield from chunks_of(edges, rejects, stream)
        except InputError as error:
            # The edges before the damage are still processed; then the run ends with the error.
            yield lost_rows(stream, error)


def read_segments(
    chunks: Iterable[Chunk], layout: LayoutOf, checkpoint: Location = NO_STORE
) -> Iterator[Chunk]:
    """The same chunks; instead of a list of segments, the chunks that they hold, in order."""
    for chunk in chunks:
        if chunk.kind != Kind.SEGMENTS:
            yield chunk
            continue
        segments = [Segment(*fields) for fields in listed_segments(chunk)]
        yield bytes_read(size_of(segments, checkpoint), chunk.position)
        yield from prefetch(read_chunks(segments, layout, checkpoint))


def size_of(segments: Iterable[Segment], checkpoint: Location = NO_STORE) -> int:
    """The number of bytes in the segments."""
    return sum(
        file_size(sibling(segment.path, checkpoint)) if segment.end == WHOLE else segment.end - segment.start
        for segment in segments
    )


def file_size(path: Location) -> int:
    """The size of a file, 0 if it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def prefetch(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same chunks, each of them read while the one before it is in use."""
    with ThreadPoolExecutor(1) as reader:
        pending = reader.submit(next, chunks, None)
        while (chunk := pending.result()) is not None:
            pending = reader.submit(next, chunks, None)
            yield chunk


def batch_chunks(batch: pa.RecordBatch, layout: StreamLayout) -> list[Chunk]:
    """The chunks of a batch of a DataFrame with the columns of edges."""
    edges, rejects = from_arrow(batch, layout=layout, where=f"stream {layout.stream}")
    return list(chunks_of(edges.without_origin(), rejects, layout.stream))


def line_chunks(batch: pa.RecordBatch, layout: StreamLayout) -> list[Chunk]:
    """The chunks of a batch of records, whose one column has an edge as bytes: JSON, or fields with tabs between.

    Only JSON has names, so if columns are read by name the records are JSON.
    """
    stream = layout.stream
    values: list[bytes | None] = batch.column(0).to_pylist()
    lines = [b" ".join(value.splitlines()) for value in values if value]
    rejects = [Reject(stream, Reason.MISSING, "")] * (len(values) - len(lines))
    named = layout.types or layout.columns or (lines and lines[0].lstrip().startswith(b"{"))
    name = Path("records.jsonl" if named else "records.tsv")
    chunks = list(chunks_of(empty_edges(), rejects, stream))
    reader = TextReader(name, LineReader(b"\n".join(lines)), layout, CHUNK_ROWS, start=None)
    for edges, unparsable in reader.chunks():
        chunks += chunks_of(edges, unparsable, stream)
    return chunks


class LineReader:
    """Reads bytes that are in memory."""

    def __init__(self, content: bytes) -> None:
        self.error: InputError | None = None
        self.live = False
        self._content = content

    def read(self, limit: int) -> bytes:
        content, self._content = self._content[:limit], self._content[limit:]
        return content

    def close(self) -> None:
        pass


def chunks_of(edges: Edges, rejects: list[Reject], stream: str) -> Iterator[Chunk]:
    """Edges as they were read, and the rejects among them."""
    if rejects:
        yield rejects_chunk(stream, rejects)
    if edges.rows:
        yield Chunk(Kind.EDGES, stream, 0, b"", edges=edges)


class SegmentReader:
    """The bytes of a part of a text file; a part after the first begins with the file's header, if it has one."""

    def __init__(self, segment: Segment, layout: StreamLayout) -> None:
        path = Path(segment.path)
        self._path = path
        self.error: InputError | None = None
        self.live = False
        self._file = open_file(path)
        self._header = b""
        if segment.start and file_format(path).has_header(path, layout):
            self._header = header_line(path)
        self.header_lines = self._header.count(b"\n")
        self._file.seek(segment.start)
        self._left = segment.end - segment.start

    def read(self, limit: int) -> bytes:
        if self._header:
            content, self._header = self._header[:limit], self._header[limit:]
            return content
        content = self._file.read(min(limit, self._left))
        self._left -= len(content)
        if self._left and not content:
            self.error = changed(self._path, f"it ends {self._left} bytes before the end that it had")
        return content

    def close(self) -> None:
        self._file.close()


def header_line(path: Path) -> bytes:
    """The first line of a file that is not empty, with its newline."""
    with open(path, "rb") as file:
        for line in file:
            if line.strip(b"\r\n"):
                return line
    return b""


def read_segment(
    segment: Segment, layout: StreamLayout, checkpoint: Location = NO_STORE
) -> Iterator[tuple[Edges, list[Reject]]]:
    """The edges of a segment, with the rejects found beside them."""
    file = sibling(segment.path, checkpoint)
    if isinstance(file, ObjectPath):
        # Spark has written it, for a static DataFrame.
        yield from ParquetFormat().read(file, ReadOptions(layout, CHUNK_ROWS))
        return
    if segment.end == WHOLE:
        yield from read_file(segment.path, ReadOptions(layout, CHUNK_ROWS))
        return
    reader = SegmentReader(segment, layout)
    text = TextReader(
        Path(segment.path),
        reader,
        layout,
        CHUNK_ROWS,
        start=segment.start,
        line=reader.header_lines,
    )
    try:
        yield from text.chunks()
    finally:
        reader.close()
