"""Laws of PATH that move a part between its expression and its inputs.

A nested part is evaluated once and its result stored (the closure runs over the output of a pattern); an unnested
one is walked by the automaton, edge by edge. Both are exact if the outer expression does not accept the
empty word: then a PATH is a language over its inputs, and a label may stand for a language. If it does, the
empty word would join other end points, since derived edges touch fewer vertices than the edges they come from.
"""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.automata import nullable
from meander.algebra.nodes import Path, Pattern, Plan, Union
from meander.rewrite.expressions import (
    Rebuild,
    Subexpression,
    either,
    is_step,
    repeat,
    subexpressions,
    substitute,
    then,
)
from meander.rewrite.trees import absorb, chain, is_language, is_unordered, path, spelled
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then


def unnest_union(plan: Plan) -> Iterator[Plan]:
    """`𝒫_R(S₁ ∪^u S₂, …) = 𝒫_{R[u := 1|2]}(S₁, S₂, …)`; the end points are the same, empty word or not."""
    if is_unordered(plan):
        for i, inner in enumerate(plan.inputs):
            if isinstance(inner, Union):
                inputs = list(plan.inputs)
                parts = [absorb(inputs, part, whole=True) for part in inner.inputs]
                yield path(inputs, substitute(plan.expr, {str(i): either(parts)}), plan.label)


def unnest_path(plan: Plan) -> Iterator[Plan]:
    """`𝒫_R(𝒫_E^x(S), …) = 𝒫_{R[x := E]}(S, …)` for R and E without the empty word."""
    if is_language(plan):
        for i, inner in enumerate(plan.inputs):
            if is_language(inner):
                inputs = list(plan.inputs)
                yield path(inputs, substitute(plan.expr, {str(i): absorb(inputs, inner)}), plan.label)


def unnest_pattern(plan: Plan) -> Iterator[Plan]:
    """`𝒫_R(⋈_{trg₁=src₂}^{src₁,trg₂,x}(S₁, S₂), …) = 𝒫_{R[x := 1/2]}(S₁, S₂, …)` for R without the empty word,
    and a pattern that is a chain from its src to its trg."""
    if is_language(plan):
        for i, inner in enumerate(plan.inputs):
            inputs = list(plan.inputs)
            steps = _walk(inner, inputs) if isinstance(inner, Pattern) else None
            if steps is not None:
                yield path(inputs, substitute(plan.expr, {str(i): then(steps)}), plan.label)


def nest_alternation(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R[a|b]}(S_a, S_b, …) = 𝒫_{R[u]}(S_a ∪^u S_b, …)` for a part `a|b` of R, both without the empty word,
    or `a|b` of single steps, whose union has the same end points."""
    if is_unordered(plan):
        for part, rebuild, _ in _inner_parts(plan):
            if not isinstance(part, Either) or nullable(part):
                continue
            if is_language(plan) or all(is_step(inner) for inner in part.parts):
                branches = dict.fromkeys(chain(plan.inputs, [inner]) for inner in part.parts)
                yield _nested(plan, Union(tuple(branches), spelled(plan.inputs, part)), rebuild)


def nest_concatenation(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R[a/b]}(S_a, S_b, …) = 𝒫_{R[x]}(S_a ⋈_{trg₁=src₂}^{src₁,trg₂,x} S_b, …)` for a part `a/b` of R, R, a
    and b without the empty word. So `(a/b/c)+` is `x+` over `a⋈b⋈c`, `(x/c)+` over `a⋈b`, and `(a/x)+` over `b⋈c`."""
    if is_language(plan):
        for part, rebuild, _ in _inner_parts(plan):
            if isinstance(part, Then) and not any(nullable(step) for step in part.parts):
                yield _nested(plan, chain(plan.inputs, part.parts), rebuild)


def nest_closure(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R[E+]}(S, …) = 𝒫_{R[x]}(𝒫_{E+}^x(S), …)` and `R[E*] = R[x?]`, for a closure inside a closure, R and E
    without the empty word: the inner closure is then computed once, not in each round of the outer one."""
    if is_language(plan):
        for part, rebuild, looped in _inner_parts(plan):
            match part:
                case Repeat(inner, (0 | 1) as low, None) if looped and not nullable(inner):
                    inputs = list(plan.inputs)
                    once = absorb(inputs, path(plan.inputs, repeat(inner, 1, None)), whole=True)
                    yield path(inputs, rebuild(repeat(once, low, 1)), plan.label)


def _inner_parts(plan: Path) -> Iterator[Subexpression]:
    return (inner for inner in subexpressions(plan.expr) if inner.part != plan.expr)


def _nested(plan: Path, inner: Plan, rebuild: Rebuild) -> Plan:
    """`plan` with `inner` as a further input, which the rebuilt expression names."""
    return path([*plan.inputs, inner], rebuild(Label(str(len(plan.inputs)))), plan.label)


def _walk(plan: Pattern, inputs: list[Plan]) -> list[PathExpr] | None:
    """The steps from `plan`'s src to its trg, over its inputs, which are added to `inputs`.

    None if the pattern is not a chain: an input off the path, a vertex met twice, or both ends the same; or if it
    compares anything, or an input has values.
    """
    if plan.predicate is not None or any(len(ends) > 2 for ends in plan.ends):
        return None
    src, trg = plan.output
    open_atoms = dict(enumerate(plan.ends))
    met, at = {src}, src
    steps: list[PathExpr] = []
    while open_atoms:
        leading = next((k for k, pair in open_atoms.items() if at in pair), None)
        if leading is None:
            return None
        u, v = open_atoms.pop(leading)[:2]
        step = absorb(inputs, plan.inputs[leading], whole=True)
        steps.append(step if u == at else Inverse(step))
        at = v if u == at else u
        if at in met:
            return None
        met.add(at)
    return steps if at == trg else None
