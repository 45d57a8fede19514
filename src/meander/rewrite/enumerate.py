"""The plan space: every plan that the exploring laws lead to, numbered.

Breadth first from the given plan, so that plans few steps away come first and a bound cuts off the far ones. A
law changes a subplan wherever it stands, so that what is shared stays shared, and what it gives is simplified.
The order depends on the plan and on the order of the laws alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from meander.algebra.nodes import Plan
from meander.algebra.trees import walk
from meander.errors import QueryError
from meander.rewrite.engine import Simplifier
from meander.rewrite.identity import Identities
from meander.rewrite.laws import EXPLORING, Law
from meander.rewrite.trees import replace_subplan


def enumerate_plans(plan: Plan, limit: int = 64, laws: Sequence[Law] = EXPLORING) -> list[Plan]:
    """Up to `limit` different plans with the answers of `plan`, which is the first of them, as it was given.

    Where it can be simplified, that is the second, and all others follow from it.
    """
    simplifier, identities = Simplifier(), Identities()
    start, _ = simplifier.simplify(plan)
    plans, seen = [plan], {identities.number(plan)}
    if identities.number(start) not in seen:
        plans.append(start)
        seen.add(identities.number(start))
    pending = deque([start])
    while pending and len(plans) < limit:
        for neighbor in _neighbors(pending.popleft(), laws, simplifier):
            try:
                number = identities.number(neighbor)
            except QueryError:  # an automaton too large to be built: no plan that could run
                continue
            if number not in seen:
                seen.add(number)
                plans.append(neighbor)
                pending.append(neighbor)
                if len(plans) == limit:
                    break
    return plans[:limit]


def _neighbors(plan: Plan, laws: Sequence[Law], simplifier: Simplifier) -> Iterator[Plan]:
    """The plans one step away, simplified: by law, then by place, the root first."""
    for law in laws:
        for subplan in walk(plan):
            for other in law(subplan):
                yield simplifier.simplify(replace_subplan(plan, subplan, other))[0]
