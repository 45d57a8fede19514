"""The recovery law: cases that are answered by cells which lose something before some of their batches.

A `Recovery` can be drawn, read from a file of `cases/`, and printed as such a file. The cells are those of a run on
Spark, with the same steps and the same bytes between them, in this process.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from cells_in_process import Cells
from hypothesis import strategies as st

import meander
from engine_runs import steps_of
from judge import judge
from meander.physical.plan import PATH_OPERATORS
from meander.physical.planning import plan_query
from meander.physical.stages import build_stages
from meander.spark.advance import LIVE, advance
from meander.spark.cells import Job, stage_jobs
from meander.spark.chunks import CLOSED, EDGES, TICK, Chunk
from meander.spark.codec import encode_edges
from oracle import Edge, expect, is_usable
from querytext import read_query
from strategies import Case, cases, once_in, pick

LOSSES = (
    "nothing",
    "state",
    "state and snapshots",
    "state of one cell",
    "the task",
    "half a task",
    "another plan",
)
RARELY = 1_000_000


@dataclass(frozen=True)
class Recovery:
    """A case, how many cells answer it, and what they lose before each batch (`losses`, again from its start).

    With "another plan" the run resumes with the next of `operators`, and on one cell with another plan.
    """

    case: Case
    losses: tuple[str, ...] = ("state and snapshots",)
    operators: tuple[str, ...] = ("auto",)
    cells: int = 1
    snapshot_rows: int = RARELY

    def __repr__(self) -> str:
        """The text of a file of `cases/`."""
        case = self.case
        options = {
            "mode": case.mode,
            "paths": case.paths,
            "batch_rows": case.batch_rows,
            "lateness": case.lateness,
            "plan": case.plan,
            "cells": self.cells,
            "snapshot_rows": self.snapshot_rows,
            "losses": self.losses,
            "operators": self.operators,
        }
        lines = ["# (what this is a case of)", *(f"#! {name} {json.dumps(value)}" for name, value in options.items())]
        lines += [case.text.rstrip("\n")]
        for name, edges in case.streams.items():
            lines += ["", f"--- {name}", *(json.dumps(edge) for edge in edges)]
        return "\n".join(lines) + "\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows it."""
        printer.text(repr(self))


def read_recovery(text: str) -> Recovery:
    """What `repr` has printed, or a person has written: comments, options (`#! name JSON`), the query, and for each
    stream `--- name` and its edges."""
    top, *parts = text.split("\n--- ")
    streams = {}
    for part in parts:
        name, *lines = part.splitlines()
        streams[name.strip()] = [tuple(json.loads(line)) for line in lines if line.strip()]
    options = {}
    for line in top.splitlines():
        if line.startswith("#!"):
            name, value = line[2:].split(maxsplit=1)
            options[name] = json.loads(value)
    own = {name: options.pop(name) for name in ("cells", "snapshot_rows") if name in options}
    own |= {name: tuple(options.pop(name)) for name in ("losses", "operators") if name in options}
    return Recovery(Case(read_query(top), streams, **options), **own)


# ---------------------------------------------------------------------------------------------------------
# Runs


