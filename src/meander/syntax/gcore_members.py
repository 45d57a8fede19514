"""Members in G-CORE, `e.amount`: the properties that WHERE and CONSTRUCT read of edges and vertices, each as a
variable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import count

from meander.syntax.conditions import Condition
from meander.syntax.equalities import Equalities
from meander.syntax.gcore_scope import Scope
from meander.syntax.printing import short_list
from meander.syntax.query import Values, Variable
from meander.syntax.values import Const, Ref, refs


def is_member(ref: Ref) -> bool:
    """Whether a reference is `e.amount`, and not `u`."""
    return "." in str(ref.name)


class Members:
    """The members of one WHERE and of what its CONSTRUCT returns.

    `written` has each by the variable of its value, `bound` the variables of edges and vertices that were met.
    """

    def __init__(
        self,
        scope: Scope,
        conditions: Iterable[Condition | None],
        returned: Sequence[Ref | Const],
        taken: set[str],
    ) -> None:
        self.scope = scope
        self.written: dict[str, Ref] = {}
        self.bound: set[str] = set()
        self._variables: dict[str, str] = {}
        compared = [ref for part in conditions if part is not None for ref in refs(part.predicate)]
        for ref in [*compared, *(value for value in returned if isinstance(value, Ref))]:
            if is_member(ref) and ref.name not in self._variables:
                name = _variable_name(str(ref.name), taken | set(self.written))
                self._variables[str(ref.name)] = name
                self.written[name] = ref

    def value(self, ref: Ref) -> Ref:
        """The variable of a member; any other reference as it is."""
        return Ref(self._variables.get(str(ref.name), ref.name), None, ref.span)

    def bind(self, variable: str) -> Values:
        """The values that are read of an edge or vertex, the first time that it is met."""
        if variable in self.bound:
            return ()
        self.bound.add(variable)
        read = [
            (member.partition(".")[2], Variable(name, self.written[name].span))
            for member, name in self._variables.items()
            if member.partition(".")[0] == variable
        ]
        return tuple(sorted(read, key=lambda pair: pair[0]))

    def check_bound(self, equalities: Equalities, paths: Collection[str]) -> None:
        """Refuse members of what is neither an edge with a variable nor a vertex with a label."""
        for member, name in self._variables.items():
            variable = member.partition(".")[0]
            if variable in self.bound:
                continue
            ref = self.written[name]
            if variable in equalities:
                raise self.scope.error(
                    f"the vertex {variable} has no label, so it has no properties",
                    ref.span,
                    f"name a label of it: ({variable}:account)",
                )
            if variable in paths:
                raise self.scope.error(
                    f"{variable} is a path, and a path has no properties",
                    ref.span,
                    "its steps have: PATH big = (x)-[e:transfer]->(y) WHERE e.amount > 5, and follow -/p<~big+>/->",
                )
            raise self.scope.error(
                f"{variable} is not an edge of MATCH",
                ref.span,
                f"name the edge: -[{variable}:transfer]->"
                + (f"; named are {short_list(sorted(self.bound))}" if self.bound else ""),
            )


def _variable_name(member: str, taken: set[str]) -> str:
    plain = "".join(letter if letter.isalnum() else "_" for letter in member)
    plain = plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}"
    names = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)
