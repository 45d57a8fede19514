"""The law for cells, over queries and streams in which cells share work in every way that there is."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cells_in_process import Cells, forget
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incidents import generate, instants_held, read_records, write_tsv

import meander
from judge import judge
from meander.dataflow.edges import as_text
from meander.dataflow.tabular import edges_of
from meander.engine import compile_query, staged_plan
from meander.errors import StateError
from meander.options import RunOptions
from meander.physical.layouts import UNKNOWN, Statistics
from meander.spark.cell.redistribution import redistribute
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import closed
from meander.spark.run import Run
from meander.spark.session import Session
from oracle import expect
from querytext import read_query

EXAMPLES = int(os.environ.get("MEANDER_SHARES_EXAMPLES", "15"))
MANY_EXAMPLES = int(os.environ.get("MEANDER_MANY_SHARES_EXAMPLES", "3000"))

PROBED = (
    "Answer(x, y) <- a+(x, y), b(x, m), c(m, y).",
    "Answer(x, y) <- a*(x, y), b(x, y).",
    "Answer(y, x) <- (a|^b)+(x, y), c(y, x).",
    "Answer(x, m) <- (a/b?)+(x, y), b(x, m), c(m, y).",
    "Answer(x, y) <- a+(x, y), a(x, m), a(m, y).",
    "Answer(x, y, z) <- a+(x, y), b+(y, z), c(x, y), c(y, z).",
    "Answer(x, x) <- a+(x, x), b(x, x).",
    'Answer(x, y) <- a+("1", y), b("1", y), c(x, y).',
    "RL(x, y) <- a+(x, y), b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y), c(m, y).",
    "RL(x, y) <- (a?)+(x, y), b(x, m), c(m, y).\nAnswer(x, y) <- (d/RL+/d)(x, y).",
)
EMPTY_PATHS = (
    "Answer(x, y) <- a*(x, y) as P.",
    "Answer(x, y) <- (a|^b)*(x, y) as P.",
    "Answer(x, y) <- (a?/b?)(x, y) as P.",
    "D(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- (D|c)*(x, y) as P.",
)

JOINS = (
    "Answer(m, n) <- a(x, y), b(m, x), b(n, y), c(n, m).",
    "Answer(x, y, z) <- a(x, y), b(y, z), c(z, x).",
    "Answer(x, z) <- a(x, y), b(y, z), a(x, z).",
    "Answer(x, y, z, w) <- a(x, y), a(y, z), b(z, w).",
    "Answer(x, x, y) <- a(x, y), b(y, x).",
    "Answer(x, y) <- a(x, y), a(y, y), b(x, x).",
    "Answer(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- ^c(x, y), d(x, y).",
    "Answer(x, y) <- (a|^b)(x, y), (c|^c)(y, x).",
    "D(x, x) <- a(x, y).\nAnswer(u, v) <- D(u, v), b(u, w), c(w, v).",
    "D(x, y) <- a(x, u), b(u, y).\nAnswer(x, y) <- D+(x, y) as P, c(y, x).",
    'Answer(x, y) <- a(x, "1"), b(x, y), c(y, z).',
)
BODIES = (*PROBED, *EMPTY_PATHS, *JOINS)

vertices = st.sampled_from("1234")
steps = st.tuples(
    vertices, st.sampled_from("aaabbccd"), vertices, st.sampled_from((0, 0, 1, 1, 2, 6)), st.integers(0, 9)
)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Edges in order of time; one in ten is a deletion."""
    edges: list[tuple[Any, ...]] = []
    time = 0
    for src, label, trg, pause, chance in draw(st.lists(steps, max_size=60)):
        time += pause
        edges.append((src, label, trg, time, "-" if chance == 9 else "+"))
    return edges


RUNS: dict[str, Any] = {
    "window": st.sampled_from([(4, 1), (8, 3), (12, 12)]),
    "edges": streams(),
    "size": st.sampled_from([1, 3, 1000]),
    "cells": st.sampled_from([2, 3, 8, 27]),
    "mode": st.sampled_from(["intervals", "changes"]),
    "paths": st.booleans(),
    "path_operator": st.sampled_from(["closure", "auto", "s-path"]),
    "forgetful": st.booleans(),
}


