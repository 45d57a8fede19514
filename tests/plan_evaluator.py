"""What a logical plan means on one snapshot, said as plainly as possible.

This is the measure for translation and rewrites: it reads the nodes' fields and nothing else of `src`, and
is written to be checked by eye (sets, nested loops, fixpoints), not to be fast. A snapshot maps
`(stream, label)` to the set of edges `(u, v)` valid at one instant; windows therefore play no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from hypothesis import strategies as st

from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Union, WScan
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then

Vertex = str | int
Pairs = set[tuple[Vertex, Vertex]]
Snapshot = Mapping[tuple[str, str], Pairs]


def evaluate(plan: Plan, snapshot: Snapshot) -> set[tuple[Vertex, ...]]:
    """The answers of `plan` on `snapshot`, as tuples of the plan's arity."""
    match plan:
        case WScan(stream, labels, _, _, condition):
            edges = set().union(*(snapshot.get((stream, label), set()) for label in labels))
            return {pair for pair in edges if holds(condition, pair)}
        case Filter(inner, condition):
            return {pair for pair in evaluate(inner, snapshot) if holds(condition, pair)}
        case Union(inputs, _):
            return set().union(*(evaluate(inner, snapshot) for inner in inputs))
        case Pattern(inputs, ends, output, _):
            return match_pattern([evaluate(inner, snapshot) for inner in inputs], ends, output)
        case Path(inputs, expr, _):
            return match_path([evaluate(inner, snapshot) for inner in inputs], expr)
    raise AssertionError(f"no such node: {plan!r}")


def holds(condition: Condition, pair: tuple[Vertex, Vertex]) -> bool:
    src, trg = pair
    return (
        (condition.src is None or src == condition.src)
        and (condition.trg is None or trg == condition.trg)
        and (not condition.loop or src == trg)
    )


def match_pattern(
    relations: list[Pairs], ends: tuple[tuple[int, int], ...], output: tuple[int, ...]
) -> set[tuple[Vertex, ...]]:
    """Extend every partial binding by every pair of the next relation, and keep what does not clash."""
    bindings: list[dict[int, Vertex]] = [{}]
    for relation, (src, trg) in zip(relations, ends, strict=True):
        extended = []
        for binding, (u, v) in product(bindings, relation):
            both = dict(binding)
            if both.setdefault(src, u) == u and both.setdefault(trg, v) == v:
                extended.append(both)
        bindings = extended
    return {tuple(binding[variable] for variable in output) for binding in bindings}


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
