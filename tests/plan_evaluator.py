"""What a logical plan means on one snapshot, said as plainly as possible.

This is the measure for translation and rewrites: it reads the nodes' fields and nothing else of `src`, and
is written to be checked by eye (sets, nested loops, fixpoints), not to be fast. A snapshot maps
`(stream, label)` to the set of edges valid at one instant; windows therefore play no part. An edge is a pair `(u,
v)`, or `(u, v, ((name, value), …))` if it has properties, of which `ts` is its time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from hypothesis import strategies as st

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.syntax.query import Either, Inverse, Label, PathExpr, PathOrder, Repeat, Then
from meander.syntax.values import (
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    ValueType,
)

Vertex = str | int
Pairs = set[tuple[Vertex, Vertex]]
Rows = set[tuple[Any, ...]]
Snapshot = Mapping[tuple[str, str], Rows]


def evaluate(plan: Plan, snapshot: Snapshot) -> Rows:
    """The answers of `plan` on `snapshot`: tuples of the plan's vertices, then its values."""
    match plan:
        case WScan():
            labels = plan.labels or [label for stream, label in snapshot if stream == plan.stream]
            return {
                row for label in labels for row in scan(plan, label, snapshot.get((plan.stream, label), ()))
            }
        case Filter(inner, predicate):
            return {
                row for row in evaluate(inner, snapshot) if truth(predicate, dict(enumerate(row))) is True
            }
        case Union(inputs, _):
            return set().union(*(evaluate(inner, snapshot) for inner in inputs))
        case Pattern(inputs, ends, output, _, predicate):
            return match_pattern([evaluate(inner, snapshot) for inner in inputs], ends, output, predicate)
        case Path(inputs, expr, _, _, PathOrder.ANY):
            return match_path([evaluate(inner, snapshot) for inner in inputs], expr)
        case Path(inputs, expr, _, _, order):
            return match_ordered_path([evaluate(inner, snapshot) for inner in inputs], expr, order)
    raise AssertionError(f"no such node: {plan!r}")


def scan(plan: WScan, label: str, edges: Iterable[tuple[Any, ...]]) -> Rows:
    """The columns of the edges that satisfy the scan's predicate; an edge without one of them is left out."""
    rows = set()
    for src, trg, *properties in edges:
        values = {"src": src, "trg": trg, "label": label} | dict(*properties)
        columns = tuple(values.get(value.name) for value in plan.values)
        if None not in columns and (plan.predicate is None or truth(plan.predicate, values) is True):
            rows.add((src, trg, *columns))
    return rows


COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SUMS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def truth(predicate: Predicate, values: Mapping[Any, Any]) -> bool | None:
    """True, false, or None for unknown."""
    match predicate:
        case And(parts):
            truths = {truth(part, values) for part in parts}
            return False if False in truths else None if None in truths else True
        case Or(parts):
            truths = {truth(part, values) for part in parts}
            return True if True in truths else None if None in truths else False
        case Not(part):
            inner = truth(part, values)
            return None if inner is None else not inner
        case Membership(operand, options):
            number = scalar(operand, values)
            return None if number is None else any(same(number, option) for option in options)
        case Comparison("=", Const() as constant, other) | Comparison("=", other, Const() as constant):
            found = scalar(other, values)
            return None if found is None else same(found, constant)
        case Comparison("!=", Const() as constant, other) | Comparison("!=", other, Const() as constant):
            found = scalar(other, values)
            return None if found is None else not same(found, constant)
        case Comparison(op, left, right):
            sides = (scalar(left, values), scalar(right, values))
            return None if None in sides else COMPARISONS[op](*sides)
    raise AssertionError(f"no such predicate: {predicate!r}")


def same(value: Any, constant: Const) -> bool:
    """A vertex that a query names by a number is also the one whose name has these digits."""
    if constant.type is ValueType.VERTEX and isinstance(constant.value, int):
        return value in (constant.value, str(constant.value))
    return bool(value == constant.value)


def scalar(node: Scalar, values: Mapping[Any, Any]) -> Any:
    match node:
        case Ref(name):
            return values.get(name)
        case Const(value):
            return value
        case Arithmetic(op, left, right):
            sides = (scalar(left, values), scalar(right, values))
            return None if None in sides or (op == "/" and sides[1] == 0) else SUMS[op](*sides)
    raise AssertionError(f"no such scalar: {node!r}")


