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
from meander.kernels.record_lines import index_records, read_record_time
from meander.kernels.spans import gather_spans

MERGED_LINES = 1 << 18
"""The lines that are merged at a time, unless more of them have one time."""


def merge_blocks(blocks: Sequence[Block]) -> Iterator[Block]:
    """The lines of all blocks in order of time."""
    contents = [(block, data) for block in blocks if (data := _bytes_of(block)).size]
    if len(contents) < 2 or _in_order([_time_span(data) for _, data in contents]):
        yield from (block for block, _ in contents)
        return
    indexed = [_index(data) for _, data in contents]
    sources = [data for _, data in contents]
    begin = [0] * len(indexed)
    times = np.sort(np.concatenate([ts for _, _, ts in indexed]))
    for last in [*times[MERGED_LINES - 1 :: MERGED_LINES].tolist(), int(times[-1])]:
        parts = []
        for number, (start, end, ts) in enumerate(indexed):
            stop = int(np.searchsorted(ts, last, side="right"))
            if stop > begin[number]:
                lines = slice(begin[number], stop)
                parts.append((sources[number], start[lines], end[lines], ts[lines]))
                begin[number] = stop
        if parts:
            yield _merged(parts)


def _merged(parts: Sequence[tuple[Array, Array, Array, Array]]) -> memoryview:
    """The lines of some ranges of blocks, in order of time."""
    data = np.concatenate([source[start[0] : end[-1]] for source, start, end, _ in parts])
    offsets = np.cumsum([0, *(int(end[-1] - start[0]) for _, start, end, _ in parts)])
    moved = list(zip(parts, offsets[:-1], strict=True))
    start = np.concatenate([start - start[0] + offset for (_, start, _, _), offset in moved])
    end = np.concatenate([end - start[0] + offset for (_, start, end, _), offset in moved])
    order = np.argsort(np.concatenate([ts for *_, ts in parts]), kind="stable")
    out, bounds = np.empty(data.size, np.uint8), np.empty(order.size + 1, np.int64)
    gather_spans(frozen(data), start[order], end[order], out, bounds)
    return out.data


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
    return read_record_time(data, 0, data.size), read_record_time(data, last, data.size)


def _index(data: Array) -> tuple[Array, Array, Array]:
    lines = int(np.count_nonzero(data == NEWLINE))
    start, end, ts = (np.empty(lines, np.int64) for _ in range(3))
    index_records(data, start, end, ts)
    return start, end, ts
