"""Sideways information passing: a closure that a PATTERN only probes learns which pairs it needs (its demand).

In `a+(x, y), b(x, m), c(m, y)` only those pairs of `a+` matter that `b` and `c` join. The rest of the pattern, as a
plan of these pairs, becomes the *demand* of the closure: a demand-aware operator need neither explore other roots nor
emit other pairs (the idea of magic sets; Beeri and Ramakrishnan, "On the power of magic", 1991). This is done
once, to the chosen plan: no law depends on demand, and a plan without it has the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from meander.algebra.nodes import Path, Pattern, Plan
from meander.algebra.trees import fold
from meander.rewrite.choice import Sizes, is_unbounded
from meander.rewrite.trees import is_unordered, pattern, with_inputs
from meander.syntax.values import conjunction, conjuncts, refs


def pass_demand(plan: Plan, *, keep_inputs: bool = False) -> Plan:
    """`⋈(P, S₁, …, Sₙ) = ⋈(P⟨D⟩, S₁, …, Sₙ)` where `D = π_{src,trg}(⋈(S₁, …, Sₙ))` joins both ends of `P`.

    `P⟨D⟩` is any stream between `P ⋉ D` and `P`: it may leave out pairs that are not in `D` at that instant. If
    only the ends of `P` are returned, `⋈(P⟨D⟩, D)` is equivalent. Applied wherever `P` is a closure and `D` is
    estimated to be smaller. With `keep_inputs` every pattern has the inputs that it had, by number.
    """
    sizes = Sizes()

    def pass_down(node: Plan, inputs: tuple[Plan, ...]) -> Plan:
        node = with_inputs(node, inputs)
        return _pass_to_inputs(node, sizes, keep_inputs) if isinstance(node, Pattern) else node

    return fold(plan, pass_down)


def _pass_to_inputs(plan: Pattern, sizes: Sizes, keep_inputs: bool) -> Pattern:
    closures = [i for i, inner in enumerate(plan.inputs) if is_unordered(inner) and is_unbounded(inner.expr)]
    inputs = list(plan.inputs)
    for position in closures:
        closure = inputs[position]
        assert isinstance(closure, Path)
        src, trg = plan.ends[position][:2]
        others = [i for i in range(len(inputs)) if i not in closures]
        demanding = _joined(plan.ends, others, src)
        if not any(trg in plan.ends[i] for i in demanding):
            continue
        bound = {variable for i in demanding for variable in plan.ends[i]}
        decided = [
            term for term in conjuncts(plan.predicate) if {int(ref.name) for ref in refs(term)} <= bound
        ]
        demand: Plan = pattern(
            [inputs[i] for i in demanding],
            [plan.ends[i] for i in demanding],
            (src, trg),
            f"demand for {closure.label}",
            conjunction(decided),
        )
        if len(demanding) == 1 and plan.ends[demanding[0]] == (src, trg) and not decided:
            demand = inputs[demanding[0]]
        if sizes.of(demand) >= sizes.of(closure):
            continue
        inputs[position] = replace(closure, demand=demand)
        all_decided = conjunction(decided) == conjunction([plan.predicate])
        is_covered = len(demanding) == len(inputs) - 1 and set(plan.output) <= {src, trg} and all_decided
        if is_covered and not keep_inputs:
            return pattern([inputs[position], demand], [(src, trg), (src, trg)], plan.output, plan.label)
    return replace(plan, inputs=tuple(inputs))


def _joined(ends: Sequence[tuple[int, ...]], among: Sequence[int], variable: int) -> list[int]:
    """The inputs in `among` that are connected to a variable by joins, in their order."""
    reached = {variable}
    joined: set[int] = set()
    while True:
        more = {i for i in among if i not in joined and reached & set(ends[i])}
        if not more:
            return sorted(joined)
        joined |= more
        reached |= {variable for i in more for variable in ends[i]}
