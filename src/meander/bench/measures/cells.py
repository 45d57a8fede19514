"""How work spreads over cells.

For each workload and number of cells all cells are run in one process, one after the other. Counted are the edges
that are broadcast and the rows that go between cells; how even the cells of the last stage are, as the largest over
the mean, in edges read, state rows held (at their most) and answer records; and how long the slowest cells of all
stages take together, against one cell. Reading is part of it: a single cell reads for itself, and of N cells each
shares the work with N - 1 others. That is the most that N cells can gain, were there a processor for each: Spark's
own cost of a batch comes on top.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from meander.bench.data import Graph
from meander.bench.workloads import STREAM, Workload
from meander.dataflow.edges import Edges
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sinks.sink import Encoding
from meander.dataflow.sources.text import TextReader
from meander.engine import compile_query, staged_plan
from meander.options import RunOptions
from meander.physical.layouts import UNKNOWN
from meander.physical.stages import Delivery
from meander.spark.cell.job import stage_jobs
from meander.spark.cell.local_cells import LocalCells, StageCell
from meander.spark.edge_codec import chunk_edges
from meander.spark.input.reader import LineReader
from meander.spark.input.sampling import CHUNK_ROWS as SAMPLED_ROWS
from meander.spark.input.sampling import SAMPLED_CHUNKS, count_edges
from meander.spark.messages import CHUNK_ROWS, Chunk, Kind, cell_keys, closed, tick

BATCHES, LEAST_BATCH = 10, 5_000
"""A stream is measured in this number of batches, or in fewer of at least as many edges."""
SHORT = 5.0
"""A measurement of fewer seconds is made twice, and the faster one counts."""
WARM_UP_EDGES = 2_000


@dataclass(frozen=True)
class Spread:
    """How a workload spread over a number of cells."""

    data: str
    query: str
    edges: int
    cells: int
    stages: int  # of cells that compute
    broadcast: float  # share of the edges that are broadcast to the cells of the first stage
    rows_per_edge: float  # rows between cells, derived ones too, per edge that the query reads
    derived: int  # tuples that stages derive for each other
    edges_even: float
    state_even: float
    answers_even: float
    seconds: float  # of the slowest cell of each stage, and of reading by as many tasks as there are cells
    all_seconds: float  # of all readers and cells together


def measure_cells(
    workload: Workload, graph: Graph, numbers: Sequence[int], *, window: int, slide: int
) -> list[Spread]:
    """A workload with one cell and with each of the numbers of cells."""
    text = workload.text(window, slide)
    spreads = []
    for cells in dict.fromkeys([1, *numbers]):
        # Kernels are compiled, or fetched from where they were kept, before time is taken.
        run_workload(workload, graph.prefix(WARM_UP_EDGES, slide), text, cells)
        spread = run_workload(workload, graph, text, cells)
        if spread.all_seconds < SHORT:
            # Some kernels are called only later in the stream.
            again = run_workload(workload, graph, text, cells)
            spread = min(spread, again, key=lambda run: run.seconds)
        spreads.append(spread)
    return spreads


def run_workload(workload: Workload, graph: Graph, text: str, cells: int) -> Spread:
    """One workload by a number of cells."""
    options = RunOptions(cells=cells)
    statistics = count_edges({STREAM: first_edges(graph)}, cells) if cells > 1 else UNKNOWN
    staged = staged_plan([compile_query(text, options, name="q")], options, statistics)
    jobs = stage_jobs(
        staged, cell_keys(cells, cells), run="bench", formats={"q": Encoding.STRING_FRAME}, options=options
    )
    local = LocalCells(jobs)
    totals: dict[StageCell, dict[str, int]] = {}
    # A start is not work that cells share.
    for _ in local.run_batch([tick()]):
        pass
    local.seconds.clear()
    local.reader_seconds = 0.0
    for chunks in batches(graph, jobs[0].layout(STREAM)):
        for _, output in local.run_batch(chunks):
            if output.kind == Kind.FIGURES:
                add_figures(totals, json.loads(output.data))
    seconds = local.seconds
    last = jobs[-1].last

    def total(name: str) -> int:
        return sum(figures[name] for figures in totals.values())

    by_cell = [figures for (stage, _), figures in totals.items() if stage == last]
    input_rows = max(1, total("sent") if last else graph.edges)
    steps = [max(spent for (at, _), spent in seconds.items() if at == job.stage) for job in jobs]
    return Spread(
        data=workload.data.name,
        query=workload.query,
        edges=graph.edges,
        cells=cells,
        stages=max(1, last),
        broadcast=broadcast_share(staged.deliveries, graph),
        rows_per_edge=(total("sent_rows") + total("derived_rows")) / input_rows,
        derived=total("derived"),
        edges_even=evenness([cell["edges"] for cell in by_cell]),
        state_even=evenness([cell["state_rows"] for cell in by_cell]),
        answers_even=evenness([cell["answers"] for cell in by_cell]),
        seconds=sum(steps) + local.reader_seconds / cells,
        all_seconds=sum(seconds.values()) + local.reader_seconds,
    )


def batches(graph: Graph, layout: StreamLayout) -> Iterator[Iterable[Chunk]]:
    """The lines of the edges in one batch after the other, to be read to chunks, and then the end of the stream."""
    size = max(LEAST_BATCH, graph.edges // BATCHES)
    for start in range(0, graph.edges, size):
        yield read_lines(lines_of(graph.take(slice(start, start + size))), layout)
    yield [closed(STREAM)]


def first_edges(graph: Graph) -> list[Edges]:
    """The edges that a run would take its statistics from."""
    sampled = graph.take(slice(SAMPLED_CHUNKS * SAMPLED_ROWS))
    return [chunk_edges(chunk) for chunk in read_lines(lines_of(sampled), StreamLayout(STREAM))]


def lines_of(part: Graph) -> bytes:
    columns = [part.names.take(pa.array(part.src)), part.labels.take(pa.array(part.label))]
    columns += [part.names.take(pa.array(part.trg)), pa.array(part.ts).cast(pa.string())]
    return "\n".join(pc.binary_join_element_wise(*columns, "\t").to_pylist()).encode()


def read_lines(lines: bytes, layout: StreamLayout) -> Iterator[Chunk]:
    """The chunks of some lines, which are read as those of a file."""
    reader = TextReader(Path("edges.tsv"), LineReader(lines), layout, CHUNK_ROWS, start=None)
    for number, (edges, _) in enumerate(reader.chunks()):
        yield Chunk(Kind.EDGES, STREAM, number, b"", edges=edges)


def add_figures(totals: dict[StageCell, dict[str, int]], figures: dict[str, int]) -> None:
    """Add what a cell did in a batch; of its state the most that it held."""
    total = totals.setdefault((figures["stage"], figures["cell"]), {})
    for name in ("edges", "answers", "sent", "sent_rows", "derived", "derived_rows"):
        total[name] = total.get(name, 0) + figures[name]
    total["state_rows"] = max(total.get("state_rows", 0), figures["state_rows"])


def broadcast_share(deliveries: Sequence[Delivery], graph: Graph) -> float:
    """The share of the edges that is broadcast to the cells of the first stage that computes."""
    labels = [delivery.label for delivery in deliveries if delivery.stage == 1 and delivery.broadcast]
    wanted = pc.is_in(graph.labels, value_set=pa.array(labels, pa.string())).to_numpy(zero_copy_only=False)
    return float(wanted[graph.label].mean()) if graph.edges else 0.0


def evenness(counts: Sequence[int]) -> float:
    """The largest over the mean: 1 is even, the number of cells is all in one; 1 where there is nothing."""
    total = sum(counts)
    return max(counts) * len(counts) / total if total else 1.0
