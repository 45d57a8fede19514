"""Edges and rejects as Arrow bytes and back, without a Python object for an edge and without pickling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import Edges, Reject, Text, frozen, nameless


def encode_edges(edges: Edges, *, lines: bool, compressed: bool = False) -> bytes:
    """Edges as Arrow bytes; with `lines`, also the text that each edge came from.

    Compressed is for Spark's state store, where a byte is copied and written many times.
    """
    columns: dict[str, pa.Array] = {}
    texts = {"src": edges.src, "label": edges.label, "trg": edges.trg}
    if edges.exp is not None:
        # Derived tuples have a stream to themselves, and no label each.
        del texts["label"]
        columns["exp"] = pa.array(edges.exp, pa.int64())
    if lines and edges.line is not None:
        texts["line"] = edges.line
    for name, text in texts.items():
        columns[name] = _binary_column(text)
        if text.kind.any():
            columns[f"{name}.kind"] = pa.array(text.kind, pa.int8())
    columns["ts"] = pa.array(edges.ts, pa.int64())
    columns["op"] = pa.array(edges.op, pa.int8())
    return _to_bytes(pa.record_batch(list(columns.values()), names=list(columns)), compressed)


def decode_edges(data: bytes) -> Edges:
    """The edges of `encode_edges`; their names are views of `data`."""
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
    )


def encode_rejects(rejects: Sequence[Reject]) -> bytes:
    columns = {
        name: pa.array([getattr(one, name) for one in rejects], pa.string()) for name in Reject._fields
    }
    return _to_bytes(pa.record_batch(columns))


def decode_rejects(data: bytes) -> list[Reject]:
    return [Reject(**row) for row in _from_bytes(data).to_pylist()]


def _binary_column(text: Text) -> pa.Array:
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
