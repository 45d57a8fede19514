"""The stages from a query to its physical plan, each as sections of text, and a summary."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property

from meander.algebra.nodes import Path, Plan
from meander.algebra.printing import notation, path_expression
from meander.algebra.printing import tree as logical_tree
from meander.algebra.routes import paths_at
from meander.algebra.trees import fold
from meander.drawing import draw_plan
from meander.engine import MOST_PLANS, CompiledQuery, compile_query, physical_plan, staged_plan, with_cells
from meander.errors import ArgumentError
from meander.explain.pictures import draw_physical, draw_stages
from meander.explain.sections import Section, counted, indent
from meander.explain.state import state_held
from meander.explain.warnings import warnings_of
from meander.options import DEFAULTS, RunOptions
from meander.physical.plan import PhysicalPlan
from meander.physical.printing import KINDS, describe, describe_stages, tree
from meander.physical.stages import StagedPlan
from meander.rewrite import simplify
from meander.rewrite.choice import cost
from meander.rewrite.engine import Firing
from meander.syntax import to_datalog
from meander.syntax.durations import format_duration
from meander.syntax.printing import name_text

LONGEST_NOTATION = 500
"""The largest plan, in operators, that is written on one line."""

STAGES = ("query", "logical", "plans", "physical")
EVERY_STAGE = "all"


class Explanation:
    """A query (or the query of a text) as it will run; each stage is computed when it is first read.

    If the options choose the number of cells automatically, it is that for `cores`, by default those of this machine.
    """

    def __init__(
        self, query: CompiledQuery | str, options: RunOptions = DEFAULTS, *, cores: int | None = None
    ) -> None:
        self.query = compile_query(query, options) if isinstance(query, str) else query
        self.options, self.cells_reason = with_cells([self.query], options, cores or os.cpu_count() or 1)
        self.cells = self.options.cells
        self.unit = options.time_unit

    def duration(self, amount: int) -> str:
        """A window or a slide as people write it."""
        return format_duration(amount, self.unit)

    def written(self, plan: Plan) -> str:
        """A plan in the paper's notation, unless shared subplans make that too long."""
        if _written_size(plan) > LONGEST_NOTATION:
            return "(too long for one line: shared subplans would be written again at each use)"
        return notation(plan, self.duration)

    @cached_property
    def physical(self) -> PhysicalPlan:
        """The operators that run in one cell."""
        return physical_plan([self.query], self.options)

    @cached_property
    def staged(self) -> StagedPlan:
        """The stages that run in several cells."""
        return staged_plan([self.query], self.options)

    def summary(self) -> list[Section]:
        """The query, the plan that will run, the state that it will hold, and warnings."""
        return [*self.stage("query"), self._plan(), self._state(), self._warnings()]

    def stage(self, name: str) -> list[Section]:
        """The sections of one of `STAGES`, or of `all` of them."""
        match name:
            case "query":
                return [Section("Query", self.datalog)]
            case "logical":
                return [self._logical(result) for result in self.query.canonical]
            case "plans":
                return [self._plans(result) for result in self.query.plans]
            case "physical":
                return [self._physical(), self._state()]
            case "all":
                return [*(section for stage in STAGES for section in self.stage(stage)), self._warnings()]
        raise ArgumentError(f"unknown stage {name!r}", hint=f"stages are {', '.join([*STAGES, EVERY_STAGE])}")

    def draw(self, stage: str | None = None, name: str = "") -> str:
        """The SVG of the operators that will run; with `logical`, of the canonical plan; with `plans`, of the
        chosen logical plan. `name` is the query's, for the title."""
        prefix = f"{name}: " if name else ""
        numbers = ", ".join(str(number) for number in dict.fromkeys(self.query.chosen.values()))
        if stage == "logical":
            return draw_plan(self.query.canonical, f"{prefix}canonical plan", unit=self.unit)
        if stage == "plans":
            return draw_plan(self.query.chosen_plans, f"{prefix}plan {numbers}", unit=self.unit)
        if self.cells > 1:
            title = f"{prefix}plan {numbers}, operators of each of {self.cells} cells"
            return draw_stages(self.staged, title, self.unit)
        return draw_physical(self.physical, f"{prefix}plan {numbers}, operators", self.unit)

    @property
    def datalog(self) -> str:
        """The query as Datalog, with windows as durations."""
        return to_datalog(self.query.regular, self.unit).rstrip()

    def _warnings(self) -> Section:
        messages = [warning.show(self.query.text) for warning in warnings_of(self.query.regular, self.unit)]
        return Section("Warnings", "\n".join(messages) if messages else "none")

    def _plan(self) -> Section:
        """The plan that will run, why it was chosen, and what its operators do."""
        if self.cells == 1:
            text, operators = tree(self.physical, self.unit), self.physical.names
        else:
            text = describe_stages(self.staged, self.cells, self.unit, as_tree=True)
            operators = tuple(name for stage in self.staged.stages for name in stage.plan.names)
        lines = [text, ""]
        lines += [f"{result}: {self._choice(result)}" for result in self.query.chosen]
        if any(len(plans) > 1 for plans in self.query.plans.values()):
            lines[-1] += "; --stage plans lists all"
        lines += [line for result in self.query.chosen for line in self._path_values(result)]
        lines += [f"cells: {self.cells_reason}"] if self.cells_reason else []
        used = {name.partition(" ")[0] for name in operators}
        lines += ["", *(f"{kind:<8}{does}" for kind, does in KINDS.items() if kind in used)]
        return Section("Plan", "\n".join(lines))

    def _path_values(self, result: str) -> Iterator[str]:
        """Where the paths come from that answers have as values."""
        for name, route in self.query.path_values[result]:
            found = dict.fromkeys(paths_at(self.query.canonical[result], route))
            shown = " or ".join(
                f"{name_text(node.label)} ({path_expression(node)})"
                if isinstance(node, Path)
                else f"{name_text(str(value))} of a tuple of {node.stream}"
                for node, value in found
            )
            yield f"{result}.{name_text(name)}: the path {shown} of a match that lasts as long as the record"

    def _choice(self, result: str) -> str:
        """Which plan runs, and why."""
        plans, number = self.query.plans[result], self.query.chosen[result]
        if self.query.path_values[result]:
            return "the query as written, whose rules lead to the paths that it returns"
        if len(plans) == 1:
            return "the only plan"
        name = f"plan {number} (the query as written)" if number == 0 else f"plan {number}"
        if self.options.proofs:
            return f"{name} of {len(plans)} equivalent plans: proofs follow the query as written"
        if self.query.requested_plan is not None:
            return f"{name} of {len(plans)} equivalent plans, as requested"
        reason = f"{name}, the least estimated work of {len(plans)} equivalent plans"
        if number == 0:
            return reason
        work, before = _work(plans[number]), _work(plans[0])
        return f"{reason}: {work}, against {before} for plan 0 (the query as written)"

    def _logical(self, result: str) -> Section:
        plan = self.query.canonical[result]
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
        plans, chosen = self.query.plans[result], self.query.chosen[result]
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
        reason = f"{self.cells_reason}\n" if self.cells_reason else ""
        if self.cells == 1:
            return Section("Physical plan", reason + describe(self.physical, self.unit))
        text = describe_stages(self.staged, self.cells, self.unit)
        return Section(f"Physical plan for {self.cells} cells", reason + text)

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
