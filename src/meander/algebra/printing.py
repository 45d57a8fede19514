"""The one way to print a plan: in the paper's notation, or as a tree for the terminal.

Both speak of a pattern's vertices by their first place: `trg1` is the target of the first input. A path's
expression shows the labels of its inputs. Where a plan reads several streams, scanned labels carry the name
of theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.syntax.printing import term_text
from meander.syntax.query import Constant, Either, Inverse, Label, PathExpr, Repeat, Then

_SYMBOLS: dict[type[Plan], str] = {WScan: "𝒲", Filter: "σ", Union: "∪", Pattern: "⋈", Path: "𝒫", Receive: "ℛ"}
_SUFFIXES = {(0, None): "*", (1, None): "+", (0, 1): "?"}


# ---------------------------------------------------------------------------------------------------------
# The parts of a node


def symbol(plan: Plan) -> str:
    """The operator's sign: 𝒲, σ, ∪, ⋈, 𝒫 or ℛ."""
    return _SYMBOLS[type(plan)]


Ends = tuple[tuple[int, int], ...]
"""The variables at the source and the target of each input of a pattern."""


def positions(ends: Ends) -> list[str]:
    """The first place of each variable of a pattern: `src1`, `trg1`, …"""
    first: dict[int, str] = {}
    for variable, place in _places(ends):
        first.setdefault(variable, place)
    return [first[variable] for variable in range(len(first))]


def equalities(ends: Ends) -> list[str]:
    """What a pattern asks of its inputs' end points, each later place tied to the variable's first."""
    first = positions(ends)
    return [f"{first[variable]} = {place}" for variable, place in _places(ends) if first[variable] != place]


def _places(ends: Ends) -> Iterator[tuple[int, str]]:
    for number, (src, trg) in enumerate(ends, start=1):
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


def expression(expr: PathExpr, name: Callable[[Label], str] = str) -> str:
    """A path expression as text, with as few parentheses as it takes; `name` says how a label is written."""
    return _expression(expr, name, 0)


def _expression(expr: PathExpr, name: Callable[[Label], str], tightness: int) -> str:
    """`tightness` is what the place asks for: 0 anything, 1 in `|`, 2 in `/`, 3 under `^` or a suffix."""
    match expr:
        case Label():
            text = name(expr)
            # A scan of several labels is called `a|b`: it reads like the alternation that it is.
            return f"({text})" if tightness and re.search(r"[|/*+?^{}() ]", text) else text
        case Either(parts):
            text, own = "|".join(_expression(part, name, 1) for part in parts), 0
        case Then(parts):
            text, own = "/".join(_expression(part, name, 2) for part in parts), 1
        case Inverse(inner):
            text, own = "^" + _expression(inner, name, 3), 2
        case Repeat(inner, low, high):
            bounds = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
            text, own = _expression(inner, name, 3) + _SUFFIXES.get((low, high), bounds), 2
    return f"({text})" if own < tightness else text


def path_expression(path: Path, scans: Callable[[WScan], str] = lambda scan: scan.label) -> str:
    """The expression of a path with its inputs' labels; `scans` says how a scanned label is written."""

    def name(label: Label) -> str:
        return _called(path.inputs[int(label.name)], scans)

    return expression(path.expr, name)


def _called(plan: Plan, scans: Callable[[WScan], str]) -> str:
    match plan:
        case WScan():
            return scans(plan)
        case Filter(inner):
            return _called(inner, scans)
    return plan.label


def _scan_name(plan: Plan) -> Callable[[WScan], str]:
    """How `plan` writes the label of a scan: with its stream where there are several."""
    streams = {node.stream for node in walk(plan) if isinstance(node, WScan)}
    if len(streams) < 2:
        return lambda scan: scan.label
    return lambda scan: "|".join(f"{scan.stream}.{label}" for label in scan.labels)


def walk(plan: Plan) -> Iterator[Plan]:
    """Every distinct node of a plan once, in the order in which the tree first meets it."""
    seen: set[Plan] = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(reversed(node.inputs))


# ---------------------------------------------------------------------------------------------------------
# Whole plans


def notation(plan: Plan, duration: Callable[[int], str] = str) -> str:
    """The plan on one line, as in the paper: `⋈_{trg1 = src2}^{src1, trg2, d}(𝒲_24(S_a), 𝒲_24(S_b))`;
    `duration` says how windows and slides are written."""
    scans = _scan_name(plan)

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
                first, asked = positions(node.ends), equalities(node.ends)
                below = f"_{{{_all(asked)}}}" if asked else ""
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
    """A node in two short parts: its label with what it hands out, and what it asks for."""
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
            handed = ", ".join(first[variable] for variable in output)
            return f"{label}({handed})", _all(equalities(plan.ends))
        case Path(_, _, label):
            return label, path_expression(plan, scans)
        case Receive(stream, label):
            return label, stream


def tree(plan: Plan, duration: Callable[[int], str] = str) -> str:
    """The plan as an indented tree, a line for each node; what is shared is numbered and printed once.
    `duration` says how windows and slides are written."""
    scans = _scan_name(plan)
    uses = Counter(inner for node in walk(plan) for inner in node.inputs)
    numbers: dict[Plan, int] = {}
    lines: list[str] = []

    def write(node: Plan, before: str, below: str) -> None:
        label, asked = describe(node, scans, duration)
        if node in numbers:
            lines.append(f"{before}#{numbers[node]} {label}, as above")
            return
        mark = ""
        if uses[node] > 1:
            numbers[node] = len(numbers) + 1
            mark = f"#{numbers[node]} "
        lines.append(f"{before}{mark}{symbol(node)} {label}{'  ' if asked else ''}{asked}")
        for place, inner in enumerate(node.inputs, start=1):
            last = place == len(node.inputs)
            write(inner, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))

    write(plan, "", "")
    return "\n".join(lines)
