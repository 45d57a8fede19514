"""The stages from a query to its physical plan, each as sections of text, and a summary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from meander.algebra.nodes import Plan
from meander.algebra.printing import notation
from meander.algebra.printing import tree as logical_tree
from meander.algebra.translate import result_labels, translate
from meander.algebra.trees import fold
from meander.drawing import draw_plan
from meander.errors import ArgumentError
from meander.explain.pictures import draw_physical, draw_stages
from meander.explain.sections import Section, counted, indent
from meander.explain.state import state_held
from meander.explain.warnings import warnings_of
from meander.physical.path_operators import PATH_OPERATORS
from meander.physical.plan import PhysicalPlan, QueryPlan, build
from meander.physical.printing import KINDS, describe, describe_stages, tree
from meander.physical.stages import StagedPlan, build_stages
from meander.rewrite import choose, enumerate_plans, pass_demand, simplify
from meander.rewrite.choice import cost
from meander.rewrite.engine import Firing
from meander.syntax import parse, to_datalog
from meander.syntax.durations import format_duration
from meander.syntax.query import RegularQuery

LONGEST_NOTATION = 500
"""The largest plan, in operators, that is written on one line."""

MOST_PLANS = 64
"""The search for equivalent plans stops here."""

STAGES = ("query", "logical", "plans", "physical")
EVERY_STAGE = "all"


class Explanation:
    """A query with its plans; each stage is computed on first use."""

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
        """A plan in the paper's notation, unless shared subplans make that too long."""
        if _written_size(plan) > LONGEST_NOTATION:
            return "(too long for one line: shared subplans would be written again at each use)"
        return notation(plan, self.duration)

    @cached_property
    def canonical(self) -> dict[str, Plan]:
        return translate(self.query)

    @cached_property
    def plans(self) -> dict[str, list[Plan]]:
        """For each result its equivalent plans, the canonical one first."""
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
    def with_demand(self) -> dict[str, Plan]:
        """The plans to run, with sideways information passing into closures."""
        if not self.demand or not PATH_OPERATORS[self.path_operator].demand_aware:
            return self.to_run
        return {result: pass_demand(plan) for result, plan in self.to_run.items()}

    @cached_property
    def physical(self) -> PhysicalPlan:
        """The operators that run in one cell."""
        return build(self._query_plans(self.with_demand), path_operator=self.path_operator)

    @cached_property
    def staged(self) -> StagedPlan:
        """The stages that run in several cells."""
        return build_stages(self._query_plans(self.to_run), self.cells, path_operator=self.path_operator)

    def _query_plans(self, plans: Mapping[str, Plan]) -> list[QueryPlan]:
        labels = result_labels(self.query)
        return [QueryPlan("", result, labels[result], plan) for result, plan in plans.items()]

    def summary(self) -> list[Section]:
        """The query, the plan that will run, the state that it will hold, and warnings."""
        return [*self.stage("query"), self._plan(), self._state(), self._warnings()]

    def stage(self, name: str) -> list[Section]:
        """The sections of one of `STAGES`, or of `all` of them."""
        match name:
            case "query":
                return [Section("Query", self.datalog)]
            case "logical":
                return [self._logical(result) for result in self.canonical]
            case "plans":
                return [self._plans(result) for result in self.plans]
            case "physical":
                return [self._physical(), self._state()]
            case "all":
                return [*(section for stage in STAGES for section in self.stage(stage)), self._warnings()]
        raise ArgumentError(f"unknown stage {name!r}", hint=f"stages are {', '.join([*STAGES, EVERY_STAGE])}")

    def draw(self, stage: str | None = None, name: str = "") -> str:
        """The SVG of the operators that will run; with `logical`, of the canonical plan; with `plans`, of the
        chosen logical plan. `name` is the query's, for the title."""
        prefix = f"{name}: " if name else ""
        numbers = ", ".join(str(number) for number in dict.fromkeys(self.chosen.values()))
        if stage == "logical":
            return draw_plan(self.canonical, f"{prefix}canonical plan", unit=self.unit)
        if stage == "plans":
            return draw_plan(self.to_run, f"{prefix}plan {numbers}", unit=self.unit)
        if self.cells > 1:
            title = f"{prefix}plan {numbers}, operators of each of {self.cells} cells"
            return draw_stages(self.staged, title, self.unit)
        return draw_physical(self.physical, f"{prefix}plan {numbers}, operators", self.unit)

    @property
    def datalog(self) -> str:
        """The query as Datalog, with windows as durations."""
        return to_datalog(self.query, self.unit).rstrip()

    def _warnings(self) -> Section:
        messages = [warning.show(self.text) for warning in warnings_of(self.query, self.unit)]
        return Section("Warnings", "\n".join(messages) if messages else "none")

    def _plan(self) -> Section:
        """The plan that will run, why it was chosen, and what its operators do."""
        if self.cells == 1:
            text, operators = tree(self.physical, self.unit), self.physical.names
        else:
            text = describe_stages(self.staged, self.cells, self.unit, as_tree=True)
            operators = tuple(name for stage in self.staged.stages for name in stage.plan.names)
        lines = [text, ""]
        lines += [f"{result}: {self._choice(result)}" for result in self.chosen]
        if any(len(plans) > 1 for plans in self.plans.values()):
            lines[-1] += "; --stage plans lists all"
        used = {name.partition(" ")[0] for name in operators}
        lines += ["", *(f"{kind:<8}{does}" for kind, does in KINDS.items() if kind in used)]
        return Section("Plan", "\n".join(lines))

    def _choice(self, result: str) -> str:
        """Which plan runs, and why."""
        plans, number = self.plans[result], self.chosen[result]
        if len(plans) == 1:
            return "the only plan"
        name = f"plan {number} (the query as written)" if number == 0 else f"plan {number}"
        if self.plan is not None:
            return f"{name} of {len(plans)} equivalent plans, as requested"
        reason = f"{name}, the least estimated work of {len(plans)} equivalent plans"
        if number == 0:
            return reason
        work, before = _work(plans[number]), _work(plans[0])
        return f"{reason}: {work}, against {before} for plan 0 (the query as written)"

    def _logical(self, result: str) -> Section:
        plan = self.canonical[result]
        simplified, trace = simplify(plan)
        parts = ["canonical plan", indent(logical_tree(plan, self.duration))]
        parts += ["in the paper's notation", indent(self.written(plan))]
        if trace:
            parts += [
                f"simplified in {counted(len(trace), 'step')}",
                indent(logical_tree(simplified, self.duration)),
            ]
            parts += ["laws applied", indent("\n".join(self._firing(firing) for firing in trace))]
        else:
            parts += ["no law simplifies it"]
        return Section(f"Logical plan of {result}", "\n".join(parts))

    def _plans(self, result: str) -> Section:
        plans, chosen = self.plans[result], self.chosen[result]
        lines = [
            f"{'*' if number == chosen else ' '}{number:>3}  {_work(plan):>10}  {self.written(plan)}"
            for number, plan in enumerate(plans)
        ]
        return Section(
            f"Plans of {result}: {counted(len(plans), 'equivalent plan')}"
            + (", where the search stops" if len(plans) == MOST_PLANS else ""),
            "\n".join(
                [
                    " plan        work",
                    *lines,
                    f"* {self._choice(result)}",
                    "work is estimated without statistics, in units of the edges of one label in a window",
                ]
            ),
        )

    def _firing(self, firing: Firing) -> str:
        position = ".".join(str(number + 1) for number in firing.position) or "the top"
        before, after = self.written(firing.before), self.written(firing.after)
        return f"{firing.law.replace('_', ' ')}, at {position}:\n  {before}\n  ⇒ {after}"

    def _physical(self) -> Section:
        if self.cells == 1:
            return Section("Physical plan", describe(self.physical, self.unit))
        return Section(
            f"Physical plan for {self.cells} cells", describe_stages(self.staged, self.cells, self.unit)
        )

    def _state(self) -> Section:
        if self.cells == 1:
            return Section("State", "\n".join(state_held(self.physical, self.unit)))
        lines = [
            f"stage {number}: {line}"
            for number, stage in enumerate(self.staged.stages)
            for line in state_held(stage.plan, self.unit)
        ]
        return Section("State of each cell", "\n".join(lines))


def _work(plan: Plan) -> str:
    """The estimated work of a plan, to two digits if it is small."""
    work = cost(plan)
    return f"{work:,.0f}" if work >= 10 else f"{work:.2g}"


def _written_size(plan: Plan) -> int:
    """The number of operators of a plan as a tree, in which shared subplans are written again at each use."""
    return fold(plan, lambda _, sizes: 1 + sum(sizes))