def match_pattern(
    relations: list[Rows],
    ends: tuple[tuple[int, ...], ...],
    output: tuple[int, ...],
    predicate: Predicate | None = None,
) -> Rows:
    """Extend every partial binding by every row of the next relation, and keep what does not clash."""
    bindings: list[dict[int, Any]] = [{}]
    for relation, variables in zip(relations, ends, strict=True):
        extended = []
        for binding, row in product(bindings, relation):
            both = dict(binding)
            if all(
                both.setdefault(variable, value) == value
                for variable, value in zip(variables, row, strict=True)
            ):
                extended.append(both)
        bindings = extended
    matches = [binding for binding in bindings if predicate is None or truth(predicate, binding) is True]
    return {tuple(binding[variable] for variable in output) for binding in matches}


def match_ordered_path(relations: list[Rows], expr: PathExpr, order: PathOrder) -> Pairs:
    """The pairs joined by a word of `expr` whose edges have times in order: words as sets of (src, trg, first time,
    last time), with times None for the empty word."""
    vertices = {vertex for relation in relations for row in relation for vertex in row[:2]}
    empty = {(vertex, vertex, None, None) for vertex in vertices}
    follows = operator.lt if order is PathOrder.STRICTLY_ASCENDING else operator.le

    def then(first: Rows, second: Rows) -> Rows:
        return {
            (u, w, begin if begin is not None else begin2, end2 if end2 is not None else end)
            for u, v, begin, end in first
            for v2, w, begin2, end2 in second
            if v == v2 and (end is None or begin2 is None or follows(end, begin2))
        }

    def words(e: PathExpr, backwards: bool) -> Rows:
        match e:
            case Label(name):
                rows = relations[int(name)]
                return {(v, u, t, t) for u, v, t in rows} if backwards else {(u, v, t, t) for u, v, t in rows}
            case Inverse(inner):
                return words(inner, not backwards)
            case Then(parts):
                result = empty
                for part in parts[::-1] if backwards else parts:
                    result = then(result, words(part, backwards))
                return result
            case Either(parts):
                return set().union(*(words(part, backwards) for part in parts))
            case Repeat(inner, low, high):
                once = words(inner, backwards)
                reached = empty
                for _ in range(low):
                    reached = then(reached, once)
                rounds = 0
                while high is None or low + rounds < high:
                    further = reached | then(reached, once)
                    if further == reached:
                        break
                    reached = further
                    rounds += 1
                return reached
        raise AssertionError(f"no such expression: {e!r}")

    return {(u, v) for u, v, _, _ in words(expr, False)}


def match_path(relations: list[Pairs], expr: PathExpr) -> Pairs:
    """The pairs joined by a word of `expr`; the empty word joins each input edge's ends to themselves."""
    vertices = {vertex for relation in relations for pair in relation for vertex in pair}
    empty = {(vertex, vertex) for vertex in vertices}

    def pairs(e: PathExpr) -> Pairs:
        match e:
            case Label(name):
                return set(relations[int(name)])
            case Inverse(inner):
                return {(v, u) for u, v in pairs(inner)}
            case Then(parts):
                return chain([pairs(part) for part in parts], empty)
            case Either(parts):
                return set().union(*(pairs(part) for part in parts))
            case Repeat(inner, low, high):
                once = pairs(inner)
                reached = chain([once] * low, empty)
                rounds = 0
                while high is None or low + rounds < high:
                    further = reached | compose(reached, once)
                    if further == reached:
                        break
                    reached = further
                    rounds += 1
                return reached
        raise AssertionError(f"no such expression: {e!r}")

    return pairs(expr)


def chain(relations: Iterable[Pairs], empty: Pairs) -> Pairs:
    result = empty
    for relation in relations:
        result = compose(result, relation)
    return result


def compose(first: Pairs, second: Pairs) -> Pairs:
    return {(u, w) for u, v in first for v2, w in second if v == v2}


def scanned(plan: Plan) -> set[tuple[str, str]]:
    """All `(stream, label)` that a plan reads."""
    if isinstance(plan, WScan):
        return {(plan.stream, label) for label in plan.labels}
    return set().union(*(scanned(inner) for inner in plan.inputs))


def snapshots(
    keys: Iterable[tuple[str, str]], vertices: tuple[Vertex, ...] = ("u", "v", "w", "x", "y"), edges: int = 6
) -> st.SearchStrategy[dict[tuple[str, str], Pairs]]:
    """Snapshots with up to `edges` edges, loops included, for each `(stream, label)` of `keys`."""
    vertex = st.sampled_from(vertices)
    return st.fixed_dictionaries(
        {key: st.sets(st.tuples(vertex, vertex), max_size=edges) for key in sorted(set(keys))}
    )


def plan_snapshots(
    plan: Plan, vertices: tuple[Vertex, ...] = ("u", "v", "w", "x", "y"), edges: int = 6
) -> st.SearchStrategy[dict[tuple[str, str], Pairs]]:
    """Snapshots of what `plan` reads."""
    return snapshots(scanned(plan), vertices, edges)
