"""When two plans are the same plan.

Structural equality is too fine for the plan space: laws lead to one plan by many ways, with inputs in another
order, variables numbered otherwise, other labels for what lies between, or an expression in other words. Identity
sees none of these: two plans are one if they scan the same, joined, closed and filtered in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, groupby, permutations, product
from math import factorial, prod

from meander.algebra.automata import compile
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.rewrite.expressions import substitute
from meander.syntax.query import Label

# Equal inputs of a pattern can be told apart only by trying their orders. Beyond this many, plans that differ in
# that order alone count as different: the list of plans is longer then, and still right.
MOST_ORDERS = 1000

Atom = tuple[int, tuple[int, int]]


class Identities:
    """Numbers for plans: equal for two of them if they differ in order, numbering and derived labels alone."""

    def __init__(self) -> None:
        self.of_plan: dict[Plan, int] = {}
        self.of_form: dict[Hashable, int] = {}

    def number(self, plan: Plan) -> int:
        """The number of `plan`; QueryError where one of its automata is too large to be built."""
        if plan not in self.of_plan:
            form = self._form(plan)
            self.of_plan[plan] = (
                form if isinstance(form, int) else self.of_form.setdefault(form, len(self.of_form))
            )
        return self.of_plan[plan]

    def _form(self, plan: Plan) -> Hashable:
        """What `plan` does, over the numbers of its inputs; the number of its input where it does nothing."""
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
                places = {str(i): Label(str(names.index(number))) for i, number in enumerate(numbers)}
                dfa = compile(substitute(expr, places))
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
