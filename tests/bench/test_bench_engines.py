"""DuckDB, Pathway and Meander give the same answers to all seven queries: those of the oracle.

The graphs are small, dense and full of repeats; the window is three slides and a half, so that edges expire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from meander.bench.data import Graph, as_graph
from meander.bench.measurement import BenchError, Measurement, check_equal
from meander.bench.measures import meander
from meander.bench.peers import pathway
from meander.bench.workloads import DATA_SETS, QUERIES, STREAM, Workload
from oracle import answers
from querytext import read_query

duckdb: Any = pytest.importorskip("meander.bench.peers.duckdb")

SLIDE = 10
WINDOW = 35
EDGES = 160
VERTICES = 9

WORKLOADS = [Workload(DATA_SETS[name], query) for name in ("mathoverflow", "snb") for query in QUERIES]
every_workload = pytest.mark.parametrize(
    "workload", WORKLOADS, ids=lambda workload: f"{workload.data.name}-{workload.query}"
)
needs_pathway = pytest.mark.skipif(pathway.interpreter() is None, reason="Pathway is not installed")


@cache
def small_graph(labels: tuple[str, ...]) -> Graph:
    """Random edges of these labels between few vertices, several to an instant, none in slides 9 to 12."""
    random = np.random.default_rng(len(labels))
    ts = np.sort(random.integers(0, EDGES, EDGES))
    columns = {
        "src": [f"v{vertex}" for vertex in random.integers(0, VERTICES, EDGES)],
        "label": random.choice(labels, EDGES).tolist(),
        "trg": [f"v{vertex}" for vertex in random.integers(0, VERTICES, EDGES)],
        "ts": np.where(ts < 90, ts, ts + 40),
    }
    return as_graph(pa.table(columns))


@cache
def expected(workload: Workload) -> Measurement:
    """The oracle's number of answers at the end of every slide."""
    graph = small_graph(workload.labels)
    names = [graph.names.take(pa.array(ends)).to_pylist() for ends in (graph.src, graph.trg)]
    labels = graph.labels.take(pa.array(graph.label)).to_pylist()
    edges = list(zip(names[0], labels, names[1], graph.ts.tolist(), strict=True))
    held = answers(read_query(workload.text(WINDOW, SLIDE)), {STREAM: edges})
    slides = range(int(graph.ts[0] // SLIDE), int(graph.ts[-1] // SLIDE) + 1)
    counts = {}
    for slide in slides:
        end = (slide + 1) * SLIDE - 1
        counts[slide] = sum(any(ts <= end < exp for ts, exp in intervals) for intervals in held.values())
    return Measurement("the oracle", graph.edges, 0.0, 0.0, counts)


@every_workload
def test_duckdb_has_the_answers_of_the_oracle_at_every_slide(workload: Workload) -> None:
    graph = small_graph(workload.labels)
    measured = duckdb.measure(graph, workload, window=WINDOW, slide=SLIDE, limit=60.0)
    assert measured.edges == graph.edges
    assert measured.counts == expected(workload).counts


def request(
    workload: Workload, file: Path, counted: Sequence[int], *options: dict[str, Any], limit: float = 60.0
) -> meander.Request:
    graph = small_graph(workload.labels)
    graph.write(file)
    variants = [meander.Variant(workload.text(WINDOW, SLIDE), SLIDE, some, str(some)) for some in options]
    return meander.Request(str(file), variants, counted, limit=limit, enough=0.0)


@every_workload
def test_meander_has_the_answers_of_the_oracle_at_every_slide(workload: Workload, tmp_path: Path) -> None:
    slides = list(expected(workload).counts)
    (measured,) = meander.perform(
        request(workload, tmp_path / "edges.tsv", slides, {"path_operator": "s-path", "batch_rows": 50})
    )
    assert isinstance(measured, Measurement)
    assert measured.edges == small_graph(workload.labels).edges
    assert measured.counts == expected(workload).counts


@needs_pathway
@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(
            workload,
            marks=[pytest.mark.slow] if workload.query != "Q4" else [],
            id=f"{workload.data.name}-{workload.query}",
        )
        for workload in WORKLOADS
    ],
)
def test_pathway_has_the_answers_of_the_oracle_at_every_slide(workload: Workload) -> None:
    graph = small_graph(workload.labels)
    measured = pathway.run(graph, workload, window=WINDOW, slide=SLIDE, patience=100.0, pairs=True)
    assert measured is not None
    assert check_equal("small graph", expected(workload), measured) == len(expected(workload).counts)
    last = int(graph.ts[-1] // SLIDE)
    assert measured.details["pairs"] == duckdb.answers_at(
        graph, workload, window=WINDOW, slide=SLIDE, last=last
    )
    # Slide by slide it has the same answers, or there is an error.
    with_p99 = pathway.with_p99(measured, graph, workload, window=WINDOW, slide=SLIDE, limit=100.0)
    assert with_p99.details["slides"]["measured"] == len(expected(workload).counts)
    assert with_p99.p99 is not None
    assert with_p99.p99 > 0


def test_the_graphs_have_answers_that_come_and_go() -> None:
    for workload in WORKLOADS:
        counts = list(expected(workload).counts.values())
        assert max(counts) > 0, workload
        assert any(later < earlier for earlier, later in pairwise(counts)), workload


def test_variants_are_measured_in_one_process_and_say_where_their_time_went(tmp_path: Path) -> None:
    workload = Workload(DATA_SETS["snb"], "Q1")
    graph = small_graph(workload.labels)
    last = int(graph.ts[-1] // SLIDE)
    both = meander.perform(
        request(workload, tmp_path / "edges.tsv", [last], {"path_operator": "s-path"}, {"threads": 2})
    )
    assert len(both) == 2
    for measured in both:
        assert isinstance(measured, Measurement)
        assert measured.edges == graph.edges
        assert measured.counts == {last: expected(workload).counts[last]}
        assert sum(measured.details["parts"].values()) == pytest.approx(measured.seconds)
        assert (
            measured.details["slides"]["longest"] >= (measured.p99 or 0) >= measured.details["slides"]["p50"]
        )


def test_a_variant_that_fails_leaves_the_others(tmp_path: Path) -> None:
    workload = Workload(DATA_SETS["mathoverflow"], "Q4")
    good, bad = meander.perform(request(workload, tmp_path / "edges.tsv", [], {"plan": 0}, {"plan": 99}))
    assert isinstance(good, Measurement)
    assert str(bad).startswith("ArgumentError: Answer has no plan 99\nhint: its plans are 0 to 5")


def test_variants_with_other_answers_are_an_error(tmp_path: Path) -> None:
    workload = Workload(DATA_SETS["mathoverflow"], "Q1")
    slides = list(expected(workload).counts)
    wrong = request(workload, tmp_path / "edges.tsv", slides, {}, {})
    longer = meander.Variant(workload.text(2 * WINDOW, SLIDE), SLIDE, {}, "twice the window")
    with pytest.raises(BenchError, match=r"\{\} and twice the window: at the end of slide"):
        meander.perform(replace(wrong, variants=[wrong.variants[0], longer]))


def test_the_time_limit_ends_a_run_with_a_slide(tmp_path: Path) -> None:
    workload = Workload(DATA_SETS["mathoverflow"], "Q1")
    graph = small_graph(workload.labels)
    first = graph.prefix(1, SLIDE).edges
    stopped = duckdb.measure(graph, workload, window=WINDOW, slide=SLIDE, limit=1e-9)
    assert stopped.edges in (0, first)
    (measured,) = meander.perform(request(workload, tmp_path / "edges.tsv", [0], {}, limit=1e-9))
    assert isinstance(measured, Measurement)
    assert measured.edges == first
    assert measured.counts == {0: expected(workload).counts[0]}


def test_engines_that_disagree_are_an_error_that_says_where() -> None:
    sample = Measurement("A", 10, 1.0, 1.0, {1: 5, 2: 7, 3: 7})
    assert check_equal("Q1", sample, Measurement("B", 10, 1.0, 1.0, {1: 5, 2: 7})) == 3
    with pytest.raises(BenchError, match="Q1: at the end of slide 2, A has 7 answers and B 5"):
        check_equal("Q1", sample, Measurement("B", 10, 1.0, 1.0, {1: 5, 3: 7}))
