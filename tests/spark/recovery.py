"""The recovery law: cases that are answered by cells which lose something before some of their batches.

A `Recovery` can be drawn, read from a file of `cases/`, and printed as such a file. The cells are those of a run on
Spark, with the same steps and the same bytes between them, in this process.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from cells_in_process import Cells, compacting
from hypothesis import strategies as st

import meander
from case_files import row_of
from engine_runs import steps_of
from judge import judge
from meander.engine import CompiledQuery, compile_query, staged_plan
from meander.options import RunOptions
from meander.physical.path_operators import PATH_OPERATORS
from meander.spark.cell.job import Job
from meander.spark.cell.manifest import TIER, CellManifest
from meander.spark.cell.step import CellStep
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import Chunk, Kind, Output, closed
from oracle import Edge, Expected, expect, time_of
from querytext import read_query
from strategies import Case, cases, changed, once_in, path_value_cases, pick, property_cases

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

    With "another plan" the run resumes with the next of `operators`, and on one cell with another plan. One cell may
    also resume, before batch `added`, with the same query under a second name. `tier` blocks of stored input are
    compacted into one.
    """

    case: Case
    losses: tuple[str, ...] = ("state and snapshots",)
    operators: tuple[str, ...] = ("auto",)
    cells: int = 1
    snapshot_rows: int = RARELY
    added: int | None = None
    tier: int = TIER

    def __repr__(self) -> str:
        """The text of a file of `cases/`."""
        case = self.case
        options = {
            "mode": case.mode,
            "paths": case.paths,
            "proofs": case.proofs,
            "batch_rows": case.batch_rows,
            "lateness": case.lateness,
            "plan": case.plan,
            "cells": self.cells,
            "snapshot_rows": self.snapshot_rows,
            "added": self.added,
            "tier": self.tier,
            "losses": self.losses,
            "operators": self.operators,
        }
        lines = [
            "# (what this is a case of)",
            *(f"#! {name} {json.dumps(value)}" for name, value in options.items()),
        ]
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
        streams[name.strip()] = [row_of(json.loads(line)) for line in lines if line.strip()]
    options = {}
    for line in top.splitlines():
        if line.startswith("#!"):
            name, value = line[2:].split(maxsplit=1)
            options[name] = json.loads(value)
    own = {name: options.pop(name) for name in ("cells", "snapshot_rows", "added", "tier") if name in options}
    own |= {name: tuple(options.pop(name)) for name in ("losses", "operators") if name in options}
    return Recovery(Case(read_query(top), streams, **options), **own)


# ---------------------------------------------------------------------------------------------------------
# Runs


