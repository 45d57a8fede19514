"""Batches in Python: how they are allocated, sliced, grown and merged. The type itself is `kernels.batch.Batch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from meander.dataflow.state import Array, Store
from meander.kernels.batch import Batch
from meander.kernels.merging import merge_rows

__all__ = [
    "NO_PAIRS",
    "Batch",
    "OutputBuffer",
    "concat_batches",
    "empty_batch",
    "grow_batch",
    "merge_inputs",
    "merge_outputs",
    "split_evenly",
    "take_rows",
]

LEAST_OUTPUT = 1024


def empty_batch(length: int, arity: int = 2) -> Batch:
    """Room for `length` tuples of `arity` key columns."""
    return Batch(
        np.empty((length, arity), np.int32),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int8),
        np.empty(length, np.int16),
    )


NO_PAIRS = empty_batch(0)


def take_rows(batch: Batch, rows: slice | Array) -> Batch:
    """Some rows of a batch: a view for a slice, a copy for a mask or positions."""
    key, ts, exp, op, source = batch
    if isinstance(rows, slice):
        return Batch(key[rows], ts[rows], exp[rows], op[rows], source[rows])
    # Several times faster than to index every column by a mask.
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    return Batch(key.take(rows, 0), ts.take(rows), exp.take(rows), op.take(rows), source.take(rows))


def grow_batch(batch: Batch, length: int, store: Store, name: str = "output") -> Batch:
    """The same tuples with room for `length`, which counts as memory of the store under `name`."""
    grown = empty_batch(length, batch.key.shape[1])
    store.count_buffer(name, sum(column.nbytes for column in grown))
    for column, old in zip(grown, batch, strict=True):
        column[: old.shape[0]] = old
    return grown


class OutputBuffer:
    """Where an operator writes its output; it grows when it is full, and counts as memory of the store."""

    def __init__(self, store: Store, arity: int = 2, name: str = "output") -> None:
        self.store = store
        self.name = name
        self.batch = empty_batch(store.first_capacity(LEAST_OUTPUT), arity)

    def grow(self) -> None:
        self.batch = grow_batch(self.batch, 2 * self.batch.ts.size, self.store, self.name)

    def rows(self, count: int) -> Batch:
        """The first `count` rows: they are overwritten when the operator writes again."""
        return take_rows(self.batch, slice(int(count)))


def concat_batches(batches: Sequence[Batch]) -> Batch:
    return Batch(*(np.concatenate(columns) for columns in zip(*batches, strict=True)))


def merge_inputs(batches: Sequence[Batch], sources: Sequence[int]) -> Batch:
    """The inputs of an operator merged by time; at one instant in the order given. `source` tells them apart.

    The keys have as many columns as the widest of them; what a narrower one lacks is zero.
    """
    tagged = [
        Batch(*batch[:-1], np.full(batch.ts.size, source, np.int16))
        for batch, source in zip(batches, sources, strict=True)
    ]
    if len(tagged) == 1:
        return tagged[0]
    nonempty = [batch for batch in tagged if batch.ts.size] or tagged[:1]
    if len(nonempty) == 1:
        return nonempty[0]
    arity = max(batch.key.shape[1] for batch in nonempty)
    merged = concat_batches([_widened(batch, arity) for batch in nonempty])
    return take_rows(merged, np.argsort(merged.ts, kind="stable"))


def _widened(batch: Batch, arity: int) -> Batch:
    lacking = arity - batch.key.shape[1]
    return batch._replace(key=np.pad(batch.key, ((0, 0), (0, lacking)))) if lacking else batch


def merge_outputs(parts: Sequence[Batch]) -> Batch:
    """Several outputs of pairs, each in order of time, as one."""
    merged, *rest = [part for part in parts if part.ts.size] or [NO_PAIRS]
    for part in rest:
        out = empty_batch(merged.ts.size + part.ts.size)
        merge_rows(merged, part, out)
        merged = out
    return merged


def split_evenly(batch: Batch, count: int) -> Iterator[slice]:
    """`count` slices of about equal length that cover a batch."""
    ends = batch.ts.size * np.arange(count + 1) // count
    return (slice(begin, end) for begin, end in pairwise(ends.tolist()))
