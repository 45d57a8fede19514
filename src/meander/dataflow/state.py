"""Where state lives: named, growable arrays, counted against one memory budget.

A `Store` owns the arrays of one operator. They are plain NumPy arrays, or views of files in a folder, so
that another process can open them and go on. A snapshot is a copy of them; restoring puts a copy back.
Operators keep no other state, but what can be rebuilt.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock, RLock
from typing import Any, ClassVar

import numpy as np

from meander.errors import ArgumentError, MemoryBudgetError, StateError

Array = np.ndarray[Any, Any]


CACHE_LINES = 128  # processors fetch lines of 64 bytes in pairs

# Set to a power of two, this is the most room that any table starts with: tests make every table fill early by it.
FIRST_CAPACITY = "MEANDER_FIRST_CAPACITY"


def first_capacity() -> int:
    """The most room that any table starts with."""
    text = os.environ.get(FIRST_CAPACITY) or str(1 << 62)
    capacity = int(text) if text.isascii() and text.isdecimal() else 0
    if capacity.bit_count() != 1:
        raise ArgumentError(
            f"{FIRST_CAPACITY}={text} is not a power of two", hint="set it to 1, 2, 4, …, or unset it"
        )
    return capacity


class Budget:
    """Counts the bytes of all stores of a dataflow, and refuses growth past `limit`."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.used = 0
        self.lock = Lock()
        self.first_capacity = first_capacity()

    def take(self, owner: str, size: int, total: int) -> None:
        """Account for `size` more bytes of `owner`, which then holds `total`."""
        with self.lock:
            if self.limit is not None and not self.has_room(size):
                raise MemoryBudgetError(
                    f"the memory budget of {format_bytes(self.limit)} is reached: {owner} would hold "
                    f"{format_bytes(total)} of {format_bytes(self.used + size)} in all",
                    hint="a larger --memory, a shorter window, --path-operator s-path, or a plan with less state "
                    "(`meander explain --stage plans`); answers up to the last batch are written",
                )
            self.used += size

    def has_room(self, size: int) -> bool:
        """Whether `size` more bytes are within the limit."""
        return self.limit is None or self.used + size <= self.limit

    def release(self, size: int) -> None:
        with self.lock:
            self.used -= size


class Store:
    """The named arrays of one operator."""

    def __init__(self, owner: str, budget: Budget | None = None, folder: Path | None = None) -> None:
        self.owner = owner
        self.budget = budget if budget is not None else Budget()
        self.folder = folder
        self.arrays: dict[str, Array] = {}
        self.scratch: set[str] = set()
        self.buffers: dict[str, int] = {}
        self.nbytes = 0
        self.growths = 0  # how often an array or a buffer has become larger
        self.lock = RLock()  # threads of one operator may each let an array grow
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def first_capacity(self, usual: int) -> int:
        """The room with which a table starts that `usual`ly has this much."""
        return min(usual, self.budget.first_capacity)

    def array(
        self,
        name: str,
        length: int,
        dtype: Any,
        fill: int = 0,
        width: int | None = None,
        scratch: bool = False,
    ) -> Array:
        """A new array under `name`, all `fill`; two-dimensional where `width` is given.

        A `scratch` array counts as memory, but holds nothing that cannot be rebuilt and is in no snapshot.
        """
        shape = (length,) if width is None else (length, width)
        with self.lock:
            array = self._allocate(name, shape, np.dtype(dtype))
            if fill:
                array[...] = fill
            self.arrays[name] = array
            if scratch:
                self.scratch.add(name)
            return array

    def grow(self, name: str, length: int, fill: int = 0) -> Array:
        """The array under `name` with room for `length` rows: what it held, then `fill`."""
        old = self.arrays[name]
        held = old.shape[0]
        if length <= held:
            return old
        with self.lock:
            array = self._allocate(name, (length, *old.shape[1:]), old.dtype)
            array[:held] = old
            if fill:
                array[held:] = fill
            self.arrays[name] = array
            return array

    def _allocate(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Zeros: memory that is not touched yet costs next to nothing, and much of a table never is."""
        old = self.arrays.get(name)
        size = int(math.prod(shape)) * dtype.itemsize
        freed = 0 if old is None else old.nbytes
        self._take(size - freed)
        self.growths += size > freed
        if self.folder is None:
            return zeros_apart(shape, dtype)
        # A file that an older mapping still shows is replaced, not truncated under it.
        path = self.folder / f"{name}.bin"
        path.unlink(missing_ok=True)
        return (
            np.asarray(np.memmap(path, dtype=dtype, mode="w+", shape=shape))
            if size
            else np.zeros(shape, dtype)
        )

    def count_buffer(self, name: str, size: int) -> None:
        """Count a buffer of `size` bytes that is no array of this store, such as an operator's output."""
        with self.lock:
            held = self.buffers.get(name, 0)
            self._take(size - held)
            self.growths += size > held
            self.buffers[name] = size

    def _take(self, size: int) -> None:
        """Account for `size` more bytes."""
        self.budget.take(self.owner, size, self.nbytes + size)
        self.nbytes += size

    def snapshot(self) -> dict[str, Array]:
        """A copy of every array that holds state, by name."""
        return {name: np.array(array) for name, array in self.arrays.items() if name not in self.scratch}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore a snapshot of this same operator; its owner must bind its tables again."""
        if set(arrays) != set(self.arrays) - self.scratch:
            raise StateError(f"the snapshot of {self.owner} does not belong to this plan")
        for name, array in arrays.items():
            fresh = self._allocate(name, array.shape, array.dtype)
            fresh[...] = array
            self.arrays[name] = fresh

    def close(self) -> None:
        self.budget.release(self.nbytes)
        self.nbytes = 0
        self.arrays.clear()
        self.buffers.clear()

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        return iter(self.arrays.items())


class Fields:
    """Named integers that are state: a subclass declares them, and each is one element of an array in a store.

    class Clock(Fields):
        time: int = -1
    """

    _defaults: ClassVar[dict[str, int]] = {}

    def __init_subclass__(cls) -> None:
        names = list(cls.__annotations__)
        cls._defaults = {name: cls.__dict__.get(name, 0) for name in names}
        for position, name in enumerate(names):
            setattr(cls, name, _field(position))

    def __init__(self, store: Store, name: str) -> None:
        self._arrays, self._name = store.arrays, name
        store.array(name, len(self._defaults), np.int64)[:] = list(self._defaults.values())


def _field(position: int) -> property:
    def read(self: Fields) -> int:
        return int(self._arrays[self._name][position])

    def write(self: Fields, value: int) -> None:
        self._arrays[self._name][position] = value

    return property(read, write)


def zeros_apart(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros that share no cache line with anything else: threads that write to one would wait for each other."""
    size = int(math.prod(shape)) * dtype.itemsize
    room = np.zeros(size + 3 * CACHE_LINES, np.uint8)
    address: int = room.__array_interface__["data"][0]
    return np.ndarray(shape, dtype, room, -address % CACHE_LINES + CACHE_LINES)


def format_bytes(size: int) -> str:
    """1536 → '1.5 KB', in powers of 1024."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError
