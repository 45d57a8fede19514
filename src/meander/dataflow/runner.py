"""The in-process runner: sources, ingest and dataflow in one loop.

Of several streams the one whose clock is furthest behind is read next, so that little waits for the others. If no
source can block, as files cannot, more is read before the answers of a batch are complete (see `Dataflow.process`).
If a source fails, the edges read before are processed as far as all streams have come, and then the error is raised:
no answer is derived from half of its input. Any other error is raised after the answers to the edges processed before
are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from meander.dataflow.answers import Answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Reject
from meander.dataflow.ingest import Ingest, Jump
from meander.dataflow.tabular import Chunk
from meander.errors import InputError
from meander.physical.plan import Result
from meander.physical.stages import longest_windows

Note = Callable[[int, int], None]
"""Called for each chunk that has been read: the number of edges, and the number of rejected rows."""


def run_local(
    dataflow: Dataflow,
    sources: Mapping[str, Iterator[Chunk]],
    *,
    lateness: int = 0,
    max_jump: int | None = None,
    live: bool = True,
    reject: Callable[[list[Reject]], None] = lambda rejects: None,
    warn: Callable[[Jump], None] = lambda jump: None,
    note: Note = lambda edges, rejected: None,
) -> Iterator[tuple[Result, Answers]]:
    """Answer all queries of a dataflow over bounded sources; the answers of each batch as they come.

    `live`: a source may block; then the answers to all earlier edges are emitted before it is read again.
    `warn` receives jumps of time that are suspiciously long (see `Ingest`).
    """
    windows = longest_windows(dataflow.plan.operators)
    ingest = Ingest(tuple(sources), lateness=lateness, max_jump=max_jump, windows=windows)
    reading = dict(sources)
    reached = dict.fromkeys(sources, -1)
    broken: InputError | None = None
    while reading and broken is None:
        name = min(reading, key=reached.__getitem__)
        rejects: list[Reject] = []
        count = 0
        try:
            chunk = next(reading[name], None)
            if chunk is None:
                del reading[name]
                ingest.close(name)
            else:
                edges, rejects = chunk
                count = edges.rows
                if count:
                    reached[name] = max(reached[name], int(edges.ts.max()))
                    rejects = rejects + ingest.push(name, edges)
                    for jump in ingest.take_jumps():
                        warn(jump)
            if rejects:
                reject(rejects)
        except InputError as error:
            broken = error
        except Exception:
            yield from dataflow.process({}, None)
            raise
        more = not live and bool(reading) and broken is None
        # Before the answers: whoever reads them may leave.
        note(count, len(rejects))
        yield from dataflow.process(*ingest.release(), more=more)
    if broken is not None:
        raise broken
