"""The experiments: for each the tasks that it consists of.

The first five are those of the paper's section 7 (Table 2, figures 10 to 14 and Table 3), the others show what the
paper leaves out. To add one, write a function from a `Scope` to tasks, and a section of the page (`report.sections`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from meander.algebra.nodes import Path, Pattern, Plan, WScan
from meander.bench.tasks import Task
from meander.bench.workloads import PATH_QUERIES, DataSet, Workload
from meander.engine import compile_query
from meander.syntax.durations import format_duration

FIXED_OPERATORS = ("s-path", "negative-tuple", "closure")
PLAN_QUERIES = ("Q2", "Q3", "Q4")
PLANS_PER_TASK = 8
PROFILED = ("Q1", "Q4", "Q6")
PROFILED_DENSE = 60_000
VALUE_PARTS = ("predicates", "columns", "ascending", "pass-through", "reach", "ring")
STARTING = 1.2
"""The seconds until a process measures anything."""


@dataclass(frozen=True)
class Limits:
    """How much is measured: seconds, and numbers of edges."""

    whole: int | None  # the edges of the main table; None: all
    own: float  # seconds for Meander's run by slide in the main table
    enough: float  # seconds for Meander's repeated runs in the main table
    peer: float  # seconds for a peer
    slide_peer: float  # seconds for a peer with one of several slides
    dense: int  # the edges of the other experiments, of a dense graph
    sparse: int
    dense_windows: (
        int  # the edges on which windows are compared, of a dense graph: several times the longest window
    )
    variant: float  # seconds for a variant's run by slide in the other experiments
    variant_enough: float
    plan: float  # seconds for a plan's run by slide: of Q3 most plans reach it
    slide_edges: int  # the edges on which Pathway is measured with slides of several sizes
    plans: int  # plans of a query
    profile: float  # seconds for the repeated runs of a profile
    values: float  # the share of the generated transfers
    cells: int  # edges
    spark: Mapping[str, Sequence[str]]  # by part, the queries that it is about
    spark_rounds: int
    spark_batches: int
    sparse_too: bool  # whether window, slide, path and plan experiments are made on sparse graphs too
    peer_queries: Sequence[str]
    slide_queries: Sequence[str]  # on which peers are measured with several slides
    cell_queries: Sequence[str]


ALL = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")
FULL = Limits(
    whole=None,
    own=60.0,
    enough=4.0,
    peer=5.0,
    slide_peer=3.0,
    dense=20_000,
    sparse=100_000,
    dense_windows=60_000,
    variant=5.0,
    variant_enough=0.6,
    plan=2.0,
    slide_edges=1_000,
    plans=64,
    profile=1.5,
    values=1.0,
    cells=30_000,
    spark={"rates": ("Q1", "Q5", "Q6"), "batch": ("Q7",), "restart": ("Q5",)},
    spark_rounds=3,
    spark_batches=40,
    sparse_too=True,
    peer_queries=ALL,
    slide_queries=ALL,
    cell_queries=ALL,
)
QUICK = Limits(
    whole=20_000,
    own=5.0,
    enough=0.2,
    peer=0.5,
    slide_peer=0.5,
    dense=4_000,
    sparse=10_000,
    dense_windows=8_000,
    variant=0.3,
    variant_enough=0.05,
    plan=0.3,
    slide_edges=300,
    plans=8,
    profile=0.3,
    values=0.05,
    cells=3_000,
    spark={"rates": ("Q6",)},
    spark_rounds=1,
    spark_batches=3,
    sparse_too=False,
    peer_queries=("Q1", "Q6"),
    slide_queries=("Q1",),
    cell_queries=("Q2", "Q7"),
)


SPARSE_FACTOR = 30
"""A sparse graph is processed faster than a dense one by about this factor."""


@dataclass(frozen=True)
class Scope:
    """What to measure on, and how much."""

    data: Sequence[DataSet]
    queries: Sequence[str]
    window: int
    slide: int
    windows: Sequence[int]
    slides: Sequence[int]
    cells: Sequence[int]
    prefix: int | None
    peers: Sequence[str]
    limits: Limits

    def workloads(self, queries: Sequence[str] = ALL, *, every_graph: bool = True) -> Iterator[Workload]:
        """The chosen queries that are among these, on the graphs that have labels for them.

        Without `every_graph`, sparse graphs are left out where there is a dense one.
        """
        dense = [data for data in self.data if data.dense]
        for data in self.data if every_graph or not dense else dense:
            for query in self.queries:
                if query in queries and query in data.bindings:
                    yield Workload(data, query)

    def edges(self, data: DataSet) -> int:
        """The number of edges for all experiments but the first."""
        return self.prefix or (self.limits.dense if data.dense else self.limits.sparse)

    def meander(
        self,
        experiment: str,
        workload: Workload,
        variants: Sequence[Mapping[str, Any]],
        *,
        counted: int = 0,
        aligned: int = 0,
        edges: int | None = None,
        limit: float | None = None,
        typical: float = 0.2,
        name: str = "",
    ) -> Task:
        """Meander's variants in one process.

        `aligned` is the slide with which the edges end, `limit` the seconds for a variant's run by slide, of which a
        variant is expected to take the share `typical`.
        """
        limits = self.limits
        limit = limits.variant if limit is None else limit
        settings = {
            "window": self.window,
            "slide": self.slide,
            "prefix": edges or self.edges(workload.data),
            "aligned": aligned or self.slide,
            "limit": limit,
            "enough": limits.variant_enough,
            "counted": counted,
            "variants": [dict(variant) for variant in variants],
        }
        # The run by slide, and the repeated ones: of a slow variant one, on the edges that it processed.
        each = 1.8 * typical * limit + limits.variant_enough
        return Task(
            experiment,
            "meander",
            workload.data,
            workload.query,
            settings,
            name,
            seconds=STARTING + each * len(variants),
            patience=240 + (10 * limit + limits.variant_enough) * len(variants),
        )

    def peer(
        self,
        experiment: str,
        workload: Workload,
        engine: str,
        slide: int,
        *,
        name: str = "",
        grow: bool = True,
    ) -> Task:
        """A peer, and Meander on the same edges."""
        limits = self.limits
        limit = limits.peer if grow else limits.slide_peer
        fixed = engine == "Pathway" and not (grow and self.prefix is None and limits.whole is None)
        edges = self.prefix or limits.whole
        settings = {
            "engine": engine,
            "window": self.window,
            "slide": slide,
            "prefix": min(edges or limits.slide_edges, limits.slide_edges) if fixed else edges,
            "aligned": max(self.slide, slide),
            "limit": limit,
            "grow": not fixed,
            "tail": grow,
            "own_limit": 10 * limits.own,
            "enough": limits.enough / 4,
            "counted": 9,
            "variants": [{"name": "Meander", "slide": slide}],
        }
        return Task(
            experiment,
            "peer",
            workload.data,
            workload.query,
            settings,
            " ".join(filter(None, (engine, name))),
            seconds=STARTING
            + limits.enough / 2
            + self._peer_seconds(engine, limit, growing=not fixed, tail=grow),
            patience=300 + 40 * limit,
        )

    @staticmethod
    def _peer_seconds(engine: str, limit: float, *, growing: bool, tail: bool) -> float:
        """About how long a peer takes. Pathway starts several times, and one of its prefixes may be too long."""
        if engine != "Pathway":
            return 1.2 * limit
        return (12 + 4 * limit if growing else 3 + 0.4 * limit) + (3 + 0.7 * limit) * tail


def engines(scope: Scope) -> Iterator[Task]:
    """Table 2: throughput and tail latency of every engine, for every query on every graph."""
    limits = scope.limits
    for workload in scope.workloads():
        settings = {
            "window": scope.window,
            "slide": scope.slide,
            "prefix": scope.prefix or limits.whole,
            "aligned": scope.slide,
            "limit": limits.own,
            "enough": limits.enough,
            "counted": 0,
            "variants": [{"name": "Meander"}],
        }
        yield Task(
            "engines",
            "meander",
            workload.data,
            workload.query,
            settings,
            seconds=STARTING + 1.6 * limits.enough + (0.5 if limits.whole else 3.0),
            patience=300 + 20 * limits.own,
        )
        for engine in scope.peers:
            if workload.query in limits.peer_queries:
                yield scope.peer("engines", workload, engine, scope.slide)


def windows(scope: Scope) -> Iterator[Task]:
    """Figure 10a: throughput and tail latency against the size of the window; and memory."""
    variants = [
        {"name": format_duration(size), "window": size} for size in scope.windows if size >= scope.slide
    ]
    for workload in scope.workloads(every_graph=scope.limits.sparse_too):
        longer = scope.limits.dense_windows if workload.data.dense and scope.prefix is None else None
        yield scope.meander("windows", workload, variants, edges=longer)


def slides(scope: Scope) -> Iterator[Task]:
    """Figures 10b and 11: throughput and tail latency against the slide, of Meander and of the peers."""
    sizes = [size for size in scope.slides if size <= scope.window]
    variants = [{"name": format_duration(size), "slide": size} for size in sizes]
    for workload in scope.workloads(every_graph=scope.limits.sparse_too):
        yield scope.meander("slides", workload, variants, aligned=max(sizes))
    for workload in scope.workloads(scope.limits.slide_queries, every_graph=False):
        for engine in scope.peers:
            for size in sizes:
                if engine == "DuckDB" or size >= scope.slide:
                    yield scope.peer("slides", workload, engine, size, name=format_duration(size), grow=False)


def plans(scope: Scope) -> Iterator[Task]:
    """Figures 12 to 14: every enumerated plan of Q2, Q3 and Q4."""
    for workload in scope.workloads(PLAN_QUERIES, every_graph=scope.limits.sparse_too):
        query = compile_query(workload.text(scope.window, scope.slide))
        ((head, all_plans),) = query.plans.items()
        variants: list[dict[str, Any]] = [
            {
                "name": str(number),
                "options": {"plan": number},
                "marks": paper_names(workload.query, number, plan),
            }
            for number, plan in enumerate(all_plans)
        ]
        variants[query.chosen[head]]["marks"] += ["chosen"]
        marked = [variant for variant in variants if variant["marks"]]
        rest = [variant for variant in variants if not variant["marks"]]
        measured = marked + rest[: max(0, scope.limits.plans - len(marked))]
        for first in range(0, len(measured), PLANS_PER_TASK):
            some = measured[first : first + PLANS_PER_TASK]
            # The plan that is chosen is in every process, for its answers to be compared with those of the others.
            shared = [variant for variant in variants if "chosen" in variant["marks"] and variant not in some]
            number = first // PLANS_PER_TASK
            yield scope.meander(
                "plans",
                workload,
                [*some, *shared],
                counted=3,
                limit=scope.limits.plan,
                typical=1.0 if workload.data.dense else 0.5,
                name=f"part {number}",
            )


def paper_names(query: str, number: int, plan: Plan) -> list[str]:
    """The paper's name for a plan: SGA is the canonical one, P1 to P3 are other plans of Q4 (its section 7.4)."""
    if number == 0:
        return ["SGA"]
    if query != "Q4" or not isinstance(plan, Path):
        return []
    inputs: tuple[type, ...] = tuple(type(node) for node in plan.inputs)
    flat = all(
        isinstance(part, WScan) for node in plan.inputs if isinstance(node, Pattern) for part in node.inputs
    )
    names: dict[tuple[type, ...], str] = {
        (WScan, WScan, WScan): "P1",
        (WScan, Pattern): "P2",
        (Pattern, WScan): "P3",
    }
    return [names[inputs]] if flat and inputs in names else []


