"""Running parts ahead: with several threads, the next parts start while the output of earlier ones is computed.

Then no thread waits for another at the end of each part, nor, if another batch follows at once, at the end of a
batch. Only an operator that no other operator reads may still be at work; this is the one module that knows of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from meander.dataflow.answers import Answers
from meander.dataflow.cutting import Part
from meander.dataflow.operator import Pending
from meander.dataflow.threads import LanePool
from meander.physical.plan import Result

AHEAD = 2  # parts that may start before the first of them is finished, with several threads


class StartedPart(NamedTuple):
    """A part that all operators have started."""

    part: Part
    reached: int  # the time before it
    outputs: list[Pending]  # by operator
    rows_out: int  # the most rows that an operator has emitted, as far as they are known


class Pipeline:
    ahead = AHEAD

    def __init__(
        self,
        pool: LanePool,
        start: Callable[[Part, int], StartedPart],
        finish: Callable[[StartedPart], Iterator[tuple[Result, Answers]]],
        *,
        results: Iterable[int],
        paths: bool,
    ) -> None:
        """`start` receives a part and the time up to which memory may be reclaimed; `results` are the operators whose
        output `finish` reads."""
        self.pool = pool
        self.start = start
        self.finish = finish
        self.results = frozenset(results)
        self.depth = self.ahead if pool.threads > 1 and not paths else 0
        self.started: deque[StartedPart] = deque()

    def run(
        self, parts: Iterable[Part], reached: Callable[[], int], *, more: bool
    ) -> Iterator[tuple[Result, Answers]]:
        """The answers of the parts, in order; with `more`, the last parts may stay unfinished until the next call.

        If a part fails, the answers of those before it are emitted first.
        """
        failure: Exception | None = None
        try:
            for part in parts:
                # Memory that unfinished parts read is not reclaimed.
                horizon = self.started[0].reached - 1 if self.started else reached()
                try:
                    latest = self.start(part, horizon)
                except Exception as error:
                    failure = error
                    break
                self.started.append(latest)
                # The next part would overwrite output that is ready.
                waits = not any(latest.outputs[number].is_ready for number in self.results)
                while len(self.started) > (self.depth if waits else 0):
                    yield from self.finish(self.started.popleft())
            while self.started and not (more and failure is None):
                yield from self.finish(self.started.popleft())
        except BaseException:
            self.pool.drain()
            self.started.clear()
            raise
        if failure is not None:
            raise failure
