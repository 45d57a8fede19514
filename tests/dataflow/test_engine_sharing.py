"""Several queries in one run: what they have in common is computed once, and each has its own answers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import meander
from engine_runs import Run, plan_query, steps_of
from meander.dataflow.answers import as_dicts
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY
from meander.physical.builder import build
from strategies import Case, cases

PAIRS = "STREAM s WINDOW 10\nD(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D+(x, y)."
ENDS = "STREAM s WINDOW 10\nE(p, q) <- a(p, r), b(r, q).\nAnswer(x) <- E(x, y), c(y, x)."
FROM_U = 'STREAM s WINDOW 10\nAnswer(y) <- (a/b)+("u", y).'
EDGES = [
    ("u", "a", "v", 1),
    ("v", "b", "w", 2),
    ("w", "a", "x", 3),
    ("w", "c", "u", 3),
    ("x", "b", "u", 5),
    ("v", "b", "w", 7, "-"),
    ("v", "b", "w", 8),
]


def together(texts: list[str], edges: list[Any], **options: Any) -> dict[str, list[dict[str, Any]]]:
    plans = [plan for at, text in enumerate(texts) for plan in plan_query(text, name=f"q{at}")]
    dataflow = Dataflow(build(plans, paths=options.get("paths", False)), **options)
    by_query: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    ((_, chunk), *_) = steps_of({"s": edges}, len(edges))
    assert chunk is not None
    for result, answers in dataflow.process({"s": chunk}, INFINITY):
        by_query[result.query] += as_dicts(answers)
    return by_query


@pytest.mark.parametrize(
    "options", [{}, {"mode": "changes"}, {"paths": True}], ids=["bare", "changes", "paths"]
)
def test_each_query_has_the_answers_that_it_has_alone(options: dict[str, Any]) -> None:
    texts = [PAIRS, ENDS, FROM_U, PAIRS]
    by_query = together(texts, EDGES, **options)
    assert by_query["q0"]
    for at, text in enumerate(texts):
        assert sorted(map(repr, by_query[f"q{at}"])) == sorted(map(repr, meander.run(text, EDGES, **options)))


def test_equal_subplans_work_once() -> None:
    plans = [*plan_query(PAIRS, name="pairs", plan=0), *plan_query(ENDS, name="ends", plan=0)]
    dataflow = Dataflow(build(plans))
    ((_, chunk), *_) = steps_of({"s": EDGES}, len(EDGES))
    assert chunk is not None
    for _ in dataflow.process({"s": chunk}, INFINITY):
        pass
    joins = [operator for operator in dataflow.figures() if operator.name in ("PATTERN D", "PATTERN E")]
    # `a` twice, `b` four times (one of them a deletion).
    assert [(join.name, join.rows_in) for join in joins] == [("PATTERN D", 6)]
    assert dataflow.graph.relations == len(dataflow.plan.indexed) == 4


@given(case=cases(), other=cases())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_whatever_queries_run_together_none_changes_another(case: Case, other: Case) -> None:
    """Queries on the streams of one case, each beside each; streams that only one declares get no edges."""
    names = dict.fromkeys([*case.streams, *other.streams])
    streams = {name: case.streams.get(name, ()) for name in names}
    plans = [*plan_query(case.text, name="one"), *plan_query(other.text, name="other")]

    def answers(chosen: list[Any]) -> dict[str, list[str]]:
        by_query: defaultdict[str, list[str]] = defaultdict(list)
        run = Run(build(chosen), tuple(names), lateness=case.lateness, mode=case.mode)
        for name, edges in steps_of(streams, 5):
            if edges is None:
                run.ingest.close(name)
            else:
                run.ingest.push(name, edges)
            for result, records in run.dataflow.process(*run.ingest.release()):
                by_query[result.query] += map(repr, as_dicts(records))
        return {query: sorted(records) for query, records in by_query.items()}

    alone = answers(plan_query(case.text, name="one")) | answers(plan_query(other.text, name="other"))
    assert answers(plans) == alone
