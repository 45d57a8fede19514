"""The start of a run: everything is checked before an output or the checkpoint changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from meander.dataflow.answers import INTEGERS, STRINGS, AnswerSchema
from meander.dataflow.tally import Tally
from meander.engine import CompiledQuery, staged_plan
from meander.errors import StateError
from meander.options import RunOptions
from meander.physical.layouts import UNKNOWN, Statistics
from meander.physical.stages import StagedPlan
from meander.physical.streams import PLAIN
from meander.spark.checkpoint.generations import (
    Generation,
    batch_files,
    current_generation,
    forget_ended,
    is_committed,
    last_entry,
)
from meander.spark.checkpoint.identity import (
    check_checkpoint,
    check_parts,
    record_queries,
    record_spark,
    recorded_cells,
    recorded_plans,
    recorded_sinks,
    run_identity,
)
from meander.spark.checkpoint.locks import lock_checkpoint
from meander.spark.checkpoint.notes import missing_part, read_note, write_note
from meander.spark.checkpoint.storage import Location, sibling
from meander.spark.compat import session_settings, use_this_python
from meander.spark.input import sampling
from meander.spark.input.ledger import Ledger
from meander.spark.input.stream_source import StreamSource, is_written
from meander.spark.output.handover import check_handover
from meander.spark.output.outputs import Outputs, SinkOpener, open_outputs
from meander.spark.pipeline import RunPlan, build_pipeline
from meander.spark.run import Run, check_damage
from meander.spark.settings import query_settings

KEPT_PLAN = "the cells of this checkpoint hold what another plan reads: the run continues with that plan"


@dataclass(frozen=True)
class RunRequest:
    """What `Session.start` received, besides the checkpoint."""

    queries: Sequence[CompiledQuery]
    options: RunOptions
    sources: Mapping[str, StreamSource]
    sinks: Mapping[str, Any]  # by query
    rejects: Any = None
    metrics: str | None = None
    follow: bool = True
    trigger: str | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class CheckedStart:
    """A start that the checkpoint allows, with the plan of its cells."""

    generation: Generation
    run_id: str
    identity: dict[str, Any]
    staged: StagedPlan
    statistics: Statistics
    kept_plan: bool  # the plan is that of the checkpoint, not the one that would be chosen now


def check_start(request: RunRequest, staged: StagedPlan, checkpoint: Location) -> CheckedStart:
    """Check a start, with the plan that it would have without a checkpoint, against the checkpoint; reads alone."""
    folder = checkpoint / "meander"
    generation = current_generation(folder)
    statistics = statistics_of(folder, request, staged)
    if statistics != UNKNOWN:
        staged = staged_plan(request.queries, request.options, statistics)
    plans = recorded_plans(folder, request.queries, staged.exchanges)
    if plans is not None:
        staged = staged_plan(
            [replace(query, requested_plan=plans[query.name]) for query in request.queries],
            request.options,
            statistics,
        )
    identity = identity_of(request, staged)
    run_id = check_checkpoint(folder, identity)
    check_inputs(checkpoint, {name: request.sources[name] for name in staged.streams})
    return CheckedStart(generation, run_id, identity, staged, statistics, plans is not None)


def identity_of(request: RunRequest, staged: StagedPlan) -> dict[str, Any]:
    """What the checkpoint of a run belongs to."""
    frames = [name for name in staged.streams if request.sources[name].by_spark]
    return run_identity(request.queries, request.options, staged.exchanges, frames, staged.schemas)


def start_run(
    request: RunRequest,
    staged: StagedPlan,
    checkpoint: Location,
    spark: Callable[[], SparkSession],
    *,
    until: int | None = None,
    tally: Tally | None = None,
) -> Run:
    """Begin a run, or resume that of the checkpoint; `spark` returns the session, which may be started by that.

    With `until`, no more than the entries of the ledger up to that number are read. `tally` is what this start has
    counted before.
    """
    folder = checkpoint / "meander"
    check_parts(folder)
    with ExitStack() as held:
        lock = lock_checkpoint(folder, checkpoint)
        held.callback(lock.release)
        start = check_start(request, staged, checkpoint)
        opener, outputs = open_sinks(request, start, folder, held, spark)
        plan = RunPlan(
            start.run_id,
            start.staged,
            request.options,
            request.sources,
            folder,
            request.follow,
            start.generation,
            until,
        )
        check_handover(spark(), checkpoint)
        use_this_python(spark())
        with session_settings(spark(), query_settings(request.options.cells)):
            job, frame = build_pipeline(spark(), plan, outputs.encodings, prepare=True)
            # Everything has been checked: only now an output is emptied that is to be replaced.
            outputs.begin()
            write_note(start.generation.statistics(folder), sampling.to_note(start.statistics))
            record_queries(folder, start.identity, start.run_id, opener.names)
            run = Run(spark(), job, checkpoint, outputs, request.metrics, start.generation, tally or Tally())
            run.check_lock = lock.check
            run.begin(frame, request.trigger)
        run.held = held.pop_all()
    try:
        record_spark(folder)
        forget_ended(checkpoint, start.generation)
    except BaseException:
        run.stop()
        raise
    if start.kept_plan:
        run.notes.append(KEPT_PLAN)
    return run


def open_sinks(
    request: RunRequest,
    start: CheckedStart,
    folder: Location,
    held: ExitStack,
    spark: Callable[[], SparkSession],
) -> tuple[SinkOpener, Outputs]:
    """Open the outputs of a start, of which `held` has the locks; what they hold does not change."""
    (folder / "sinks").mkdir(exist_ok=True)
    opener = SinkOpener(
        folder / "sinks", recorded_sinks(folder), request.overwrite, not request.follow, held, spark
    )
    schemas = {query.name: answer_schema(query, start.staged, request) for query in request.queries}
    return opener, open_outputs(opener, request.sinks, schemas, request.rejects)


def statistics_of(folder: Location, request: RunRequest, staged: StagedPlan) -> Statistics:
    """What is known of the input: sampled when the cells of a run begin, and recorded for its restarts."""
    if request.options.cells == 1:
        return UNKNOWN
    if recorded_cells(folder) is not None:
        try:
            return sampling.from_note(read_note(current_generation(folder).statistics(folder)))
        except FileNotFoundError:
            return UNKNOWN
    return sample_input(request, staged)


def sample_input(request: RunRequest, staged: StagedPlan) -> Statistics:
    """The statistics of the input, as far as several cells need any."""
    if request.options.cells == 1:
        return UNKNOWN
    sources = {name: request.sources[name] for name in staged.streams}
    layouts = {
        name: (source, source.layout(name, staged.schemas.get(name, PLAIN), request.options.time_unit))
        for name, source in sources.items()
    }
    return sampling.sample(layouts, request.options.cells)


def answer_schema(query: CompiledQuery, staged: StagedPlan, request: RunRequest) -> AnswerSchema:
    """The shape of a query's answers."""
    result = next(result for result in staged.last.results if result.query == query.name)
    schema = AnswerSchema.of(result, paths=request.options.paths, proofs=request.options.proofs)
    return replace(schema, vertex=vertex_type(query, request.sources))


