"""Rows of chunks: how edges, rejects and answers cross between Spark and Python.

Spark's Python operators cost microseconds a row, whatever the row holds. So a row here is a *chunk*: some ten
thousand edges of one stream as an Arrow record batch in a binary column, next to the few plain columns that
Spark needs to route it (`cell`) and that a cell needs to order it (`place`). Arrow on both sides, no pickling.

A cell's key is not its number. Spark sends key `k` to partition `hash(k) mod partitions`, and small numbers
collide; `cell_keys` picks one key for each partition, so that N cells are N tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import Edges, Reject, Text, frozen

Array = np.ndarray[Any, Any]

EDGES, REJECTS, TICK, ERROR = "edges", "rejects", "tick", "error"
"""What a row on its way to a cell holds. A tick wakes a cell that has no edges, and can close a stream."""

ANSWERS, FIGURES = "answers", "figures"
"""What a row on its way out of a cell holds, besides rejects and errors."""

CHUNK_TYPE = "cell int, kind string, stream string, place long, data binary"
CHUNK_SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("place", pa.int64()),
        ("data", pa.binary()),
    ]
)

RESULT_TYPE = "kind string, query string, head string, rows long, data binary"

CHUNK_ROWS = 1 << 16
"""Edges in a chunk, at most."""


class Chunk(NamedTuple):
    """One row on its way to the cells; those of one stream are taken in the order of `place`."""

    kind: str
    stream: str
    place: int
    data: bytes


def encode_edges(edges: Edges, *, lines: bool) -> bytes:
    """Edges as Arrow bytes; with `lines`, also the text that each edge came from."""
    columns: dict[str, pa.Array] = {}
    texts = {"src": edges.src, "label": edges.label, "trg": edges.trg}
    if lines and edges.line is not None:
        texts["line"] = edges.line
    for name, text in texts.items():
        columns[name] = _binary_column(text)
        if text.kind.any():
            columns[f"{name}.kind"] = pa.array(text.kind, pa.int8())
    columns["ts"] = pa.array(edges.ts, pa.int64())
    columns["op"] = pa.array(edges.op, pa.int8())
    return _to_bytes(pa.record_batch(list(columns.values()), names=list(columns)))


def decode_edges(data: bytes) -> Edges:
    """The edges of `encode_edges`; their names are views of `data`."""
    batch = _from_bytes(data)
    return Edges(
        _text(batch, "src"),
        _text(batch, "label"),
        _text(batch, "trg"),
        batch.column("ts").to_numpy(zero_copy_only=True),
        batch.column("op").to_numpy(zero_copy_only=True),
        _text(batch, "line") if "line" in batch.schema.names else None,
    )


def encode_rejects(rejects: Sequence[Reject]) -> bytes:
    columns = {name: pa.array([getattr(one, name) for one in rejects], pa.string()) for name in Reject._fields}
    return _to_bytes(pa.record_batch(columns))


def decode_rejects(data: bytes) -> list[Reject]:
    return [Reject(**row) for row in _from_bytes(data).to_pylist()]


def chunk_rows(chunks: Iterable[Chunk], cells: Sequence[int]) -> pa.RecordBatch:
    """Chunks as the rows that Spark shuffles: edges and ticks to every cell, the rest to the first one alone."""
    rows = [
        (cell, *chunk) for chunk in chunks for cell in (cells if chunk.kind in (EDGES, TICK) else cells[:1])
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(CHUNK_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CHUNK_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=CHUNK_SCHEMA)


def cell_keys(cells: int, partitions: int) -> list[int]:
    """For each cell a key, no two of which share one of Spark's partitions while there are enough of these."""
    keys: list[int] = []
    taken: set[int] = set()
    candidate = 0
    while len(keys) < cells:
        partition = murmur3(candidate) % partitions
        if partition not in taken or len(taken) == partitions:
            keys.append(candidate)
            taken.add(partition)
        candidate += 1
    return keys


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an `int` column: Murmur3 of four bytes, as a signed number."""
    mask = 0xFFFFFFFF
    word = value * 0xCC9E2D51 & mask
    word = (word << 15 | word >> 17) & mask
    word = word * 0x1B873593 & mask
    state = seed ^ word
    state = (state << 13 | state >> 19) & mask
    state = (state * 5 + 0xE6546B64) & mask
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


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


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _from_bytes(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
