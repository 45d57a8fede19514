"""Laws of PATTERN: nested patterns merge, a part can be split off, and it distributes over UNION."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import combinations

from meander.algebra.nodes import Pattern, Plan, Union
from meander.rewrite.trees import NamedPredicate, merge_inputs, pattern, rename, renumbered
from meander.syntax.values import Property, ValueType, conjunction, conjuncts, refs


def eliminate_duplicate_inputs(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(S, S, T) = ⋈_Φ(S, T)`, if both S join the same ends."""
    if isinstance(plan, Pattern):
        atoms = dict.fromkeys(zip(plan.inputs, plan.ends, strict=True))
        if len(atoms) < len(plan.inputs):
            inputs, ends = [inner for inner, _ in atoms], [columns for _, columns in atoms]
            yield pattern(inputs, ends, plan.output, plan.label, plan.predicate, plan.values)


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
    if (
        isinstance(plan, Pattern)
        and plan.ends == (tuple(range(plan.inputs[0].width)),)
        and plan.output == plan.ends[0]
        and plan.values == plan.inputs[0].values
        and plan.predicate is None
    ):
        yield rename(plan.inputs[0], plan.label)


def merge_patterns(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(⋈_Ψ(S₁, S₂), S₃) = ⋈_{Φ∧Ψ}(S₁, S₂, S₃)`: one multiway join, without the intermediate result."""
    if not isinstance(plan, Pattern):
        return
    for i, inner in enumerate(plan.inputs):
        if isinstance(inner, Pattern):
            # An inner pattern that returns a variable twice makes the outer variables equal.
            given: dict[int, int] = {}
            outer = {variable: variable for variable in range(plan.variables)}
            for variable, shown in zip(inner.output, plan.ends[i], strict=True):
                first = outer[given.setdefault(variable, shown)]
                old = outer[shown]
                outer.update({name: first for name, now in outer.items() if now == old})
            inside: dict[int, Hashable] = {
                variable: outer[given[variable]] if variable in given else ("inner", variable)
                for variable in range(inner.variables)
            }
            ends = [[outer[variable] for variable in columns] for columns in plan.ends]
            terms: list[NamedPredicate] = [(plan.predicate, outer), (inner.predicate, inside)]
            yield renumbered(
                [*plan.inputs[:i], *inner.inputs, *plan.inputs[i + 1 :]],
                [*ends[:i], *([inside[v] for v in columns] for columns in inner.ends), *ends[i + 1 :]],
                [outer[variable] for variable in plan.output],
                plan.label,
                terms,
                plan.values,
            )


def split_pattern(plan: Plan) -> Iterator[Plan]:
    """`⋈_{Φ∧Ψ}(S₁, S₂, S₃) = ⋈_Φ(⋈_Ψ(S₁, S₂), S₃)`, if S₁ and S₂ share an end, and Φ and the output use no
    more than two of Ψ's vertices. By repetition, every tree of binary joins."""
    if not isinstance(plan, Pattern) or len(plan.inputs) < 3:
        return
    types = plan.variable_types
    for i, j in combinations(range(len(plan.inputs)), 2):
        inside = {*plan.ends[i], *plan.ends[j]}
        within = [term for term in conjuncts(plan.predicate) if {ref.name for ref in refs(term)} <= inside]
        across = [term for term in conjuncts(plan.predicate) if term not in within]
        rest = [k for k in range(len(plan.inputs)) if k not in (i, j)]
        seen = {variable for k in rest for variable in plan.ends[k]} | set(plan.output)
        seen |= {int(ref.name) for term in across for ref in refs(term)}
        shown = sorted(variable for variable in inside & seen if types[variable] is ValueType.VERTEX)
        if set(plan.ends[i][:2]) & set(plan.ends[j][:2]) and 1 <= len(shown) <= 2:
            # A single variable is returned twice: as a pair of equal vertices.
            values = sorted(variable for variable in inside & seen if types[variable] is not ValueType.VERTEX)
            returned = (shown[0], shown[-1], *values)
            parts = (plan.inputs[i], plan.inputs[j])
            part = pattern(
                parts,
                [plan.ends[i], plan.ends[j]],
                returned,
                "⋈".join(part.label for part in parts),
                conjunction(within),
                tuple(Property(f"value{number}", types[v]) for number, v in enumerate(values, start=1)),
            )
            yield merge_inputs(replace(plan, predicate=conjunction(across)), i, j, part, returned)


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
