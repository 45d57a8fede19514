"""Laws of FILTER: predicate pushdown.

A bound source of a closure is not pushed further than `σ_{src=c}(𝒫_R(S))`: filtering the edges would break the
paths. That form itself gives the search a single root.
"""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.automata import reverse
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union
from meander.rewrite.expressions import normalize, with_first_step
from meander.rewrite.laws.comparisons import restricted
from meander.rewrite.trees import filtered, path, pattern, renamed_refs
from meander.syntax.query import Inverse, Label, PathExpr, PathOrder
from meander.syntax.values import Predicate, bound_vertex, conjunction, conjuncts, refs


def merge_filters(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(σ_ψ(S)) = σ_{ψ∧φ}(S)`"""
    if isinstance(plan, Filter) and isinstance(plan.input, Filter):
        yield filtered(plan.input.input, [plan.input.predicate, plan.predicate])


def pushdown_filter_into_union(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(S₁ ∪^d S₂) = σ_φ(S₁) ∪^d σ_φ(S₂)`"""
    if isinstance(plan, Filter) and isinstance(plan.input, Union):
        inputs = dict.fromkeys(Filter(inner, plan.predicate) for inner in plan.input.inputs)
        yield Union(tuple(inputs), plan.label)


def pushdown_filter_into_pattern(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(⋈_Φ(S₁, …)) = ⋈_{Φ∧φ}(S₁, …)`: a term over one input's columns is decided on that input,
    `σ_{src=c}` at every end that Φ makes equal to src, and `σ_{src=trg}` is a shared variable."""
    if isinstance(plan, Filter) and isinstance(plan.input, Pattern):
        joined = plan.input
        above = renamed_refs(plan.predicate, dict(enumerate(joined.output)))
        predicate = conjunction([joined.predicate, above])
        yield restricted(
            pattern(joined.inputs, joined.ends, joined.output, joined.label, predicate, joined.values)
        )


def pushdown_filter_into_path(plan: Plan) -> Iterator[Plan]:
    """`σ_{φ(src)}(𝒫_{a/R}(S_a, …)) = 𝒫_{a/R}(σ_{φ(src)}(S_a), …)`, `σ_{φ(trg)}(𝒫_{R/a}(…))` likewise.

    For steps that are taken only as the path's first (last) step: those of a closure are not, and if a part may be
    empty there is no single first step.
    """
    if not (isinstance(plan, Filter) and isinstance(plan.input, Path)):
        return
    inputs, expr = list(plan.input.inputs), normalize(plan.input.expr)
    rest = list(conjuncts(plan.predicate))
    for end in (0, 1):
        pushed = [term for term in rest if {ref.name for ref in refs(term)} == {end}]
        if not pushed:
            continue
        walked = normalize(reverse(expr)) if end else expr
        changed = with_first_step(walked, lambda step: _bound(inputs, step, pushed, end))  # noqa: B023
        if changed is not None:
            expr = normalize(reverse(changed)) if end else changed
            rest = [term for term in rest if term not in pushed]
    if len(rest) < len(conjuncts(plan.predicate)):
        yield filtered(path(inputs, expr, plan.label, plan.input.order), rest)


def reverse_bound_target(plan: Plan) -> Iterator[Plan]:
    """`σ_{trg=c}(𝒫_R(S)) = ⋈^{trg₁,src₁}(σ_{src=c}(𝒫_{R⁻¹}(S)))`: a bound end becomes the only root."""
    if isinstance(plan, Filter) and isinstance(plan.input, Path) and plan.input.order is PathOrder.ANY:
        bound = {pair[0] for term in conjuncts(plan.predicate) if (pair := bound_vertex(term)) is not None}
        if bound == {1}:
            backwards = path(plan.input.inputs, reverse(plan.input.expr))
            rooted = Filter(backwards, renamed_refs(plan.predicate, {0: 1, 1: 0}))
            yield pattern([rooted], [(0, 1)], (1, 0), plan.label)


def _bound(inputs: list[Plan], step: PathExpr, terms: list[Predicate], end: int) -> PathExpr:
    """`step` over its input restricted to the edges that it leaves by a vertex for which the terms on the path's
    `end` hold; adds that input."""
    backwards = isinstance(step, Inverse)
    label = step.expr if isinstance(step, Inverse) else step
    assert isinstance(label, Label)
    here = [renamed_refs(term, {end: 1 if backwards else 0}) for term in terms]
    inputs.append(filtered(inputs[int(label.name)], here))
    added = Label(str(len(inputs) - 1))
    return Inverse(added) if backwards else added
