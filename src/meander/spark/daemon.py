"""The process that Spark forks its Python workers from, with everything loaded before the first of them.

A worker that begins with nothing imports Spark's Python side and Numba, has Numba set itself up, and loads the
kernels of its queries: seconds, in which a restarted run could go on already. Here this happens once, in the
process that all workers of a pool are forked from. Whatever worker a cell gets then, the first one or one after a
crash, has it at hand.

Spark runs this module in place of its own (`spark.python.daemon.module`), for all Python workers of a session.
Those that are not cells' are forked as ever.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
from types import FrameType

from pyspark.daemon import manager

from meander.spark.workers.pool import JOBS

IDLE = 60.0
"""Spark ends workers that had no work for a minute. What they were forked from ends so much later, in seconds: a run
that has stopped would otherwise hold its memory as long as Spark runs. Spark starts it again when it has to."""

LOOK = 10.0


def load(packed: str) -> None:
    """All that workers of the jobs will need, out of the garbage collector's sight; nothing where that fails."""
    # Spark waits for a number on standard output. What goes wrong here goes wrong again in a worker, which says so.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(Exception):
        from meander.spark.workers.warm_up import warm_up

        warm_up(packed)
    gc.collect()
    gc.freeze()


def end_when_idle() -> None:
    """Have this process end when it has had no workers for a while."""
    busy = time.monotonic()

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal busy
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            busy = time.monotonic()
        except ChildProcessError:
            if time.monotonic() - busy > IDLE:
                sys.exit(0)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK, LOOK)


def main() -> None:
    """Spark's own daemon, after loading what the pool's jobs need."""
    if JOBS in os.environ:
        load(os.environ[JOBS])
        end_when_idle()
    manager()


if __name__ == "__main__":
    main()
