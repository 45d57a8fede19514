"""All cells of all stages in one process, one after the other: what Spark would have them do, without Spark.

The steps and the bytes between cells are the same; stores are dictionaries. For tests, to measure how work and
edges are spread over cells, which does not depend on where these run, and to load what work needs before there is
any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from meander.spark.cell.job import CellStore, Job, Output
from meander.spark.cell.step import advance
from meander.spark.messages import Chunk

Place = tuple[int, int]
"""A stage, and the key of a cell in it."""


class Memory:
    """A store whose uncommitted writes can be taken back, as Spark's can."""

    def __init__(self) -> None:
        self.committed: dict[str | int, bytes] = {}
        self.values: dict[str | int, bytes] = {}

    def commit(self) -> None:
        self.committed = dict(self.values)

    def roll_back(self) -> None:
        self.values = dict(self.committed)

    def read_head(self) -> bytes | None:
        return self.values.get("head")

    def write_head(self, head: bytes) -> None:
        self.values["head"] = head

    def read_ingest(self) -> bytes | None:
        return self.values.get("ingest")

    def write_ingest(self, arrays: bytes) -> None:
        self.values["ingest"] = arrays

    def read_piece(self, number: int) -> bytes:
        return self.values[number]

    def write_piece(self, number: int, edges: bytes) -> None:
        self.values[number] = edges

    def drop_piece(self, number: int) -> None:
        self.values.pop(number, None)


def no_incident(job: Job, cell: int, chunks: list[Chunk]) -> None:
    """Nothing happens to the cell before its step."""


def rehearse(
    jobs: Sequence[Job],
    stores: Mapping[Place, CellStore],
    chunks: Iterable[Chunk],
    *,
    before: Callable[[Job, int, list[Chunk]], Any] = no_incident,
    seconds: dict[Place, float] | None = None,
) -> Iterator[tuple[int, Output]]:
    """One batch through all stages: what leaves the last, each with the number of its cell.

    `before` is called before a cell's step, with what the cell is sent; `seconds` gets the processor time of each
    cell's steps added.
    """
    waiting = {jobs[0].cells[0]: list(chunks)}
    for job in jobs:
        sent: dict[int, list[Chunk]] = {}
        for number, cell in enumerate(job.cells):
            before(job, cell, waiting[cell])
            begun = time.process_time()
            # A cell that has no row would not be called by Spark, and time would not advance in it.
            for row in advance(job, cell, stores[job.stage, cell], waiting[cell]):
                if isinstance(row, Output):
                    yield number, row
                else:
                    chunk = Chunk(row.kind, row.stream, row.place, row.data, row.stage)
                    sent.setdefault(row.cell, []).append(chunk)
            if seconds is not None:
                spent = time.process_time() - begun
                seconds[job.stage, cell] = seconds.get((job.stage, cell), 0.0) + spent
        waiting = sent
