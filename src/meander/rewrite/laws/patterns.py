"""Laws of PATTERN: nested patterns merge, a part can be split off, and it distributes over UNION."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from meander.algebra.nodes import Pattern, Plan, Union
from meander.rewrite.trees import merge_inputs, pattern, rename


def eliminate_duplicate_inputs(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(S, S, T) = ⋈_Φ(S, T)`, if both S join the same ends."""
    if isinstance(plan, Pattern):
        atoms = dict.fromkeys(zip(plan.inputs, plan.ends, strict=True))
        if len(atoms) < len(plan.inputs):
            yield pattern([inner for inner, _ in atoms], [ends for _, ends in atoms], plan.output, plan.label)


def eliminate_renaming(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(∪^e(S), T) = ⋈_Φ(S, T)`: PATTERN ignores labels."""
    if isinstance(plan, Pattern):
        inputs = tuple(
            inner.inputs[0] if isinstance(inner, Union) and len(inner.inputs) == 1 else inner
            for inner in plan.inputs
        )
        if inputs != plan.inputs:
            yield replace(plan, inputs=inputs)


def eliminate_trivial_pattern(plan: Plan) -> Iterator[Plan]:
    """`⋈^{src₁,trg₁,d}(S) = ∪^d(S)`"""
    if isinstance(plan, Pattern) and plan.ends == ((0, 1),) and plan.output == (0, 1):
        yield rename(plan.inputs[0], plan.label)


def merge_patterns(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(⋈_Ψ(S₁, S₂), S₃) = ⋈_{Φ∧Ψ}(S₁, S₂, S₃)`: one multiway join, without the intermediate result."""
    if not isinstance(plan, Pattern):
        return
    for i, inner in enumerate(plan.inputs):
        if isinstance(inner, Pattern):
            src, trg = plan.ends[i]
            # An inner pattern that returns a variable twice makes the outer ends equal.
            outer = {trg: src} if inner.output[0] == inner.output[1] else {}
            given = {inner.output[0]: src, inner.output[1]: outer.get(trg, trg)}
            ends = [(outer.get(u, u), outer.get(v, v)) for u, v in plan.ends]
            inside = [
                tuple(given.get(variable, ("inner", variable)) for variable in pair) for pair in inner.ends
            ]
            yield pattern(
                [*plan.inputs[:i], *inner.inputs, *plan.inputs[i + 1 :]],
                [*ends[:i], *((pair[0], pair[1]) for pair in inside), *ends[i + 1 :]],
                [outer.get(variable, variable) for variable in plan.output],
                plan.label,
            )


def split_pattern(plan: Plan) -> Iterator[Plan]:
    """`⋈_{Φ∧Ψ}(S₁, S₂, S₃) = ⋈_Φ(⋈_Ψ(S₁, S₂), S₃)`, if S₁ and S₂ share an end, and Φ and the output use no
    more than two of Ψ's variables. By repetition, every tree of binary joins."""
    if not isinstance(plan, Pattern) or len(plan.inputs) < 3:
        return
    for i, j in combinations(range(len(plan.inputs)), 2):
        rest = [k for k in range(len(plan.inputs)) if k not in (i, j)]
        seen = {variable for k in rest for variable in plan.ends[k]} | set(plan.output)
        shown = sorted({*plan.ends[i], *plan.ends[j]} & seen)
        if set(plan.ends[i]) & set(plan.ends[j]) and 1 <= len(shown) <= 2:
            # A single variable is returned twice: as a pair of equal vertices.
            returned = (shown[0], shown[-1])
            parts = (plan.inputs[i], plan.inputs[j])
            label = "⋈".join(part.label for part in parts)
            part = pattern(parts, [plan.ends[i], plan.ends[j]], returned, label)
            yield merge_inputs(plan, i, j, part, returned)


def distribute_pattern(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(R, S ∪ T) = ⋈_Φ(R, S) ∪^d ⋈_Φ(R, T)`"""
    if isinstance(plan, Pattern):
        for i, inner in enumerate(plan.inputs):
            if isinstance(inner, Union) and len(inner.inputs) > 1:
                branches = (
                    replace(plan, inputs=(*plan.inputs[:i], part, *plan.inputs[i + 1 :]))
                    for part in inner.inputs
                )
                yield Union(tuple(branches), plan.label)
