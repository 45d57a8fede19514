"""Pools of Python workers: which workers Spark takes for a run's cells.

Spark takes a Python worker of the same environment as the operator was declared with. An entry of its own gives a
run workers of its own, which keep the cells' state between batches. A second entry has the jobs of these workers: a
session with our `daemon` loads their code before it is needed. Over Spark Connect there are no such entries: workers
then serve all queries of a session, and a cell that comes to another worker is rebuilt.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from meander.spark.compat import started_with, worker_environment

if TYPE_CHECKING:
    from meander.spark.cell.job import Job

POOL, JOBS = "MEANDER_POOL", "MEANDER_JOBS"
DAEMON = "spark.python.daemon.module"
MODULE = "meander.spark.daemon"

MOST_BYTES = 100_000
"""An entry of the environment can hold slightly more."""


class Pool:
    """The workers of a run."""

    def __init__(self, spark: SparkSession, jobs: Sequence[Job]) -> None:
        self.spark = spark
        self.entries = {POOL: jobs[0].run}
        packed = pack_jobs(jobs)
        if started_with(spark, DAEMON) == MODULE and len(packed) < MOST_BYTES:
            self.entries[JOBS] = packed

    @contextlib.contextmanager
    def declared(self) -> Iterator[None]:
        """Operators that are declared within run in workers of the pool."""
        with worker_environment(self.spark, self.entries):
            yield

    def prepare(self) -> None:
        """Have the pool's first process load what it needs while Spark still plans the query.

        Not on a single core: there it would delay the processes that Spark starts to plan the query, which have ten
        seconds to begin.
        """
        if JOBS not in self.entries or cores() < 2:
            return
        trivial = self.spark.sparkContext.parallelize([0], 1).map(end_worker)
        with self.declared():
            trivial.id()  # Spark reads the environment when the id is first asked for.

        def start() -> None:
            # Without it a worker loads what it needs when it needs it.
            with contextlib.suppress(Exception):
                trivial.collect()

        threading.Thread(target=start, name="meander-pool", daemon=True).start()


def end_worker(element: int) -> int:
    """Have the worker that runs this take no other task.

    Spark gives tasks to idle workers in turn. Beside a second one a cell's worker would get every other batch, and
    neither would have the state of the batch before. Spark does not use a worker again whose task ends without the
    usual end marker.
    """
    from pyspark.serializers import SpecialLengths

    SpecialLengths.END_OF_STREAM = SpecialLengths.END_OF_DATA_SECTION
    return element


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pack_jobs(jobs: Sequence[Job]) -> str:
    """The jobs as far as they decide which code is loaded; the same at every start of a run."""
    reduced = [
        replace(
            job,
            run="",
            started=0.0,
            snapshots="",
            seeds="",
            spool="",
            options=replace(job.options, threads=1),
        )
        for job in jobs
    ]
    return base64.b85encode(zlib.compress(pickle.dumps(reduced))).decode()


def unpack_jobs(packed: str) -> list[Job]:
    jobs: list[Job] = pickle.loads(zlib.decompress(base64.b85decode(packed)))
    return jobs
