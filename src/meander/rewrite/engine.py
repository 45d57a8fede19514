"""Simplification: the normalizing laws, at every place, until none applies.

Inputs settle before the node above them, and a subplan that stands in several places is settled once and is one
object afterwards. Every application is kept in a trace. That the laws settle is checked, not believed: a plan
that comes back, or keeps growing, ends with an error that names the laws at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from meander.algebra.nodes import Plan, PlanError
from meander.algebra.printing import walk
from meander.rewrite.laws import NORMALIZING, Law
from meander.rewrite.trees import with_inputs

MOST_STEPS_A_NODE = 100
MOST_NEW_LEVELS = 100


class Firing(NamedTuple):
    """One application of a law: its name, the place as input numbers from the root, and both sides."""

    law: str
    place: tuple[int, ...]
    before: Plan
    after: Plan


class UnsettledError(PlanError):
    """Laws that undo each other, or go on for ever; `laws` are their names."""

    def __init__(self, laws: Sequence[str], how: str) -> None:
        self.laws = tuple(dict.fromkeys(laws))
        super().__init__(f"laws that do not settle: {', '.join(self.laws)} ({how})")


def simplify(plan: Plan, laws: Sequence[Law] = NORMALIZING) -> tuple[Plan, tuple[Firing, ...]]:
    """`plan` with `laws` applied at every place until none applies, and what was applied where.

    Earlier laws go first at each place. Equal subplans of the result are one object.
    """
    settling = _Settling(plan, laws)
    return settling.settle(plan, ()), tuple(settling.trace)


class _Settling:
    def __init__(self, plan: Plan, laws: Sequence[Law]) -> None:
        self.laws = laws
        self.trace: list[Firing] = []
        self.settled: dict[Plan, Plan] = {}
        self.most_steps = MOST_STEPS_A_NODE * (10 + sum(1 for _ in walk(plan)))
        self.most_levels = MOST_NEW_LEVELS + _levels(plan)

    def settle(self, plan: Plan, place: tuple[int, ...]) -> Plan:
        if plan in self.settled:
            return self.settled[plan]
        if len(place) > self.most_levels:
            raise self.unsettled(len(self.trace) - MOST_NEW_LEVELS, "the plan grows deeper and deeper")
        # What this place held before, and how long the trace was then.
        history: dict[Plan, int] = {}
        current = plan
        while True:
            inputs = tuple(self.settle(inner, (*place, i)) for i, inner in enumerate(current.inputs))
            current = with_inputs(current, inputs)
            if current in history:
                raise self.unsettled(history[current], "the same plan came back")
            history[current] = len(self.trace)
            fired = self.apply(current, place)
            if fired is None:
                break
            current = fired
        # A shared subplan is the object that was settled first.
        result = self.settled.setdefault(current, current)
        self.settled[plan] = result
        return result

    def apply(self, plan: Plan, place: tuple[int, ...]) -> Plan | None:
        """The first result of the first law that applies at the root of `plan`."""
        for law in self.laws:
            after = next(law(plan), None)
            if after is not None:
                self.trace.append(Firing(law.__name__, place, plan, after))
                if len(self.trace) > self.most_steps:
                    raise self.unsettled(
                        len(self.trace) // 2, f"still going on after {self.most_steps} steps"
                    )
                return after
        return None

    def unsettled(self, since: int, how: str) -> UnsettledError:
        return UnsettledError([firing.law for firing in self.trace[max(since, 0) :]], how)


def _levels(plan: Plan) -> int:
    known: dict[Plan, int] = {}

    def levels(node: Plan) -> int:
        if node not in known:
            known[node] = 1 + max(map(levels, node.inputs), default=0)
        return known[node]

    return levels(plan)
