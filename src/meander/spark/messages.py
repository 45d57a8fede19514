"""Messages: the rows by which edges, rejects and answers cross between Spark and Python.

Spark's Python operators cost microseconds per row, whatever the row holds. So a row here is a *chunk*: some ten
thousand edges of one stream as an Arrow record batch in a binary column, next to the few plain columns that
Spark needs to route it (`cell`) and that a cell needs to order it (`position`). `edge_codec` encodes edges and
rejects; all other kinds of content are written and read here.

A cell's key is not its number. Spark sends key `k` to partition `hash(k) mod partitions`, and small numbers
collide; `cell_keys` picks one key for each partition, so that N cells are N tasks.

This module is imported by Spark's planning processes: it needs neither Numba nor the parsers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from meander import errors
from meander.errors import InputError, MeanderError

if TYPE_CHECKING:
    from meander.dataflow.edges import Edges


class Kind(StrEnum):
    """What a row holds."""

    # To a cell.
    EDGES = "edges"
    REJECTS = "rejects"
    TICK = "tick"  # nothing: it wakes a cell that has no edges
    CLOSED = "closed"  # the stream has ended
    SEGMENTS = "segments"  # parts of files, which the cell reads itself
    BYTES_READ = "bytes-read"  # of files
    LOST_ROWS = "lost-rows"  # why rows of the input could not be read
    INPUT_CHANGED = "input-changed"  # a file is not as it was when it was read: nothing more is read

    # From readers to several cells.
    SUMMARY = "summary"  # what every cell has to know of a chunk, whichever of its edges it reads
    ARRIVALS = "arrivals"  # a chunk as it was read, for the one cell that rejects what is late

    # Out of a cell, besides rejects and failures to read.
    ANSWERS = "answers"
    SPOOLED = "spooled"  # the path of a file that has answers
    FIGURES = "figures"
    CELL_FAILED = "cell-failed"  # its state is over budget or damaged: the batch counts for nothing
    JUMP = "jump"  # an edge whose time is suspiciously far ahead


OUTBOUND = frozenset(
    {
        Kind.REJECTS,
        Kind.LOST_ROWS,
        Kind.INPUT_CHANGED,
        Kind.FIGURES,
        Kind.CELL_FAILED,
        Kind.JUMP,
    }
)
"""The kinds that every stage forwards to the driver."""

CHUNK_TYPE = "cell int, stage int, kind string, stream string, position long, data binary"
CHUNK_SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("stage", pa.int32()),
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("position", pa.int64()),
        ("data", pa.binary()),
    ]
)

OUTPUT_TYPE = "kind string, query string, head string, rows long, data binary"

CHUNK_ROWS = 1 << 16
"""Edges in a chunk, at most."""

PARTITION_SHIFT = 40
"""A chunk's position: the number of its partition above this bit, its number there below."""


class Chunk(NamedTuple):
    """A row for a cell of a stage; those of one stream are taken in the order of `position`.

    Edges that the cell has read itself are in `edges`, and not in `data`.
    """

    kind: str
    stream: str
    position: int
    data: bytes
    stage: int = 0
    edges: Edges | None = None


class StageMessage(NamedTuple):
    """A chunk that a cell sends to a cell of a later stage."""

    cell: int
    stage: int
    kind: str
    stream: str
    position: int
    data: bytes

    @property
    def chunk(self) -> Chunk:
        """As the cell receives it."""
        return Chunk(self.kind, self.stream, self.position, self.data, self.stage)


class Output(NamedTuple):
    """A row that leaves the last stage."""

    kind: str
    query: str
    head: str
    rows: int
    data: bytes


def message_rows(messages: Iterable[StageMessage]) -> pa.RecordBatch:
    """Messages of a reader as the rows that Spark sends to cells."""
    columns = list(zip(*messages, strict=True)) or [()] * len(CHUNK_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CHUNK_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=CHUNK_SCHEMA)


def chunk_row(chunk: Chunk, cell: int) -> tuple[int, int, str, str, int, bytes]:
    """A chunk as the row that Spark sends to a cell."""
    return cell, chunk.stage, str(chunk.kind), chunk.stream, chunk.position, chunk.data


def chunk_rows(chunks: Iterable[Chunk], cell: int) -> pa.RecordBatch:
    """Chunks as the rows that Spark sends to the cell that puts them in order."""
    rows = [chunk_row(chunk, cell) for chunk in chunks]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(CHUNK_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CHUNK_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=CHUNK_SCHEMA)


# ---------------------------------------------------------------------------------------------------------
# To a cell


def tick(position: int = 0, now: float | None = None) -> Chunk:
    """Wakes a cell, and may bring the wall time by which all cells judge streams that are silent."""
    return Chunk(Kind.TICK, "", position, b"" if now is None else repr(now).encode())


def tick_time(chunks: Iterable[Chunk]) -> float | None:
    """The latest wall time that ticks have brought; None if they have brought none."""
    times = [float(chunk.data) for chunk in chunks if chunk.kind == Kind.TICK and chunk.data]
    return max(times, default=None)


def closed(stream: str) -> Chunk:
    """Ends a stream."""
    return Chunk(Kind.CLOSED, stream, 0, b"")


def segment_list(segments: Iterable[Sequence[Any]]) -> Chunk:
    """The segments of files that a batch reads."""
    return Chunk(Kind.SEGMENTS, "", 0, json.dumps([list(segment) for segment in segments]).encode())


def listed_segments(chunk: Chunk) -> list[list[Any]]:
    """The fields of each segment of a `segment_list`."""
    segments: list[list[Any]] = json.loads(chunk.data)
    return segments


def bytes_read(count: int, position: int = 0) -> Chunk:
    return Chunk(Kind.BYTES_READ, "", position, str(count).encode())


def byte_count(chunk: Chunk) -> int:
    return int(chunk.data)


def lost_rows(stream: str, error: InputError) -> Chunk:
    return Chunk(Kind.LOST_ROWS, stream, 0, str(error).encode())


def input_changed(message: str) -> Chunk:
    return Chunk(Kind.INPUT_CHANGED, "", 0, message.encode())


# ---------------------------------------------------------------------------------------------------------
# Out of a cell


def figures_row(figures: dict[str, Any]) -> Output:
    return Output(Kind.FIGURES, "", "", 1, json.dumps(figures).encode())


def failure_row(error: MeanderError) -> Output:
    fields = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    return Output(Kind.CELL_FAILED, "", "", 1, json.dumps(fields).encode())


def cell_failure(data: bytes) -> MeanderError:
    """The error of a `failure_row`."""
    fields = json.loads(data)
    error: MeanderError = getattr(errors, fields["error"])(fields["message"], hint=fields["hint"])
    return error


def jump_row(jump: Sequence[Any]) -> Output:
    return Output(Kind.JUMP, "", "", 1, json.dumps(jump).encode())


def input_error(data: bytes) -> InputError:
    """The error that a reader reported in a row of `LOST_ROWS` or `INPUT_CHANGED`."""
    message, _, hint = data.decode().partition("\nhint: ")
    return InputError(message, hint=hint)


# ---------------------------------------------------------------------------------------------------------
# Keys of cells


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
