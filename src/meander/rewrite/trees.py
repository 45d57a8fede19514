"""Walking plans and building them: what every law needs and no law says.

The builders give nodes in their plain form: a Path's inputs distinct and numbered by first use, a Pattern's
variables numbered by first use. A node that a law brings in is labelled by what it means, in the words of its
inputs (`b/c`, `(a|b)+`), so that equal subplans have equal labels wherever they come from.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeGuard

from meander.algebra.automata import labels, nullable
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.printing import expression
from meander.rewrite.expressions import is_step, substitute, tidy
from meander.syntax.query import Inverse, Label, PathExpr, Then


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same node over other inputs; itself where they are the same objects, so that comparing stays cheap."""
    if all(new is old for new, old in zip(inputs, plan.inputs, strict=True)):
        return plan
    match plan:
        case WScan() | Receive():
            return plan
        case Filter(_, condition):
            return Filter(inputs[0], condition)
        case Path(_, expr, label) if len(set(inputs)) < len(inputs):
            return path(inputs, expr, label)
        case Union() | Pattern() | Path():
            return replace(plan, inputs=inputs)


def replace_subplan(plan: Plan, old: Plan, new: Plan) -> Plan:
    """`plan` with `new` wherever `old` stands, so that what was shared stays shared."""
    done = {old: new}

    def replaced(node: Plan) -> Plan:
        if node not in done:
            done[node] = with_inputs(node, tuple(map(replaced, node.inputs)))
        return done[node]

    return replaced(plan)


def rename(plan: Plan, label: str) -> Plan:
    """The same tuples, labelled `label`: by the node itself where it can, else by a Union of one input."""
    if plan.label == label:
        return plan
    match plan:
        case WScan() | Receive():
            return Union((plan,), label)
        case Filter(inner, condition):
            return Filter(rename(inner, label), condition)
        case Union() | Pattern() | Path():
            return replace(plan, label=label)


def path(inputs: Sequence[Plan], expr: PathExpr, label: str | None = None) -> Path:
    """A Path over those of `inputs` that `expr` names by position; labelled by its expression if not told."""
    position: dict[Plan, int] = {}
    meaning: dict[str, PathExpr] = {}
    for step in labels(tidy(expr)):
        number = position.setdefault(inputs[int(step.name)], len(position))
        meaning[step.name] = Label(str(number))
    return Path(tuple(position), substitute(expr, meaning), spelled(inputs, expr) if label is None else label)


def pattern(
    inputs: Sequence[Plan],
    ends: Sequence[tuple[Hashable, Hashable]],
    output: Sequence[Hashable],
    label: str,
) -> Pattern:
    """A Pattern whose variables may be named by anything."""
    number: dict[Hashable, int] = {}
    for pair in ends:
        for variable in pair:
            number.setdefault(variable, len(number))
    return Pattern(
        tuple(inputs),
        tuple((number[src], number[trg]) for src, trg in ends),
        tuple(number[variable] for variable in output),
        label,
    )


def chain(inputs: Sequence[Plan], steps: Sequence[PathExpr], label: str | None = None) -> Plan:
    """`⋈_{trg₁=src₂ ∧ …}^{src₁,trgₙ}` over the steps in order: a label's input as it is, `^a` with its ends
    swapped, anything else closed as a Path of its own. One step alone stands for itself."""
    if len(steps) == 1 and isinstance(steps[0], Label):
        only = inputs[int(steps[0].name)]
        return only if label is None else rename(only, label)
    if len(steps) == 1 and not is_step(steps[0]):
        return path(inputs, steps[0], label)
    name = spelled(inputs, Then(tuple(steps)) if len(steps) > 1 else steps[0]) if label is None else label
    parts: list[Plan] = []
    ends: list[tuple[Hashable, Hashable]] = []
    for i, step in enumerate(steps):
        match step:
            case Label(position):
                parts.append(inputs[int(position)])
                ends.append((i, i + 1))
            case Inverse(Label(position)):
                parts.append(inputs[int(position)])
                ends.append((i + 1, i))
            case _:
                parts.append(path(inputs, step))
                ends.append((i, i + 1))
    return pattern(parts, ends, (0, len(steps)), name)


def is_language(plan: Plan) -> TypeGuard[Path]:
    """Whether the plan is a Path without the empty word: then it is a language over its inputs, and no more."""
    return isinstance(plan, Path) and not nullable(plan.expr)


def absorb(inputs: list[Plan], plan: Plan, *, whole: bool = False) -> PathExpr:
    """Adds to `inputs` what `plan` reads, if it is a Path, else (or `whole`) itself; the expression for it."""
    offset = len(inputs)
    if isinstance(plan, Path) and not whole:
        inputs.extend(plan.inputs)
        return substitute(plan.expr, {str(k): Label(str(offset + k)) for k in range(len(plan.inputs))})
    inputs.append(plan)
    return Label(str(offset))


def spelled(inputs: Sequence[Plan], expr: PathExpr) -> str:
    """`expr` in the words of its inputs' labels."""
    return expression(expr, lambda label: inputs[int(label.name)].label)
