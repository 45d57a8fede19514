"""What outlives a cell's worker: its state in Spark's store, and snapshots in files.

The store has the truth: the manifest, the ingest's state and the blocks of input. Snapshots of operator state are a
cache beside the checkpoint: one that is missing, fails its checksum, or is of another plan is not used.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from meander.dataflow.state import Array
from meander.errors import StateError
from meander.spark.checkpoint.notes import START_OVER, damaged, missing_part
from meander.spark.checkpoint.storage import Location, ObjectPath, children, write_whole

ALIGN = 64
PREFIX = 16
"""Bytes before the index of packed arrays: its length, and a checksum of all that follows."""

KEEP_SNAPSHOTS = 3
SEED = "seed"


class CellStore(Protocol):
    """The state of one cell, written and committed with each batch: Spark's state store, or one in memory."""

    def read_manifest(self) -> bytes | None: ...
    def write_manifest(self, manifest: bytes) -> None: ...
    def read_ingest(self) -> bytes | None: ...
    def write_ingest(self, arrays: bytes) -> None: ...
    def read_block(self, number: int) -> bytes: ...
    def write_block(self, number: int, edges: bytes) -> None: ...
    def drop_block(self, number: int) -> None: ...


class InMemoryStore:
    """A store that ends with its process."""

    def __init__(self) -> None:
        self.values: dict[str | int, bytes] = {}  # the manifest, the ingest, and blocks by their numbers

    def read_manifest(self) -> bytes | None:
        return self.values.get("manifest")

    def write_manifest(self, manifest: bytes) -> None:
        self.values["manifest"] = manifest

    def read_ingest(self) -> bytes | None:
        return self.values.get("ingest")

    def write_ingest(self, arrays: bytes) -> None:
        self.values["ingest"] = arrays

    def read_block(self, number: int) -> bytes:
        return self.values[number]

    def write_block(self, number: int, edges: bytes) -> None:
        self.values[number] = edges

    def drop_block(self, number: int) -> None:
        self.values.pop(number, None)


def damaged_state() -> StateError:
    """The window's input is not what was stored: there is nothing to rebuild it from."""
    return StateError(
        "the state store in the folder spark of the checkpoint is damaged: it fails its checksum",
        hint=f"restore the checkpoint from a backup, or {START_OVER}",
    )


def pack_arrays(stamp: str, arrays: Mapping[str, Array]) -> list[bytes | memoryview]:
    """Arrays as bytes to be written one after the other: a checksum, an index, then each array, aligned."""
    offset = 0
    arrays_index: list[list[Any]] = []
    for name, array in arrays.items():
        arrays_index.append([name, array.dtype.str, list(array.shape), offset])
        offset += -(-array.nbytes // ALIGN) * ALIGN
    index = json.dumps({"stamp": stamp, "size": offset, "arrays": arrays_index}).encode()
    parts: list[bytes | memoryview] = [index, bytes(-(len(index) + PREFIX) % ALIGN)]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, bytes(-array.nbytes % ALIGN)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [len(index).to_bytes(8, "little") + checksum.to_bytes(8, "little"), *parts]


def unpack_arrays(stamp: str, data: Array) -> dict[str, Array] | None:
    """The arrays that were packed with this stamp, as views of `data`; None if it has another stamp or fails its
    checksum."""
    try:
        size = int.from_bytes(data[:8].tobytes(), "little")
        if zlib.crc32(data[PREFIX:].data) != int.from_bytes(data[8:PREFIX].tobytes(), "little"):
            return None
        index = json.loads(data[PREFIX : PREFIX + size].tobytes())
        base = -(-(size + PREFIX) // ALIGN) * ALIGN
        if index["stamp"] != stamp or data.size != base + index["size"]:
            return None
        arrays = {}
        for name, dtype, shape, offset in index["arrays"]:
            count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            arrays[name] = data[base + offset : base + offset + count].view(dtype).reshape(shape)
    except (ValueError, KeyError, TypeError):
        return None
    return arrays


def write_snapshot(path: Location, stamp: str, arrays: Mapping[str, Array]) -> None:
    """Write arrays to a file that exists whole or not at all; the oldest snapshots beside it are deleted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, *pack_arrays(stamp, arrays))
    snapshots = children(path.parent, ".snapshot")
    for old in sorted(snapshots, key=lambda snapshot: snapshot.stat().st_mtime_ns)[:-KEEP_SNAPSHOTS]:
        old.unlink(missing_ok=True)


def read_snapshot(path: Location, stamp: str) -> dict[str, Array] | None:
    """The arrays of a snapshot with this stamp, as views of the file; None if there is no usable one."""
    try:
        if isinstance(path, ObjectPath):
            data: Array = np.frombuffer(path.read_bytes(), np.uint8)
        else:
            data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return None
    return unpack_arrays(stamp, data)


def write_seed(path: Location, store: InMemoryStore) -> None:
    """Write the state that a new cell is to begin with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {str(name): np.frombuffer(content, np.uint8) for name, content in store.values.items()}
    write_whole(path, *pack_arrays(SEED, arrays))


def read_seed(path: Location, store: CellStore) -> None:
    """Give a new cell the state that it begins with; without it, the edges of its window would be lost."""
    arrays = read_snapshot(path, SEED)
    if arrays is None:
        raise damaged(path) if path.exists() else missing_part(path)
    store.write_manifest(arrays.pop("manifest").tobytes())
    store.write_ingest(arrays.pop("ingest").tobytes())
    for number, edges in arrays.items():
        store.write_block(int(number), edges.tobytes())
