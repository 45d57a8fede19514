"""When two plans are the same plan.

Structural equality is too fine for the plan space: laws lead to the same plan in many ways, with inputs in another
order, variables in another numbering, other labels for intermediate results, or an equivalent expression. Identity
ignores these: two plans are the same if they scan the same edges and join, close and filter them in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, groupby, permutations, product
from math import factorial, prod

from meander.algebra.automata import minimal_dfa
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.rewrite.expressions import substitute
from meander.syntax.query import Label

# Patterns with equal inputs are compared by trying the orders of these. Beyond this many orders, plans that differ in
# the order alone count as different: the list of plans is longer then, and still correct.
MOST_ORDERS = 1000

Atom = tuple[int, tuple[int, int]]


class Identities:
    """Numbers for plans: equal for two of them if they differ in order, numbering and derived labels alone."""

    def __init__(self) -> None:
        self.of_plan: dict[Plan, int] = {}
        self.of_form: dict[Hashable, int] = {}

    def number(self, plan: Plan) -> int:
        """The number of `plan`; QueryError if one of its automata is too large."""
        if plan not in self.of_plan:
            form = self._form(plan)
            self.of_plan[plan] = (
                form if isinstance(form, int) else self.of_form.setdefault(form, len(self.of_form))
            )
        return self.of_plan[plan]

    def _form(self, plan: Plan) -> Hashable:
        """The operation of `plan` over the numbers of its inputs; the number of its input if it does nothing."""
        match plan:
            case WScan() | Receive():
                return plan
            case Filter(inner, condition):
                return self.number(inner), condition
            case Union(inputs, _):
                parts = frozenset(map(self.number, inputs))
                return min(parts) if len(parts) == 1 else parts
            case Pattern(inputs, ends, output, _):
                atoms = sorted(zip(map(self.number, inputs), ends, strict=True))
                return min(_numbered(order, output) for order in _orders(atoms))
            case Path(inputs, expr, _):
                numbers = [self.number(inner) for inner in inputs]
                names = sorted(set(numbers))
                renamed = {str(i): Label(str(names.index(number))) for i, number in enumerate(numbers)}
                dfa = minimal_dfa(substitute(expr, renamed))
                return tuple(names), tuple(tuple(row.items()) for row in dfa.transitions), dfa.accepting


def _orders(atoms: list[Atom]) -> Iterator[Iterable[Atom]]:
    """The orders of atoms by input, with those of equal inputs in every order among them."""
    groups = [list(group) for _, group in groupby(atoms, key=lambda atom: atom[0])]
    if prod(factorial(len(group)) for group in groups) > MOST_ORDERS:
        yield atoms
    else:
        yield from map(chain.from_iterable, product(*map(permutations, groups)))


def _numbered(atoms: Iterable[Atom], output: tuple[int, ...]) -> tuple[tuple[Atom, ...], tuple[int, ...]]:
    number: dict[int, int] = {}
    numbered = tuple(
        (part, (number.setdefault(src, len(number)), number.setdefault(trg, len(number))))
        for part, (src, trg) in atoms
    )
    return numbered, tuple(number[variable] for variable in output)
