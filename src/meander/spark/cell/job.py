"""The job of a stage: what every cell of it does, sent to the workers with the operator."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from meander.dataflow.layout import StreamLayout
from meander.options import DEFAULTS, RunOptions
from meander.physical.plan import PhysicalPlan, ScanOp
from meander.physical.stages import Delivery, StagedPlan, longest_windows
from meander.spark.checkpoint.storage import Location, location

if TYPE_CHECKING:
    from meander.dataflow.edges import Array, Edges
    from meander.spark.cell.scatter import Scatter

FOREVER = 2**62
"""The expiry of a table's rows: as late as the end of bounded input."""


@dataclass(frozen=True)
class Job:
    """What every cell of a stage does. A single cell is stage 0; stages of several cells are numbered from 1 on, and
    stage 0 are the readers."""

    run: str
    plan: PhysicalPlan
    streams: tuple[str, ...]  # that come from outside
    cells: tuple[int, ...]  # the keys of the stage's cells
    formats: Mapping[str, str]  # by query: how its answers are encoded
    options: RunOptions = DEFAULTS
    layouts: Mapping[str, StreamLayout] = field(default_factory=dict)  # by stream: how its rows are read
    started: float = 0.0  # when the run was started, in seconds of wall time
    windows: Mapping[str, int] = field(default_factory=dict)  # by stream: its longest window
    unordered: frozenset[str] = frozenset()  # streams that arrive in partitions without an order among them
    in_full: frozenset[tuple[str, str]] = (
        frozenset()
    )  # results (query, head) that every cell computes in full
    snapshots: Location | str = ""  # the folder of snapshots; none are taken without
    seeds: Location | str = ""  # the folder of the seeds that new cells begin with, if they do
    spool: str = ""  # where large answers wait for the driver, if it is on the same machine
    stage: int = 0
    last: int = 0  # the number of the last stage
    deliveries: tuple[Delivery, ...] = ()  # what later stages read
    targets: tuple[int, ...] = ()  # the keys of the cells of each later stage

    @functools.cached_property
    def stamp(self) -> str:
        """Identifies the plan and the version that a snapshot belongs to."""
        known = (
            installed_version(),
            self.plan,
            self.options.mode,
            self.options.paths,
            self.options.proofs,
            self.cells,
        )
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    @functools.cached_property
    def live_stamp(self) -> str:
        """Identifies state that can continue under this job, among that of other starts of the same run."""
        options = self.options
        return f"{self.stamp}/{options.lateness}/{options.max_jump}/{options.memory}/{options.threads}"

    def layout(self, stream: str) -> StreamLayout:
        """How the rows of a stream are read."""
        return self.layouts.get(stream) or StreamLayout(stream, self.options.time_unit)

    @property
    def scatter(self) -> Scatter:
        """How readers send edges to the cells of all stages."""
        # The processes that only ask for a source's offsets do without what this imports.
        from meander.spark.cell.scatter import Scatter

        options = self.options
        return Scatter(self.targets, self.deliveries, options.lateness, options.max_jump)

    @property
    def cells_of_all_stages(self) -> int:
        return max(1, self.last) * len(self.cells)

    def number(self, cell: int) -> int:
        """A cell's number among those of all stages."""
        return max(0, self.stage - 1) * len(self.cells) + self.cells.index(cell)

    def snapshot_path(self, cell: int, name: str) -> Location:
        return location(self.snapshots) / f"cell-{self.number(cell)}" / f"{name}.snapshot"

    def seed_path(self, cell: int) -> Location:
        return location(self.seeds) / f"cell-{self.number(cell)}.seed"

    def brings_expiries(self, stream: str, edges: Edges) -> bool:
        """Whether edges have an expiry of their own, as derived tuples do, and those of a stream of tuples."""
        return edges.exp is not None or any(scan.tuples for scan in self.scans(stream))

    def expiries(self, stream: str, edges: Edges) -> Array:
        """When each edge leaves the last window that reads it; tuples bring their expiry."""
        if edges.exp is not None:
            return edges.exp
        scans = self.scans(stream)
        if any(scan.table for scan in scans):
            return np.full(edges.rows, FOREVER)
        return latest_ends(scans, edges)

    def settled(self, stream: str, edges: Edges, reached: int) -> int:
        """How many of some edges in order of time are before the time reached, and in no window any more that reads
        the stream beside tables; tuples are in none."""
        before = edges.ts < reached
        windows = [scan for scan in self.scans(stream) if not scan.table and not scan.tuples]
        if windows and edges.exp is None:
            before &= latest_ends(windows, edges) < reached
        return int(before.sum())

    @property
    def tables(self) -> frozenset[str]:
        """The streams that some operator reads as tables."""
        scans = [operator for operator in self.plan.operators if isinstance(operator, ScanOp)]
        return frozenset(scan.source.name for scan in scans if scan.table)

    def scans(self, stream: str) -> list[ScanOp]:
        """The scans of a stream."""
        return [
            operator
            for operator in self.plan.operators
            if isinstance(operator, ScanOp) and operator.source.name == stream
        ]


def latest_ends(scans: Sequence[ScanOp], edges: Edges) -> Array:
    """When each edge leaves the last of the windows of some scans; tuples bring their expiry."""
    # Planning does without the kernels, which this needs.
    from meander.dataflow.records import expiries

    ends = [
        expiries(edges) if scan.tuples else edges.ts // scan.slide * scan.slide + scan.window
        for scan in scans
    ]
    latest: Array = np.maximum.reduce(ends) if ends else edges.ts
    return latest


def stage_jobs(
    staged: StagedPlan, keys: Sequence[int], *, run: str, formats: Mapping[str, str], **fields: Any
) -> list[Job]:
    """The job of each stage of cells; `keys` are those of the cells of every stage.

    `fields` are further fields of all jobs.
    """
    windows = longest_windows(operator for stage in staged.stages for operator in stage.plan.operators)
    return [
        Job(
            run=run,
            plan=stage.plan,
            streams=staged.streams,
            cells=tuple(keys),
            formats=formats,
            in_full=stage.in_full,
            stage=number,
            last=len(staged.stages) - 1,
            deliveries=staged.deliveries,
            targets=tuple(keys),
            windows=windows,
            **fields,
        )
        for number, stage in enumerate(staged.stages)
        if number or len(staged.stages) == 1
    ]


@functools.cache
def installed_version() -> str:
    try:
        return version("meander")
    except PackageNotFoundError:
        return ""
