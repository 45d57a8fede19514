"""A run as the command line asks for it, by either runner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meander.algebra.nodes import WScan
from meander.algebra.printing import walk
from meander.algebra.translate import translate
from meander.cli.progress import Progress
from meander.cli.terminal import print_note
from meander.errors import ArgumentError
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


def streams_read(query: RegularQuery) -> list[str]:
    """The streams that the plans of a query's results scan, as declared."""
    scanned = {
        node.stream for plan in translate(query).values() for node in walk(plan) if isinstance(node, WScan)
    }
    return [stream.name for stream in query.streams if stream.name in scanned]


def run_on_spark(request: Request) -> None:
    """Answer the query on a local Spark, or on the one that `spark-submit` gives."""
    from meander.spark.session import Session

    _announce_compilation()
    session = Session(time_unit=request.time_unit)
    for name, path in request.streams.items():
        session.stream(name, path)
    session.query(request.text, name="query", plan=request.plan)
    run = session.start(
        request.checkpoint,
        {"query": request.out},
        rejects=request.rejects,
        metrics=request.metrics,
        follow=request.follow or any(path.startswith("kafka://") for path in request.streams.values()),
        paths=request.paths,
        mode=request.mode,
        lateness=request.lateness,
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
    progress = Progress()

    def note(figures: dict[str, Any]) -> None:
        progress.add(figures["edges"], figures["answers"], figures["rejected"], figures["state_bytes"])

    run.batch_hooks.append(note)
    try:
        run.wait()
    except BaseException as error:
        progress.clear()
        run.stop()
        if isinstance(error, KeyboardInterrupt):
            progress.finish()
            if request.checkpoint is not None:
                raise KeyboardInterrupt("stopped; the same command resumes from here") from None
        raise
    progress.finish()


def run_in_process(request: Request) -> None:
    """Answer the query in this process."""
    from meander.dataflow.dataflow import Dataflow
    from meander.dataflow.files import is_live
    from meander.dataflow.runner import run_local
    from meander.dataflow.sinks import open_rejects, open_sink
    from meander.dataflow.sources import open_source

    for name, path in request.streams.items():
        if path.startswith("kafka://"):
            raise ArgumentError(f"{name} comes from Kafka", hint="Kafka needs --runner spark")
    chosen = plan_query(
        request.query, plan=request.plan, path_operator=request.path_operator, demand=request.demand
    )
    physical = build(chosen, path_operator=request.path_operator, paths=request.paths)
    batch_rows = request.batch_rows or BATCH_ROWS
    sources = {
        name: open_source(path, stream=name, batch_rows=batch_rows, time_unit=request.time_unit)
        for name, path in request.streams.items()
    }
    dataflow = Dataflow(
        physical, mode=request.mode, paths=request.paths, memory=request.memory, threads=request.threads
    )
    progress = Progress()
    with ExitStack() as open_files:
        open_files.enter_context(compilation_announced(progress))
        # Rejects first: what cannot be written is then known before the file of answers is begun.
        rejected = open_files.enter_context(open_rejects(request.rejects)) if request.rejects else None
        sink = open_files.enter_context(open_sink(request.out, (physical.results[0].arity, request.paths)))
        open_files.callback(progress.clear)

        def note(dataflow: Dataflow, edges: int, rejects: int) -> None:
            progress.add(edges=edges, rejects=rejects, state=dataflow.state_bytes)

        for _, answers in run_local(
            dataflow,
            sources,
            lateness=request.lateness,
            live=any(is_live(path) for path in request.streams.values()),
            reject=rejected.write if rejected is not None else _forget,
            note=note,
        ):
            sink.write(answers)
            progress.add(answers=answers.rows)
            if sink.done:
                break
    progress.finish()
    if progress.rejects and rejected is None:
        print_note("hint: --rejects FILE.jsonl keeps the rejected edges, each with its reason")
    unseen = dataflow.labels_unseen() if progress.edges else []
    if unseen:
        print_note(f"note: no edge had the label {' or '.join(unseen)}, which the query reads")


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
                progress.clear()
                print_note(COMPILING)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


def _forget(rejects: object) -> None:
    """Rejects that nobody asked for are counted, and that is all."""
