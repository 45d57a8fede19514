"""Laws of UNION: nesting, duplicates and renaming mean nothing, and PATTERN distributes over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meander.algebra.nodes import Filter, Pattern, Plan, Union, WScan
from meander.rewrite.trees import rename


def flatten_union(plan: Plan) -> Iterator[Plan]:
    """`(S₁ ∪^e S₂) ∪^d S₃ = ∪^d(S₁, S₂, S₃)`, each input once."""
    if isinstance(plan, Union):
        flat = [
            part for inner in plan.inputs for part in (inner.inputs if isinstance(inner, Union) else (inner,))
        ]
        inputs = tuple(dict.fromkeys(flat))
        if inputs != plan.inputs:
            yield Union(inputs, plan.label)


def eliminate_trivial_union(plan: Plan) -> Iterator[Plan]:
    """`∪^d(S^e) = S^d`, if S is not a scan: edges of a stream keep their labels."""
    if isinstance(plan, Union) and len(plan.inputs) == 1:
        labeled = plan.inputs[0]
        while isinstance(labeled, Filter):
            labeled = labeled.input
        if labeled.label == plan.label or not isinstance(labeled, WScan):
            yield rename(plan.inputs[0], plan.label)


def factor_union(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(R, S) ∪^d ⋈_Φ(R, T) = ⋈_Φ(R, S ∪ T)`, if all inputs but one, and Φ, are the same."""
    if not isinstance(plan, Union):
        return
    for i, first in enumerate(plan.inputs):
        for other in plan.inputs[i + 1 :]:
            if not (isinstance(first, Pattern) and isinstance(other, Pattern)):
                continue
            joins = [(part.ends, part.output, part.predicate, part.values) for part in (first, other)]
            if joins[0] != joins[1]:
                continue
            pairs = list(zip(first.inputs, other.inputs, strict=True))
            differing = [k for k, (mine, theirs) in enumerate(pairs) if mine != theirs]
            if len(differing) == 1:
                k = differing[0]
                if pairs[k][0].values != pairs[k][1].values:
                    continue
                both = Union(pairs[k], "|".join(part.label for part in pairs[k]))
                inputs = (*first.inputs[:k], both, *first.inputs[k + 1 :])
                factored = replace(first, inputs=inputs, label=f"{first.label}|{other.label}")
                rest = [part for part in plan.inputs if part not in (first, other)]
                yield Union((*rest, factored), plan.label)
