"""The pipeline of a run: from the sources of its streams to the DataFrame of rows that leave its cells.

    chunks of edges  →  groupBy(cell).transformWithState(CellOperator)  →  chunks of answers, rejects and figures

With several cells there may be several stages, and the middle step is there for each of them, one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from meander.dataflow.layout import StreamLayout
from meander.options import SPARK_BATCH_ROWS, RunOptions
from meander.physical.stages import StagedPlan
from meander.physical.streams import PLAIN
from meander.spark.cell.job import Job, stage_jobs
from meander.spark.cell.scatter import Scatter
from meander.spark.checkpoint.generations import FIRST, SNAPSHOTS, Generation
from meander.spark.checkpoint.storage import Location
from meander.spark.compat import on_this_machine, parallel_tasks
from meander.spark.input.dataframes import send_to_one, send_to_several
from meander.spark.input.files import Intake, edge_frame, pack_scatter
from meander.spark.input.stream_source import StreamSource
from meander.spark.messages import CHUNK_TYPE, OUTPUT_TYPE, cell_keys
from meander.spark.workers.operator import CellOperator
from meander.spark.workers.pool import Pool


@dataclass(frozen=True)
class RunPlan:
    """What a run computes, and from what: its stages, its options, and the sources of its streams.

    `folder` is Meander's part of the checkpoint. With `follow`, files and folders are watched for more. Of the ledger
    no entry is read after that with the number `until`, if there is one.
    """

    run_id: str
    staged: StagedPlan
    options: RunOptions
    sources: Mapping[str, StreamSource]
    folder: Location
    follow: bool
    generation: Generation = FIRST
    until: int | None = None


def build_pipeline(
    spark: SparkSession, plan: RunPlan, formats: Mapping[str, str], *, prepare: bool = False
) -> tuple[Job, DataFrame]:
    """The job of the cells that answers leave from, and the DataFrame of their output rows.

    `formats` is by query how its answers are encoded. Nothing is started but what writes static DataFrames to the
    folder, and, to `prepare`, a worker of the cells.
    """
    options, streams = plan.options, plan.staged.streams
    cells = cell_keys(options.cells, options.cells)
    schemas, unit = plan.staged.schemas, options.time_unit

    def layout(name: str, source: StreamSource) -> StreamLayout:
        return source.layout(name, schemas.get(name, PLAIN), unit)

    sources = {
        name: plan.sources[name].materialize(
            spark, layout(name, plan.sources[name]), plan.folder / "static" / name
        )
        for name in streams
    }
    layouts = {name: layout(name, source) for name, source in sources.items()}
    files = {name: source for name, source in sources.items() if source.frame is None}
    several = options.cells > 1
    scatter = Scatter(tuple(cells), plan.staged.deliveries, options.lateness, options.max_jump)
    send = send_to_several(scatter) if several else send_to_one(cells[0])
    frames = {
        name: source.chunks(layouts[name], send)
        for name, source in sources.items()
        if source.frame is not None
    }
    intake = Intake(
        ledger=plan.folder / "ledger",
        streams=streams,
        paths={name: source.location for name, source in files.items()},
        cell=cells[0],
        bounded=tuple(name for name, source in files.items() if source.bounded or not plan.follow),
        batch_rows=options.batch_rows or SPARK_BATCH_ROWS,
        layouts={name: layouts[name].to_json() for name in files},
        tick=options.idle if plan.follow and len(streams) > 1 else None,
        tasks=parallel_tasks(spark),
        scatter=pack_scatter(scatter) if several else "",
        after=plan.generation.entry,
        until=plan.until,
    )
    # The processes of executors have working folders of their own.
    shared = plan.folder.absolute() if isinstance(plan.folder, Path) else plan.folder
    jobs = stage_jobs(
        plan.staged,
        cells,
        run=plan.run_id,
        formats=formats,
        options=options,
        layouts=layouts,
        started=time.time(),
        unordered=frozenset(frames),
        snapshots=shared / SNAPSHOTS,
        seeds=plan.generation.seeds(shared) if plan.generation.seeded else "",
        spool=str(spool_folder(plan)) if on_this_machine(spark) else "",
    )
    pool = Pool(spark, jobs)
    if prepare:
        pool.prepare()
    rows = edge_frame(spark, intake)
    for frame in frames.values():
        rows = rows.union(frame)
    if several and len(streams) > 1:
        # Which streams are silent is a matter of wall time, and all cells have to agree on it: Spark gives a batch
        # one time, also when it is repeated.
        rows = rows.withColumn("now", F.current_timestamp().cast("double"))
    if not several and not frames:
        # A batch is one row: the cell can take it as it is, without an exchange.
        rows = rows.coalesce(1)
    for job in jobs:
        schema = OUTPUT_TYPE if job.stage == job.last else CHUNK_TYPE
        with pool.declared():
            rows = rows.groupBy("cell").transformWithState(CellOperator(job), schema, "Append", "None")
    return jobs[-1], rows


def spool_folder(plan: RunPlan) -> Path:
    """Where cells leave large answers for a driver on the same machine: in the checkpoint, or, if that is in a store,
    in a folder that Spark removes at its end."""
    if isinstance(plan.folder, Path):
        return plan.folder / "spool"
    return Path(SparkFiles.getRootDirectory()) / f"meander-{plan.run_id[:16]}" / "spool"
