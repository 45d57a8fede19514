"""A run as the command line asks for it, by either runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meander.algebra.nodes import WScan
from meander.algebra.printing import walk
from meander.algebra.translate import translate
from meander.cli.progress import Progress
from meander.errors import ArgumentError
from meander.syntax.query import RegularQuery

RUNNERS = ("spark", "local")
MODES = ("intervals", "changes")


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
    checkpoint: str | None
    cells: int


def streams_read(query: RegularQuery) -> list[str]:
    """The streams that the plans of a query's results scan, as declared."""
    scanned = {
        node.stream for plan in translate(query).values() for node in walk(plan) if isinstance(node, WScan)
    }
    return [stream.name for stream in query.streams if stream.name in scanned]


def run_on_spark(request: Request) -> None:
    """Answer the query on a local Spark, or on the one that `spark-submit` gives."""
    from meander.spark.session import Session

    session = Session(time_unit=request.time_unit)
    for name, path in request.streams.items():
        session.stream(name, path)
    session.query(request.text, name="query", plan=request.plan)
    run = session.start(
        request.checkpoint,
        {"query": request.out},
        rejects=request.rejects,
        follow=any(path.startswith("kafka://") for path in request.streams.values()),
        paths=request.paths,
        mode=request.mode,
        lateness=request.lateness,
        path_operator=request.path_operator,
        cells=request.cells,
        batch_rows=request.batch_rows,
        idle=request.idle,
        memory=request.memory,
    )
    progress = Progress()

    def note(figures: dict[str, Any]) -> None:
        totals = run.totals
        progress.update(totals["edges"], totals["answers"], totals["rejected"], figures["state_bytes"])

    run.batch_hooks.append(note)
    try:
        run.wait()
    except BaseException:
        progress.clear()
        run.stop()
        raise
    progress.finish()


def run_in_process(request: Request) -> None:
    """Answer the query in this process."""
    raise ArgumentError("the local runner is not part of this version of meander")
