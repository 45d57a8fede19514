"""All cells of all stages in one process, one after the other: what Spark would have them do, without Spark.

The steps and the bytes between cells are the same; stores are in memory. For tests, to measure how work and edges are
spread over cells, which does not depend on where these run, and to load code before there is work.
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

    def __init__(self, jobs: Sequence[Job], make_store: Callable[[], CellStore] = InMemoryStore) -> None:
        self.jobs = jobs
        self.stores: Mapping[StageCell, CellStore] = {
            (job.stage, cell): make_store() for job in jobs for cell in job.cells
        }
        self.cache = StateCache()
        self.seconds: dict[StageCell, float] = {}  # processor time of the steps of each cell

    def run_batch(
        self, chunks: Iterable[Chunk], before: Callable[[Job, int, list[Chunk]], Any] | None = None
    ) -> Iterator[tuple[int, Output]]:
        """One batch through all stages: the rows that leave the last, each with the number of its cell.

        `before` is called before a cell's step, with what the cell receives.
        """
        received = {self.jobs[0].cells[0]: list(chunks)}
        for job in self.jobs:
            sent: dict[int, list[Chunk]] = {}
            for number, cell in enumerate(job.cells):
                if before is not None:
                    before(job, cell, received[cell])
                begun = time.process_time()
                # Every cell has a row: Spark would not call one without, and time would not advance in it.
                step = CellStep(job, cell, self.stores[job.stage, cell], self.cache)
                for row in step.run(received[cell]):
                    if isinstance(row, Output):
                        yield number, row
                    else:
                        sent.setdefault(row.cell, []).append(row.chunk)
                spent = time.process_time() - begun
                self.seconds[job.stage, cell] = self.seconds.get((job.stage, cell), 0.0) + spent
            received = sent
