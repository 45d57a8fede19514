"""Laws of PATH: an automaton can be replaced by UNION and PATTERN, and the other way round.

The empty word is the trap. It joins to themselves the end points of *all* inputs of its PATH, so that an
expression that accepts it means less over fewer inputs: `𝒫_{a?|b} ≠ 𝒫_{a?} ∪ S_b`, and `𝒫_{a/b*} ≠ S_a ⋈ 𝒫_{b*}`
(which loses the paths whose end has no b edge). Every law here therefore either works on expressions without
the empty word, for which a PATH is nothing but a language over its inputs, or shows that the end points are the same.

A split law takes the whole expression apart, a fold law brings it together. Laws that move a part between the
expression and the inputs are in `nesting`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from meander.algebra.automata import labels, nullable, reverse, without_empty
from meander.algebra.nodes import Path, Pattern, Plan, Union, WScan
from meander.rewrite.expressions import alternatives, either, is_step, sequence, then
from meander.rewrite.trees import (
    absorb,
    chain,
    is_language,
    is_unordered,
    merge_inputs,
    path,
    pattern,
    rename,
)
from meander.syntax.query import Inverse, Label, PathExpr, PathOrder, Then
from meander.syntax.values import refs

# A concatenation with more parts that may be empty has too many branches to be worth enumerating.
MOST_EMPTY_PARTS = 3


# ---------------------------------------------------------------------------------------------------------
# Normal forms


def simplify_path(plan: Plan) -> Iterator[Plan]:
    """`𝒫_R = 𝒫_{R'}` for the normalized R' of the same language and labels: `(a)+`, `((a/b)/c)`, `^(a/b)`, …"""
    if isinstance(plan, Path):
        plain = path(plan.inputs, plan.expr, plan.label, plan.order)
        if plain != plan:
            yield plain


def eliminate_trivial_path(plan: Plan) -> Iterator[Plan]:
    """`𝒫_a^d(S_a) = ∪^d(S_a)`"""
    if is_unordered(plan) and isinstance(plan.expr, Label):
        yield rename(plan.inputs[0], plan.label)


# ---------------------------------------------------------------------------------------------------------
# Split and fold


def split_alternation(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R₁|R₂}^d(S) = 𝒫_{R₁}(S) ∪^d 𝒫_{R₂}(S)`, the paper's alternation rule.

    If some parts accept the empty word, those parts together must name every input.
    """
    if is_unordered(plan):
        parts = alternatives(plan.expr)
        if len(parts) > 1 and _preserves_ends(parts, plan.inputs):
            yield Union(tuple(dict.fromkeys(chain(plan.inputs, [part]) for part in parts)), plan.label)


def fold_alternation(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R₁}(S₁) ∪^d 𝒫_{R₂}(S₂) ∪^d S_a = 𝒫_{R₁|R₂|a}^d(S₁, S₂, S_a)`: one automaton; as `split_alternation`."""
    kinds = {type(inner) for inner in plan.inputs} if isinstance(plan, Union) else set()
    if Path in kinds and kinds <= {Path, WScan} and not any(is_ordered(inner) for inner in plan.inputs):
        inputs: list[Plan] = []
        parts = [absorb(inputs, inner) for inner in plan.inputs]
        if _preserves_ends(parts, inputs):
            yield path(inputs, either(parts), plan.label)


def split_concatenation(plan: Plan) -> Iterator[Plan]:
    """`𝒫_{R₁/R₂}^d(S) = ⋈_{trg₁=src₂}^{src₁,trg₂,d}(𝒫_{R₁}(S), 𝒫_{R₂}(S))`, the paper's concatenation rule.

    Between all parts at once, then between each two neighbors alone. A part that may be empty is present or not, so
    `a/b*` is `S_a ∪ S_a⋈𝒫_{b+}`. Not if the whole may be empty: `split_empty_word` comes first.
    """
    if not is_language(plan):
        return
    parts = sequence(plan.expr)
    if len(parts) > 1 or (is_step(parts[0]) and isinstance(parts[0], Inverse)):
        yield from _joined(plan, parts)
    if isinstance(plan.expr, Then) and len(parts) > 2:
        for k in range(1, len(parts)):
            yield from _joined(plan, (then(parts[:k]), then(parts[k:])))


def fold_concatenation(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(𝒫_R(S)(x,v), T(v,y), …) = ⋈_Φ(𝒫_{R/t}(S, T)(x,y), …)`, if nothing else uses v.

    For R without the empty word; T may be a PATH of the same kind, whose expression then follows R's, or
    anything else, which is one step. Ends the other way round are inverse steps.
    """
    if not isinstance(plan, Pattern):
        return
    uses = [variable for columns in plan.ends for variable in columns] + list(plan.output)
    uses += [int(ref.name) for ref in refs(plan.predicate)]
    for i, j in combinations(range(len(plan.inputs)), 2):
        if len(plan.ends[i]) > 2 or len(plan.ends[j]) > 2:
            continue
        if is_language(plan.inputs[i]) or is_language(plan.inputs[j]):
            for middle in sorted(set(plan.ends[i]) & set(plan.ends[j])):
                if uses.count(middle) == 2:
                    yield _followed(plan, i, j, middle)


