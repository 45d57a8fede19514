"""All cells of all stages in one process, without Spark: the same steps, the same rows as bytes between them."""

import json

from meander.dataflow.edges import INFINITY
from meander.dataflow.tabular import edges_of, judge_row
from meander.physical.planning import plan_query
from meander.physical.stages import build_stages
from meander.spark.cell.job import stage_jobs
from meander.spark.cell.local_cells import Memory, no_incident, rehearse
from meander.spark.cell.step import LIVE
from meander.spark.edge_codec import decode_rejects, encode_edges
from meander.spark.messages import ANSWERS, CLOSED, EDGES, FIGURES, REJECTS, TICK, Chunk, cell_keys


class Cells:
    """The cells of a run. `step` is one batch; what has left is in `answers` (by cell), `rejects` and `figures`."""

    def __init__(self, plans, cells, *, path_operator="auto", paths=False, run="run", **options):
        self.staged = build_stages(plans, cells, path_operator=path_operator, paths=paths)
        keys = cell_keys(cells, cells)
        options = {"handover": False, "paths": paths} | options
        formats = {one.query: "jsonl" for one in plans}
        self.jobs = stage_jobs(self.staged, keys, run=f"{run}, {cells} cells", formats=formats, **options)
        self.stores = {(job.stage, key): Memory() for job in self.jobs for key in job.cells}
        self.answers = [[] for _ in range(cells)]
        self.rejects = []
        self.figures = []
        LIVE.clear()

    def step(self, chunks, lose=no_incident):
        """One batch through all stages; `lose` may take something from a cell before its step."""
        for cell, row in rehearse(self.jobs, self.stores, chunks, before=lose):
            self.take(cell, row)

    def take(self, cell, row):
        if row.kind == ANSWERS:
            self.answers[cell] += [json.loads(line) for line in row.data.splitlines()]
        elif row.kind == REJECTS:
            self.rejects += decode_rejects(row.data)
        elif row.kind == FIGURES:
            self.figures.append(json.loads(row.data))

    @property
    def records(self):
        return [record for mine in self.answers for record in mine]


def batches_of_case(case, size):
    """The usable edges of a case in batches of `size` a stream, then the streams' ends."""
    usable = {name: [row for row in rows if judge_row(row) is None] for name, rows in case.streams.items()}
    for start in range(0, max(map(len, usable.values()), default=0), size):
        yield [
            Chunk(EDGES, name, 0, encode_edges(edges_of(rows[start : start + size]), lines=False))
            for name, rows in usable.items()
            if rows[start : start + size]
        ]
    yield [Chunk(TICK, name, 0, CLOSED) for name in case.streams]


def run_case(case, cells, size, *, path_operator="auto", plan=None, lose=no_incident, **options):
    """A case by a number of cells, all its edges in batches of `size`."""
    made = Cells(
        plan_query(case.text, name="q", plan=plan),
        cells,
        path_operator=path_operator,
        paths=case.paths,
        mode=case.mode,
        lateness=case.lateness,
        **options,
    )
    for chunks in batches_of_case(case, size):
        made.step([one for one in chunks if one.stream in made.staged.streams], lose)
    last = made.figures[-made.jobs[-1].cells_of_all_stages :]
    assert all(one["time"] == INFINITY for one in last)
    return made
