"""Rows of chunks: how edges, rejects and answers cross between Spark and Python.

Spark's Python operators cost microseconds a row, whatever the row holds. So a row here is a *chunk*: some ten
thousand edges of one stream as an Arrow record batch in a binary column, next to the few plain columns that
Spark needs to route it (`cell`) and that a cell needs to order it (`place`). What is inside is `codec`'s matter.

A cell's key is not its number. Spark sends key `k` to partition `hash(k) mod partitions`, and small numbers
collide; `cell_keys` picks one key for each partition, so that N cells are N tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from meander.dataflow.edges import Edges

EDGES, REJECTS, TICK, ERROR, SEGMENTS, READ = "edges", "rejects", "tick", "error", "segments", "read"
CHANGED = "changed"  # a file is not as it was when it was read: nothing more of the input is read
"""What a row on its way to a cell holds. A tick wakes a cell that has no edges, and can close a stream; segments
of files are read by the cell itself; `READ` is how many bytes of files have been read."""

FRONTIER = "frontier"
"""What a row between stages holds, besides edges: how far the cell that sends it has come."""

ANSWERS, SPOOLED, FIGURES, FULL, JUMP = "answers", "spooled", "figures", "full", "jump"
"""What a row on its way out of a cell holds, besides rejects and errors. Spooled answers are in a file. Full: the
state of the cell does not fit or is damaged, and the batch counts for nothing. Jump: an edge whose time is
suspiciously far ahead."""

CHUNK_TYPE = "cell int, stage int, kind string, stream string, place long, data binary"
CHUNK_SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("stage", pa.int32()),
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("place", pa.int64()),
        ("data", pa.binary()),
    ]
)

RESULT_TYPE = "kind string, query string, head string, rows long, data binary"

CHUNK_ROWS = 1 << 16
"""Edges in a chunk, at most."""

CLOSED = b"closed"
"""In a tick: its stream has ended."""

PARTITION_SHIFT = 40
"""A chunk's place: the number of its partition above this bit, its number there below."""


class Chunk(NamedTuple):
    """One row on its way to the cells of a stage; those of one stream are taken in the order of `place`.

    Edges that the cell has read itself are at hand as `edges`, and not in `data`.
    """

    kind: str
    stream: str
    place: int
    data: bytes
    stage: int = 0
    edges: Edges | None = None


class Parcel(NamedTuple):
    """A chunk on its way from a cell to one of a later stage."""

    cell: int
    stage: int
    kind: str
    stream: str
    place: int
    data: bytes


def chunk_rows(chunks: Iterable[Chunk], cell: int) -> pa.RecordBatch:
    """Chunks as the rows that Spark sends to the cell that puts them in order."""
    rows = [(cell, chunk.stage, *chunk[:4]) for chunk in chunks]
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
