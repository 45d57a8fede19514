"""What a cell keeps: the window's input as the truth, and operator state as a cache of what it leads to.

Spark's state store holds, for each cell, the edges that some window may still hold, in *pieces*: Arrow bytes
under a number that grows with arrival. A head lists them. Small pieces are merged by sixteens, so that a window of
a day in batches of a second is a few dozen of them, and an edge is rewritten a few times in its life. A piece
is dropped when all of its edges have expired.

Operator state is not in the store. It lives in the Python worker that had the cell last, under the token that
the head names; each batch gives it a new, random one. A worker that finds no state under the head's token (the
cell was elsewhere, its worker has ended, or a task failed after it had changed the arrays) makes it again: from
the last snapshot and the pieces since, or from all pieces. Snapshots are files beside the checkpoint, written
now and then; one that is missing, fails its checksum, or is of another plan is not used.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MERGE = 16
MOST_ROWS = 1 << 18
ALIGN = 64
PREFIX = 16
"""Bytes before the index of packed arrays: its length, and a checksum of all that follows."""

KEEP_SNAPSHOTS = 3


@dataclass
class Piece:
    """Some edges of a stream in the store: `rows` of them, all expired at `expiry`."""

    number: int
    stream: str
    rows: int
    expiry: int
    level: int = 0


@dataclass
class Head:
    """What is known of a cell besides its pieces' bytes.

    `streams` and `results` (query and head) are those of the last batch; `tells_late`, that its plan may have known
    answers to hold for longer than it had said. `open_rows`, `splits` and `added` are about the instant `time` (see
    `instants`): how many edges of each stream it has brought, how many it had where it was split, and the results
    that were added within it, each with the number of the part that came next.
    """

    token: int = 0
    pieces: list[Piece] = field(default_factory=list)
    next_number: int = 0
    snapshot: str = ""
    snapshot_number: int = 0
    heard: dict[str, float] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    time: int = -1
    open_rows: dict[str, int] = field(default_factory=dict)
    splits: list[dict[str, int]] = field(default_factory=list)
    added: list[tuple[str, str, int]] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    results: list[list[str]] = field(default_factory=list)
    tells_late: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        fields = dict(self.__dict__)
        fields["pieces"] = [[one.number, one.stream, one.rows, one.expiry, one.level] for one in self.pieces]
        return json.dumps(fields).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Head:
        fields = json.loads(data)
        fields["pieces"] = [Piece(*one) for one in fields["pieces"]]
        fields["added"] = [tuple(one) for one in fields.get("added", ())]
        return Head(**fields)

    def add(self, stream: str, rows: int, expiry: int) -> Piece:
        """A new piece at the end."""
        piece = Piece(self.next_number, stream, rows, expiry)
        self.pieces.append(piece)
        self.next_number += 1
        return piece

    def drop_expired(self, time: int) -> list[Piece]:
        """Take out the pieces of which nothing is valid after `time`."""
        gone = [one for one in self.pieces if one.expiry <= time]
        if gone:
            self.pieces = [one for one in self.pieces if one.expiry > time]
        return gone

    def mergeable(self, stream: str) -> list[Piece]:
        """The newest sixteen pieces of a stream that are to become one, or none.

        They are of one level and on one side of the last snapshot, which knows pieces by their number.
        """
        newest = [one for one in self.pieces if one.stream == stream][-MERGE:]
        alike = len({(one.level, one.number >= self.snapshot_number) for one in newest}) == 1
        if len(newest) < MERGE or not alike or sum(one.rows for one in newest) > MOST_ROWS:
            return []
        return newest

    def merge(self, pieces: list[Piece]) -> Piece:
        """Put one piece, under the number of the last, in the place of those given."""
        last = pieces[-1]
        made = Piece(
            last.number,
            last.stream,
            sum(one.rows for one in pieces),
            max(one.expiry for one in pieces),
            last.level + 1,
        )
        gone = {one.number for one in pieces}
        self.pieces = sorted(
            [one for one in self.pieces if one.number not in gone] + [made], key=lambda one: one.number
        )
        return made

    @property
    def rows_since_snapshot(self) -> int:
        return sum(one.rows for one in self.pieces if one.number >= self.snapshot_number)


def pack_arrays(stamp: str, arrays: Mapping[str, Array]) -> list[bytes | memoryview]:
    """Arrays as bytes to be written one after the other: a checksum, an index, then each array, aligned."""
    at = 0
    index: list[list[Any]] = []
    for name, array in arrays.items():
        index.append([name, array.dtype.str, list(array.shape), at])
        at += -(-array.nbytes // ALIGN) * ALIGN
    head = json.dumps({"stamp": stamp, "size": at, "arrays": index}).encode()
    parts: list[bytes | memoryview] = [head, bytes(-(len(head) + PREFIX) % ALIGN)]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, bytes(-array.nbytes % ALIGN)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [len(head).to_bytes(8, "little") + checksum.to_bytes(8, "little"), *parts]


def unpack_arrays(stamp: str, data: Array) -> dict[str, Array] | None:
    """The arrays that were packed with this stamp, as views of `data`; None where that is something else, or where
    it fails its checksum."""
    try:
        size = int.from_bytes(data[:8].tobytes(), "little")
        if zlib.crc32(data[PREFIX:].data) != int.from_bytes(data[8:PREFIX].tobytes(), "little"):
            return None
        head = json.loads(data[PREFIX : PREFIX + size].tobytes())
        base = -(-(size + PREFIX) // ALIGN) * ALIGN
        if head["stamp"] != stamp or data.size != base + head["size"]:
            return None
        arrays = {}
        for name, dtype, shape, at in head["arrays"]:
            count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            arrays[name] = data[base + at : base + at + count].view(dtype).reshape(shape)
    except (ValueError, KeyError, TypeError):
        return None
    return arrays


def write_snapshot(path: Path, stamp: str, arrays: Mapping[str, Array]) -> None:
    """Write arrays to a file that is there whole or not at all; the oldest files beside it go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with open(draft, "wb") as file:
        for part in pack_arrays(stamp, arrays):
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    others = sorted(path.parent.glob("*.snapshot"), key=lambda one: one.stat().st_mtime)
    for old in others[:-KEEP_SNAPSHOTS]:
        old.unlink(missing_ok=True)


def read_snapshot(path: Path, stamp: str) -> dict[str, Array] | None:
    """The arrays of a snapshot with this stamp, as views of the file; None where there is none that can be used."""
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return None
    return unpack_arrays(stamp, data)
