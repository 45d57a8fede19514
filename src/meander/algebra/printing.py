"""A plan as text: in the paper's notation, or as a tree for the terminal.

Both name a pattern's variables by their first column: `trg1` is the target of the first input, `amount2` a value of
the second. A path's
expression shows the labels of its inputs. If a plan reads several streams, scanned labels are qualified by the
name of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from meander.algebra.nodes import ANY_LABEL, Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.trees import tree_lines
from meander.algebra.trees import walk as walk  # re-exported until all importers have moved
from meander.syntax.printing import expression_text, name_text, predicate_text, reference_text
from meander.syntax.query import Label
from meander.syntax.values import SRC, TRG, Or, Predicate, Ref, conjuncts

_SYMBOLS: dict[type[Plan], str] = {
    WScan: "𝒲",
    Filter: "σ",
    Union: "∪",
    Pattern: "⋈",
    Path: "𝒫",
    Receive: "ℛ",
}


# ---------------------------------------------------------------------------------------------------------
# The parts of a node


def symbol(plan: Plan) -> str:
    """The operator's sign: 𝒲, σ, ∪, ⋈, 𝒫 or ℛ."""
    return _SYMBOLS[type(plan)]


Ends = tuple[tuple[int, ...], ...]
"""The variables of each input of a pattern: of its source, its target, and its values."""

Names = Sequence[Sequence[str]]
"""The names of the values of each input of a pattern."""


def positions(ends: Ends, names: Names = ()) -> list[str]:
    """The first column of each variable of a pattern: `src1`, `trg1`, `amount1`, …"""
    first: dict[int, str] = {}
    for variable, column in _columns(ends, names):
        first.setdefault(variable, column)
    return [first[variable] for variable in range(len(first))]


def equalities(ends: Ends, names: Names = ()) -> list[str]:
    """The join conditions of a pattern: each later column of a variable equals its first."""
    first = positions(ends, names)
    return [
        f"{first[variable]} = {column}"
        for variable, column in _columns(ends, names)
        if first[variable] != column
    ]


def _columns(ends: Ends, names: Names) -> Iterator[tuple[int, str]]:
    for number, columns in enumerate(ends, start=1):
        values = names[number - 1] if names else ()
        for variable, name in zip_longest(
            columns, ("src", "trg", *values)[: len(columns)], fillvalue="value"
        ):
            assert isinstance(variable, int)
            yield variable, f"{name}{number}"


def conditions(predicate: Predicate | None, columns: Sequence[str] = ()) -> list[str]:
    """The terms of a predicate: `src = "alice"`, `trg = 7`, `src = trg`, `amount > 1000`; `columns` are the names of
    what it refers to by number."""

    def written(ref: Ref) -> str:
        return columns[ref.name] if isinstance(ref.name, int) else reference_text(ref)

    terms = conjuncts(predicate)
    return [
        f"({text})" if isinstance(term, Or) and len(terms) > 1 else text
        for term in terms
        for text in (predicate_text(term, written),)
    ]


def value_names(plan: Plan) -> tuple[str, ...]:
    """The names of a node's values."""
    return tuple(name_text(value.name) for value in plan.values)


def joined_terms(plan: Pattern) -> tuple[list[str], list[str]]:
    """The names of a pattern's variables, and its join conditions and comparisons."""
    names = [value_names(inner) for inner in plan.inputs]
    first = positions(plan.ends, names)
    return first, [*equalities(plan.ends, names), *conditions(plan.predicate, first)]


def filter_terms(plan: Filter) -> list[str]:
    """The terms of a filter, over the names of its input's columns."""
    return conditions(plan.predicate, (SRC, TRG, *value_names(plan.input)))


def path_expression(path: Path, scans: Callable[[WScan], str] = lambda scan: scan.label) -> str:
    """The expression of a path with its inputs' labels; `scans` writes a scanned label."""

    def name(label: Label) -> str:
        return _called(path.inputs[int(label.name)], scans)

    return expression_text(path.expr, name)


def _called(plan: Plan, scans: Callable[[WScan], str]) -> str:
    match plan:
        case WScan():
            return scans(plan)
        case Filter(inner):
            return _called(inner, scans)
    return plan.label


def scan_names(nodes: Iterable[Plan]) -> Callable[[WScan], str]:
    """How to write the label of a scan: qualified by its stream if `nodes` scan several."""
    if len({node.stream for node in nodes if isinstance(node, WScan)}) < 2:
        return lambda scan: scan.label
    return lambda scan: "|".join(f"{scan.stream}.{label}" for label in scan.labels or (ANY_LABEL,))


