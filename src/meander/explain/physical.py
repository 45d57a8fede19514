"""The physical plan of a query, and its picture."""

from __future__ import annotations

from collections.abc import Mapping

from meander.algebra.nodes import Plan
from meander.algebra.translate import result_labels
from meander.drawing.boxes import Box, draw_boxes
from meander.physical.plan import PatternOp, PhysicalPlan, QueryPlan, build
from meander.physical.printing import details
from meander.physical.stages import StagedPlan, build_stages
from meander.syntax.query import RegularQuery

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


def staged_plan(
    query: RegularQuery, plans: Mapping[str, Plan], cells: int, path_operator: str = "auto"
) -> StagedPlan:
    """The stages that run the given plans on several cells."""
    labels = result_labels(query)
    return build_stages(
        [QueryPlan("", result, labels[result], plan) for result, plan in plans.items()],
        cells,
        path_operator=path_operator,
    )


def draw_physical(plan: PhysicalPlan, title: str = "", unit: str = "s") -> str:
    """The SVG of a physical plan; results at the top."""
    boxes = [Box("", result.head, round=True) for result in plan.results]
    edges = [(len(boxes) + result.input, place) for place, result in enumerate(plan.results)]
    for number, operator in enumerate(plan.operators):
        kind, _, rest = plan.names[number].partition(" ")
        fill, stroke = _COLORS[kind]
        said = tuple(details(plan, number, unit))
        numbered = isinstance(operator, PatternOp) and len(operator.inputs) > 1
        boxes.append(Box(f"#{number} {kind}", rest, said, fill, stroke, numbered=numbered))
        edges += [(len(plan.results) + source, len(plan.results) + number) for source in operator.inputs]
    return draw_boxes(boxes, edges, title)
