"""Simplification: the normalizing laws, at every place, until none applies; then those of the whole plan.

Inputs settle before the node above them, and a subplan that stands in several places is settled once and is one
object afterwards. Every application is kept in a trace. That the laws settle is checked, not believed: a plan
that comes back, or keeps growing, ends with an error that names the laws at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from meander.algebra.nodes import Plan, PlanError
from meander.algebra.trees import fold, walk
from meander.rewrite.laws import NORMALIZING, PLAN_WIDE, Law
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
    return Simplifier(laws).simplify(plan)


class Simplifier:
    """Simplifies plan after plan; a subplan that was settled for one is settled for all, and the same object.

    Plans are compared from the inputs upwards, so that nodes to be compared have identical inputs, not only
    equal ones: comparing plans that share much within would else take as long as they are large as trees.
    """

    def __init__(self, laws: Sequence[Law] = NORMALIZING) -> None:
        self.laws = laws
        self.settled: dict[Plan, Plan] = {}

    def simplify(self, plan: Plan) -> tuple[Plan, tuple[Firing, ...]]:
        self.trace: list[Firing] = []
        self.visited: dict[int, tuple[Plan, Plan]] = {}
        self.most_steps = MOST_STEPS_A_NODE * (10 + sum(1 for _ in walk(plan)))
        self.most_levels = MOST_NEW_LEVELS + fold(plan, lambda _, depths: 1 + max(depths, default=0))
        history: dict[Plan, int] = {}
        current: Plan | None = plan
        while current is not None:
            settled = self._settle(current, ())
            if settled in history:
                raise self._unsettled(history[settled], "the same plan came back")
            history[settled] = len(self.trace)
            current = self._apply(PLAN_WIDE, settled, ())
        return settled, tuple(self.trace)

    def _settle(self, plan: Plan, place: tuple[int, ...]) -> Plan:
        if id(plan) in self.visited:
            return self.visited[id(plan)][1]
        if len(place) > self.most_levels:
            raise self._unsettled(len(self.trace) - MOST_NEW_LEVELS, "the plan grows deeper and deeper")
        # What this place held before, and how long the trace was then.
        history: dict[Plan, int] = {}
        current: Plan | None = plan
        while current is not None:
            inputs = tuple(self._settle(inner, (*place, i)) for i, inner in enumerate(current.inputs))
            last = with_inputs(current, inputs)
            if last in self.settled:
                break
            if last in history:
                raise self._unsettled(history[last], "the same plan came back")
            history[last] = len(self.trace)
            current = self._apply(self.laws, last, place)
        result = self.settled.setdefault(last, last)
        self.settled.update(dict.fromkeys(history, result))
        self.visited[id(plan)] = (plan, result)  # with the plan, so that no other gets its id
        return result

    def _apply(self, laws: Sequence[Law], plan: Plan, place: tuple[int, ...]) -> Plan | None:
        """The first result of the first law that applies at the root of `plan`."""
        for law in laws:
            after = next(law(plan), None)
            if after is not None:
                self.trace.append(Firing(law.__name__, place, plan, after))
                if len(self.trace) > self.most_steps:
                    raise self._unsettled(
                        len(self.trace) // 2, f"still going on after {self.most_steps} steps"
                    )
                return after
        return None

    def _unsettled(self, since: int, how: str) -> UnsettledError:
        return UnsettledError([firing.law for firing in self.trace[max(since, 0) :]], how)