class ForgetfulCells(Cells):
    """The cells of a run that lose something now and then."""

    def __init__(self, recovery: Recovery, folder: Path) -> None:
        self.recovery = recovery
        self.folder = folder
        self.names = ["q"]
        self.by_query: dict[str, list[dict[str, Any]]] = {}
        self.added_at = -1
        case = recovery.case
        super().__init__(
            [compiled(case.text, "q", None if case.proofs else case.plan)],
            recovery.cells,
            path_operator=recovery.operators[0],
            paths=case.paths,
            proofs=case.proofs,
            mode=case.mode,
            lateness=case.lateness,
            idle=inf,
            snapshots=folder,
            snapshot_rows=recovery.snapshot_rows,
        )

    def take(self, cell: int, row: Output) -> None:
        if row.kind == Kind.ANSWERS:
            records = self.by_query.setdefault(row.query, [])
            records += [json.loads(line) for line in row.data.splitlines()]

    def lose(self, batch: int) -> None:
        """What happens between two batches."""
        match self.recovery.losses[batch % len(self.recovery.losses)]:
            case "state":
                self.cache.forget()
            case "state and snapshots":
                self.cache.forget()
                shutil.rmtree(self.folder, ignore_errors=True)
            case "state of one cell":
                self.cache.forget(batch)
            case "another plan":
                # Several cells keep to a plan that reads the edges that they hold.
                self.resume(batch if self.recovery.cells == 1 else self.recovery.case.plan, batch)
        if batch == self.recovery.added and self.recovery.cells == 1:
            self.names.append("second")
            stored = self.local.stores[0, self.jobs[0].cells[0]].read_manifest()
            self.added_at = -1 if stored is None else CellManifest.from_bytes(stored).time
            self.resume(self.recovery.case.plan, batch)

    def resume(self, plan: int | None, operator: int) -> None:
        """As after a restart with another plan or operator, or with more queries."""
        recovery = self.recovery
        case = recovery.case
        queries = [compiled(case.text, name, None if case.proofs else plan) for name in self.names]
        path_operator = recovery.operators[operator % len(recovery.operators)]
        self.options = replace(self.options, path_operator=path_operator)
        staged = staged_plan(queries, self.options)
        assert staged.exchanges == self.staged.exchanges
        self.staged = staged
        self.jobs = self.local.jobs = self.jobs_of(queries)

    def fail(self, batch: int, job: Job, cell: int, chunks: list[Chunk]) -> None:
        """What happens to a cell's task before it succeeds."""
        loss = self.recovery.losses[batch % len(self.recovery.losses)]
        if loss in ("the task", "half a task"):
            store = self.local.stores[job.stage, cell]
            attempt = CellStep(job, cell, store, self.cache).run(chunks)
            for _ in attempt:
                if loss == "half a task":
                    break
            attempt.close()
            store.roll_back()

    def run(self) -> None:
        """Process all batches."""
        case = self.recovery.case
        read = {name: rows for name, rows in case.streams.items() if name in self.staged.streams}
        for batch, (stream, edges) in enumerate(steps_of(read, case.batch_rows, self.staged.schemas)):
            chunk = closed(stream) if edges is None else edges_chunk(stream, edges)
            self.lose(batch)
            self.step([chunk], lambda _, *task, batch=batch: self.fail(batch, *task))
            for store in self.local.stores.values():
                store.commit()


def hold_law(recovery: Recovery) -> list[dict[str, Any]]:
    """Run the case, and judge its records."""
    case = recovery.case
    with tempfile.TemporaryDirectory() as folder, compacting(recovery.tier):
        cells = ForgetfulCells(recovery, Path(folder) / "snapshots")
        cells.run()
    expected = expect(case.query, case.streams, case.lateness)
    options = {
        "mode": case.mode,
        "paths": case.paths,
        "proofs": case.proofs,
        "first_path": "negative-tuple" in recovery.operators,
    }
    records = cells.by_query.get("q", [])
    judge(records, expected, **options)
    if "second" in cells.names:
        judge(cells.by_query.get("second", []), since(expected, cells.added_at), **options)
    return records


def since(expected: Expected, time: int) -> Expected:
    """What is expected of a query that is added when the time `time` is reached."""
    later = {
        answer: [(max(begin, time), end) for begin, end in held if end > time]
        for answer, held in expected.answers.items()
    }
    return replace(expected, answers={answer: held for answer, held in later.items() if held})


@cache
def plan_count(text: str) -> int:
    return len(meander.plans(text))


@cache
def compiled(text: str, name: str, plan: int | None) -> CompiledQuery:
    """A query with any number for its plan, of which the remainder by the number of plans counts."""
    number = None if plan is None else plan % plan_count(text)
    return compile_query(text, RunOptions(plan=number), name=name)


# ---------------------------------------------------------------------------------------------------------
# Draws


