"""Builders of plans that every law needs.

The builders return nodes in normal form: a Path's inputs distinct and numbered by first use, a Pattern's
variables numbered by first use. A node that a law introduces is labeled by its expression over the labels of its
inputs (`b/c`, `(a|b)+`), so that equal subplans have equal labels wherever they come from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from meander.algebra.automata import labels, nullable
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.rewrite.expressions import is_step, normalize, substitute
from meander.syntax.printing import expression_text
from meander.syntax.query import Inverse, Label, PathExpr, PathOrder, Then
from meander.syntax.values import (
    And,
    Comparison,
    Predicate,
    Property,
    Ref,
    bound_vertex,
    conjunction,
    conjuncts,
    map_refs,
    refs,
)


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same node over other inputs; the node itself if they are identical, so that comparing stays cheap."""
    if all(new is old for new, old in zip(inputs, plan.inputs, strict=True)):
        return plan
    match plan:
        case WScan() | Receive():
            return plan
        case Filter(_, predicate):
            return Filter(inputs[0], predicate)
        case Path(_, expr, label) if len(set(inputs)) < len(inputs):
            return path(inputs, expr, label, plan.order)
        case Union() | Pattern() | Path():
            return replace(plan, inputs=inputs)


def replace_subplan(plan: Plan, old: Plan, new: Plan) -> Plan:
    """`plan` with every occurrence of `old` replaced by `new`; shared subplans stay shared."""
    done = {old: new}

    def replaced(node: Plan) -> Plan:
        if node not in done:
            done[node] = with_inputs(node, tuple(map(replaced, node.inputs)))
        return done[node]

    return replaced(plan)


def rename(plan: Plan, label: str) -> Plan:
    """The same tuples, labeled `label`: by the node itself if it has a label field, else by a Union of one input."""
    if plan.label == label:
        return plan
    match plan:
        case WScan() | Receive():
            return Union((plan,), label)
        case Filter(inner, predicate):
            return Filter(rename(inner, label), predicate)
        case Union() | Pattern() | Path():
            return replace(plan, label=label)


def path(
    inputs: Sequence[Plan], expr: PathExpr, label: str | None = None, order: PathOrder = PathOrder.ANY
) -> Path:
    """A Path over those of `inputs` that `expr` names by position; labeled by its expression by default."""
    position: dict[Plan, int] = {}
    meaning: dict[str, PathExpr] = {}
    for step in labels(normalize(expr)):
        number = position.setdefault(inputs[int(step.name)], len(position))
        meaning[step.name] = Label(str(number))
    name = spelled(inputs, expr) if label is None else label
    return Path(tuple(position), substitute(expr, meaning), name, order=order)


def pattern(
    inputs: Sequence[Plan],
    ends: Sequence[Sequence[Hashable]],
    output: Sequence[Hashable],
    label: str,
    predicate: Predicate | None = None,
    values: tuple[Property, ...] = (),
) -> Pattern:
    """A Pattern whose variables may be named by anything; `predicate` has their names."""
    names = {ref.name: ref.name for ref in refs(predicate)}
    return renumbered(inputs, ends, output, label, [(predicate, names)], values)


NamedPredicate = tuple[Predicate | None, Mapping[Any, Hashable]]
"""A predicate, and what its references are called in a pattern under construction."""


def renumbered(
    inputs: Sequence[Plan],
    ends: Sequence[Sequence[Hashable]],
    output: Sequence[Hashable],
    label: str,
    predicates: Iterable[NamedPredicate],
    values: tuple[Property, ...],
) -> Pattern:
    """A Pattern under the conjunction of several predicates, each with names of its own for the variables."""
    number: dict[Hashable, int] = {}
    for columns in ends:
        for variable in columns:
            number.setdefault(variable, len(number))
    terms = [
        renamed_refs(predicate, {name: number[variable] for name, variable in names.items()})
        for predicate, names in predicates
        if predicate is not None
    ]
    return Pattern(
        tuple(inputs),
        tuple(tuple(number[variable] for variable in columns) for columns in ends),
        tuple(number[variable] for variable in output),
        label,
        conjunction(terms),
        values,
    )


def renamed_refs(predicate: Predicate, names: Mapping[Any, str | int]) -> Predicate:
    """The predicate with every reference under its new name; the equality of two is written in one way."""
    renamed = map_refs(predicate, lambda ref: Ref(names[ref.name], ref.type))
    match renamed:
        case Comparison(("=" | "!=") as op, Ref() as left, Ref() as right) if _rank(right) < _rank(left):
            return Comparison(op, right, left)
        case And(parts):
            return And(
                tuple(renamed_refs(part, {ref.name: ref.name for ref in refs(part)}) for part in parts)
            )
    return renamed


def _rank(ref: Ref) -> tuple[bool, str | int]:
    """Columns in their order; of names, `src` and `trg` sort as they stand in a tuple."""
    return isinstance(ref.name, str), ref.name


def filtered(plan: Plan, predicates: Iterable[Predicate | None]) -> Plan:
    """The tuples for which all predicates are true; the plan itself for none."""
    predicate = conjunction(predicates)
    return plan if predicate is None else Filter(plan, predicate)


def root_of(predicate: Predicate) -> Predicate | None:
    """The term of a FILTER over a PATH that binds its source: only the paths from that vertex are then searched."""
    return next((term for term in conjuncts(predicate) if (bound_vertex(term) or (1,))[0] == 0), None)


def merge_inputs(plan: Pattern, i: int, j: int, merged: Plan, ends: Sequence[Hashable]) -> Pattern:
    """`plan` with `merged` instead of its inputs i and j (i < j), at the position of i."""
    atoms: list[tuple[Plan, Sequence[Hashable]]] = list(zip(plan.inputs, plan.ends, strict=True))
    atoms[i] = (merged, ends)
    del atoms[j]
    return pattern(
        [inner for inner, _ in atoms],
        [columns for _, columns in atoms],
        plan.output,
        plan.label,
        plan.predicate,
        plan.values,
    )


def chain(inputs: Sequence[Plan], steps: Sequence[PathExpr], label: str | None = None) -> Plan:
    """`⋈_{trg₁=src₂ ∧ …}^{src₁,trgₙ}` over the steps in order: a label's input as it is, `^a` with its ends
    swapped, anything else as a separate Path. A single step stands for itself."""
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
    """Whether the plan is a Path without the empty word or order: then it is nothing but a language over its
    inputs."""
    return is_unordered(plan) and not nullable(plan.expr)


def is_unordered(plan: Plan) -> TypeGuard[Path]:
    """Whether the plan is a Path without an order of times: then its parts know nothing of each other."""
    return isinstance(plan, Path) and plan.order is PathOrder.ANY


def absorb(inputs: list[Plan], plan: Plan, *, whole: bool = False) -> PathExpr:
    """Add the inputs of `plan` to `inputs` if it is a Path, else (or if `whole`) the plan; returns its expression."""
    offset = len(inputs)
    if is_unordered(plan) and not whole:
        inputs.extend(plan.inputs)
        return substitute(plan.expr, {str(k): Label(str(offset + k)) for k in range(len(plan.inputs))})
    inputs.append(plan)
    return Label(str(offset))


def spelled(inputs: Sequence[Plan], expr: PathExpr) -> str:
    """`expr` over the labels of its inputs."""
    return expression_text(expr, lambda label: inputs[int(label.name)].label)
