"""From a query's text to the plans that run: every stage in one page of named calls."""

from __future__ import annotations

from collections.abc import Mapping

from meander.algebra.nodes import Path
from meander.algebra.translate import path_results, result_labels, translate
from meander.errors import ArgumentError
from meander.physical.path_operators import PATH_OPERATORS
from meander.physical.plan import QueryPlan
from meander.rewrite import choose, enumerate_plans, pass_demand
from meander.syntax import parse
from meander.syntax.query import RegularQuery


def plan_query(
    query: RegularQuery | str,
    *,
    name: str = "",
    unit: str = "s",
    plan: int | None = None,
    views: Mapping[str, RegularQuery] | None = None,
    path_operator: str = "auto",
    demand: bool = True,
) -> list[QueryPlan]:
    """The plan of each result of a query: number `plan` of the equivalent ones, or the one of least cost.

    With `demand`, closures that are only probed are told what for, where `path_operator` heeds that.
    """
    regular = parse(query, unit=unit, views=views) if isinstance(query, str) else query
    labels = result_labels(regular)
    proofs = path_results(regular)
    chosen = []
    for head, canonical in translate(regular).items():
        plans = enumerate_plans(canonical)
        number = choose(plans) if plan is None else plan
        if not 0 <= number < len(plans):
            raise ArgumentError(
                f"there is no plan {number} for {head}: plans are numbered 0 to {len(plans) - 1}\n"
                "hint: `meander explain --stage plans` lists them"
            )
        taken, proving = plans[number], proofs[head] or ()
        if demand and path_operator in PATH_OPERATORS and PATH_OPERATORS[path_operator].demand_aware:
            taken, proving = pass_demand(taken), tuple(map(_pass_demand_below, proving))
        chosen.append(QueryPlan(name, head, labels[head], taken, proving))
    return chosen


def _pass_demand_below(path: Path) -> Path:
    """A path that proves answers, over the same inputs as the plan that gives them."""
    passed = pass_demand(path)
    assert isinstance(passed, Path)
    return passed
