"""Plans by shares: what one of N cells computes of a query.

A cell owns the vertices whose hash is its number, and answers for them alone: those that stand at one chosen
position of an answer. So the cells' answers are disjoint, and together they are all. A share of a plan is a plan:

- A share of a WSCAN by its source (target) reads the edges whose source (target) is owned. These edges are a stream
  of their own, `stream/src` or `stream/trg`, which each cell makes for itself from the edges that all cells get.
- A share of a PATH by its root: `e` is the union of `s/r` over the steps `s` that a path can begin with, and each
  first step reads the share of its input. Later steps read all of it. Where `e` accepts the empty word, the owned
  vertices of all inputs are joined to themselves.
- A share of a PATTERN by a variable: the inputs that have it read their shares, the others everything.

What is read in full is computed in full in every cell. A plan without a share by any position (a PATH by its
target, say) is computed in full as well, and its answers are sorted out at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.edges import Array, Edges, Text
from meander.kernels.interning import hash_names
from meander.kernels.spans import wrapping
from meander.physical.plan import QueryPlan
from meander.rewrite import trees
from meander.rewrite.expressions import either, is_step, repeat, then, tidy
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then

SIDES = ("src", "trg")
MARK = "/"
MIX = np.uint64(0x9E3779B97F4A7C15)


def share_queries(plans: list[QueryPlan]) -> tuple[list[QueryPlan], frozenset[tuple[str, str]]]:
    """The plans of a share of each result, and those results (query, head) that are computed in full."""
    shared = []
    in_full = set()
    for one in plans:
        found = share_result(one.plan)
        if found is None:
            in_full.add((one.query, one.head))
        shared.append(one if found is None else replace(one, plan=found))
    return shared, frozenset(in_full)


def share_result(plan: Plan) -> Plan | None:
    """A share of a plan by the position of its answers that leaves the least to be read in full."""
    shares = [share for position in range(plan.arity) if (share := share_by(plan, position)) is not None]
    return max(shares, key=shared_scans, default=None)


def shared_scans(plan: Plan) -> int:
    """How many distinct scans of a plan read a share, less those that read everything."""
    scans = {node for node in _nodes(plan) if isinstance(node, WScan)}
    return sum(1 if MARK in scan.stream else -1 for scan in scans)


def share_by(plan: Plan, position: int) -> Plan | None:
    """The tuples of a plan whose vertex at a position is owned, or None where nothing less than all gives them."""
    match plan:
        case WScan():
            return replace(plan, stream=f"{plan.stream}{MARK}{SIDES[position]}")
        case Filter():
            inner = share_by(plan.input, position)
            return None if inner is None else Filter(inner, plan.condition)
        case Union():
            parts = [share_by(part, position) for part in plan.inputs]
            kept = tuple(part for part in parts if part is not None)
            return Union(kept, plan.label) if len(kept) == len(parts) else None
        case Pattern():
            return _share_pattern(plan, plan.output[position])
        case Path():
            return _share_path(plan) if position == 0 else None


def _share_pattern(plan: Pattern, variable: int) -> Plan | None:
    inputs = list(plan.inputs)
    found = False
    for at, ends in enumerate(plan.ends):
        for side, end in enumerate(ends):
            share = share_by(inputs[at], side) if end == variable and inputs[at] is plan.inputs[at] else None
            if share is not None:
                inputs[at] = share
                found = True
    return replace(plan, inputs=tuple(inputs)) if found else None


def _share_path(plan: Path) -> Plan | None:
    inputs = list(plan.inputs)
    words: list[PathExpr] = []
    expr = tidy(plan.expr)
    for step, rest in first_steps(expr):
        label = step.expr if isinstance(step, Inverse) else step
        assert isinstance(label, Label)
        share = share_by(plan.inputs[int(label.name)], 1 if isinstance(step, Inverse) else 0)
        if share is None:
            return None
        inputs.append(share)
        first: PathExpr = Label(str(len(inputs) - 1))
        words.append(then([Inverse(first) if isinstance(step, Inverse) else first, *rest]))
    if not words:
        return None
    parts: list[Plan] = [trees.path(inputs, either(words), plan.label)]
    if accepts_empty(expr):
        for source in plan.inputs:
            for side in range(2):
                share = share_by(source, side)
                if share is None:
                    return None
                parts.append(Pattern((share,), ((0, 1),), (side, side), plan.label))
    return parts[0] if len(parts) == 1 else Union(tuple(dict.fromkeys(parts)), plan.label)


def accepts_empty(expr: PathExpr) -> bool:
    match expr:
        case Then(parts):
            return all(map(accepts_empty, parts))
        case Either(parts):
            return any(map(accepts_empty, parts))
        case Repeat(inner, low, _):
            return low == 0 or accepts_empty(inner)
    return False


def first_steps(expr: PathExpr) -> Iterator[tuple[PathExpr, list[PathExpr]]]:
    """A tidy expression as steps that a path can begin with, each with what comes after it in sequence."""
    if is_step(expr):
        yield expr, []
        return
    match expr:
        case Then(parts):
            for at, part in enumerate(parts):
                for step, rest in first_steps(part):
                    yield step, [*rest, *parts[at + 1 :]]
                if not accepts_empty(part):
                    return
        case Either(parts):
            for part in parts:
                yield from first_steps(part)
        case Repeat(inner, low, high) if high != 0:
            less = None if high is None else high - 1
            again = [] if less == 0 else [repeat(inner, max(low - 1, 0), less)]
            for step, rest in first_steps(inner):
                yield step, [*rest, *again]


def owned(text: Text, cell: int, cells: int) -> Array:
    """Which of the names are of vertices that a cell owns."""
    hashes = np.empty(text.rows, np.uint64)
    with wrapping():
        hash_names(*text, hashes)
    # The tables of a cell are indexed by the hash as it is: mixed once more, or a cell would fill few of its slots.
    mask: Array = (hashes * MIX >> np.uint64(32)) % np.uint64(cells) == cell
    return mask


def own_answers(answers: Answers, cell: int, cells: int) -> Answers:
    """Those of all answers that a cell owns by their first vertex; one of no vertices is the first cell's."""
    if not answers.vertices:
        return take_answers(answers, np.full(answers.rows, cell == 0))
    return take_answers(answers, owned(answers.vertices[0], cell, cells))


def with_shares(
    edges: Mapping[str, Edges], streams: tuple[str, ...], cell: int, cells: int
) -> dict[str, Edges]:
    """The edges of the streams that a plan reads, made from those of the streams that they are shares of."""
    made = {}
    for stream in streams:
        base, _, side = stream.partition(MARK)
        if base in edges:
            whole = edges[base]
            made[stream] = whole.take(owned(getattr(whole, side), cell, cells)) if side else whole
    return made


def _nodes(plan: Plan) -> Iterator[Plan]:
    seen = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending += node.inputs