def squeezed(edges: Sequence[Edge], by: int) -> list[Edge]:
    """The edges with `by` instants in one."""
    return [changed(edge, ts=time_of(edge) // by) if has_time(edge) else edge for edge in edges]


def has_time(edge: Edge) -> bool:
    """Whether a row has a time that can be one."""
    ts = edge.get("ts") if isinstance(edge, Mapping) else edge[3] if len(edge) > 3 else None
    return type(ts) is int and ts >= 0


def draw_churn(draw: st.DrawFn, edges: Sequence[Edge]) -> list[Edge]:
    """The edges, some of which are deleted in the instant in which they arrive, and may arrive again."""
    churned: list[Edge] = []
    for edge in edges:
        churned.append(edge)
        if has_time(edge) and once_in(draw, 4):
            ends = (("-",), ("-", "+"), ("-", "+", "-"))[draw(st.integers(0, 2))]
            churned += [changed(edge, op=op) for op in ends]
    return churned


QUERIES = (
    "Answer(x, y) <- a(x, y).",
    "Answer(x, y) <- a+(x, y) as P.",
    "Answer(x, y) <- (a|b)+(x, y) as P.",
    "Answer(x, y) <- a(x, y).\nAnswer(x, y) <- b(x, y).",
    "Answer(x, y) <- a*(x, y).\nAnswer(x, y) <- b+(x, y).",
    "Answer(x, y) <- (a/b*)(x, y) as P.",
    "Answer(x, y) <- (^a/b?){1,2}(x, y).",
    "Answer(x, z) <- a(x, y), b(y, z).",
    "Answer(x) <- a(x, y), a(y, x), b(x, y).",
    "D(x, z) <- a(x, y), b(y, z).\nAnswer(x, y) <- D+(x, y) as P.",
    "D(x, z) <- a+(x, y), b(y, z).\nAnswer(x, y) <- D+(x, z) as P, a(z, y).",
    "D(x, y) <- a(x, y).\nD(x, y) <- b(y, x).\nAnswer(x, y) <- (D/a)+(x, y).",
)


def draw_small_case(draw: st.DrawFn) -> Case:
    """One of a few queries over one or two streams, and a few edges that come and go within two or three instants."""
    streams = pick(draw, (("s",), ("s",), ("s", "t")))
    text = pick(draw, QUERIES)
    text = re.sub(
        r"\b([ab])\b", lambda match: f"{streams[match[1] == 'b' and len(streams) > 1]}.{match[1]}", text
    )
    window = pick(draw, (3, 2, 10))
    top = "".join(f"STREAM {name} WINDOW {window}\n" for name in streams)
    rows: dict[str, list[Edge]] = {name: [] for name in streams}
    time = 1
    event = st.tuples(
        st.sampled_from("aab"), *[st.sampled_from("uvw")] * 2, st.integers(0, 7), st.integers(0, 9)
    )
    present: list[tuple[str, str, str]] = []
    for label, src, trg, gap, kind in draw(st.lists(event, min_size=3, max_size=12)):
        time += {6: 1, 7: 2}.get(gap, 0)
        edge = present[kind % len(present)] if kind < 4 and present else (src, label, trg)
        stream = streams[edge[1] == "b" and len(streams) > 1]
        rows[stream].append((*edge, time, "-") if kind < 4 and edge in present else (*edge, time))
        (present.remove if kind < 4 and edge in present else present.append)(edge)
    return Case(read_query(top + text), rows, paths=once_in(draw, 2), plan=None if once_in(draw, 2) else 0)


TABLE_QUERIES = (
    "Answer(x, y) <- a(x, y).",
    "Answer(x, y) <- a[w > 1](x, y).",
    "Answer(x, y, v: v) <- a(x, y, w: v).",
    "Answer(x, z) <- a(x, y, w: v), a(y, z, w: u), v < u.",
    "Answer(x, y) <- (a|b)+(x, y) as P.",
    "Answer(x, y) <- a(x, y, w: v), b(y, x, w: v).",
    "D(x, y, v: v) <- a(x, y, w: v).\nAnswer(x, z) <- D(x, y, v: v), b(y, z, w: v).",
    "D(x, z) <- a[w > 1](x, y), b(y, z).\nAnswer(x, y) <- D+(x, y) as P.",
    "D(x, z) <- a(x, y, w: v, z: u), a(y, z, w: v).\nAnswer(x, y) <- (D/b?)(x, y).",
)


def draw_table_case(draw: st.DrawFn) -> Case:
    """One of a few queries over a table whose few rows are replaced and deleted often, and perhaps a stream."""
    text = pick(draw, TABLE_QUERIES)
    b_is_table = once_in(draw, 2)
    text = re.sub(r"\ba\b", "s.a", text)
    text = re.sub(r"\bb\b", "s.b" if b_is_table else "t.b", text)
    top = "TABLE s (w INT, z STRING)\n"
    if "t.b" in text:
        top += "STREAM t (w INT) WINDOW 4\n"
    rows: dict[str, list[Edge]] = {"s": [], **({"t": []} if "t.b" in text else {})}
    time = 1
    event = st.tuples(
        st.sampled_from("aab"),
        *[st.sampled_from("uv")] * 2,
        st.integers(0, 3),
        st.integers(0, 9),
        st.sampled_from((1, 2, 3, None)),
        st.sampled_from(("p", "q", None)),
    )
    for label, src, trg, gap, kind, w, z in draw(st.lists(event, min_size=5, max_size=40)):
        time += gap == 3
        row: dict[str, Any] = {"src": src, "label": label, "trg": trg, "ts": time, "w": w}
        if kind < 3:
            row["op"] = "-"
        if label == "a" or b_is_table:
            row["z"] = z
        rows["t" if label == "b" and "t" in rows else "s"].append(row)
    return Case(read_query(top + text), rows, paths=once_in(draw, 2), plan=None if once_in(draw, 2) else 0)


@st.composite
def table_cases(draw: st.DrawFn) -> Case:
    """A query over a table, in either mode."""
    return replace(draw_table_case(draw), mode=pick(draw, ("intervals", "changes")))


@st.composite
def table_recoveries(draw: st.DrawFn) -> Recovery:
    """The same for a query over a table."""
    return draw_recovery(draw, draw_table_case(draw))


def draw_large_case(draw: st.DrawFn, drawn: st.SearchStrategy[Case]) -> Case:
    """A case as drawn, its instants squeezed."""
    case = draw(drawn)
    by = pick(draw, (3, 10, 1, 40))
    streams = {name: squeezed(edges, by) for name, edges in case.streams.items()}
    if once_in(draw, 2):
        streams = {name: draw_churn(draw, edges) for name, edges in streams.items()}
    return replace(case, streams=streams)


@st.composite
def recoveries(draw: st.DrawFn, large: int = 4) -> Recovery:
    """A case whose instants are split over batches as a rule, and what its cells lose; one in `large` is any case."""
    case = draw_large_case(draw, cases()) if once_in(draw, large) else draw_small_case(draw)
    return draw_recovery(draw, case)


@st.composite
def property_recoveries(draw: st.DrawFn) -> Recovery:
    """The same for a case whose query reads values."""
    return draw_recovery(draw, draw_large_case(draw, property_cases()))


@st.composite
def path_value_recoveries(draw: st.DrawFn) -> Recovery:
    """The same, in one cell, for a case whose query returns paths as values."""
    return replace(draw_recovery(draw, draw_large_case(draw, path_value_cases())), cells=1)


def draw_recovery(draw: st.DrawFn, case: Case) -> Recovery:
    """What the cells of a case lose."""
    case = replace(
        case,
        mode=pick(draw, ("changes", "changes", "intervals")),
        batch_rows=pick(draw, (1, 1, 2, 3, 7)),
    )
    return Recovery(
        case,
        losses=tuple(draw(st.lists(st.sampled_from(LOSSES), min_size=1, max_size=8))),
        operators=tuple(draw(st.permutations(tuple(PATH_OPERATORS)))),
        cells=pick(draw, (1, 1, 2, 3)),
        snapshot_rows=pick(draw, (RARELY, 1, 6)),
        added=draw(st.integers(0, 12)) if once_in(draw, 4) else None,
        tier=pick(draw, (TIER, 2, 3)),
    )
