"""Edges and rejects as Arrow bytes, and the messages that hold them, without a Python object for each edge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.dataflow.edges import CodedText, Edges, Origin, Reject, Text, frozen, nameless
from meander.spark.columns import is_packed, pack_edges, unpack_edges
from meander.spark.messages import Chunk, Kind, Output

ORIGIN = b"origin"
"""The metadata of edges that know where they were read: path, start, and the first line if lines have no gap."""

PROPERTY = "property."
"""Before the name of a property's column."""


def edges_chunk(stream: str, edges: Edges, position: int = 0, *, lines: bool = False) -> Chunk:
    """Edges on their way to a cell; `lines` as for `encode_edges`."""
    return Chunk(Kind.EDGES, stream, position, encode_edges(edges, lines=lines))


def packed_chunk(chunk: Chunk) -> Chunk:
    """A chunk whose edges, with the text that they came from, are bytes."""
    if chunk.edges is None:
        return chunk
    return chunk._replace(data=encode_edges(chunk.edges, lines=True), edges=None)


def chunk_edges(chunk: Chunk) -> Edges:
    """The edges of a chunk."""
    return decode_edges(chunk.data) if chunk.edges is None else chunk.edges


def rejects_chunk(stream: str, rejects: Sequence[Reject], position: int = 0) -> Chunk:
    return Chunk(Kind.REJECTS, stream, position, encode_rejects(rejects))


def rejects_row(rejects: Sequence[Reject]) -> Output:
    """Rejects on their way out of a cell."""
    return Output(Kind.REJECTS, "", "", len(rejects), encode_rejects(rejects))


def encode_edges(edges: Edges, *, lines: bool, compressed: bool = False) -> bytes:
    """Edges as bytes; with `lines`, also the text that each edge came from, and where it was read.

    If their names are codes, they are packed as `columns` does, or else as Arrow does.
    `compressed` is for Spark's state store, which copies and writes each byte many times.
    """
    if isinstance(edges.src, CodedText) and not lines:
        return pack_edges(edges, compressed=compressed)
    columns: dict[str, pa.Array] = {}
    texts = {"src": edges.src.plain(), "label": edges.label.plain(), "trg": edges.trg.plain()}
    if edges.exp is not None:
        # Derived tuples have a stream to themselves, and no label each.
        del texts["label"]
        columns["exp"] = pa.array(edges.exp, pa.int64())
    if lines and edges.line is not None:
        texts["line"] = edges.line
    for name, text in texts.items():
        columns[name] = binary_column(text)
        if text.kind.any():
            columns[f"{name}.kind"] = pa.array(text.kind, pa.int8())
    columns["ts"] = pa.array(edges.ts, pa.int64())
    columns["op"] = pa.array(edges.op, pa.int8())
    if edges.vertex is not None and edges.vertex.any():
        columns["vertex"] = pa.array(edges.vertex)
    for name, column in (edges.properties or {}).items():
        columns[PROPERTY + name] = column
    metadata = None
    if lines and edges.origin is not None and edges.rows:
        path, start, line, _ = edges.origin
        first = int(line[0])
        # As a rule every line is an edge, and the number of the first gives those of all.
        if int(line[-1]) - first != line.size - 1:
            columns["origin.line"] = pa.array(line, pa.int64())
        metadata = {ORIGIN: json.dumps([path, start, first]).encode()}
    batch = pa.record_batch(list(columns.values()), names=list(columns), metadata=metadata)
    return _to_bytes(batch, compressed)


def decode_edges(data: bytes) -> Edges:
    """The edges of `encode_edges`; their names may be views of `data`."""
    if is_packed(data):
        return unpack_edges(data)[0]
    batch = _from_bytes(data)
    derived = "exp" in batch.schema.names
    return Edges(
        _text(batch, "src"),
        nameless(batch.num_rows) if derived else _text(batch, "label"),
        _text(batch, "trg"),
        batch.column("ts").to_numpy(zero_copy_only=True),
        batch.column("op").to_numpy(zero_copy_only=True),
        _text(batch, "line") if "line" in batch.schema.names else None,
        batch.column("exp").to_numpy(zero_copy_only=True) if derived else None,
        _origin(batch),
        _properties(batch),
        batch.column("vertex").to_numpy(zero_copy_only=False) if "vertex" in batch.schema.names else None,
    )


def _properties(batch: pa.RecordBatch) -> dict[str, pa.Array] | None:
    columns = {
        name.removeprefix(PROPERTY): column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name.startswith(PROPERTY)
    }
    return columns or None


def _origin(batch: pa.RecordBatch) -> Origin | None:
    metadata = batch.schema.metadata or {}
    if ORIGIN not in metadata:
        return None
    path, start, first = json.loads(metadata[ORIGIN])
    if "origin.line" in batch.schema.names:
        return Origin(path, start, batch.column("origin.line").to_numpy(zero_copy_only=True))
    return Origin(path, start, np.arange(first, first + batch.num_rows, dtype=np.int64))


REJECT_TYPES = {"line": pa.int64(), "start": pa.int64()}


def encode_rejects(rejects: Sequence[Reject]) -> bytes:
    columns = {
        name: pa.array([getattr(reject, name) for reject in rejects], REJECT_TYPES.get(name, pa.string()))
        for name in Reject._fields
    }
    return _to_bytes(pa.record_batch(columns))


def decode_rejects(data: bytes) -> list[Reject]:
    return [Reject(**row) for row in _from_bytes(data).to_pylist()]


def count_rejects(data: bytes) -> int:
    return int(_from_bytes(data).num_rows)


def reject_reasons(data: bytes) -> Iterator[tuple[Reject, int]]:
    """For each reason the first reject and the number of rejects, without an object for each of them."""
    batch = _from_bytes(data)
    reasons = batch.column("reason")
    for counted in reasons.value_counts().to_pylist():
        first = pc.index(reasons, counted["values"]).as_py()
        yield Reject(**batch.slice(first, 1).to_pylist()[0]), counted["counts"]


def binary_column(text: Text) -> pa.Array:
    data, offsets = text.packed()
    return pa.Array.from_buffers(
        pa.large_binary(), text.rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _text(batch: pa.RecordBatch, name: str) -> Text:
    column = batch.column(name)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(column) + 1, column.offset * 8)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    kind_name = f"{name}.kind"
    kind = (
        batch.column(kind_name).to_numpy(zero_copy_only=True)
        if kind_name in batch.schema.names
        else np.zeros(len(column), np.int8)
    )
    return Text(frozen(data), offsets[:-1], offsets[1:], kind)


def _to_bytes(batch: pa.RecordBatch, compressed: bool = False) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _from_bytes(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
