"""Equalities of a G-CORE query, from WHERE and `(u = "alice")`: between variables, and with vertices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meander.errors import QueryError, Span
from meander.syntax.printing import term_text
from meander.syntax.query import Constant, Term, Variable


class Equalities:
    """Equivalence classes of variables, each represented by its first variable, some with a vertex (union-find)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parent: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._constants: dict[str, Constant] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._parent

    def __iter__(self) -> Iterator[str]:
        return iter(self._parent)

    def add(self, name: str) -> None:
        """Add a variable, if it is new. Of equal variables the one that was added first represents all."""
        self._parent.setdefault(name, name)
        self._order.setdefault(name, len(self._order))

    def unify(self, left: Term, right: Term, span: Span) -> None:
        """Make two terms equal; raises `QueryError` if they never can be."""
        constants = {
            term.value: term for term in (self._constant(left), self._constant(right)) if term is not None
        }
        if len(constants) > 1:
            first_vertex, other_vertex = (term_text(constant) for constant in constants.values())
            raise QueryError(
                f"this can never hold: {first_vertex} is not {other_vertex}",
                text=self._text,
                span=span,
                hint="a variable equals one vertex at most",
            )
        names = [self._first(term.name) for term in (left, right) if isinstance(term, Variable)]
        if not names:
            return
        first = min(names, key=self._order.__getitem__)
        for name in names:
            self._parent[name] = first
        for constant in constants.values():
            self._constants[first] = constant

    def variable(self, variable: Variable) -> Variable:
        """The variable that stands for this one."""
        return replace(variable, name=self._first(variable.name))

    def constant(self, name: str) -> Constant | None:
        """The vertex that a variable equals."""
        return self._constants.get(self._first(name))

    def _constant(self, term: Term) -> Constant | None:
        return term if isinstance(term, Constant) else self.constant(term.name)

    def _first(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            self._parent[name] = self._parent[parent]
            name = parent
        return name
