"""How work spreads over cells.

For each workload and number of cells all cells are run in one process, one after the other. Counted are the edges
that are broadcast and the rows that go between cells; how even the cells of the last stage are, as the largest over
the mean, in edges read, state rows held (at their most) and answer records; and how long the slowest cells of all
stages take together, against one cell. That is the most that N cells can gain, were there a processor for each:
Spark's own cost of a batch comes on top.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from meander.bench.data import Graph
from meander.bench.workloads import STREAM, Workload
from meander.dataflow.sinks.sink import Encoding
from meander.dataflow.tabular import from_arrow
from meander.engine import compile_query, staged_plan
from meander.options import RunOptions
from meander.physical.stages import Delivery
from meander.spark.cell.job import stage_jobs
from meander.spark.cell.local_cells import LocalCells, StageCell
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import Chunk, Kind, cell_keys, closed

BATCH_EDGES = 5_000
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
    seconds: float  # of the slowest cell of each stage, and of the one that puts edges in order
    all_seconds: float  # of all cells together


def measure_cells(
    workload: Workload, graph: Graph, numbers: Sequence[int], *, window: int, slide: int
) -> list[Spread]:
    """A workload with one cell and with each of the numbers of cells."""
    text = workload.text(window, slide)
    spreads = []
    for cells in dict.fromkeys([1, *numbers]):
        # Kernels are compiled, or fetched from where they were kept, before time is taken.
        run_workload(workload, graph.prefix(WARM_UP_EDGES, slide), text, cells)
        spreads.append(run_workload(workload, graph, text, cells))
    return spreads


def run_workload(workload: Workload, graph: Graph, text: str, cells: int) -> Spread:
    """One workload by a number of cells, in batches of a fixed number of edges."""
    options = RunOptions(cells=cells)
    staged = staged_plan([compile_query(text, options, name="q")], options)
    jobs = stage_jobs(
        staged, cell_keys(cells, cells), run="bench", formats={"q": Encoding.STRING_FRAME}, options=options
    )
    local = LocalCells(jobs)
    totals: dict[StageCell, dict[str, int]] = {}
    for chunks in batches(graph):
        for _, output in local.run_batch(chunks):
            if output.kind == Kind.FIGURES:
                add_figures(totals, json.loads(output.data))
    seconds = local.seconds
    last = len(jobs) - 1
    first = totals[0, 0]
    by_cell = [figures for (stage, _), figures in totals.items() if stage == last]
    input_rows = max(1, first["sent"] if last else graph.edges)
    steps = [max(spent for (at, _), spent in seconds.items() if at == job.stage) for job in jobs]
    return Spread(
        data=workload.data.name,
        query=workload.query,
        edges=graph.edges,
        cells=cells,
        stages=max(1, last),
        broadcast=broadcast_share(staged.deliveries, graph),
        rows_per_edge=sum(figures["sent_rows"] for figures in totals.values()) / input_rows,
        derived=sum(figures["sent"] for (stage, _), figures in totals.items() if stage),
        edges_even=evenness([cell["edges"] for cell in by_cell]),
        state_even=evenness([cell["state_rows"] for cell in by_cell]),
        answers_even=evenness([cell["answers"] for cell in by_cell]),
        seconds=sum(steps),
        all_seconds=sum(seconds.values()),
    )


def batches(graph: Graph) -> Iterator[list[Chunk]]:
    """The edges as the chunks of one batch after the other, and then the end of the stream."""
    for start in range(0, graph.edges, BATCH_EDGES):
        part = graph.take(slice(start, start + BATCH_EDGES))
        columns = {
            "src": part.names.take(pa.array(part.src)),
            "label": part.labels.take(pa.array(part.label)),
            "trg": part.names.take(pa.array(part.trg)),
            "ts": pa.array(part.ts),
        }
        edges, _ = from_arrow(pa.record_batch(columns))
        yield [edges_chunk(STREAM, edges)]
    yield [closed(STREAM)]


def add_figures(totals: dict[StageCell, dict[str, int]], figures: dict[str, int]) -> None:
    """Add what a cell did in a batch; of its state the most that it held."""
    total = totals.setdefault((figures["stage"], figures["cell"]), {})
    for name in ("edges", "answers", "sent", "sent_rows"):
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
