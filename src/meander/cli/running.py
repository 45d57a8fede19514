"""A run as the command line requests it: one driver for both runners."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from meander.cli.compilation import CompilationNotice
from meander.cli.progress import Progress
from meander.cli.terminal import is_terminal, print_note, print_warning
from meander.engine import CompiledQuery, physical_plan
from meander.options import SESSION_OPTIONS, RunOptions

if TYPE_CHECKING:
    # These import the kernels, which the message that a run starts does not wait for.
    from meander.dataflow.layout import StreamLayout
    from meander.dataflow.tally import Tally
    from meander.physical.streams import StreamSchema

QUERY_NAME = "query"
BETWEEN_LOOKS = 1.0
"""Seconds between two looks at a run whose input pauses."""


@dataclass(frozen=True, slots=True)
class Request:
    """A query, how to run it, what it reads and where its results go."""

    query: CompiledQuery
    options: RunOptions
    streams: Mapping[str, str]  # by name: a path, or a Kafka URL
    out: str
    rejects: str | None = None
    checkpoint: str | None = None
    metrics: str | None = None
    follow: bool = False
    overwrite: bool = False
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by stream, see `StreamLayout`
    labels: Mapping[str, str] = field(default_factory=dict)  # by stream
    cells_named: bool = True  # if not, a checkpoint keeps its number of cells

    def layouts(self, schemas: Mapping[str, StreamSchema] | None = None) -> dict[str, StreamLayout]:
        """By stream how its rows are read; `schemas` are those of the plan, if it is known."""
        from meander.dataflow.layout import stream_layouts

        return stream_layouts(
            physical_plan([self.query], self.options).schemas if schemas is None else schemas,
            self.streams,
            time_unit=self.options.time_unit,
            columns=self.columns,
            labels=self.labels,
        )

    @property
    def is_bounded(self) -> bool:
        from meander.dataflow.sources.registry import needs_spark

        return not self.follow and not any(map(needs_spark, self.streams.values()))


class Run(Protocol):
    """A started run; either runner's."""

    tally: Tally
    resumed: bool
    left_early: bool
    """Whether the reader of the answers left before the input ended."""
    notes: list[str]
    warn: Callable[[str], None]
    batch_hooks: list[Callable[[dict[str, Any]], None]]

    @property
    def state_bytes(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def labels_unseen(self) -> list[str]: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the input has been processed; False if `timeout` seconds passed first, where another thread or
        process does the work. Raises if the run fails."""

    def stop(self) -> None: ...


def run(request: Request, runner: str) -> None:
    """Run the query to its end, with progress, warnings and a summary on standard error."""
    notice = CompilationNotice()
    started = START[runner](request, notice)
    for note in started.notes:
        print_note(f"note: {note}")
    progress = _progress(request)

    def show(figures: dict[str, Any]) -> None:
        progress.show(started.tally, started.state_bytes, started.bytes_read)

    def warn(message: str) -> None:
        with progress.interrupted():
            print_warning(message)

    def summarize(stopped_early: bool) -> None:
        if not started.tally.rows and not started.resumed:
            print_note("note: the input has no rows")
        # What no edge had may be in the input of an earlier run, which this one resumes, or in what was not read.
        is_all_read = not started.resumed and not (stopped_early and request.is_bounded)
        for unseen in started.tally.unseen(started.labels_unseen) if is_all_read else ():
            print_note(f"note: {unseen}")
        progress.finish(
            started.tally,
            started.state_bytes,
            resumed=started.resumed,
            rejects_kept=request.rejects is not None,
        )

    started.warn = warn
    started.batch_hooks.append(show)
    try:
        with progress, notice.on_compilation(progress.interrupted):
            while not started.wait(BETWEEN_LOOKS):
                progress.show_withheld()
    except BaseException as error:
        started.stop()
        if isinstance(error, KeyboardInterrupt):
            summarize(stopped_early=True)
            if request.checkpoint is not None:
                raise KeyboardInterrupt("stopped; the same command resumes from here") from None
        raise
    summarize(started.left_early)
    started.tally.check_used()


def _start_local(request: Request, notice: CompilationNotice) -> Run:
    # Imports make no garbage, but many objects: collecting in the meantime, or walking them later, only takes time.
    gc.disable()
    try:
        from meander.cli.local_run import LocalRun

        started = LocalRun(request)
    finally:
        gc.freeze()
        gc.enable()
    _note_extra_columns(request)
    return started


def _start_on_spark(request: Request, notice: CompilationNotice) -> Run:
    """Start on a local Spark, or on the one that `spark-submit` provides."""
    _check_paths(request)
    print_note("starting Spark …")
    notice.announce_if_cache_is_empty()
    _note_extra_columns(request)
    # Spark takes seconds to import, and more to start.
    from meander.spark.session import Session

    options = request.options
    session = Session(time_unit=options.time_unit)
    for name, path in request.streams.items():
        session.stream(name, path, columns=request.columns.get(name), label=request.labels.get(name))
    session.register(request.query)
    started: Run = session.start(
        request.checkpoint,
        {QUERY_NAME: request.out},
        rejects=request.rejects,
        metrics=request.metrics,
        overwrite=request.overwrite,
        follow=not request.is_bounded,
        **{
            name: getattr(options, name) for name in SESSION_OPTIONS if name != "cells" or request.cells_named
        },
    )
    return started


START: Mapping[str, Callable[[Request, CompilationNotice], Run]] = {
    "local": _start_local,
    "spark": _start_on_spark,
}


def _check_paths(request: Request) -> None:
    """Refuse paths that cannot be read or written, before Spark takes its time to start."""
    from meander.dataflow.files import local_path
    from meander.dataflow.sinks.registry import check_rejects, sink_key
    from meander.dataflow.sources.registry import needs_spark, open_url

    layouts = request.layouts()
    for name, path in request.streams.items():
        if not needs_spark(path):
            open_url(path).check(layouts[name], follow=request.follow)
    sink_key(request.out)
    if request.rejects is not None:
        check_rejects(request.rejects)
    if request.metrics is not None:
        local_path(request.metrics, "metrics")
    if request.checkpoint is not None:
        from meander.spark.checkpoint.storage import location

        location(request.checkpoint)


def _progress(request: Request) -> Progress:
    from meander.dataflow.sources.reader import input_size

    return Progress(
        input_size(request.streams.values()) if request.is_bounded else None,
        answers_on_terminal=request.out == "-" and is_terminal(sys.stdout),
    )


def _note_extra_columns(request: Request) -> None:
    from meander.dataflow.layout import EXPIRY, expiry_warning, ignores_expiry
    from meander.dataflow.sources.columns import extra_columns

    layouts = request.layouts()
    for name, path in request.streams.items():
        for file, names in extra_columns(path, layouts[name]):
            if ignores_expiry(layouts[name], names):
                print_warning("\nhint: ".join(expiry_warning(name)))
            if others := [column for column in names if column != EXPIRY.name]:
                print_note(f"note: columns of {file} that are ignored: {', '.join(others)}")
