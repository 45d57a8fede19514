"""Another number of cells for a checkpoint: its run continues in a new generation (see `checkpoint.generations`).

A batch that Spark has begun is first ended by the cells that began it, as its answers may be in the outputs already.
Then nothing is under way: the state stores of the cells are read, and redistributed to seeds of the new cells. One
write of `run.json` ends the generation and begins the next, which reads on in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession

from meander.dataflow.tally import counted
from meander.engine import staged_plan
from meander.errors import StateError
from meander.options import RunOptions
from meander.physical.stages import StagedPlan
from meander.spark.cell.job import Job, stage_jobs
from meander.spark.cell.redistribution import StageCell, redistribute
from meander.spark.cell.store import InMemoryStore, damaged_state, read_seed, write_seed
from meander.spark.checkpoint.generations import (
    SNAPSHOTS,
    Generation,
    batch_files,
    committed,
    forget_ended,
    is_committed,
    last_entry,
)
from meander.spark.checkpoint.identity import (
    begin_generation,
    check_parts,
    check_same_queries,
    recorded_cells,
)
from meander.spark.checkpoint.locks import lock_checkpoint
from meander.spark.checkpoint.notes import missing_part, unseal, write_note
from meander.spark.checkpoint.storage import Location, children, remove_folder
from meander.spark.compat import session_settings
from meander.spark.input import sampling
from meander.spark.messages import cell_keys
from meander.spark.run import Run
from meander.spark.settings import query_settings
from meander.spark.start import (
    CheckedStart,
    RunRequest,
    check_start,
    identity_of,
    open_sinks,
    sample_input,
    start_run,
)
from meander.spark.workers.operator import INGEST, MANIFEST, STATE


def start_in_cells(
    request: RunRequest, staged: StagedPlan, checkpoint: Location, spark: Callable[[], SparkSession]
) -> Run:
    """As `start_run`; a run that had another number of cells continues in that of the request."""
    folder = checkpoint / "meander"
    cells = recorded_cells(folder) if check_parts(folder) else None
    if cells is None or cells == request.options.cells:
        return start_run(request, staged, checkpoint, spark)
    if request.options.proofs and cells > 1:
        raise StateError(
            f"proofs need one cell, and the checkpoint {checkpoint} has {cells}",
            hint="continue with --cells 1, and at the next start with --proofs",
        )
    before = replace(request, options=replace(request.options, cells=cells))
    staged_before = staged_plan(before.queries, before.options)
    with locked(checkpoint):
        checked = check_change(before, staged_before, checkpoint)
        log = checked.generation.spark(checkpoint)
        begun = batch_files(log)
        is_open = bool(begun) and not is_committed(log)
    tally = None
    if is_open:
        run = start_run(
            replace(before, trigger=None), staged_before, checkpoint, spark, until=last_entry(begun)
        )
        try:
            run.process_available()
        finally:
            run.stop()
        tally = run.tally
    if (folder / "ended").exists():
        run = start_run(before, staged_before, checkpoint, spark, tally=tally)
        run.notes.append(f"all input has been answered: the checkpoint keeps its {counted(cells, 'cell')}")
        return run
    with locked(checkpoint), ExitStack() as held:
        checked = check_change(before, staged_before, checkpoint)
        # An output that is refused is so before the checkpoint changes.
        open_sinks(before, checked, folder, held, spark)
        change_cells(request, staged, before.options, checked, checkpoint, spark())
    run = start_run(request, staged, checkpoint, spark, tally=tally)
    run.notes.append(
        f"{counted(cells, 'cell')} of the checkpoint became {request.options.cells}: they hold the same edges"
    )
    return run


@contextmanager
def locked(checkpoint: Location) -> Iterator[None]:
    """No run uses the checkpoint meanwhile."""
    lock = lock_checkpoint(checkpoint / "meander", checkpoint)
    try:
        yield
    finally:
        lock.release()


def check_change(before: RunRequest, staged: StagedPlan, checkpoint: Location) -> CheckedStart:
    """Check that the run could resume with the cells that it has, and that these can be changed; reads alone."""
    checked = check_start(before, staged, checkpoint)
    folder = checkpoint / "meander"
    hint = f"use --cells {before.options.cells}, or a new checkpoint"
    if checked.identity["frames"]:
        raise StateError(
            f"the number of cells of the checkpoint {checkpoint} cannot change: how far "
            f"{', '.join(checked.identity['frames'])} was read is known to Spark alone",
            hint=f"{hint}; it can change for files and folders",
        )
    check_same_queries(folder, before.queries, hint)
    log = checked.generation.spark(checkpoint)
    # The first generation shows where Spark's part is; a later one may not have begun.
    is_first = checked.generation.number == 0
    if is_first and children(folder / "ledger", ".json") and not (log / "metadata").exists():
        raise StateError(
            f"the number of cells of the checkpoint {checkpoint} cannot change: Spark's part of it is not at {log}",
            hint=hint,
        )
    batches, entry = committed(log)
    if batches and entry <= checked.generation.entry:
        raise missing_part(log / "offsets" / str(batches - 1))
    return checked


def change_cells(
    request: RunRequest,
    staged: StagedPlan,
    options: RunOptions,
    checked: CheckedStart,
    checkpoint: Location,
    spark: SparkSession,
) -> None:
    """Begin a generation with the cells of the request; the current one, with these options, has no open batch."""
    folder = checkpoint / "meander"
    ended = checked.generation
    forget_ended(checkpoint, ended)
    log = ended.spark(checkpoint)
    batches, entry = committed(log)
    statistics = sample_input(request, staged)
    staged = staged_plan(request.queries, request.options, statistics)
    begun = Generation(
        ended.number + 1,
        ended.batches + batches,
        entry or ended.entry,
        seeded=bool(batches) or ended.seeded,
    )
    if begun.seeded:
        jobs = jobs_of(checked.staged, options, checked.run_id)
        stores = read_stores(spark, jobs, log) if batches else read_seeds(jobs, ended.seeds(folder))
        new = jobs_of(staged, request.options, checked.run_id, begun.seeds(folder))
        remove_folder(begun.seeds(folder))
        for stage_cell, store in redistribute(jobs, stores, new).items():
            job = next(job for job in new if job.stage == stage_cell[0])
            write_seed(job.seed_path(stage_cell[1]), store)
    # A backup that was restored over a later checkpoint leaves one of its number.
    remove_folder(begun.spark(checkpoint))
    write_note(begun.statistics(folder), sampling.to_note(statistics))
    begin_generation(folder, begun, identity_of(request, staged))
    # They are of cells that do not exist any more.
    remove_folder(folder / SNAPSHOTS)


def jobs_of(staged: StagedPlan, options: RunOptions, run: str, seeds: Location | str = "") -> list[Job]:
    """The jobs of some cells, as far as they decide what these hold."""
    keys = cell_keys(options.cells, options.cells)
    return stage_jobs(staged, keys, run=run, formats={}, options=options, seeds=seeds)


def read_stores(spark: SparkSession, jobs: Sequence[Job], log: Location) -> Mapping[StageCell, InMemoryStore]:
    """What the cells held when Spark committed its last batch."""
    stores = {(job.stage, cell): InMemoryStore() for job in jobs for cell in job.cells}
    reader = spark.read.format("statestore").option("path", str(log)).option("stateVarName", STATE)
    with session_settings(spark, query_settings(len(jobs[0].cells))):
        for job in jobs:
            # Spark numbers stateful operators from the last one on.
            rows = reader.option("operatorId", job.last - job.stage).load()
            fields = rows.selectExpr("key.cell", "user_map_key.number", "user_map_value.content")
            for cell, number, sealed in fields.toLocalIterator():
                content = unseal(bytes(sealed))
                if content is None:
                    raise damaged_state()
                name = {MANIFEST: "manifest", INGEST: "ingest"}.get(number, number)
                stores[job.stage, cell].values[name] = content
    if any(store.read_manifest() is None for store in stores.values()):
        raise damaged_state()
    return stores


def read_seeds(jobs: Sequence[Job], seeds: Location) -> Mapping[StageCell, InMemoryStore]:
    """What the cells of a generation that has no batch begin with."""
    stores = {}
    for job in jobs:
        for cell in job.cells:
            stores[job.stage, cell] = InMemoryStore()
            read_seed(replace(job, seeds=seeds).seed_path(cell), stores[job.stage, cell])
    return stores
