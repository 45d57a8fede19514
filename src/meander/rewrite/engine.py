"""Simplification: the normalizing laws at every node, up to a fixpoint; then the plan-wide ones.

Inputs settle before the node above them, and a shared subplan is settled once and is one object afterwards. Every
application is recorded in a trace. Termination is checked: a plan that recurs, or keeps growing, raises an error
that names the laws at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from meander.algebra.nodes import Plan, PlanError
from meander.algebra.trees import fold, walk
from meander.rewrite.laws import NORMALIZING, PLAN_WIDE, Law
from meander.rewrite.trees import with_inputs

MOST_STEPS_PER_NODE = 100
MOST_NEW_LEVELS = 100


class Firing(NamedTuple):
    """One application of a law: its name, the path of input numbers from the root, and both sides."""

    law: str
    position: tuple[int, ...]
    before: Plan
    after: Plan


class UnsettledError(PlanError):
    """Laws that undo each other, or never terminate; `laws` are their names."""

    def __init__(self, laws: Sequence[str], how: str) -> None:
        self.laws = tuple(dict.fromkeys(laws))
        super().__init__(f"laws that do not settle: {', '.join(self.laws)} ({how})")


def simplify(plan: Plan, laws: Sequence[Law] = NORMALIZING) -> tuple[Plan, tuple[Firing, ...]]:
    """`plan` with `laws` applied at every node until none applies, and the trace of applications.

    Earlier laws go first at each node. Equal subplans of the result are one object.
    """
    return Simplifier(laws).simplify(plan)


class Simplifier:
    """Simplifies plans one after the other; a subplan settled for one is settled for all, and the same object.

    Plans are compared from the inputs upwards, so that nodes to be compared have identical inputs, not only
    equal ones: otherwise comparing plans with shared subplans could take exponential time.
    """

    def __init__(self, laws: Sequence[Law] = NORMALIZING) -> None:
        self.laws = laws
        self.settled: dict[Plan, Plan] = {}

    def simplify(self, plan: Plan) -> tuple[Plan, tuple[Firing, ...]]:
        self.trace: list[Firing] = []
        self.visited: dict[int, tuple[Plan, Plan]] = {}
        self.most_steps = MOST_STEPS_PER_NODE * (10 + sum(1 for _ in walk(plan)))
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

    def _settle(self, plan: Plan, position: tuple[int, ...]) -> Plan:
        if id(plan) in self.visited:
            return self.visited[id(plan)][1]
        if len(position) > self.most_levels:
            raise self._unsettled(len(self.trace) - MOST_NEW_LEVELS, "the plan grows deeper and deeper")
        # The earlier plans at this position, each with the length of the trace then.
        history: dict[Plan, int] = {}
        current: Plan | None = plan
        while current is not None:
            inputs = tuple(self._settle(inner, (*position, i)) for i, inner in enumerate(current.inputs))
            last = with_inputs(current, inputs)
            if last in self.settled:
                break
            if last in history:
                raise self._unsettled(history[last], "the same plan came back")
            history[last] = len(self.trace)
            current = self._apply(self.laws, last, position)
        result = self.settled.setdefault(last, last)
        self.settled.update(dict.fromkeys(history, result))
        self.visited[id(plan)] = (plan, result)  # holding the plan keeps its id from being reused
        return result

    def _apply(self, laws: Sequence[Law], plan: Plan, position: tuple[int, ...]) -> Plan | None:
        """The first result of the first law that applies at the root of `plan`."""
        for law in laws:
            after = next(law(plan), None)
            if after is not None:
                self.trace.append(Firing(law.__name__, position, plan, after))
                if len(self.trace) > self.most_steps:
                    raise self._unsettled(len(self.trace) // 2, f"not settled after {self.most_steps} steps")
                return after
        return None

    def _unsettled(self, since: int, how: str) -> UnsettledError:
        return UnsettledError([firing.law for firing in self.trace[max(since, 0) :]], how)
