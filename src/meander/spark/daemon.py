"""The process that Spark forks its Python workers from, with everything loaded before the first of them.

A worker that starts empty imports Spark's Python side and Numba, initializes Numba, and loads the kernels of its
queries: seconds that a restarted run would wait for. Here this happens once, in the process that all workers of a
pool are forked from: every worker of a cell, the first one or one after a crash, has it loaded.

Spark runs this module in place of its own (`spark.python.daemon.module`), for all Python workers of a session.
Workers that do not run cells are forked as without it.
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
"""Spark ends workers that had no work for a minute. The process that they were forked from ends this many seconds
later, or a run that has stopped would hold its memory as long as Spark runs. Spark starts it again if necessary."""

LOOK = 10.0


def load(packed: str) -> None:
    """Load what workers of the jobs will need, and exempt it from garbage collection; a failure is ignored."""
    # Spark waits for a number on standard output. A failure here recurs in a worker, which reports it.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(Exception):
        from meander.spark.workers.warm_up import warm_up

        warm_up(packed)
    gc.collect()
    gc.freeze()


def end_when_idle() -> None:
    """End this process once it has had no workers for `IDLE` seconds."""
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
