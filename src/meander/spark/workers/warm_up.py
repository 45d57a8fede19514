"""What a worker needs, loaded before it has work: by doing its work once, on a few edges that are made up.

So exactly those kernels are loaded that the queries call, and everything is imported that is imported on the way.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from meander.dataflow.sources import TextReader
from meander.physical.plan import ScanOp
from meander.physical.stages import base_stream
from meander.spark.cell.job import Job
from meander.spark.cell.local_cells import Memory, rehearse
from meander.spark.cell.step import LIVE
from meander.spark.input.reader import LineReader
from meander.spark.messages import CHUNK_ROWS, CLOSED, EDGES, TICK, Chunk
from meander.spark.workers.pool import unpack_jobs

VERTICES = 4

BESIDES = (
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
)
"""What is imported in a worker, and not on the way of the made-up edges."""


def warm_up(packed: str) -> None:
    """Do the work of the jobs on made-up edges, and leave nothing of it behind."""
    jobs = unpack_jobs(packed)
    stores = {(job.stage, cell): Memory() for job in jobs for cell in job.cells}
    try:
        for batch in made_up(jobs):
            for _ in rehearse(jobs, stores, batch):
                pass
    finally:
        LIVE.clear()
    for name in BESIDES:
        importlib.import_module(name)


def made_up(jobs: Sequence[Job]) -> Iterator[list[Chunk]]:
    """Batches of edges of all labels that the jobs read: some, some that come when these have expired, and an end."""
    scans = [one for job in jobs for one in job.plan.operators if isinstance(one, ScanOp)]
    later = 2 * max((one.window + one.slide for one in scans), default=1)
    for time in (0, later):
        yield [
            Chunk(EDGES, stream, place, b"", edges=edges)
            for place, stream in enumerate(jobs[0].streams)
            for edges, _ in text_reader(stream, scans, time).chunks()
        ]
    yield [Chunk(TICK, stream, 0, CLOSED) for stream in jobs[0].streams]


def text_reader(stream: str, scans: Sequence[ScanOp], time: int) -> TextReader:
    """Each label once between any two of a few vertices, as lines of a file."""
    labels = dict.fromkeys(one.label for one in scans if base_stream(one.stream) == stream)
    lines = [
        f"v{src}\t{label}\tv{trg}\t{time + src}"
        for src in range(VERTICES)
        for trg in range(VERTICES)
        for label in labels
        if src != trg
    ]
    return TextReader(Path("made-up.tsv"), LineReader("\n".join(lines).encode()), stream, CHUNK_ROWS)
