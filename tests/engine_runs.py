"""Runs of the engine step by step, for tests that stop between two batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meander.dataflow.answers import as_dicts
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY, Edges
from meander.dataflow.ingest import Ingest
from meander.dataflow.layout import stream_layouts
from meander.dataflow.tabular import from_tuples
from meander.engine import compile_query, open_dataflow, passes_demand, physical_plan, query_plans
from meander.options import RunOptions
from meander.physical.builder import QueryPlan
from meander.physical.plan import PhysicalPlan
from meander.physical.stages import with_demand
from meander.physical.streams import StreamSchema

Step = tuple[str, Edges | None]
Records = list[dict[str, Any]]


def plan_query(text: str, *, name: str = "", **options: Any) -> list[QueryPlan]:
    """The logical plans to run for a query, with the proofs of its answers."""
    chosen = RunOptions(paths=True, **options)
    plans = query_plans(compile_query(text, chosen, name=name), chosen)
    return list(map(with_demand, plans)) if passes_demand(chosen) else plans


def planned(text: str, **options: Any) -> PhysicalPlan:
    """The operators that answer a query."""
    chosen = RunOptions(**options)
    return physical_plan([compile_query(text, chosen)], chosen)


def dataflow_of(text: str, *, folder: Path | None = None, **options: Any) -> Dataflow:
    chosen = RunOptions(**options)
    return open_dataflow(physical_plan([compile_query(text, chosen)], chosen), chosen, folder=folder)


def edges_of(*rows: Any) -> Edges:
    """Rows as one chunk of edges; none of them may be unusable."""
    chunks = list(from_tuples(rows, batch_rows=max(1, len(rows))))
    assert all(not rejects for _, rejects in chunks)
    return chunks[0][0] if chunks else next(iter(from_tuples([("u", "a", "v", 1)])))[0].take(slice(0))


def processed(dataflow: Dataflow, edges: Mapping[str, Edges], upto: int | None) -> Records:
    """The records of one batch, of all results."""
    return [record for _, answers in dataflow.process(edges, upto) for record in as_dicts(answers)]


def answered(dataflow: Dataflow, stream: str, *rows: Any) -> Records:
    """The records of a whole run over one stream, in one batch."""
    return processed(dataflow, {stream: edges_of(*rows)}, INFINITY)


def steps_of(
    streams: Mapping[str, Sequence[Any]], batch_rows: int, schemas: Mapping[str, StreamSchema] | None = None
) -> list[Step]:
    """Chunks of all streams, the one furthest behind next, and at the end of each a None. What is read of a stream's
    rows is that of a plan's `schemas`; unusable rows are left out."""
    layouts = stream_layouts(schemas or {}, streams, time_unit="s")
    reading = {
        name: from_tuples(rows, batch_rows=batch_rows, layout=layouts[name]) for name, rows in streams.items()
    }
    reached = dict.fromkeys(streams, -1)
    steps: list[Step] = []
    while reading:
        name = min(reading, key=reached.__getitem__)
        chunk = next(reading[name], None)
        if chunk is None:
            del reading[name]
            steps.append((name, None))
            continue
        steps.append((name, chunk[0]))
        reached[name] = max([reached[name], *chunk[0].ts.tolist()])
    return steps


class Run:
    """Ingest and dataflow, fed one step at a time."""

    def __init__(
        self,
        plan: PhysicalPlan,
        streams: Sequence[str],
        *,
        lateness: int = 0,
        folder: Path | None = None,
        **options: Any,
    ) -> None:
        self.ingest = Ingest(streams, lateness=lateness)
        self.dataflow = Dataflow(plan, folder=folder, **options)

    def feed(self, step: Step) -> Records:
        name, edges = step
        if edges is None:
            self.ingest.close(name)
        else:
            self.ingest.push(name, edges)
        return processed(self.dataflow, *self.ingest.release())

    def snapshot(self) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]:
        return self.ingest.snapshot(), self.dataflow.snapshot()

    def restore(self, snapshot: tuple[dict[str, Any], dict[str, Any]]) -> None:
        self.ingest.restore(snapshot[0])
        self.dataflow.restore(snapshot[1])
