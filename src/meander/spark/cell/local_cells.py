"""All cells of all stages in one process, one after the other: what Spark would have them do, without Spark.

The steps and the bytes between readers and cells are the same; stores are in memory. For tests, to measure how work
and edges are spread over cells, which does not depend on where these run, and to load code before there is work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from meander.spark.cell.job import Job
from meander.spark.cell.recovery import StateCache
from meander.spark.cell.step import CellStep
from meander.spark.cell.store import CellStore, InMemoryStore
from meander.spark.messages import Chunk, Output

StageCell = tuple[int, int]
"""A stage, and the key of a cell in it."""


class LocalCells:
    """The cells of a run in this process, with their stores and their cache."""

    def __init__(
        self,
        jobs: Sequence[Job],
        make_store: Callable[[], CellStore] = InMemoryStore,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.jobs = jobs
        self.clock = clock
        self.stores: Mapping[StageCell, CellStore] = {
            (job.stage, cell): make_store() for job in jobs for cell in job.cells
        }
        self.cache = StateCache()
        self.seconds: dict[StageCell, float] = {}  # processor time of the steps of each cell
        self.reader_seconds = 0.0  # processor time to read chunks, and to send them to several cells

    def run_batch(
        self, chunks: Iterable[Chunk], before: Callable[[Job, int, list[Chunk]], Any] | None = None
    ) -> Iterator[tuple[int, Output]]:
        """One batch through all stages: the rows that leave the last, each with the number of its cell.

        `before` is called before a cell's step, with what the cell receives.
        """
        now = self.clock()
        received = self._read(chunks)
        for job in self.jobs:
            later: dict[tuple[int, int], list[Chunk]] = {}
            for number, cell in enumerate(job.cells):
                # What is for later stages goes with the cell, as on Spark.
                own = received.get((job.stage, cell), [])
                if before is not None:
                    before(job, cell, own)
                begun = time.process_time()
                # Every cell has a row: Spark would not call one without, and time would not advance in it.
                step = CellStep(job, cell, self.stores[job.stage, cell], self.cache, clock=lambda: now)
                for row in step.run(own):
                    if isinstance(row, Output):
                        yield number, row
                    else:
                        later.setdefault((job.stage + 1, row.cell), []).append(row.chunk)
                spent = time.process_time() - begun
                self.seconds[job.stage, cell] = self.seconds.get((job.stage, cell), 0.0) + spent
            received = later

    def _read(self, chunks: Iterable[Chunk]) -> dict[StageCell, list[Chunk]]:
        """What each cell of the first stage receives of the chunks that readers have read."""
        first = self.jobs[0]
        begun = time.process_time()
        received: dict[StageCell, list[Chunk]] = {}
        if first.stage == 0:
            received[0, first.cells[0]] = list(chunks)
        else:
            for message in first.scatter.send(chunks):
                received.setdefault((first.stage, message.cell), []).append(message.chunk)
        self.reader_seconds += time.process_time() - begun
        return received
