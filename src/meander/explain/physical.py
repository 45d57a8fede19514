"""The physical plan as a list: each operator, what it reads, who reads it, and what it keeps indexed."""

from __future__ import annotations

from collections.abc import Mapping

from meander.algebra.nodes import Plan
from meander.algebra.translate import result_labels
from meander.drawing.boxes import Box, draw_boxes
from meander.explain.sections import listed
from meander.physical.plan import Links, Operator, PathOp, PatternOp, PhysicalPlan, QueryPlan, ScanOp, build
from meander.syntax.durations import format_duration
from meander.syntax.query import RegularQuery

AUTO_PATH_OPERATOR = "s-path"
"""What `--path-operator auto` comes to."""

_COLORS = {
    "WSCAN": ("#e8f3fc", "#0b5394"),
    "FILTER": ("#fdf6dc", "#7a5b00"),
    "UNION": ("#efeaf8", "#5b3a9e"),
    "PATTERN": ("#e6f5ea", "#1a6b33"),
    "PATH": ("#fdecea", "#a3261b"),
}


def physical_plan(
    query: RegularQuery, plans: Mapping[str, Plan], path_operator: str = "auto"
) -> PhysicalPlan:
    """The operators that run the given plans of a query's results."""
    labels = result_labels(query)
    return build(
        [QueryPlan("", result, labels[result], plan) for result, plan in plans.items()],
        path_operator=path_operator,
    )


def physical_text(plan: PhysicalPlan, unit: str = "s") -> str:
    """A line for each operator, in the order in which a batch passes through them."""
    lines = []
    for number, operator in enumerate(plan.operators):
        name = f"#{number} {plan.names[number]}"
        reads = f" from {_numbers(operator)}" if operator.inputs else ""
        lines.append("; ".join([name + reads, *_details(plan, number, unit), _readers(plan, number)]))
    return "\n".join(lines)


def draw_physical(plan: PhysicalPlan, title: str = "", unit: str = "s") -> str:
    """The SVG of a physical plan; results at the top."""
    boxes = [Box("", result.head, round=True) for result in plan.results]
    edges = [(len(boxes) + result.input, place) for place, result in enumerate(plan.results)]
    for number, operator in enumerate(plan.operators):
        kind, _, rest = plan.names[number].partition(" ")
        fill, stroke = _COLORS[kind]
        details = tuple(_details(plan, number, unit))
        numbered = isinstance(operator, PatternOp) and len(operator.inputs) > 1
        boxes.append(Box(f"#{number} {kind}", rest, details, fill, stroke, numbered=numbered))
        edges += [(len(plan.results) + source, len(plan.results) + number) for source in operator.inputs]
    return draw_boxes(boxes, edges, title)


def _details(plan: PhysicalPlan, number: int, unit: str) -> list[str]:
    operator = plan.operators[number]
    details = []
    match operator:
        case ScanOp(window=window, slide=slide):
            details.append(f"window {format_duration(window, unit)}, slide {format_duration(slide, unit)}")
        case PathOp(operator=how, root=root):
            details.append(f"by {AUTO_PATH_OPERATOR if how == 'auto' else how}")
            if root is not None:
                details.append(f"from {root} alone")
    if number in plan.indexed:
        details.append(_index(plan.indexed[number]))
    return details


def _index(links: Links) -> str:
    ways = [way for way, kept in (("source", links.out), ("target", links.into)) if kept]
    return f"kept, with lists by {listed(ways)}" if ways else "kept, each pair once"


def _readers(plan: PhysicalPlan, number: int) -> str:
    readers = plan.readers.get(number, ())
    return f"{'shared by' if len(readers) > 1 else 'to'} {listed(readers)}"


def _numbers(operator: Operator) -> str:
    return ", ".join(f"#{source}" for source in operator.inputs)
