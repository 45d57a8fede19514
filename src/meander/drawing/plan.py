"""A logical plan as a picture: scans at the bottom, answers at the top, shared subplans drawn once."""

from __future__ import annotations

from collections.abc import Mapping

from meander.algebra.nodes import Pattern, Plan
from meander.algebra.printing import describe, scan_names, symbol
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
    scans = scan_names(nodes)
    numbers = {node: number for number, node in enumerate(nodes, start=len(plans))}
    boxes = [Box("", name, rounded=True) for name in plans]
    for node in nodes:
        kind = type(node).__name__.upper()
        name, condition = describe(node, scans, lambda amount: format_duration(amount, unit))
        boxes.append(
            Box(
                f"{symbol(node)} {kind}",
                subscripts(name),
                # Lines break between the terms of a conjunction: the spaces within a term do not break.
                (subscripts(condition.replace(" = ", "\u00a0=\u00a0")),) if condition else (),
                *COLORS[kind],
                numbered=isinstance(node, Pattern) and len(node.inputs) > 1,
            )
        )
    edges = [(numbers[plan], result) for result, plan in enumerate(plans.values())]
    edges += [(numbers[inner], numbers[node]) for node in nodes for inner in node.inputs]
    return draw_boxes(boxes, edges, title)
