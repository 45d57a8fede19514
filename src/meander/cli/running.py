"""A run as the command line asks for it, by either runner."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meander.algebra.nodes import WScan
from meander.algebra.printing import walk
from meander.algebra.translate import translate
from meander.cli.progress import Progress
from meander.cli.terminal import is_terminal, print_note, print_warning
from meander.dataflow.sources.registry import needs_spark
from meander.physical.plan import build
from meander.physical.planning import plan_query
from meander.syntax.query import RegularQuery

RUNNERS = ("spark", "local")
MODES = ("intervals", "changes")
BATCH_ROWS = 65536
COMPILING = "compiling what this query needs, once after installing: this takes a minute or two"


@dataclass(frozen=True, slots=True)
class Request:
    """What to run: a query's text, where its streams come from, where its answers go, and how."""

    text: str
    query: RegularQuery
    streams: dict[str, str]
    out: str
    rejects: str | None
    paths: bool
    mode: str
    lateness: int
    time_unit: str
    plan: int | None
    path_operator: str
    batch_rows: int | None
    idle: float
    memory: int | None
    demand: bool = True
    threads: int = 1
    checkpoint: str | None = None
    cells: int = 1
    metrics: str | None = None
    follow: bool = False
    overwrite: bool = False
    max_jump: int | None = None


def streams_read(query: RegularQuery) -> list[str]:
    """The streams that the plans of a query's results scan, as declared."""
    scanned = {
        node.stream for plan in translate(query).values() for node in walk(plan) if isinstance(node, WScan)
    }
    return [stream.name for stream in query.streams if stream.name in scanned]


def run_on_spark(request: Request) -> None:
    """Answer the query on a local Spark, or on the one that `spark-submit` gives."""
    _check_paths(request)
    print_note("starting Spark …")
    _announce_compilation()
    _point_out_extra_columns(request)
    # Spark takes seconds to import, and more to start.
    from meander.spark.session import Session

    session = Session(time_unit=request.time_unit)
    for name, path in request.streams.items():
        session.stream(name, path)
    session.query(request.text, name="query", plan=request.plan)
    follow = request.follow or any(needs_spark(path) for path in request.streams.values())
    run = session.start(
        request.checkpoint,
        {"query": request.out},
        rejects=request.rejects,
        metrics=request.metrics,
        overwrite=request.overwrite,
        follow=follow,
        paths=request.paths,
        mode=request.mode,
        lateness=request.lateness,
        max_jump=request.max_jump,
        path_operator=request.path_operator,
        cells=request.cells,
        batch_rows=request.batch_rows,
        idle=request.idle,
        memory=request.memory,
        demand=request.demand,
        threads=request.threads,
    )
    for text in run.notes:
        print_note(f"note: {text}")
    progress = _progress(request, bounded=not follow)

    def show(figures: dict[str, Any]) -> None:
        progress.show(run.tally, run.state_bytes, run.bytes_read)

    def warn(message: str) -> None:
        with progress.interrupted():
            print_warning(message)

    def finish() -> None:
        _note_unseen(run.labels_unseen if run.tally.edges else [])
        progress.finish(
            run.tally, run.state_bytes, resumed=run.resumed, rejects_kept=request.rejects is not None
        )

    run.warn = warn
    run.batch_hooks.append(show)
    try:
        with progress:
            run.wait()
    except BaseException as error:
        run.stop()
        if isinstance(error, KeyboardInterrupt):
            finish()
            if request.checkpoint is not None:
                raise KeyboardInterrupt("stopped; the same command resumes from here") from None
        raise
    finish()
    run.tally.check_used()


def _check_paths(request: Request) -> None:
    """Refuse what cannot be read or written at all, before Spark takes its time to start."""
    from meander.dataflow.files import local_path
    from meander.dataflow.sinks.registry import check_rejects, sink_key
    from meander.dataflow.sources.registry import open_url

    for path in request.streams.values():
        if not needs_spark(path):
            open_url(path).check(follow=request.follow)
    sink_key(request.out)
    if request.rejects is not None:
        check_rejects(request.rejects)
    if request.metrics is not None:
        local_path(request.metrics, "metrics")
    if request.checkpoint is not None:
        local_path(request.checkpoint, "checkpoint")


