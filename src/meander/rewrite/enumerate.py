"""The plan space: every plan that the exploring laws derive, numbered.

Breadth first from the given plan, so that close plans come first and a bound drops the distant ones. A
law changes all occurrences of a subplan, so that shared subplans stay shared, and its result is simplified.
The order depends only on the plan and on the order of the laws.
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
    """Up to `limit` different plans with the answers of `plan`, which is itself the first.

    If it can be simplified, the simplified plan is the second, and all others derive from it.
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
            except QueryError:  # its automaton is too large: the plan could not run
                continue
            if number not in seen:
                seen.add(number)
                plans.append(neighbor)
                pending.append(neighbor)
                if len(plans) == limit:
                    break
    return plans[:limit]


def _neighbors(plan: Plan, laws: Sequence[Law], simplifier: Simplifier) -> Iterator[Plan]:
    """The plans one step away, simplified: by law, then by node, the root first."""
    for law in laws:
        for subplan in walk(plan):
            for other in law(subplan):
                yield simplifier.simplify(replace_subplan(plan, subplan, other))[0]
