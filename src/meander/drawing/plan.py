"""A logical plan as a picture: scans at the bottom, answers at the top, shared subplans drawn once."""

from __future__ import annotations

from collections.abc import Mapping

from meander.algebra.nodes import Filter, Path, Pattern, Plan, WScan
from meander.algebra.printing import conditions, equalities, path_expression, positions, symbol
from meander.algebra.trees import walk
from meander.drawing.boxes import Box, draw_boxes
from meander.drawing.text import subscripts
from meander.syntax.durations import format_duration

COLORS = {
    "WSCAN": ("#e8f3fc", "#0b5394"),
    "RECEIVE": ("#e8f3fc", "#0b5394"),
    "FILTER": ("#fdf6dc", "#7a5b00"),
    "UNION": ("#efeaf8", "#5b3a9e"),
    "PATTERN": ("#e6f5ea", "#1a6b33"),
    "PATH": ("#fdecea", "#a3261b"),
}
"""The fill and the line of each kind of operator."""


def draw_plan(plans: Mapping[str, Plan], title: str = "", *, unit: str = "s") -> str:
    """The SVG of the plans of a query's results, by the results' names; times are in `unit`."""
    nodes = list(dict.fromkeys(node for plan in plans.values() for node in walk(plan)))
    several = len({node.stream for node in nodes if isinstance(node, WScan)}) > 1
    numbers = {node: number for number, node in enumerate(nodes, start=len(plans))}
    boxes = [Box("", name, rounded=True) for name in plans]
    boxes += [_box(node, unit, qualified=several) for node in nodes]
    edges = [(numbers[plan], result) for result, plan in enumerate(plans.values())]
    edges += [(numbers[inner], numbers[node]) for node in nodes for inner in node.inputs]
    return draw_boxes(boxes, edges, title)


def _box(node: Plan, unit: str, *, qualified: bool) -> Box:
    heading = type(node).__name__.upper()
    fill, stroke = COLORS[heading]
    name, details = node.label, list[str]()
    match node:
        case WScan(stream, _, window, slide, condition):
            name = " | ".join(node.labels)
            length = format_duration(window, unit)
            details = [f"{stream}: {length}" + (f" by {format_duration(slide, unit)}" if slide != 1 else "")]
            details += [_all(conditions(condition))]
        case Filter(_, condition):
            details = [_all(conditions(condition))]
        case Pattern(_, _, output):
            columns = positions(node.ends)
            name = f"{node.label}({', '.join(columns[variable] for variable in output)})"
            details = [_all(equalities(node.ends))]
        case Path():
            details = [path_expression(node, _qualified_label if qualified else _label)]
    return Box(
        f"{symbol(node)} {heading}",
        subscripts(name),
        tuple(subscripts(detail) for detail in details if detail),
        fill,
        stroke,
        numbered=isinstance(node, Pattern) and len(node.inputs) > 1,
    )


def _label(scan: WScan) -> str:
    return scan.label


def _qualified_label(scan: WScan) -> str:
    return "|".join(f"{scan.stream}.{label}" for label in scan.labels)


def _all(terms: list[str]) -> str:
    """A conjunction whose lines break between terms alone: the spaces within a term do not break."""
    return " ∧ ".join(term.replace(" ", "\u00a0") for term in terms)
