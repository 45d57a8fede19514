"""Answers of several writers in one order of time: the cells of a run, or the results of a query.

Each block of answers is in order of time, and no answer is earlier than those of the batch before it. Merged by time,
with equal times in the order of the blocks, an output can be the input of another run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import frozen
from meander.dataflow.sinks.parquet import unified
from meander.dataflow.sinks.sink import Block
from meander.kernels.jit import Array
from meander.kernels.parsing import NEWLINE
from meander.kernels.record_lines import RUNS, find_record_time, index_runs, place_spans, read_record_time

MERGED_BYTES = 1 << 20
"""About the bytes that are merged at a time: they fit a cache, and a system may take several times as long for larger
writes."""

FIRST_RUNS = 1 << 10
"""The times for which an index of lines has room at first."""


def merge_blocks(blocks: Sequence[Block]) -> Iterator[Block]:
    """The lines of all blocks in order of time."""
    contents = [(block, data) for block in blocks if (data := _bytes_of(block)).size]
    if len(contents) < 2 or _in_order([_time_span(data) for _, data in contents]):
        yield from (block for block, _ in contents)
        return
    # Lines of one time are moved at once: there are far fewer times than lines.
    indexed = [_index(data) for _, data in contents]
    source = np.repeat(np.arange(len(contents)), [ts.size for _, _, ts in indexed])
    start, end, ts = (np.concatenate(columns) for columns in zip(*indexed, strict=True))
    order = np.argsort(ts, kind="stable")
    source, start, end = source[order], start[order], end[order]
    offsets = np.concatenate([[0], np.cumsum(end - start)])
    bounds = np.searchsorted(offsets, np.arange(0, offsets[-1], MERGED_BYTES))
    for first, last in pairwise([*np.unique(bounds).tolist(), source.size]):
        out = np.empty(int(offsets[last] - offsets[first]), np.uint8)
        for number in np.unique(source[first:last]).tolist():
            runs = first + np.flatnonzero(source[first:last] == number)
            target = offsets[runs] - offsets[first]
            place_spans(contents[number][1], start[runs], end[runs], target, out)
        yield out.data


def merge_tables(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The rows of all tables in order of time; tables with other columns stay as they are, for the sink to refuse."""
    filled = [table for table in tables if table.num_rows]
    times = [table.column("ts").to_numpy() for table in filled]
    names = {tuple(table.schema.names) for table in filled}
    if len(filled) < 2 or len(names) > 1 or _in_order([(int(ts[0]), int(ts[-1])) for ts in times]):
        return filled
    order = np.argsort(np.concatenate(times), kind="stable")
    return [pa.concat_tables(unified(filled)).combine_chunks().take(pa.array(order))]


def _in_order(spans: Sequence[tuple[int, int]]) -> bool:
    """Whether each block begins when the one before it has ended."""
    return all(before[1] <= after[0] for before, after in pairwise(spans))


def _bytes_of(block: Block) -> Array:
    if isinstance(block, Path):
        mapped = np.memmap(block, np.uint8, "r") if block.stat().st_size else np.empty(0, np.uint8)
        return frozen(np.asarray(mapped))
    return frozen(np.frombuffer(block, np.uint8))


def _time_span(data: Array) -> tuple[int, int]:
    """The times of the first line and of the last."""
    last = len(data) - 1
    step = 1 << 12
    while last > 0:
        begin = max(0, last - step)
        ends = np.flatnonzero(data[begin:last] == NEWLINE)
        if ends.size or begin == 0:
            last = begin + int(ends[-1]) + 1 if ends.size else 0
            break
        step *= 2
    first, last = (find_record_time(data, line, data.size) for line in (0, last))
    return read_record_time(data, first, data.size), read_record_time(data, last, data.size)


def _index(data: Array) -> tuple[Array, Array, Array]:
    """Where the lines of each time begin and end, and the time."""
    start, ts = np.empty(FIRST_RUNS, np.int64), np.empty(FIRST_RUNS, np.int64)
    cursor = np.zeros(2, np.int64)
    while not index_runs(data, start, ts, cursor):
        start, ts = np.resize(start, 2 * start.size), np.resize(ts, 2 * ts.size)
    runs = int(cursor[RUNS])
    start, ts = start[:runs], ts[:runs]
    return start, np.append(start[1:], data.size), ts