def run_in_process(request: Request) -> None:
    """Answer the query in this process."""
    from meander.dataflow.answers import AnswerSchema
    from meander.dataflow.dataflow import Dataflow
    from meander.dataflow.edges import Reject
    from meander.dataflow.files import Meter
    from meander.dataflow.ingest import Jump
    from meander.dataflow.runner import run_local
    from meander.dataflow.sinks.writer import open_answers, open_rejects
    from meander.dataflow.sources.reader import is_live, open_source
    from meander.dataflow.tally import Tally, jump_message

    chosen = plan_query(
        request.query, plan=request.plan, path_operator=request.path_operator, demand=request.demand
    )
    physical = build(chosen, path_operator=request.path_operator, paths=request.paths)
    batch_rows = request.batch_rows or BATCH_ROWS
    meters = {name: Meter() for name in request.streams}
    sources = {
        name: open_source(
            path, stream=name, batch_rows=batch_rows, time_unit=request.time_unit, meter=meters[name]
        )
        for name, path in request.streams.items()
    }
    _point_out_extra_columns(request)
    dataflow = Dataflow(
        physical, mode=request.mode, paths=request.paths, memory=request.memory, threads=request.threads
    )
    progress = _progress(request, bounded=True)
    tally = Tally()

    with ExitStack() as open_files:
        open_files.enter_context(compilation_announced(progress))
        # Rejects first: what cannot be written is then known before the file of answers is begun.
        rejected = open_files.enter_context(open_rejects(request.rejects)) if request.rejects else None
        sink = open_files.enter_context(
            open_answers(
                request.out,
                AnswerSchema(physical.results[0].arity, request.paths),
                overwrite=request.overwrite,
            )
        )
        open_files.enter_context(progress)

        def reject(rejects: list[Reject]) -> None:
            tally.add_rejects(rejects)
            if rejected is not None:
                rejected.write(rejects)

        def note(dataflow: Dataflow, edges: int, rejects: int) -> None:
            tally.edges += edges
            progress.show(tally, dataflow.state_bytes, sum(one.bytes for one in meters.values()))

        def warn(jump: Jump) -> None:
            with progress.interrupted():
                print_warning(jump_message(jump, request.time_unit))

        for _, answers in run_local(
            dataflow,
            sources,
            lateness=request.lateness,
            max_jump=request.max_jump,
            live=any(is_live(path) for path in request.streams.values()),
            reject=reject,
            note=note,
            warn=warn,
        ):
            sink.write(answers)
            tally.answers += answers.rows
            if sink.done:
                break
    _note_unseen([label for label, seen in dataflow.labels_seen().items() if not seen] if tally.edges else [])
    progress.finish(tally, dataflow.state_bytes, rejects_kept=request.rejects is not None)
    tally.check_used()


def _progress(request: Request, *, bounded: bool) -> Progress:
    from meander.dataflow.sources.reader import input_size

    return Progress(
        input_size(request.streams.values()) if bounded else None,
        answers_on_terminal=request.out == "-" and is_terminal(sys.stdout),
    )


def _point_out_extra_columns(request: Request) -> None:
    from meander.dataflow.sources.columns import extra_columns

    for place in request.streams.values():
        for path, names in extra_columns(place):
            print_note(f"note: columns of {path} that are ignored: {', '.join(names)}")


def _note_unseen(labels: list[str]) -> None:
    if labels:
        print_note(f"note: no edge had the label {' or '.join(labels)}, which the query reads")


def _announce_compilation() -> None:
    """Say why the first run takes long: nothing is in the folder in which compiled kernels are kept."""
    import numba

    # The folder gets its name there.
    import meander.kernels.jit  # noqa: F401

    config: Any = numba.config
    if not config.DISABLE_JIT and not any(Path(config.CACHE_DIR).rglob("*.nbi")):
        print_note(COMPILING)


@contextmanager
def compilation_announced(progress: Progress) -> Iterator[None]:
    """Say so, once, when a kernel is compiled that an earlier run has not left behind."""
    from numba.core import event

    class Listener(event.Listener):
        announced = False

        def on_start(self, event: Any) -> None:
            if not self.announced:
                self.announced = True
                with progress.interrupted():
                    print_note(COMPILING)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