def hold_law(
    body: str,
    window: tuple[int, int],
    edges: list[tuple[Any, ...]],
    size: int,
    cells: int,
    mode: str,
    paths: bool,
    path_operator: str,
    forgetful: bool,
    statistics: Statistics = UNKNOWN,
) -> Cells:
    text = f"STREAM s WINDOW {window[0]} SLIDE {window[1]}\n{body}"
    options: dict[str, Any] = {"mode": mode, "paths": paths, "path_operator": path_operator}
    run = Cells([compile_query(text, name="q")], cells, statistics=statistics, **options)
    for start in range(0, len(edges), size):
        run.step([edges_chunk("s", edges_of(edges[start : start + size]))], forget if forgetful else None)
    run.step([closed("s")])
    owners = Counter(key for mine in run.answers for key in {key_of(record) for record in mine})
    assert max(owners.values(), default=1) == 1
    judge(run.records, expect(read_query(text), {"s": edges}, 0), mode=mode, paths=paths)
    return run


@pytest.mark.parametrize("body", JOINS[:4])
def test_joins_of_edges_are_laid_out_over_grids(body: str) -> None:
    text = f"STREAM s WINDOW 9\n{body}"
    options = RunOptions(cells=8)
    (*_, last) = staged_plan([compile_query(text, name="q")], options).stages
    (layout,) = last.layouts.values()
    assert len(layout.axes) > 1


def key_of(record: dict[str, Any]) -> str:
    return str(record.get("answer", (record.get("src"), record.get("trg"))))


def heavy(*names: str) -> tuple[int, ...]:
    """The hashes of heavy vertices."""
    return tuple(sorted(as_text(list(names)).hashes().tolist()))


STATISTICS = st.builds(
    Statistics,
    st.dictionaries(st.tuples(st.just("s"), st.sampled_from("abcd")), st.integers(1, 1000)),
    st.sets(vertices).map(lambda names: heavy(*names) if names else ()),
)


FEW_STEPS = st.fixed_dictionaries(
    {("s", label): st.integers(1, 20 if label == "a" else 1000) for label in "abcd"}
).map(Statistics)
"""With these most closures are of few edges."""


