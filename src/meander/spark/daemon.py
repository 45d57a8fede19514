"""The process that Spark forks its Python workers from, with everything loaded before the first of them.

A worker that begins with nothing imports Spark's Python side and Numba, has Numba set itself up, and loads the
kernels of its queries: seconds, in which a restarted run could go on already. Here this happens once, in the
process that all workers of a pool are forked from. Whatever worker a cell gets then, the first one, one after a
crash or one after a pause, has it at hand.

Spark runs this module in place of its own (`spark.python.daemon.module`), for all Python workers of a session.
Those that are not cells' are forked as ever.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from pyspark.daemon import manager

from meander.spark.pools import JOBS


def load(packed: str) -> None:
    """All that workers of the jobs will need, out of the garbage collector's sight; nothing where that fails."""
    # Spark waits for a number on standard output. What goes wrong here goes wrong again in a worker, which says so.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(Exception):
        from meander.spark.warming import warm_up

        warm_up(packed)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    if JOBS in os.environ:
        load(os.environ[JOBS])
    manager()
