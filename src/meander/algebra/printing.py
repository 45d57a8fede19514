"""A plan as text: in the paper's notation, or as a tree for the terminal.

Both name a pattern's vertices by their first column: `trg1` is the target of the first input. A path's
expression shows the labels of its inputs. If a plan reads several streams, scanned labels are qualified by the
name of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.trees import tree_lines
from meander.algebra.trees import walk as walk  # re-exported until all importers have moved
from meander.syntax.printing import expression_text, term_text
from meander.syntax.query import Constant, Label

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
"""The variables at the source and the target of each input of a pattern."""


def positions(ends: Ends) -> list[str]:
    """The first column of each variable of a pattern: `src1`, `trg1`, …"""
    first: dict[int, str] = {}
    for variable, column in _columns(ends):
        first.setdefault(variable, column)
    return [first[variable] for variable in range(len(first))]


def equalities(ends: Ends) -> list[str]:
    """The join conditions of a pattern: each later column of a variable equals its first."""
    first = positions(ends)
    return [
        f"{first[variable]} = {column}" for variable, column in _columns(ends) if first[variable] != column
    ]


def _columns(ends: Ends) -> Iterator[tuple[int, str]]:
    for number, (src, trg, *_) in enumerate(ends, start=1):
        yield src, f"src{number}"
        yield trg, f"trg{number}"


def conditions(condition: Condition) -> list[str]:
    """The terms of a filter's condition: `src = "alice"`, `trg = 7`, `src = trg`."""
    terms = [
        f"{end} = {term_text(Constant(value))}"
        for end, value in (("src", condition.src), ("trg", condition.trg))
        if value is not None
    ]
    return [*terms, "src = trg"] if condition.loop else terms


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
    return lambda scan: "|".join(f"{scan.stream}.{label}" for label in scan.labels)


# ---------------------------------------------------------------------------------------------------------
# Whole plans


def notation(plan: Plan, duration: Callable[[int], str] = str) -> str:
    """The plan on one line, as in the paper: `⋈_{trg1 = src2}^{src1, trg2, d}(𝒲_24(S_a), 𝒲_24(S_b))`;
    `duration` writes windows and slides."""
    scans = scan_names(walk(plan))

    def write(node: Plan) -> str:
        sign = symbol(node)
        match node:
            case WScan(_, labels, window, slide, condition):
                bounds = duration(window) if slide == 1 else f"{duration(window)},{duration(slide)}"
                bounds = bounds if bounds.isdigit() else f"{{{bounds}}}"
                names = [scans(replace(node, labels=(label,))) for label in labels]
                read = " ∪ ".join(f"S_{name}" if len(name) == 1 else f"S_{{{name}}}" for name in names)
                if condition != Condition():
                    read = f"σ_{{{_all(conditions(condition))}}}({read})"
                return f"{sign}_{bounds}({read})"
            case Receive(stream):
                return f"{sign}_{{{stream}}}"
            case Filter(_, condition):
                head = f"{sign}_{{{_all(conditions(condition))}}}"
            case Union(_, label):
                head = f"{sign}^{{{label}}}"
            case Pattern(_, _, output, label):
                first, joined = positions(node.ends), equalities(node.ends)
                below = f"_{{{_all(joined)}}}" if joined else ""
                head = f"{sign}{below}^{{{', '.join([*(first[variable] for variable in output), label])}}}"
            case Path(_, _, label):
                head = f"{sign}_{{{path_expression(node, scans)}}}^{{{label}}}"
        return f"{head}({', '.join(write(inner) for inner in node.inputs)})"

    return write(plan)


def _all(terms: list[str]) -> str:
    return " ∧ ".join(terms)


def describe(
    plan: Plan,
    scans: Callable[[WScan], str] = lambda scan: scan.label,
    duration: Callable[[int], str] = str,
) -> tuple[str, str]:
    """A node in two short parts: its label with its output columns, and its conditions."""
    match plan:
        case WScan(stream, _, window, slide, condition):
            slides = [f"slide {duration(slide)}"] if slide != 1 else []
            return scans(plan), ", ".join(
                [stream, f"window {duration(window)}", *slides, *conditions(condition)]
            )
        case Filter(_, condition):
            return _called(plan, scans), _all(conditions(condition))
        case Union(_, label):
            return label, ""
        case Pattern(_, _, output, label):
            first = positions(plan.ends)
            columns = ", ".join(first[variable] for variable in output)
            return f"{label}({columns})", _all(equalities(plan.ends))
        case Path(_, _, label):
            return label, path_expression(plan, scans)
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
