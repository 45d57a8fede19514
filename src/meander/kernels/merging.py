"""Two outputs, each in order of time, as one: as tuples, or as records with names for numbers.

Each thread emits the answers of its share of the roots, so in most instants both outputs have many tuples, and whole
runs are copied.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.interning import KIND, LENGTH, START, Names
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned
from meander.kernels.status import FOREVER


class NamedRows(NamedTuple):
    """Records: spans of the arena of names for both ends, then times."""

    src_start: Array
    src_end: Array
    src_kind: Array
    trg_start: Array
    trg_end: Array
    trg_kind: Array
    ts: Array
    exp: Array
    op: Array


@inner_kernel
def end_run(ts: Array, begin: int, other: Array, at: int, least: int) -> int:
    """The end of the run from `begin` that comes before `other[at]`; at equal times the first output comes first
    (`least` is 1 for it, 0 for the second)."""
    end = begin
    while end < ts.size and (at == other.size or ts[end] < other[at] + least):
        end += 1
    return end


@inner_kernel
def copy_rows(batch: Batch, begin: int, end: int, out: Batch, at: int) -> None:
    for i in range(end - begin):
        out.key[unsigned(at + i), SRC] = batch.key[unsigned(begin + i), SRC]
        out.key[unsigned(at + i), TRG] = batch.key[unsigned(begin + i), TRG]
    for i in range(end - begin):
        out.ts[unsigned(at + i)] = batch.ts[unsigned(begin + i)]
    for i in range(end - begin):
        out.exp[unsigned(at + i)] = batch.exp[unsigned(begin + i)]
    for i in range(end - begin):
        out.op[unsigned(at + i)] = batch.op[unsigned(begin + i)]


@kernel
def merge_rows(first: Batch, second: Batch, out: Batch) -> None:
    """Merge two batches of pairs by time; at one instant the first comes first."""
    i = j = 0
    while i + j < out.ts.size:
        end = end_run(first.ts, i, second.ts, j, 1)
        copy_rows(first, i, end, out, i + j)
        i = end
        end = end_run(second.ts, j, first.ts, i, 0)
        copy_rows(second, j, end, out, i + j)
        j = end


@kernel
def name_rows(batch: Batch, names: Names, none: int, out: NamedRows) -> None:
    """Write pairs with names; `none` is the expiry of a record that ends an answer, and of one that never ends."""
    span = names.span
    for i in range(batch.ts.size):
        row = unsigned(i)
        src, trg = unsigned(batch.key[row, SRC]), unsigned(batch.key[row, TRG])
        out.src_start[row] = span[src, START]
        out.src_end[row] = span[src, START] + span[src, LENGTH]
        out.src_kind[row] = span[src, KIND]
        out.trg_start[row] = span[trg, START]
        out.trg_end[row] = span[trg, START] + span[trg, LENGTH]
        out.trg_kind[row] = span[trg, KIND]
    for i in range(batch.ts.size):
        row = unsigned(i)
        out.ts[row] = batch.ts[row]
        # Without `or` the loop has no branch, and is vectorized.
        out.exp[row] = none if (batch.op[row] < 0) | (batch.exp[row] >= FOREVER) else batch.exp[row]
        out.op[row] = batch.op[row]