def vertex_type(query: CompiledQuery, sources: Mapping[str, StreamSource]) -> Any:
    """The type of the vertices of a query's streams."""
    integers = all(sources[name].has_integers for name in query.streams if name in sources)
    return INTEGERS if integers else STRINGS


def check_inputs(checkpoint: Location, sources: Mapping[str, StreamSource]) -> None:
    """Refuse files that have changed since they were read.

    A run that has ended has emitted all of its answers: more input for it is refused, not ignored.
    """
    folder = checkpoint / "meander"
    generation = current_generation(folder)
    spark = generation.spark(checkpoint)
    check_damage(folder)
    locations = {name: source.location for name, source in sources.items() if source.location}
    ledger = Ledger(folder / "ledger", locations, tuple(locations), frozenset(locations), 1)
    ledger.check_whole(max(generation.entry, last_entry(batch_files(spark))))
    for name in sources:
        static = folder / "static" / name
        if any(sibling(path, folder).parent == static for path in ledger.positions) and not is_written(
            static
        ):
            raise missing_part(static)
    ledger.check_files()
    ended = folder / "ended"
    if not ended.exists() and ledger.closed.issuperset(sources) and is_committed(spark):
        ended.touch()
    unread = ledger.unread() if ended.exists() else ""
    if unread:
        raise StateError(
            f"the run of the checkpoint {checkpoint} has ended with its input, and {unread} has come or grown "
            "since",
            hint="a new checkpoint reads everything; a run with --follow (in Python, follow=True) waits for more",
        )
