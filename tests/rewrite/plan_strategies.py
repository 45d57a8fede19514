"""Generated plans: any nesting of the five nodes, over few labels and few vertices, so that things meet.

A law looks at a node and its inputs, so a plan can be asked for by the kinds of both: the law then has something
to look at, and everything else is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

from hypothesis import strategies as st

from meander.algebra.automata import labels as labels_of
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.algebra.trees import walk
from meander.rewrite.trees import pattern, renamed_refs
from meander.syntax.query import Either, Inverse, Label, PathExpr, PathOrder, Repeat, Then
from meander.syntax.values import (
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Property,
    Ref,
    ValueType,
    conjunction,
    end_point,
    equals_vertex,
)
from plan_evaluator import scanned
from strategies import once_in, pick

VERTEX = ValueType.VERTEX
LOOP = Comparison("=", end_point(0), end_point(1))
VERTICES = ("u", "v", "w", "x")
BOUNDS = ((1, None), (0, None), (0, 1), (1, 1), (2, 3), (1, 3), (2, None), (0, 0), (2, 2))
SCANNED = (("a",), ("b",), ("c",), ("a", "b"))
ENDS = (
    (equals_vertex(0, "u"),),
    (equals_vertex(1, "u"),),
    (equals_vertex(1, "v"),),
    (LOOP,),
    (equals_vertex(0, "u"), equals_vertex(1, "v")),
    (equals_vertex(0, "u"), equals_vertex(1, "u")),
    (equals_vertex(0, "u"), equals_vertex(1, "v"), LOOP),
    (equals_vertex(0, "v"), LOOP),
    (equals_vertex(1, "u"), LOOP),
    (Comparison("!=", end_point(0), end_point(1)),),
    (Membership(end_point(0), (Const("u", VERTEX), Const("w", VERTEX))),),
)
KINDS = ("scan", "scan", "filter", "union", "pattern", "path", "path")


def draw_scan(draw: st.DrawFn) -> Plan:
    predicate = renamed_refs(draw_ends(draw), {0: "src", 1: "trg"}) if once_in(draw, 6) else None
    return WScan("s", pick(draw, SCANNED), 10, predicate=predicate)


def draw_ends(draw: st.DrawFn) -> Predicate:
    """A predicate on the ends of a tuple."""
    predicate = conjunction(pick(draw, ENDS))
    assert predicate is not None
    return predicate


def draw_plan(draw: st.DrawFn, kind: str = "any", inner: str = "any", depth: int = 2) -> Plan:
    """A plan whose root is of a kind, over an input of another kind."""
    if kind == "any":
        kind = pick(draw, KINDS)
    if kind == "scan" or depth == 0:
        return draw_scan(draw)
    inputs = [draw_plan(draw, inner, depth=depth - 1)]
    if kind == "filter":
        return Filter(inputs[0], draw_ends(draw))
    for _ in range(pick(draw, (1, 0, 2, 2))):
        inputs.insert(pick(draw, (0, 1)), draw_plan(draw, depth=depth - 1))
    match kind:
        case "union":
            return Union(tuple(inputs), draw_label(draw))
        case "pattern":
            return draw_pattern(draw, inputs)
        case _:
            return draw_path(draw, list(dict.fromkeys(inputs)))


def draw_label(draw: st.DrawFn) -> str:
    return pick(draw, ("D", "E"))


def draw_pattern(draw: st.DrawFn, inputs: list[Plan]) -> Pattern:
    """As a rule a chain from end to end, often with edges turned round, now and then a cycle or a loop."""
    ends = []
    for i in range(len(inputs)):
        pair = (pick(draw, range(4)), pick(draw, range(4))) if once_in(draw, 5) else (i, i + 1)
        ends.append(pair[::-1] if once_in(draw, 3) else pair)
    variables = sorted({variable for pair in ends for variable in pair})
    output = (variables[0], variables[-1])
    if once_in(draw, 5):
        output = (pick(draw, variables), pick(draw, variables))
    return pattern(inputs, ends, output, draw_label(draw))


def draw_expression(draw: st.DrawFn, numbers: Sequence[int], depth: int) -> PathExpr:
    kind = pick(draw, ("step", "then", "then", "either", "repeat", "repeat", "inverse")) if depth else "step"
    match kind:
        case "then" | "either":
            parts = tuple(draw_expression(draw, numbers, depth - 1) for _ in range(pick(draw, (2, 2, 3))))
            return Then(parts) if kind == "then" else Either(parts)
        case "repeat":
            return Repeat(draw_expression(draw, numbers, depth - 1), *pick(draw, BOUNDS))
        case "inverse":
            return Inverse(draw_expression(draw, numbers, depth - 1))
    return Label(str(pick(draw, numbers)))


def draw_path(draw: st.DrawFn, inputs: list[Plan], outer: str = "any") -> Path:
    """A path with an expression of a kind, which names every input.

    Where the kind has two parts, they are over different inputs if there are several: whose end points have the
    empty path is then another question for each.
    """
    expr = draw_naming(
        draw, range(len(inputs) - 1) if outer in TWO_PARTS and inputs[1:] else range(len(inputs))
    )
    other = draw_naming(draw, [len(inputs) - 1])
    match outer:
        case "any" if once_in(draw, 2):
            expr = Repeat(expr, 1, None)
        case "alternation":
            expr = Either((expr, other))
        case "concatenation":
            expr = Then((expr, other))
        case "empty concatenation":
            expr = Then((Repeat(expr, 0, 1), Repeat(other, 0, pick(draw, (None, 1)))))
        case "closure of alternation":
            expr = Repeat(Either((expr, other)), pick(draw, (0, 1)), None)
        case "closures":
            expr = Repeat(Then((Repeat(expr, pick(draw, (0, 1)), None), other)), 1, None)
        case "empty":
            expr = Repeat(expr, 0, pick(draw, (None, 1, 2)))
        case "marks":
            expr = Repeat(Repeat(expr, *pick(draw, BOUNDS[:3])), *pick(draw, BOUNDS[:3]))
    return Path(tuple(inputs), expr, draw_label(draw))


TWO_PARTS = ("alternation", "concatenation", "empty concatenation", "closure of alternation", "closures")


def draw_naming(draw: st.DrawFn, numbers: Sequence[int]) -> PathExpr:
    """An expression that names all of the given inputs and no other."""
    expr = draw_expression(draw, numbers, pick(draw, (0, 1, 2, 3)))
    named = {label.name for label in labels_of(expr)}
    for missing in sorted({str(i) for i in numbers} - named):
        expr = pick(draw, (Then, Either))((expr, Label(missing)))
    return expr


# ---------------------------------------------------------------------------------------------------------
# Values

VALUES = tuple(Property(name, ValueType.INT) for name in ("k", "m"))
COLUMNS = (VALUES, VALUES[1:], VALUES[:1])


def draw_comparison(draw: st.DrawFn, names: Sequence[str | int]) -> Predicate:
    """A term over some of the named numbers."""
    refs = [Ref(pick(draw, names), ValueType.INT) for _ in range(2)]
    const = Const(pick(draw, (1, 2, 3)), ValueType.INT)
    op = pick(draw, ("<", "<=", ">", ">=", "=", "!="))
    match pick(draw, ("const", "refs", "refs", "sum", "or", "not", "in")):
        case "const":
            return Comparison(op, refs[0], const)
        case "refs":
            return Comparison(op, *refs)
        case "sum":
            return Comparison(op, Arithmetic("+", refs[0], const), refs[1])
        case "or":
            return Or((Comparison(op, refs[0], const), draw_comparison(draw, names)))
        case "not":
            return Not(Comparison(op, *refs))
    return Membership(refs[0], (const, Const(2, ValueType.INT)))


def draw_value_scan(draw: st.DrawFn, values: tuple[Property, ...]) -> Plan:
    predicate = draw_comparison(draw, ("k", "m")) if once_in(draw, 4) else None
    return WScan("s", pick(draw, SCANNED), 10, predicate=predicate, values=values, named=VALUES)


def draw_valued(draw: st.DrawFn, kind: str, depth: int = 1) -> Plan:
    """A plan whose root is of a kind and whose tuples have values."""
    values = pick(draw, COLUMNS)
    match kind:
        case "filter":
            inner = draw_valued(
                draw, pick(draw, ("scan", "union", "pattern")) if depth else "scan", depth - 1
            )
            terms = [draw_comparison(draw, range(2, inner.width))] if inner.values else []
            terms += [draw_ends(draw)] if not terms or once_in(draw, 2) else []
            predicate = conjunction(terms)
            assert predicate is not None
            return Filter(inner, predicate)
        case "union":
            return Union(tuple(draw_value_scan(draw, values) for _ in range(2)), draw_label(draw))
        case "pattern":
            return draw_value_pattern(draw, depth=depth)
    return draw_value_scan(draw, values)


def draw_value_pattern(draw: st.DrawFn, inner: str = "any", depth: int = 1) -> Pattern:
    """A chain, over inputs some of which have values, that compares and returns some of these."""
    kinds = [
        inner
        if inner != "any"
        else pick(draw, ("scan", "filter", "union", "pattern") if depth else ("scan",))
    ]
    inputs = [draw_valued(draw, kinds[0], depth - 1)]
    for _ in range(pick(draw, (1, 0, 2))):
        other = draw_valued(draw, "scan") if once_in(draw, 2) else draw_scan(draw)
        inputs.insert(pick(draw, (0, 1)), other)
    ends = []
    for number, plan in enumerate(inputs):
        pair = (number, number + 1)
        shared = [pick(draw, (10, 11, 12, 13, 14)) for _ in plan.values]
        ends.append((*(pair[::-1] if once_in(draw, 3) else pair), *shared))
    values = sorted({variable for columns in ends for variable in columns[2:]})
    returned = [variable for variable in values if once_in(draw, 3)]
    number_of_terms = pick(draw, (1, 0, 2)) if values else 0
    terms: list[Predicate | None] = [draw_comparison(draw, values) for _ in range(number_of_terms)]
    if once_in(draw, 3):
        terms.append(Comparison(pick(draw, ("=", "!=")), end_point(0), end_point(len(inputs))))
    return pattern(
        inputs,
        ends,
        [0, len(inputs), *returned],
        draw_label(draw),
        conjunction(terms),
        tuple(Property(f"v{variable}", ValueType.INT) for variable in returned),
    )


def valued(kind: str) -> st.SearchStrategy[Plan]:
    return _drawn(lambda draw: draw_valued(draw, kind))


def value_patterns(inner: str = "any") -> st.SearchStrategy[Plan]:
    return _drawn(lambda draw: draw_value_pattern(draw, inner))


def _valued_unions(draw: st.DrawFn) -> Plan:
    plan = draw_valued(draw, "pattern")
    assert isinstance(plan, Pattern)
    at = pick(draw, range(len(plan.inputs)))
    other = draw_value_scan(draw, plan.inputs[at].values) if plan.inputs[at].values else draw_scan(draw)
    inputs = (*plan.inputs[:at], other, *plan.inputs[at + 1 :])
    return Union((plan, replace(plan, inputs=inputs)), draw_label(draw))


def _unions_of_scans(draw: st.DrawFn) -> Plan:
    """A scan with several predicates, perhaps none, and perhaps another scan."""
    scan = draw_value_scan(draw, pick(draw, ((), VALUES[:1])))
    parts = [replace(scan, predicate=draw_comparison(draw, ("k", "m"))) for _ in range(2)]
    others = [draw_value_scan(draw, scan.values)] if draw(st.booleans()) else []
    return Union((scan, *parts, *others), draw_label(draw))


def ordered_paths(outer: str = "any") -> st.SearchStrategy[Plan]:
    """Paths in order of time over edges."""
    time = Property("ts", ValueType.TIME)
    orders = (PathOrder.ASCENDING, PathOrder.STRICTLY_ASCENDING)

    def timed(scan: Plan) -> Plan:
        assert isinstance(scan, WScan)
        return replace(scan, values=(time,), named=VALUES)

    def draw_one(draw: st.DrawFn) -> Plan:
        inputs = dict.fromkeys(draw_scan(draw) for _ in range(pick(draw, (1, 2, 3))))
        plan = draw_path(draw, list(inputs), outer)
        return replace(plan, inputs=tuple(map(timed, plan.inputs)), order=pick(draw, orders))

    return _drawn(draw_one)


def filtered_paths(paths: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
    return st.composite(lambda draw: Filter(draw(paths), draw_ends(draw)))()


# ---------------------------------------------------------------------------------------------------------
# Snapshots

Snapshot = dict[tuple[str, str], set[tuple[Any, ...]]]


def make_snapshots(plan: Plan, seed: int, count: int) -> list[Snapshot]:
    """Snapshots of what a plan reads, sparse ones and dense ones. Seeded rather than drawn edge by edge, which is
    much faster; little is lost, since a failure shows its plan. Edges have properties, some of them missing, if the
    plan reads any."""
    random = Random(seed)
    pairs = list(product(VERTICES, repeat=2))
    has_values = any(isinstance(node, WScan) and node.named for node in walk(plan))

    def edge(pair: tuple[str, str]) -> tuple[Any, ...]:
        if not has_values:
            return pair
        found = ((name, random.choice((1, 1, 2, 3, None))) for name in ("k", "m"))
        return *pair, (
            ("ts", random.randrange(4)),
            *((name, value) for name, value in found if value is not None),
        )

    return [
        {
            key: {edge(pair) for pair in random.sample(pairs, random.choice((0, 1, 2, 2, 3, 5)))}
            for key in sorted(scanned(plan))
        }
        for _ in range(count)
    ]


# ---------------------------------------------------------------------------------------------------------
# What a law may look at


def plans(kind: str = "any", inner: str = "any", depth: int = 2) -> st.SearchStrategy[Plan]:
    return _drawn(lambda draw: draw_plan(draw, kind, inner, depth))


def paths(outer: str = "any") -> st.SearchStrategy[Plan]:
    """Paths over edges, with an expression of a kind."""

    def draw_one(draw: st.DrawFn) -> Plan:
        inputs = dict.fromkeys(draw_scan(draw) for _ in range(pick(draw, (1, 2, 3))))
        return draw_path(draw, list(inputs), outer)

    return _drawn(draw_one)


def _drawn(draw_one: Callable[[st.DrawFn], Plan]) -> st.SearchStrategy[Plan]:
    return st.composite(draw_one)()


def wide_patterns(inner: str = "any") -> st.SearchStrategy[Plan]:
    """Patterns that return any number of variables, as an Answer does."""

    def draw_one(draw: st.DrawFn) -> Plan:
        plan = draw_plan(draw, "pattern", inner)
        assert isinstance(plan, Pattern)
        return replace(
            plan, output=tuple(pick(draw, range(plan.variables)) for _ in range(pick(draw, (2, 3, 1, 0))))
        )

    return _drawn(draw_one)


def _trivial_path(draw: st.DrawFn) -> Plan:
    return Path((draw_plan(draw, depth=1),), Label("0"), draw_label(draw))


def _repeated_input(draw: st.DrawFn) -> Plan:
    plan = draw_plan(draw, "pattern")
    assert isinstance(plan, Pattern)
    again = pick(draw, range(len(plan.inputs)))
    return pattern(
        [*plan.inputs, plan.inputs[again]], [*plan.ends, plan.ends[again]], plan.output, plan.label
    )


def _two_labels_for_one_thing(draw: st.DrawFn) -> Plan:
    one = draw_plan(draw, pick(draw, ("path", "pattern")), depth=1)
    assert isinstance(one, Path | Pattern)
    other = replace(one, label=one.label + "2")
    match pick(draw, ("union", "pattern", "closed")):
        case "union":
            return Union((one, draw_plan(draw, depth=1), other), draw_label(draw))
        case "pattern":
            return draw_pattern(draw, [other, draw_plan(draw, depth=1), one])
    return draw_pattern(draw, [one, Path((other,), Repeat(Label("0"), 1, None), draw_label(draw))])


def _similar_patterns(draw: st.DrawFn) -> Plan:
    one = draw_plan(draw, "pattern", depth=1)
    assert isinstance(one, Pattern)
    place = pick(draw, range(len(one.inputs)))
    inputs = (*one.inputs[:place], draw_plan(draw, depth=1), *one.inputs[place + 1 :])
    return Union((one, draw_plan(draw, depth=1), replace(one, inputs=inputs)), draw_label(draw))


SHAPES: dict[str, st.SearchStrategy[Plan]] = {
    "simplify_path": paths() | paths("marks") | ordered_paths("marks"),
    "eliminate_trivial_path": _drawn(_trivial_path),
    "eliminate_trivial_pattern": wide_patterns() | plans("pattern") | value_patterns(),
    "eliminate_renaming": wide_patterns("union") | value_patterns("union"),
    "flatten_union": plans("union", "union"),
    "eliminate_trivial_union": plans("union", "path"),
    "merge_filters": plans("filter", "filter") | filtered_paths(valued("filter")),
    "pushdown_filter_into_union": plans("filter", "union") | valued("filter"),
    "pushdown_filter_into_pattern": plans("filter", "pattern") | valued("filter"),
    "pushdown_filter_into_path": plans("filter", "path") | filtered_paths(ordered_paths("concatenation")),
    "pushdown_filter_into_wscan": plans("filter", "scan") | valued("filter"),
    "pushdown_comparison_into_inputs": value_patterns(),
    "eliminate_unused_values": value_patterns() | value_patterns("union") | value_patterns("filter"),
    "share_common_subplans": _drawn(_two_labels_for_one_thing),
    "eliminate_duplicate_inputs": _drawn(_repeated_input),
    "unnest_pattern": plans("path", "pattern"),
    "unnest_path": plans("path", "path"),
    "unnest_union": plans("path", "union"),
    "nest_concatenation": paths("closures") | paths("concatenation") | paths("empty concatenation") | paths(),
    "split_concatenation": paths("concatenation")
    | paths("empty concatenation")
    | plans("path")
    | ordered_paths("concatenation"),
    "split_alternation": paths("alternation") | plans("path") | ordered_paths("alternation"),
    "nest_alternation": paths("closure of alternation") | paths() | ordered_paths("closure of alternation"),
    "nest_closure": paths("closures") | ordered_paths("closures"),
    "fold_concatenation": wide_patterns("path") | value_patterns(),
    "fold_alternation": plans("union", "path"),
    "split_empty_word": paths("empty") | plans("path") | ordered_paths("empty"),
    "reverse_bound_target": plans("filter", "path") | filtered_paths(ordered_paths()),
    "merge_patterns": wide_patterns("pattern") | value_patterns("pattern"),
    "split_pattern": wide_patterns() | value_patterns(),
    "factor_union": _drawn(_similar_patterns) | _drawn(_valued_unions),
    "distribute_pattern": wide_patterns("union") | value_patterns("union"),
    "merge_wscans": plans("union", "scan", depth=1),
    "split_wscan": plans() | valued("union"),
    "merge_scan_predicates": _drawn(_unions_of_scans) | plans("union", "scan", depth=1),
}