def operators(scope: Scope) -> Iterator[Task]:
    """Table 3: the path operators, each for every query on every graph."""
    variants = [
        {"name": operator, "options": {"path_operator": operator}} for operator in (*FIXED_OPERATORS, "auto")
    ]
    for workload in scope.workloads(every_graph=scope.limits.sparse_too):
        typical = 0.6 if workload.data.dense else 0.1
        yield scope.meander("operators", workload, variants, counted=3, typical=typical)


def paths(scope: Scope) -> Iterator[Task]:
    """What it costs to return paths, by path operator."""
    variants = [
        {"name": f"{operator}{' with paths' * on}", "options": {"path_operator": operator, "paths": on}}
        for operator in (*FIXED_OPERATORS, "auto")
        for on in (False, True)
    ]
    for workload in scope.workloads(PATH_QUERIES, every_graph=scope.limits.sparse_too):
        # Half of the edges, so that runs with paths are done in time: a ratio is of the same edges.
        half = max(1, scope.edges(workload.data) // 2)
        typical = 0.4 if workload.data.dense else 0.1
        yield scope.meander("paths", workload, variants, counted=3, edges=half, typical=typical)


def threads(scope: Scope) -> Iterator[Task]:
    """What a second thread brings to a closure."""
    variants = [
        {"name": str(number), "options": {"path_operator": "closure", "threads": number}} for number in (1, 2)
    ]
    for workload in scope.workloads(("Q1",), every_graph=False):
        task = scope.meander("threads", workload, variants)
        # Work is divided where there is much of it: on all edges, with longer repeats.
        more = {
            "prefix": scope.prefix or scope.limits.whole,
            "enough": scope.limits.enough,
            "limit": scope.limits.own,
        }
        yield replace(task, settings={**task.settings, **more}, seconds=STARTING + 4 * scope.limits.enough)


def profile(scope: Scope) -> Iterator[Task]:
    """Where the time of a run goes, part by part and kernel by kernel, and on Spark."""
    for workload in scope.workloads(PROFILED):
        # On all edges of a dense graph the answers would fill some gigabytes.
        most = PROFILED_DENSE if workload.data.dense else None
        settings = {
            "window": scope.window,
            "slide": scope.slide,
            "prefix": scope.prefix or scope.limits.whole or most,
            "aligned": scope.slide,
            "paths": False,
            "enough": scope.limits.profile,
        }
        seconds = STARTING + 2 * scope.limits.profile
        yield Task("profile", "profile", workload.data, workload.query, settings, seconds=seconds)
    for data in _sparse(scope):
        yield _spark(scope, "profile", data, "profile", ("Q6",))


def values(scope: Scope) -> Iterator[Task]:
    """What properties cost and spare, and fraud queries beside DuckDB."""
    dense = next((data for data in scope.data if data.dense), None)
    if dense is None or "Q1" not in dense.bindings:
        return
    for part in VALUE_PARTS:
        settings = {
            "part": part,
            "labels": list(dense.bindings["Q1"]),
            "prefix": scope.prefix or scope.limits.whole,
            "aligned": scope.slide,
            "size": scope.limits.values,
            "limit": scope.limits.peer,
        }
        seconds = STARTING + 10 * scope.limits.values + 0.4 * scope.limits.peer
        yield Task("values", "values", dense, "", settings, part, seconds=seconds, patience=900)


def spark(scope: Scope) -> Iterator[Task]:
    """What Spark adds: rates, a small batch, a restart."""
    for data in _sparse(scope):
        for part, queries in scope.limits.spark.items():
            yield _spark(scope, "spark", data, part, queries)


def cells(scope: Scope) -> Iterator[Task]:
    """How work and edges spread over cells."""
    for workload in scope.workloads(scope.limits.cell_queries):
        settings = {
            "window": scope.window,
            "slide": scope.slide,
            "prefix": scope.prefix or cell_edges(scope, workload),
            "aligned": scope.slide,
            "cells": list(scope.cells),
        }
        seconds = STARTING + 6e-5 * (scope.prefix or scope.limits.cells) * len(scope.cells)
        yield Task("cells", "cells", workload.data, workload.query, settings, seconds=seconds, patience=900)


def cell_edges(scope: Scope, workload: Workload) -> int:
    """The edges on which cells are measured: of a sparse graph so many more that they take about as long."""
    return scope.limits.cells * (1 if workload.data.dense else SPARSE_FACTOR)


def _sparse(scope: Scope) -> Sequence[DataSet]:
    """The first sparse graph that has all the queries that are measured on Spark."""
    return [data for data in scope.data if not data.dense and {"Q5", "Q6", "Q7"} <= set(data.bindings)][:1]


def _spark(scope: Scope, experiment: str, data: DataSet, part: str, queries: Sequence[str]) -> Task:
    settings = {
        "part": part,
        "queries": list(queries),
        "window": scope.window,
        "slide": scope.slide,
        "prefix": scope.prefix or scope.limits.whole,
        "aligned": scope.slide,
        "rounds": scope.limits.spark_rounds,
        "batches": scope.limits.spark_batches,
    }
    name = "Spark" if experiment == "profile" else part
    seconds = {
        "rates": 15 + 6 * (1 + scope.limits.spark_rounds) * len(queries),
        "batch": 15 + scope.limits.spark_batches,
    }
    return Task(experiment, "spark", data, "", settings, name, seconds=seconds.get(part, 25), patience=900)


EXPERIMENTS: Mapping[str, Callable[[Scope], Iterator[Task]]] = {
    experiment.__name__: experiment
    for experiment in (
        engines,
        windows,
        slides,
        plans,
        operators,
        paths,
        threads,
        profile,
        values,
        spark,
        cells,
    )
}


ORDER = ("meander", "profile", "values", "peer", "spark", "cells")
"""What is measured first: the tables about Meander alone, so that a run that is interrupted early has them."""


def tasks_of(names: Sequence[str], scope: Scope) -> list[Task]:
    """All tasks of these experiments, in the order in which they are performed."""
    tasks = [task for name in names for task in EXPERIMENTS[name](scope)]
    return sorted(tasks, key=lambda task: ORDER.index(task.kind))
