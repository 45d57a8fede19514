"""Warm-up: loads what a worker needs before it has work, by processing a few generated edges.

So exactly those kernels are loaded that the queries call, and everything is imported that is imported on the way.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.text import TextReader
from meander.physical.plan import ScanOp
from meander.spark.cell.job import Job
from meander.spark.cell.local_cells import LocalCells
from meander.spark.input.reader import LineReader
from meander.spark.messages import CHUNK_ROWS, Chunk, Kind, closed
from meander.spark.workers.pool import unpack_jobs
from meander.syntax.values import ValueType

VERTICES = 4
EXAMPLES = {
    ValueType.INT: "1",
    ValueType.FLOAT: "1.5",
    ValueType.STRING: "x",
    ValueType.BOOL: "true",
    ValueType.TIME: "1",
    ValueType.PATH: '[["a","b","c"]]',
}

OTHER_MODULES = (
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "meander.spark.workers.process_cache",
)
"""The modules that a worker imports and that processing generated edges does not."""


def warm_up(packed: str) -> None:
    """Run the jobs on generated edges, and leave nothing of them behind."""
    cells = LocalCells(unpack_jobs(packed))
    for batch in generated_batches(cells.jobs):
        for _ in cells.run_batch(batch):
            pass
    for name in OTHER_MODULES:
        importlib.import_module(name)


def generated_batches(jobs: Sequence[Job]) -> Iterator[list[Chunk]]:
    """Edges of all labels that the jobs read, edges that come when these have expired, and the ends of streams."""
    scans = [operator for job in jobs for operator in job.plan.operators if isinstance(operator, ScanOp)]
    later = 2 * max((scan.window + scan.slide for scan in scans), default=1)
    for time in (0, later):
        yield [
            Chunk(Kind.EDGES, stream, position, b"", edges=edges)
            for position, stream in enumerate(jobs[0].streams)
            for edges, _ in text_reader(jobs[0].layout(stream), scans, time).chunks()
        ]
    yield [closed(stream) for stream in jobs[0].streams]


def text_reader(layout: StreamLayout, scans: Sequence[ScanOp], time: int) -> TextReader:
    """Each label once between any two of a few vertices, as lines of a file."""
    layout = StreamLayout(layout.stream, layout.time_unit, layout.schema)
    labels = dict.fromkeys(scan.label for scan in scans if scan.source.name == layout.stream)
    values = "".join(f"\t{EXAMPLES[layout.types[name]]}" for name in layout.named_properties)
    names = ["src", "label", "trg", "ts", *layout.named_properties]
    lines = ["\t".join(names)] if layout.types else []
    lines += [
        f"v{src}\t{label}\tv{trg}\t{time + src}{values}"
        for src in range(VERTICES)
        for trg in range(VERTICES)
        for label in labels
        if src != trg
    ]
    return TextReader(Path("generated.tsv"), LineReader("\n".join(lines).encode()), layout, CHUNK_ROWS)
