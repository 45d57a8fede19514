"""All cells of all stages in one process, without Spark: the same steps, the same rows as bytes between them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from meander.dataflow.edges import INFINITY, Reject
from meander.dataflow.layout import stream_layouts
from meander.dataflow.tabular import from_tuples
from meander.engine import CompiledQuery, compile_query, staged_plan
from meander.options import RunOptions
from meander.physical.layouts import UNKNOWN, Statistics
from meander.physical.streams import StreamSchema
from meander.spark.cell import manifest
from meander.spark.cell.job import Job, stage_jobs
from meander.spark.cell.local_cells import LocalCells
from meander.spark.cell.manifest import SPARE_ROWS, TIER
from meander.spark.cell.recovery import StateCache
from meander.spark.cell.store import InMemoryStore
from meander.spark.edge_codec import decode_rejects, edges_chunk
from meander.spark.messages import Chunk, Kind, Output, cell_keys, closed
from strategies import Case

Incident = Callable[["Cells", Job, int, list[Chunk]], Any]


class TransactionalStore(InMemoryStore):
    """A store whose uncommitted writes can be undone, as Spark's can."""

    def __init__(self) -> None:
        super().__init__()
        self.committed: dict[str | int, bytes] = {}

    def commit(self) -> None:
        self.committed = dict(self.values)

    def roll_back(self) -> None:
        self.values = dict(self.committed)


class Cells:
    """The cells of a run. `step` is one batch; its rows are added to `answers` (by cell), `rejects` and `figures`."""

    def __init__(
        self,
        queries: Sequence[CompiledQuery],
        cells: int,
        *,
        snapshots: Path | str = "",
        unordered: frozenset[str] = frozenset(),
        started: float = 0.0,
        clock: Callable[[], float] = time.time,
        statistics: Statistics = UNKNOWN,
        **options: Any,
    ) -> None:
        self.options = RunOptions.of(cells=cells, **options)
        self.snapshots = str(snapshots)
        self.fields = {"unordered": unordered, "started": started}
        self.staged = staged_plan(queries, self.options, statistics)
        self.jobs = self.jobs_of(queries)
        self.local = LocalCells(self.jobs, TransactionalStore, clock=clock)
        self.answers: list[list[dict[str, Any]]] = [[] for _ in range(cells)]
        self.rejects: list[Reject] = []
        self.figures: list[dict[str, Any]] = []

    def jobs_of(self, queries: Sequence[CompiledQuery]) -> list[Job]:
        return stage_jobs(
            self.staged,
            cell_keys(self.options.cells, self.options.cells),
            run="run",
            formats={query.name: "jsonl" for query in queries},
            options=self.options,
            snapshots=self.snapshots,
            **self.fields,
        )

    @property
    def cache(self) -> StateCache:
        return self.local.cache

    def step(self, chunks: Sequence[Chunk], incident: Incident | None = None) -> None:
        """One batch through all stages; `incident` may take something from a cell before its step."""
        before = None if incident is None else lambda *task: incident(self, *task)
        for cell, row in self.local.run_batch(chunks, before):
            self.take(cell, row)

    def take(self, cell: int, row: Output) -> None:
        if row.kind == Kind.ANSWERS:
            self.answers[cell] += [json.loads(line) for line in row.data.splitlines()]
        elif row.kind == Kind.REJECTS:
            self.rejects += decode_rejects(row.data)
        elif row.kind == Kind.FIGURES:
            self.figures.append(json.loads(row.data))

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for of_cell in self.answers for record in of_cell]


def forget(cells: Cells, *task: Any) -> None:
    """The worker has lost the state of all its cells."""
    cells.cache.forget()


def compacting(tier: int) -> AbstractContextManager[Any]:
    """Stored input is compacted by so many blocks at a time, and all of it sooner than usual."""
    spare = SPARE_ROWS if tier == TIER else tier
    return patch.multiple(manifest, TIER=tier, SPARE_ROWS=spare)


def batches_of_case(case: Case, size: int, schemas: Mapping[str, StreamSchema]) -> Iterator[list[Chunk]]:
    """The usable edges of a case in batches of `size` per stream, then the streams' ends."""
    layouts = stream_layouts(schemas, case.streams, time_unit="s")
    usable = []
    for name, rows in case.streams.items():
        for edges, _ in from_tuples(rows, batch_rows=max(1, len(rows)), layout=layouts[name]):
            usable.append((name, edges))
    for start in range(0, max((edges.rows for _, edges in usable), default=0), size):
        parts = [(name, edges.take(slice(start, start + size))) for name, edges in usable]
        yield [edges_chunk(name, part) for name, part in parts if part.rows]
    yield [closed(name) for name in case.streams]


def run_case(
    case: Case,
    cells: int,
    size: int,
    *,
    plan: int | None = None,
    incident: Incident | None = None,
    **options: Any,
) -> Cells:
    """A case by a number of cells, all its edges in batches of `size`."""
    run = Cells(
        [compile_query(case.text, RunOptions(plan=plan), name="q")],
        cells,
        paths=case.paths,
        mode=case.mode,
        lateness=case.lateness,
        **options,
    )
    for chunks in batches_of_case(case, size, run.staged.schemas):
        run.step([chunk for chunk in chunks if chunk.stream in run.staged.streams], incident)
    last = run.figures[-run.jobs[-1].cells_of_all_stages :]
    assert all(figures["time"] == INFINITY for figures in last)
    return run
