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
from meander.rewrite.trees import renamed_refs
from meander.syntax.query import Label
from meander.syntax.values import conjuncts

# Patterns with equal inputs are compared by trying the orders of these. Beyond this many orders, plans that differ in
# the order alone count as different: the list of plans is longer then, and still correct.
MOST_ORDERS = 1000

Atom = tuple[int, tuple[int, ...]]


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
            case Filter(inner, predicate):
                return self.number(inner), frozenset(conjuncts(predicate))
            case Union(inputs, _):
                parts = frozenset(map(self.number, inputs))
                return min(parts) if len(parts) == 1 else parts
            case Pattern(inputs, ends, output, _, predicate, _):
                atoms = sorted(zip(map(self.number, inputs), ends, strict=True))
                form = min(_numbered(order, output) for order in _orders(atoms))
                if predicate is None:
                    return form
                # Of several smallest orders the first: plans that differ in that choice alone count as different.
                order = next(order for order in _orders(atoms) if _numbered(order, output) == form)
                return form, frozenset(conjuncts(renamed_refs(predicate, _numbers(order))))
            case Path(inputs, expr, _):
                numbers = [self.number(inner) for inner in inputs]
                names = sorted(set(numbers))
                renamed = {str(i): Label(str(names.index(number))) for i, number in enumerate(numbers)}
                dfa = minimal_dfa(substitute(expr, renamed))
                moves = tuple(tuple(row.items()) for row in dfa.transitions)
                return tuple(names), moves, dfa.accepting, plan.order


def _orders(atoms: list[Atom]) -> Iterator[list[Atom]]:
    """The orders of atoms by input, with those of equal inputs in every order among them."""
    groups = [list(group) for _, group in groupby(atoms, key=lambda atom: atom[0])]
    if prod(factorial(len(group)) for group in groups) > MOST_ORDERS:
        yield atoms
    else:
        yield from (list(chain.from_iterable(order)) for order in product(*map(permutations, groups)))


def _numbered(atoms: Iterable[Atom], output: tuple[int, ...]) -> tuple[tuple[Atom, ...], tuple[int, ...]]:
    atoms = tuple(atoms)
    number = _numbers(atoms)
    numbered = tuple((part, tuple(number[variable] for variable in ends)) for part, ends in atoms)
    return numbered, tuple(number[variable] for variable in output)


def _numbers(atoms: Iterable[Atom]) -> dict[int, int]:
    """The variables, numbered in order of first use."""
    number: dict[int, int] = {}
    for _, ends in atoms:
        for variable in ends:
            number.setdefault(variable, len(number))
    return number