# ---------------------------------------------------------------------------------------------------------
# Whole plans


def notation(plan: Plan, duration: Callable[[int], str] = str) -> str:
    """The plan on one line, as in the paper: `⋈_{trg1 = src2}^{src1, trg2, d}(𝒲_24(S_a), 𝒲_24(S_b))`;
    `duration` writes windows and slides."""
    scans = scan_names(walk(plan))

    def write(node: Plan) -> str:
        sign = symbol(node)
        match node:
            case WScan(_, labels, window, slide, predicate):
                bounds = duration(window) if slide == 1 else f"{duration(window)},{duration(slide)}"
                bounds = bounds if bounds.isdigit() else f"{{{bounds}}}"
                bounds = "∞" if node.table else "{exp}" if node.tuples else bounds
                names = [scans(replace(node, labels=(label,))) for label in labels] or [scans(node)]
                read = " ∪ ".join(f"S_{name}" if len(name) == 1 else f"S_{{{name}}}" for name in names)
                if predicate is not None:
                    read = f"σ_{{{_all(conditions(predicate))}}}({read})"
                above = f"^{{{', '.join(_scanned_columns(node))}}}" if node.values or node.vertex else ""
                return f"{sign}_{bounds}{above}({read})"
            case Receive(stream):
                return f"{sign}_{{{stream}}}"
            case Filter():
                head = f"{sign}_{{{_all(filter_terms(node))}}}"
            case Union(_, label):
                head = f"{sign}^{{{label}}}"
            case Pattern(_, _, output, label):
                first, joined = joined_terms(node)
                below = f"_{{{_all(joined)}}}" if joined else ""
                head = f"{sign}{below}^{{{', '.join([*(first[variable] for variable in output), label])}}}"
            case Path(_, _, label):
                order = f", {node.order}" if node.order else ""
                head = f"{sign}_{{{path_expression(node, scans)}{order}}}^{{{label}}}"
        return f"{head}({', '.join(write(inner) for inner in node.inputs)})"

    return write(plan)


def _scanned_columns(scan: WScan) -> list[str]:
    return [SRC, *([] if scan.vertex else [TRG]), *value_names(scan)]


def _all(terms: list[str]) -> str:
    return " ∧ ".join(terms)


def describe(
    plan: Plan,
    scans: Callable[[WScan], str] = lambda scan: scan.label,
    duration: Callable[[int], str] = str,
) -> tuple[str, str]:
    """A node in two short parts: its label with its output columns, and its conditions."""
    match plan:
        case WScan(stream, _, window, slide, predicate):
            kind = "table" if plan.table else "tuples" if plan.tuples else f"window {duration(window)}"
            bounds = [kind]
            bounds += [f"slide {duration(slide)}"] if slide != 1 else []
            read = [f"reads {', '.join(value_names(plan))}"] if plan.values else []
            called = f"{scans(plan)}({SRC})" if plan.vertex else scans(plan)
            return called, ", ".join([stream, *bounds, *read, *conditions(predicate)])
        case Filter():
            return _called(plan, scans), _all(filter_terms(plan))
        case Union(_, label):
            return label, ""
        case Pattern(_, _, output, label):
            first, joined = joined_terms(plan)
            columns = ", ".join(first[variable] for variable in output)
            return f"{label}({columns})", _all(joined)
        case Path(_, _, label):
            order = f" {plan.order}" if plan.order else ""
            return label, path_expression(plan, scans) + order
        case Receive(stream, label):
            return label, stream


def tree(plan: Plan, duration: Callable[[int], str] = str) -> str:
    """The plan as an indented tree, a line for each node; shared subplans are numbered and printed once.
    `duration` writes windows and slides."""
    scans = scan_names(walk(plan))
    uses = Counter(inner for node in walk(plan) for inner in node.inputs)
    numbers: dict[Plan, int] = {}

    def line(node: Plan) -> tuple[str, tuple[Plan, ...]]:
        label, condition = describe(node, scans, duration)
        if node in numbers:
            return f"#{numbers[node]} {label}, as above", ()
        mark = ""
        if uses[node] > 1:
            numbers[node] = len(numbers) + 1
            mark = f"#{numbers[node]} "
        return f"{mark}{symbol(node)} {label}{'  ' if condition else ''}{condition}", node.inputs

    return "\n".join(tree_lines(plan, line))
