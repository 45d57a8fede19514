"""The algorithms of PATH by name: where each is implemented, and what the planner must know of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PathOperator:
    implementation: str  # "module:class"; imported when it is used
    description: str
    demand_aware: bool = (
        False  # whether it uses the pairs that its readers ask for (sideways information passing)
    )
    walks_backward: bool = False  # whether it reads every input edge from its target too


PATH_OPERATORS = {
    "auto": PathOperator(
        "meander.dataflow.operators.path_auto:PathAuto",
        "s-path or closure, switched at run time by estimated cost",
        demand_aware=True,
    ),
    "s-path": PathOperator(
        "meander.dataflow.operators.path_trees:PathTrees",
        "a spanning tree per root, with the path of largest expiry",
    ),
    "negative-tuple": PathOperator(
        "meander.dataflow.operators.path_negative:PathNegativeTuples",
        "a spanning tree per root, with the first path found; searches again at expiry",
        walks_backward=True,
    ),
    "closure": PathOperator(
        "meander.dataflow.operators.path_closure:PathClosure",
        "slide-batched transitive closure, 512 roots at a time",
        demand_aware=True,
    ),
}

ASCENDING = "ascending"

ORDERED_PATH_OPERATORS = {
    ASCENDING: PathOperator(
        "meander.dataflow.operators.path_ascending:PathAscending",
        "rows of roots, extended by edges in order of time",
    ),
}
"""The algorithms of time-respecting paths: the choice of `PATH_OPERATORS` is for paths in any order."""