@given(body=st.sampled_from(BODIES), statistics=STATISTICS | FEW_STEPS, **RUNS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_law_holds_for_shares(body: str, **run: Any) -> None:
    hold_law(body, **run)


@given(body=st.sampled_from(PROBED), statistics=FEW_STEPS, **RUNS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_law_holds_for_joins_with_closures_of_few_edges(body: str, **run: Any) -> None:
    hold_law(body, **run)


@given(
    body=st.sampled_from(PROBED),
    statistics=FEW_STEPS,
    window=RUNS["window"],
    edges=streams(),
    numbers=st.tuples(*[st.sampled_from([1, 2, 3, 8])] * 2),
    mode=RUNS["mode"],
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_joins_with_closures_of_few_edges_continue_with_another_number_of_cells(
    body: str,
    statistics: Statistics,
    window: tuple[int, int],
    edges: list[tuple[Any, ...]],
    numbers: tuple[int, int],
    mode: str,
) -> None:
    text = f"STREAM s WINDOW {window[0]} SLIDE {window[1]}\n{body}"
    queries = [compile_query(text, name="q")]
    run, other = (Cells(queries, cells, statistics=statistics, mode=mode) for cells in numbers)
    half = len(edges) // 2
    run.step([edges_chunk("s", edges_of(edges[:half]))])
    try:
        other.local.stores = redistribute(run.jobs, run.local.stores, other.jobs)
    except StateError as error:
        assert "deletions" in error.message  # noqa: PT017
    else:
        other.answers[0] = run.records
        run = other
    run.step([edges_chunk("s", edges_of(edges[half:]))])
    run.step([closed("s")])
    judge(run.records, expect(read_query(text), {"s": edges}, 0), mode=mode, paths=False)


def test_the_edges_of_a_heavy_vertex_are_spread() -> None:
    """Two in three answers have the same vertex: by its hash alone they would all be in one of eight cells."""
    edges = [(f"v{at}", "a", "hub" if at % 3 else f"w{at % 50}", at) for at in range(600)]
    edges += [("hub" if at % 50 == 0 else f"w{at % 50}", "b", f"u{at % 7}", at) for at in range(600)]
    edges.sort(key=lambda edge: edge[3])
    loads = {}
    for names in ((), ("hub",)):
        text = "STREAM s WINDOW 1000\nAnswer(x, y) <- a(x, y), b(y, z)."
        statistics = Statistics({("s", "a"): 1000, ("s", "b"): 1}, heavy(*names) if names else ())
        run = Cells([compile_query(text, name="q")], 8, statistics=statistics)
        (layout,) = run.staged.stages[-1].layouts.values()
        assert layout.axes[0].position == 1
        assert layout.axes[0].spreads == bool(names)
        run.step([edges_chunk("s", edges_of(edges))])
        run.step([closed("s")])
        judge(run.records, expect(read_query(text), {"s": edges}, 0), mode="intervals", paths=False)
        loads[names] = max(map(len, run.answers)) / len(run.records)
    assert loads[()] > 0.6
    assert loads["hub",] < 0.3


@pytest.mark.slow
@given(body=st.sampled_from(BODIES), statistics=STATISTICS | FEW_STEPS, **RUNS)
@settings(
    max_examples=MANY_EXAMPLES, deadline=None, derandomize=False, suppress_health_check=list(HealthCheck)
)
def test_the_law_holds_for_shares_in_many_more_cases(body: str, **run: Any) -> None:
    hold_law(body, **run)


@pytest.mark.spark
def test_the_number_of_cells_is_chosen_once_for_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    rows = generate(12, 400)
    text = "STREAM s WINDOW 30 SLIDE 3\nAnswer(x, y) <- (a/b*)(x, y) as P."
    (tmp_path / "in").mkdir()

    def start(part: int) -> Run:
        write_tsv(tmp_path / "in" / f"{part}.tsv", rows[part * 200 : part * 200 + 200])
        session = Session(spark)
        session.stream("s", str(tmp_path / "in"))
        session.query(text, "q")
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells="auto", idle=1e9)

    run = start(0)
    (reason,) = run.notes
    assert "an estimated gain of" in reason
    run.process_available()
    run.stop()
    again = start(1)
    assert again.notes == [f"{run.job.options.cells} cells, as the checkpoint has"]
    assert again.job.options.cells == run.job.options.cells
    again.finish()
    assert instants_held(read_records(tmp_path / "out.jsonl")) == instants_held(meander.run(text, rows))


@pytest.mark.spark
def test_a_run_continues_with_the_layout_of_its_first_sample(spark: Any, tmp_path: Path) -> None:
    """The sample has a heavy vertex; what comes later is of another shape, and changes no layout."""
    text = "STREAM s WINDOW 500 SLIDE 50\nAnswer(x, y) <- a(x, y), b(y, z)."
    first = [(f"v{at % 1500}", "a", "hub", at // 10) for at in range(3000)]
    first += [("hub" if at % 9 == 0 else f"w{at}", "b", "u", 300 + at // 10) for at in range(90)]
    then = [(f"x{at % 40}", "ab"[at % 2], f"x{at % 31}", 310 + at // 10) for at in range(600)]
    (tmp_path / "in").mkdir()

    def start(part: int, rows: list[Any]) -> Run:
        write_tsv(tmp_path / "in" / f"{part}.tsv", rows)
        session = Session(spark)
        session.stream("s", str(tmp_path / "in"))
        session.query(text, "q")
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells=2, idle=1e9)

    run = start(0, first)
    shares = {share for delivery in run.job.deliveries for share in delivery.shares}
    assert {share.heavy for share in shares} == {heavy("hub")}
    run.process_available()
    run.stop()
    again = start(1, then)
    assert again.job.deliveries == run.job.deliveries
    again.finish()
    records = read_records(tmp_path / "out.jsonl")
    assert instants_held(records) == instants_held(meander.run(text, first + then))
