"""Routes: where a path value comes from, as a way through a canonical plan from a head down to a `Path`.

    Notify(u, m, P) <- follows+(u, v) as P, posts(v, m).     P: Input(0, Here())
    Notify(u, m, P: Q) <- likes+(u, m) as Q.                 Q: Here(); of Notify, P: Each((Input(0, Here()), Here()))

A path value is no column of a derived tuple: the plan is the one without it, and the path is found by following the
route from a tuple to tuples that prove it. Only a scan of TUPLES has paths as values: those that another run has
found.

    Again(u, m, P) <- seen.Notify(u, m, P).              P: Input(0, Column("P"))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from meander.algebra.nodes import Path, Plan, WScan


@dataclass(frozen=True, slots=True)
class Here:
    """The node is a `Path`, and the value is its path."""


@dataclass(frozen=True, slots=True)
class Column:
    """The node is a `WScan`, and the value is one of its tuple's."""

    name: str


@dataclass(frozen=True, slots=True)
class Input:
    """It comes from an input of a `Pattern` or `Filter`, by number."""

    number: int
    route: Route


@dataclass(frozen=True, slots=True)
class Each:
    """It comes from the input of a `Union` that has the tuple; a route for each, or None where there is no path."""

    routes: tuple[Route | None, ...]


Route = Here | Column | Input | Each


class PathValue(NamedTuple):
    """A named path of a result, and its route."""

    name: str
    route: Route


def paths_at(plan: Plan, route: Route) -> Iterator[tuple[Path | WScan, str | None]]:
    """The `Path`s that a route from a plan leads to, and the `WScan`s with the name of the value."""
    match route:
        case Here():
            assert isinstance(plan, Path)
            yield plan, None
        case Column(name):
            assert isinstance(plan, WScan)
            yield plan, name
        case Input(number, inner):
            yield from paths_at(plan.inputs[number], inner)
        case Each(routes):
            for source, branch in zip(plan.inputs, routes, strict=True):
                if branch is not None:
                    yield from paths_at(source, branch)
