"""Laws of WSCAN: it commutes with operators that do not change validity intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meander.algebra.nodes import Filter, Plan, Union, WScan
from meander.rewrite.trees import renamed_refs
from meander.syntax.values import SRC, TRG, Or, conjunction


def pushdown_filter_into_wscan(plan: Plan) -> Iterator[Plan]:
    """`σ_φ(𝒲_T(S)) = 𝒲_T(σ_φ(S))`: edges that fail the predicate are not stored. A value that is a column is
    there."""
    if isinstance(plan, Filter) and isinstance(plan.input, WScan):
        columns = dict(enumerate((SRC, TRG, *(value.name for value in plan.input.values))))
        pushed = renamed_refs(plan.predicate, columns)
        yield replace(plan.input, predicate=conjunction([plan.input.predicate, pushed]))


def merge_wscans(plan: Plan) -> Iterator[Plan]:
    """`𝒲_T(S_a) ∪^d 𝒲_T(S_b) = ∪^d(𝒲_T(S_a ∪ S_b))`, for one stream, window and predicate."""
    if not isinstance(plan, Union):
        return
    groups: dict[WScan, list[WScan]] = {}
    for scan in plan.inputs:
        if isinstance(scan, WScan) and scan.labels:
            groups.setdefault(replace(scan, labels=("",)), []).append(scan)
    for scans in groups.values():
        if len(scans) > 1:
            labels = tuple(sorted({label for scan in scans for label in scan.labels}))
            merged = [replace(scans[0], labels=labels) if part in scans else part for part in plan.inputs]
            yield Union(tuple(dict.fromkeys(merged)), plan.label)


def merge_scan_predicates(plan: Plan) -> Iterator[Plan]:
    """`𝒲_T(σ_φ(S_a)) ∪^d 𝒲_T(σ_ψ(S_a)) = ∪^d(𝒲_T(σ_{φ∨ψ}(S_a)))`: scans that differ by predicate alone are one, and
    without one of the predicates there is none."""
    if not isinstance(plan, Union):
        return
    groups: dict[WScan, list[WScan]] = {}
    for scan in plan.inputs:
        if isinstance(scan, WScan):
            groups.setdefault(replace(scan, predicate=None), []).append(scan)
    for every, scans in groups.items():
        if len(scans) > 1:
            predicates = [scan.predicate for scan in scans if scan.predicate is not None]
            merged = (
                replace(every, predicate=Or(tuple(predicates))) if len(predicates) == len(scans) else every
            )
            inputs = dict.fromkeys(merged if part in scans else part for part in plan.inputs)
            yield Union(tuple(inputs), plan.label)


def split_wscan(plan: Plan) -> Iterator[Plan]:
    """`𝒲_T(S_a ∪ S_b) = 𝒲_T(S_a) ∪^{a|b} 𝒲_T(S_b)`: each label's edges can then be shared."""
    if isinstance(plan, WScan) and len(plan.labels) > 1:
        yield Union(tuple(replace(plan, labels=(label,)) for label in plan.labels), plan.label)
