"""Two outputs, each in order of time, as one: as tuples, or as records with names for numbers.

Threads hand out what they have made for their share of the roots, so that in most instants one output has many tuples
and the other has many too: whole runs are copied.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.graph import Rows
from meander.kernels.interning import KIND, LENGTH, START, Names
from meander.kernels.jit import Array, inner_kernel, kernel, unsigned


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
    """Where the run from `begin` ends that comes before `other[at]`; at one instant (`least` is 0) it does not."""
    end = begin
    while end < ts.size and (at == other.size or ts[end] < other[at] + least):
        end += 1
    return end


@inner_kernel
def copy_rows(rows: Rows, begin: int, end: int, out: Rows, at: int) -> None:
    for i in range(end - begin):
        out.src[unsigned(at + i)] = rows.src[unsigned(begin + i)]
    for i in range(end - begin):
        out.trg[unsigned(at + i)] = rows.trg[unsigned(begin + i)]
    for i in range(end - begin):
        out.ts[unsigned(at + i)] = rows.ts[unsigned(begin + i)]
    for i in range(end - begin):
        out.exp[unsigned(at + i)] = rows.exp[unsigned(begin + i)]
    for i in range(end - begin):
        out.op[unsigned(at + i)] = rows.op[unsigned(begin + i)]


@kernel
def merge_rows(first: Rows, second: Rows, out: Rows) -> None:
    """At one instant the first comes first."""
    i = j = 0
    while i + j < out.ts.size:
        end = end_run(first.ts, i, second.ts, j, 1)
        copy_rows(first, i, end, out, i + j)
        i = end
        end = end_run(second.ts, j, first.ts, i, 0)
        copy_rows(second, j, end, out, i + j)
        j = end


@inner_kernel
def copy_named(rows: Rows, begin: int, end: int, names: Names, none: int, out: NamedRows, at: int) -> None:
    span = names.span
    for i in range(end - begin):
        row, to = unsigned(begin + i), unsigned(at + i)
        src, trg = unsigned(rows.src[row]), unsigned(rows.trg[row])
        out.src_start[to] = span[src, START]
        out.src_end[to] = span[src, START] + span[src, LENGTH]
        out.src_kind[to] = span[src, KIND]
        out.trg_start[to] = span[trg, START]
        out.trg_end[to] = span[trg, START] + span[trg, LENGTH]
        out.trg_kind[to] = span[trg, KIND]
    for i in range(end - begin):
        row, to = unsigned(begin + i), unsigned(at + i)
        out.ts[to] = rows.ts[row]
        out.exp[to] = none if rows.op[row] < 0 else rows.exp[row]
        out.op[to] = rows.op[row]


@kernel
def name_rows(first: Rows, second: Rows, names: Names, none: int, out: NamedRows) -> None:
    """Merged, with names; a record that ends an answer has `none` for an expiry."""
    i = j = 0
    while i + j < out.ts.size:
        end = end_run(first.ts, i, second.ts, j, 1)
        copy_named(first, i, end, names, none, out, i + j)
        i = end
        end = end_run(second.ts, j, first.ts, i, 0)
        copy_named(second, j, end, names, none, out, i + j)
        j = end
