"""Laws of comparisons between the columns of a PATTERN, and of the columns that nothing needs.

A comparison between two inputs is checked in the join. One that a single input can decide is decided there, before
the join; and a value that is then read by nobody is not a column any more, so that edges that differ in it alone are
one tuple.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from meander.algebra.nodes import Filter, Pattern, Plan, Union, WScan
from meander.rewrite.trees import filtered, pattern, renamed_refs
from meander.syntax.values import (
    LABEL,
    Comparison,
    Predicate,
    Ref,
    conjunction,
    conjuncts,
    equal_refs,
    is_present,
    refs,
    rejects_missing,
)


def pushdown_comparison_into_inputs(plan: Plan) -> Iterator[Plan]:
    """`⋈_{Φ∧φ}(S₁, S₂, …) = ⋈_Φ(σ_φ(S₁), S₂, …)` for a term φ over columns of one input, at each input that has all
    of them; and `⋈_{Φ∧x=y}` is a shared variable."""
    if isinstance(plan, Pattern) and plan.predicate is not None:
        pushed = restricted(plan)
        if pushed != plan:
            yield pushed


def restricted(plan: Pattern) -> Pattern:
    """The pattern with equal variables unified and each term of its predicate at every input that can decide it."""
    plan = _unified(plan)
    terms: list[list[Predicate]] = [[] for _ in plan.inputs]
    rest: list[Predicate] = []
    for term in conjuncts(plan.predicate):
        if isinstance(term, Comparison) and term.op == "=" and term.left == term.right:
            continue  # what a pattern binds is never missing
        used = {ref.name for ref in refs(term)}
        able = [i for i, ends in enumerate(plan.ends) if used <= set(ends)]
        for i in able:
            columns = {variable: column for column, variable in reversed(list(enumerate(plan.ends[i])))}
            terms[i].append(renamed_refs(term, columns))
        if not able:
            rest.append(term)
    inputs = [filtered(inner, pushed) for inner, pushed in zip(plan.inputs, terms, strict=True)]
    return pattern(inputs, plan.ends, plan.output, plan.label, conjunction(rest), plan.values)


def _unified(plan: Pattern) -> Pattern:
    """The pattern with one variable for those that a term makes equal."""
    for term in conjuncts(plan.predicate):
        pair = equal_refs(term)
        if pair is not None:
            left, right = (ref.name for ref in pair)
            same: dict[str | int, str | int] = {variable: variable for variable in range(plan.variables)}
            same[max(int(left), int(right))] = min(int(left), int(right))
            rest = [renamed_refs(other, same) for other in conjuncts(plan.predicate) if other != term]
            return _unified(
                pattern(
                    plan.inputs,
                    [[same[variable] for variable in ends] for ends in plan.ends],
                    [same[variable] for variable in plan.output],
                    plan.label,
                    conjunction(rest),
                    plan.values,
                )
            )
    return plan


def eliminate_unused_values(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ^{X}(S(src, trg, v), …) = ⋈_Φ^{X}(π_{src,trg}(S), …)`, if neither Φ nor X names v: it is no column of S
    then, and a scan that must have a value only checks that it has one."""
    if not isinstance(plan, Pattern):
        return
    uses = Counter(variable for ends in plan.ends for variable in ends)
    uses.update(plan.output)
    uses.update(int(ref.name) for ref in refs(plan.predicate))
    inputs, ends = list(plan.inputs), list(plan.ends)
    for i, columns in enumerate(plan.ends):
        for column in reversed(range(2, len(columns))):
            smaller = without_column(inputs[i], column) if uses[columns[column]] == 1 else None
            if smaller is not None:
                inputs[i] = smaller
                ends[i] = ends[i][:column] + ends[i][column + 1 :]
    if ends != list(plan.ends):
        yield pattern(inputs, ends, plan.output, plan.label, plan.predicate, plan.values)


def without_column(plan: Plan, column: int) -> Plan | None:
    """The same tuples without one of their values; None if the plan needs it."""
    match plan:
        case WScan():
            value = plan.values[column - 2]
            if value.name == LABEL:
                return None
            present = None
            if not rejects_missing(plan.predicate, value.name):
                present = is_present(Ref(value.name, value.type))
            return replace(
                plan,
                values=tuple(other for other in plan.values if other != value),
                predicate=conjunction([plan.predicate, present]),
            )
        case Filter(inner, predicate):
            used = {int(ref.name) for ref in refs(predicate)}
            smaller = without_column(inner, column) if column not in used else None
            if smaller is None:
                return None
            return Filter(smaller, renamed_refs(predicate, {old: old - (old > column) for old in used}))
        case Union(inputs, label):
            parts = [without_column(inner, column) for inner in inputs]
            present_parts = [part for part in parts if part is not None]
            return Union(tuple(dict.fromkeys(present_parts)), label) if None not in parts else None
        case Pattern(output=output):
            return replace(
                plan,
                output=output[:column] + output[column + 1 :],
                values=plan.values[: column - 2] + plan.values[column - 1 :],
            )
    return None