class ForgetfulCells(Cells):
    """The cells of a run that lose something now and then."""

    def __init__(self, recovery: Recovery, folder: Path) -> None:
        self.recovery = recovery
        self.folder = folder
        case = recovery.case
        self.plans = len(meander.plans(case.text)) if case.plan is not None or recovery.cells == 1 else 1
        self.options = {
            "mode": case.mode,
            "lateness": case.lateness,
            "idle": inf,
            "snapshots": str(folder),
            "snapshot_rows": recovery.snapshot_rows,
        }
        super().__init__(
            plan_query(case.text, name="q", plan=self.chosen(case.plan)),
            recovery.cells,
            path_operator=recovery.operators[0],
            paths=case.paths,
            **self.options,
        )

    def chosen(self, plan: int | None) -> int | None:
        return None if plan is None else plan % self.plans

    def lose(self, batch: int) -> None:
        """What happens between two batches."""
        match self.recovery.losses[batch % len(self.recovery.losses)]:
            case "state":
                LIVE.clear()
            case "state and snapshots":
                LIVE.clear()
                shutil.rmtree(self.folder, ignore_errors=True)
            case "state of one cell" if LIVE:
                del LIVE[sorted(LIVE)[batch % len(LIVE)]]
            case "another plan":
                self.replan(batch)

    def replan(self, batch: int) -> None:
        """As after a start with another plan; several cells keep to plans that read the edges that they hold."""
        recovery = self.recovery
        case = recovery.case
        plan = batch if recovery.cells == 1 else case.plan
        staged = build_stages(
            plan_query(case.text, name="q", plan=self.chosen(plan)),
            recovery.cells,
            path_operator=recovery.operators[batch % len(recovery.operators)],
            paths=case.paths,
        )
        assert staged.exchanges == self.staged.exchanges
        first = self.jobs[0]
        self.jobs = stage_jobs(
            staged,
            first.targets,
            run=first.run,
            formats=first.formats,
            handover=False,
            paths=case.paths,
            **self.options,
        )

    def fail(self, batch: int, job: Job, cell: int, chunks: list[Chunk]) -> None:
        """What happens to a cell's task before it succeeds."""
        loss = self.recovery.losses[batch % len(self.recovery.losses)]
        if loss in ("the task", "half a task"):
            attempt = advance(job, cell, self.stores[job.stage, cell], chunks)
            for _ in attempt:
                if loss == "half a task":
                    break
            attempt.close()
            self.stores[job.stage, cell].roll_back()

    def run(self) -> list[dict[str, Any]]:
        """The records of all batches."""
        case = self.recovery.case
        read = {name: rows for name, rows in case.streams.items() if name in self.staged.streams}
        for batch, (stream, edges) in enumerate(steps_of(read, case.batch_rows)):
            chunk = Chunk(TICK, stream, 0, CLOSED)
            if edges is not None:
                chunk = Chunk(EDGES, stream, 0, encode_edges(edges, lines=False))
            self.lose(batch)
            self.step([chunk], lambda *task, batch=batch: self.fail(batch, *task))
            for store in self.stores.values():
                store.commit()
        LIVE.clear()
        records: list[dict[str, Any]] = self.records
        return records


def hold_law(recovery: Recovery) -> list[dict[str, Any]]:
    """Run the case, and judge its records."""
    case = recovery.case
    with tempfile.TemporaryDirectory() as folder:
        records = ForgetfulCells(recovery, Path(folder) / "snapshots").run()
    expected = expect(case.query, case.streams, case.lateness)
    first_path = "negative-tuple" in recovery.operators
    judge(records, expected, mode=case.mode, paths=case.paths, first_path=first_path)
    return records


# ---------------------------------------------------------------------------------------------------------
# Draws


def squeezed(edges: Sequence[Edge], by: int) -> list[Edge]:
    """The edges with `by` instants in one."""
    return [(*edge[:3], edge[3] // by, *edge[4:]) if is_usable(edge) else edge for edge in edges]  # type: ignore[misc]


def draw_churn(draw: st.DrawFn, edges: Sequence[Edge]) -> list[Edge]:
    """The edges, some of which are deleted in the instant in which they arrive, and may arrive again."""
    churned: list[Edge] = []
    for edge in edges:
        churned.append(edge)
        if is_usable(edge) and once_in(draw, 4):
            ends = (("-",), ("-", "+"), ("-", "+", "-"))[draw(st.integers(0, 2))]
            churned += [(*edge[:4], op) for op in ends]
    return churned


@st.composite
def recoveries(draw: st.DrawFn) -> Recovery:
    """A case whose instants are split over batches as a rule, and what its cells lose."""
    case = draw(cases())
    by = pick(draw, (3, 10, 1, 40))
    streams = {name: squeezed(edges, by) for name, edges in case.streams.items()}
    if once_in(draw, 2):
        streams = {name: draw_churn(draw, edges) for name, edges in streams.items()}
    case = replace(
        case,
        streams=streams,
        mode=pick(draw, ("changes", "changes", "intervals")),
        batch_rows=pick(draw, (1, 2, 3, 7)),
    )
    return Recovery(
        case,
        losses=tuple(draw(st.lists(st.sampled_from(LOSSES), min_size=1, max_size=8))),
        operators=tuple(draw(st.permutations(PATH_OPERATORS))),
        cells=pick(draw, (1, 1, 2, 3)),
        snapshot_rows=pick(draw, (RARELY, 1, 6)),
    )