def split_empty_word(plan: Plan) -> Iterator[Plan]:
    """`𝒫_R^d(S₁, …) = 𝒫_{R∖ε}(S₁, …) ∪^d ⋈^{src₁,src₁}(S₁) ∪^d ⋈^{trg₁,trg₁}(S₁) ∪^d …` for R with the empty word."""
    if is_unordered(plan) and nullable(plan.expr):
        words = without_empty(plan.expr)
        branches: list[Plan] = [] if words is None else [path(plan.inputs, words)]
        for inner in plan.inputs:
            branches.append(pattern([inner], [(0, 1)], (0, 0), f"src({inner.label})"))
            branches.append(pattern([inner], [(0, 1)], (1, 1), f"trg({inner.label})"))
        yield Union(tuple(branches), plan.label)


# ---------------------------------------------------------------------------------------------------------
# Parts


def is_ordered(plan: Plan) -> bool:
    return isinstance(plan, Path) and plan.order is not PathOrder.ANY


def _preserves_ends(parts: Sequence[PathExpr], inputs: Sequence[Plan]) -> bool:
    """Whether the empty word, if any part accepts it, joins the end points of all inputs in the parts too."""
    empty = [label for part in parts if nullable(part) for label in labels(part)]
    return not empty or {inputs[int(label.name)] for label in empty} == set(inputs)


def _joined(plan: Path, parts: Sequence[PathExpr]) -> Iterator[Plan]:
    """The concatenation of `parts`, not all of which may be empty, as joins: one for each choice of those present."""
    if sum(nullable(part) for part in parts) > MOST_EMPTY_PARTS:
        return
    choices = product(*((False, True) if nullable(part) else (True,) for part in parts))
    branches: dict[Plan, None] = {}
    for present in sorted(choices, key=lambda choice: (sum(choice), choice[::-1])):
        words = [without_empty(part) for part, chosen in zip(parts, present, strict=True) if chosen]
        steps = [word for word in words if word is not None]
        if len(steps) == len(words):
            branches[chain(plan.inputs, steps)] = None
    yield (
        rename(next(iter(branches)), plan.label) if len(branches) == 1 else Union(tuple(branches), plan.label)
    )


def _followed(plan: Pattern, i: int, j: int, middle: int) -> Plan:
    """`plan` with its inputs i and j as one Path through `middle`."""
    inputs: list[Plan] = []
    exprs = [absorb(inputs, plan.inputs[k], whole=not is_language(plan.inputs[k])) for k in (i, j)]
    (first_src, first_trg, *_), (next_src, next_trg, *_) = plan.ends[i], plan.ends[j]
    # Of the two directions, the one with fewer inverse steps; `i` first if both are as good.
    if (first_trg == middle) + (next_src == middle) >= 1:
        first = exprs[0] if first_trg == middle else reverse(exprs[0])
        second = exprs[1] if next_src == middle else reverse(exprs[1])
    else:
        first, second = exprs[1], exprs[0]
        (first_src, first_trg, *_), (next_src, next_trg, *_) = plan.ends[j], plan.ends[i]
    src = first_src if first_trg == middle else first_trg
    trg = next_trg if next_src == middle else next_src
    return merge_inputs(plan, i, j, path(inputs, then([first, second])), (src, trg))
