"""Routes: where a path value comes from, as a way through a canonical plan from a head down to a `Path`.

    Notify(u, m, P) <- follows+(u, v) as P, posts(v, m).     P: Input(0, Here())
    Notify(u, m, P: Q) <- likes+(u, m) as Q.                 Q: Here(); of Notify, P: Each((Input(0, Here()), Here()))

A path value is no column of a plan: the plan is the one without it, and the path is found by following the route from
a tuple to tuples that prove it.
"""

from __future__ import annotations

from dataclasses import dataclass

from meander.syntax.values import Property, ValueType


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


@dataclass(frozen=True, slots=True)
class PathValue:
    """A named path of a result, and its route."""

    name: str
    route: Route

    @property
    def property(self) -> Property:
        return Property(self.name, ValueType.PATH)
