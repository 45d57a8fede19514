"""The stages of a query's way to a plan, each as sections of text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from meander.algebra.nodes import Plan
from meander.algebra.printing import notation, tree
from meander.algebra.translate import translate
from meander.drawing import draw_plan
from meander.errors import ArgumentError
from meander.explain.physical import draw_physical, physical_plan, staged_plan
from meander.explain.sections import Section, counted, indent
from meander.explain.state import state_held
from meander.explain.warnings import warnings_of
from meander.physical.plan import HEEDING, PhysicalPlan
from meander.physical.printing import describe, describe_stages
from meander.rewrite import choose, enumerate_plans, pass_demand, simplify
from meander.rewrite.choice import cost
from meander.rewrite.engine import Firing
from meander.syntax import parse, to_datalog
from meander.syntax.durations import format_duration
from meander.syntax.query import RegularQuery

LONGEST_NOTATION = 500
"""The most operators of a plan that is written on one line."""

MOST_PLANS = 64
"""Where the search for equivalent plans stops."""
FIRST_PLANS = 8

STAGES = ("query", "logical", "plans", "physical")


class Explanation:
    """A query and what becomes of it; each stage is worked out when it is asked for."""

    def __init__(
        self,
        text: str,
        *,
        unit: str = "s",
        language: str | None = None,
        views: Mapping[str, RegularQuery] | None = None,
        plan: int | None = None,
        path_operator: str = "auto",
        demand: bool = True,
        cells: int = 1,
    ) -> None:
        self.text = text
        self.demand = demand
        self.cells = cells
        self.unit = unit
        self.plan = plan
        self.path_operator = path_operator
        self.query = parse(text, language=language, unit=unit, views=views)

    def duration(self, amount: int) -> str:
        """A window or a slide as people write it."""
        return format_duration(amount, self.unit)

    def written(self, plan: Plan) -> str:
        """A plan in the paper's notation, unless what it shares makes that endless."""
        if _written_size(plan) > LONGEST_NOTATION:
            return "(too long for one line: shared subplans would be written again at each use)"
        return notation(plan, self.duration)

    @cached_property
    def canonical(self) -> dict[str, Plan]:
        return translate(self.query)

    @cached_property
    def plans(self) -> dict[str, list[Plan]]:
        """For each result the plans that are equivalent, the canonical one first."""
        return {result: enumerate_plans(plan, limit=MOST_PLANS) for result, plan in self.canonical.items()}

    @cached_property
    def chosen(self) -> dict[str, int]:
        """For each result the number of the plan to run."""
        numbers = {}
        for result, plans in self.plans.items():
            if self.plan is not None and not 0 <= self.plan < len(plans):
                raise ArgumentError(
                    f"{result} has no plan {self.plan}",
                    hint=f"its plans are 0 to {len(plans) - 1}; `meander explain --stage plans` lists them",
                )
            numbers[result] = choose(plans) if self.plan is None else self.plan
        return numbers

    @property
    def to_run(self) -> dict[str, Plan]:
        return {result: self.plans[result][number] for result, number in self.chosen.items()}

    @cached_property
    def told(self) -> dict[str, Plan]:
        """The plans to run, with what closures are asked for."""
        if not self.demand or self.path_operator not in HEEDING:
            return self.to_run
        return {result: pass_demand(plan) for result, plan in self.to_run.items()}

    @cached_property
    def physical(self) -> PhysicalPlan:
        return physical_plan(self.query, self.told, self.path_operator)

    def stage(self, name: str, *, brief: bool = False) -> list[Section]:
        """The sections of one of `STAGES`; `brief` shows the first plans and the one that runs alone."""
        match name:
            case "query":
                return [Section("Regular query", to_datalog(self.query).rstrip())]
            case "logical":
                return [self._logical(result) for result in self.canonical]
            case "plans":
                return [self._plans(result, FIRST_PLANS if brief else MOST_PLANS) for result in self.plans]
            case "physical":
                return [self._physical(), self._state()]
        raise ArgumentError(f"unknown stage {name!r}", hint=f"stages are {', '.join(STAGES)}")

    def draw(self, stage: str | None = None, name: str = "") -> str:
        """The SVG of a stage: the canonical plan up to the logical one, then the plan that runs, and at last
        its operators. `name` is the query's, for the title."""
        prefix = f"{name}: " if name else ""
        if stage == "physical":
            return draw_physical(self.physical, f"{prefix}operators", self.unit)
        if stage in (None, "query", "logical") and self.plan is None:
            return draw_plan(self.canonical, f"{prefix}canonical plan", unit=self.unit)
        numbers = ", ".join(str(number) for number in dict.fromkeys(self.chosen.values()))
        return draw_plan(self.to_run, f"{prefix}plan {numbers}", unit=self.unit)

    def warnings(self) -> Section:
        """The warnings about the query, or that there are none."""
        found = [warning.show(self.text) for warning in warnings_of(self.query, self.unit)]
        return Section("Warnings", "\n".join(found) if found else "none")

    def _logical(self, result: str) -> Section:
        plan = self.canonical[result]
        simplified, trace = simplify(plan)
        parts = ["canonical plan", indent(tree(plan, self.duration))]
        parts += ["in the paper's notation", indent(self.written(plan))]
        if trace:
            parts += [f"simplified by {counted(len(trace), 'step')}", indent(tree(simplified, self.duration))]
            parts += ["laws that fired", indent("\n".join(self._firing(firing) for firing in trace))]
        else:
            parts += ["no law simplifies it"]
        return Section(f"Logical plan of {result}", "\n".join(parts))

    def _plans(self, result: str, shown: int) -> Section:
        plans, chosen = self.plans[result], self.chosen[result]
        lines = []
        for number, plan in enumerate(plans):
            if number < shown or number == chosen:
                mark = "*" if number == chosen else " "
                lines.append(f"{mark}{number:>3}  {cost(plan):>10,.1f}  {self.written(plan)}")
        if len(lines) < len(plans):
            lines.append(f"   … {len(plans) - len(lines)} more: --stage plans lists them all")
        if self.plan is None:
            reason = f"* plan {chosen} runs: the least estimated work" + (
                f", {cost(plans[chosen]):,.1f} against {cost(plans[0]):,.1f} of the canonical plan 0"
                if chosen
                else ", and it is the canonical one"
            )
        else:
            reason = f"* plan {chosen} runs, as asked for"
        note = "work is counted in edges of one label in a window, by an estimate without statistics"
        return Section(
            f"Plans of {result}: {counted(len(plans), 'equivalent plan')}"
            + (", where the search stops" if len(plans) == MOST_PLANS else ""),
            "\n".join([" plan        work", *lines, reason, note]),
        )

    def _firing(self, firing: Firing) -> str:
        place = ".".join(str(number + 1) for number in firing.place) or "the top"
        before, after = self.written(firing.before), self.written(firing.after)
        return f"{firing.law.replace('_', ' ')}, at {place}:\n  {before}\n  ⇒ {after}"

    def _physical(self) -> Section:
        if self.cells == 1:
            return Section("Physical plan", describe(self.physical, self.unit))
        staged = staged_plan(self.query, self.to_run, self.cells, self.path_operator)
        return Section(
            f"Physical plan for {self.cells} cells", describe_stages(staged, self.cells, self.unit)
        )

    def _state(self) -> Section:
        return Section("State held", "\n".join(state_held(self.told.values(), self.unit)))


def _written_size(plan: Plan) -> int:
    """How many operators a plan has when what is shared is written again at each use."""
    sizes: dict[Plan, int] = {}

    def size(node: Plan) -> int:
        if node not in sizes:
            sizes[node] = 1 + sum(map(size, node.inputs))
        return sizes[node]

    return size(plan)
