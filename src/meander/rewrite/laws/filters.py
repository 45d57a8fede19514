"""Laws of FILTER: predicate pushdown.

A bound source of a closure is not pushed further than `σ_{src=c}(𝒫_R(S))`: filtering the edges would break the
paths. That form itself gives the search a single root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meander.algebra.automata import reverse
from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Union
from meander.rewrite.expressions import normalize, with_first_step
from meander.rewrite.trees import path, pattern
from meander.syntax.query import Inverse, Label, PathExpr


def merge_filters(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(σ_ψ(S)) = σ_{φ∧ψ}(S)`, unless φ and ψ contradict each other."""
    if isinstance(plan, Filter) and isinstance(plan.input, Filter):
        condition = plan.input.condition.conjunction(plan.condition)
        if condition is not None:
            yield Filter(plan.input.input, condition)


def pushdown_filter_into_union(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(S₁ ∪^d S₂) = σ_φ(S₁) ∪^d σ_φ(S₂)`"""
    if isinstance(plan, Filter) and isinstance(plan.input, Union):
        inputs = dict.fromkeys(Filter(inner, plan.condition) for inner in plan.input.inputs)
        yield Union(tuple(inputs), plan.label)


def pushdown_filter_into_pattern(plan: Plan) -> Iterator[Plan]:
    """`σ_{src=c}(⋈_Φ(S₁, …)) = ⋈_Φ(σ_{pos=c}(S₁), …)` at every end that Φ makes equal to src, and
    `σ_{src=trg}(⋈_Φ(…)) = ⋈_{Φ ∧ src=trg}(…)`: a shared variable."""
    if not (isinstance(plan, Filter) and isinstance(plan.input, Pattern)):
        return
    joined, condition = plan.input, plan.condition
    src, trg = joined.output
    same = {trg: src} if condition.loop else {}
    ends = [(same.get(u, u), same.get(v, v)) for u, v in joined.ends]
    bound = {
        same.get(variable, variable): constant
        for variable, constant in ((src, condition.src), (trg, condition.trg))
        if constant is not None
    }
    constants = {condition.src, condition.trg} - {None}
    if len(constants) == 2 and len({same.get(src, src), same.get(trg, trg)}) == 1:
        return  # a vertex equal to two constants: unsatisfiable, left to the filter
    inputs = []
    for inner, (u, v) in zip(joined.inputs, ends, strict=True):
        restriction = Condition(bound.get(u), bound.get(v))
        inputs.append(inner if restriction == Condition() else Filter(inner, restriction))
    yield pattern(inputs, ends, [same.get(variable, variable) for variable in joined.output], joined.label)


def pushdown_filter_into_path(plan: Plan) -> Iterator[Plan]:
    """`σ_{src=c}(𝒫_{a/R}(S_a, …)) = 𝒫_{a/R}(σ_{src=c}(S_a), …)`, `σ_{trg=c}(𝒫_{R/a}(…))` likewise.

    For steps that are taken only as the path's first (last) step: those of a closure are not, and if a part may be
    empty there is no single first step.
    """
    if not (isinstance(plan, Filter) and isinstance(plan.input, Path)):
        return
    inputs, expr, rest = list(plan.input.inputs), normalize(plan.input.expr), plan.condition
    if rest.src is not None:
        changed = with_first_step(expr, lambda step: _bound(inputs, step, rest.src))
        if changed is not None:
            expr, rest = changed, replace(rest, src=None)
    if rest.trg is not None:
        changed = with_first_step(normalize(reverse(expr)), lambda step: _bound(inputs, step, rest.trg))
        if changed is not None:
            expr, rest = normalize(reverse(changed)), replace(rest, trg=None)
    if rest != plan.condition:
        restricted = path(inputs, expr, plan.label)
        yield restricted if rest == Condition() else Filter(restricted, rest)


def reverse_bound_target(plan: Plan) -> Iterator[Plan]:
    """`σ_{trg=c}(𝒫_R(S)) = ⋈^{trg₁,src₁}(σ_{src=c}(𝒫_{R⁻¹}(S)))`: a bound end becomes the only root."""
    if isinstance(plan, Filter) and isinstance(plan.input, Path):
        condition = plan.condition
        if condition.trg is not None and condition.src is None:
            backwards = path(plan.input.inputs, reverse(plan.input.expr))
            rooted = Filter(backwards, condition.reversed())
            yield pattern([rooted], [(0, 1)], (1, 0), plan.label)


def _bound(inputs: list[Plan], step: PathExpr, constant: str | int | None) -> PathExpr:
    """`step` over its input restricted to the edges that it leaves `constant` by; adds that input."""
    backwards = isinstance(step, Inverse)
    label = step.expr if isinstance(step, Inverse) else step
    assert isinstance(label, Label)
    condition = Condition(trg=constant) if backwards else Condition(src=constant)
    inputs.append(Filter(inputs[int(label.name)], condition))
    added = Label(str(len(inputs) - 1))
    return Inverse(added) if backwards else added
