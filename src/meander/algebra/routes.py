"""Routes: where a path value comes from, as a way through a canonical plan from a head down to a `Path`.

    Notify(u, m, P) <- follows+(u, v) as P, posts(v, m).     P: Input(0, Here())
    Notify(u, m, P: Q) <- likes+(u, m) as Q.                 Q: Here(); of Notify, P: Each((Input(0, Here()), Here()))

A path value is no column of a plan: the plan is the one without it, and the path is found by following the route from
a tuple to tuples that prove it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from meander.algebra.nodes import Path, Plan


@dataclass(frozen=True, slots=True)
class Here:
    """The node is a `Path`, and the value is its path."""


@dataclass(frozen=True, slots=True)
class Input:
    """It comes from an input of a `Pattern` or `Filter`, by number."""

    number: int
    route: Route


@dataclass(frozen=True, slots=True)
class Each:
    """It comes from the input of a `Union` that has the tuple; a route for each, or None where there is no path."""

    routes: tuple[Route | None, ...]


Route = Here | Input | Each


class PathValue(NamedTuple):
    """A named path of a result, and its route."""

    name: str
    route: Route


def paths_at(plan: Plan, route: Route) -> Iterator[Path]:
    """The `Path`s that a route from a plan leads to."""
    match route:
        case Here():
            assert isinstance(plan, Path)
            yield plan
        case Input(number, inner):
            yield from paths_at(plan.inputs[number], inner)
        case Each(routes):
            for source, branch in zip(plan.inputs, routes, strict=True):
                if branch is not None:
                    yield from paths_at(source, branch)
