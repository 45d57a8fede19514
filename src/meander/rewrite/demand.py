"""Demand, passed sideways: what a PATTERN asks of a closure that it only probes.

In `a+(x, y), b(x, m), c(m, y)` only those pairs of `a+` matter that `b` and `c` join. The rest of the pattern, as a
plan of the pairs that it asks for, becomes the *demand* of the closure: an operator that heeds it need not explore a
root, nor hand out a pair, that nobody asks for. This is done once, to the plan that was chosen: no other law knows
of demand, and one that lost it would still be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from meander.algebra.nodes import Path, Pattern, Plan
from meander.algebra.trees import fold
from meander.rewrite.choice import Sizes, is_unbounded
from meander.rewrite.trees import pattern, with_inputs


def pass_demand(plan: Plan) -> Plan:
    """`⋈(P, S₁, …, Sₙ) = ⋈(P⟨D⟩, S₁, …, Sₙ)` where `D = π_{src,trg}(⋈(S₁, …, Sₙ))` joins both ends of `P`.

    `P⟨D⟩` is any stream between `P ⋉ D` and `P`: it may leave out what `D` does not hold at that instant. Where the
    ends of `P` are all that is handed out, `⋈(P⟨D⟩, D)` says the same. Applied at every place where `P` is a closure
    and `D` is expected to be smaller than it.
    """
    sizes = Sizes()

    def pass_down(node: Plan, inputs: tuple[Plan, ...]) -> Plan:
        node = with_inputs(node, inputs)
        return _pass_to_inputs(node, sizes) if isinstance(node, Pattern) else node

    return fold(plan, pass_down)


def _pass_to_inputs(plan: Pattern, sizes: Sizes) -> Pattern:
    closures = [i for i, one in enumerate(plan.inputs) if isinstance(one, Path) and is_unbounded(one.expr)]
    inputs = list(plan.inputs)
    for place in closures:
        closure = inputs[place]
        assert isinstance(closure, Path)
        src, trg = plan.ends[place]
        others = [i for i in range(len(inputs)) if i not in closures]
        asking = _joined(plan.ends, others, src)
        if not any(trg in plan.ends[i] for i in asking):
            continue
        demand: Plan = pattern(
            [inputs[i] for i in asking],
            [plan.ends[i] for i in asking],
            (src, trg),
            f"demand for {closure.label}",
        )
        if len(asking) == 1 and plan.ends[asking[0]] == (src, trg):
            demand = inputs[asking[0]]
        if sizes.of(demand) >= sizes.of(closure):
            continue
        inputs[place] = replace(closure, demand=demand)
        if len(asking) == len(inputs) - 1 and set(plan.output) <= {src, trg}:
            return pattern([inputs[place], demand], [(src, trg), (src, trg)], plan.output, plan.label)
    return replace(plan, inputs=tuple(inputs))


def _joined(ends: Sequence[tuple[int, int]], among: Sequence[int], variable: int) -> list[int]:
    """Those of the inputs `among` that are joined, over one another, to a variable; in their order."""
    reached = {variable}
    found: set[int] = set()
    while True:
        more = {i for i in among if i not in found and reached & set(ends[i])}
        if not more:
            return sorted(found)
        found |= more
        reached |= {variable for i in more for variable in ends[i]}
