"""Pictures of physical plans."""

from __future__ import annotations

from meander.drawing.boxes import Box, draw_boxes
from meander.drawing.plan import COLORS
from meander.drawing.text import subscripts
from meander.physical import printing
from meander.physical.plan import PatternOp, PhysicalPlan, ReceiveOp
from meander.physical.stages import Stage, StagedPlan


def draw_physical(plan: PhysicalPlan, title: str = "", unit: str = "s") -> str:
    """The SVG of a physical plan; results at the top."""
    return draw_stages(StagedPlan((Stage(plan),)), title, unit)


def draw_stages(staged: StagedPlan, title: str = "", unit: str = "s") -> str:
    """The SVG of the operators of all stages, the last stage at the top; a RECEIVE is connected to the operator of an
    earlier stage whose tuples it receives."""
    boxes: list[Box] = []
    edges: list[tuple[int, int]] = []
    derived: dict[str, int] = {}  # the box of the operator whose tuples a later stage receives, by stream
    for level, stage in enumerate(staged.stages):
        plan, first = stage.plan, len(boxes)
        prefix = f"stage {level} " if len(staged.stages) > 1 else ""
        for number, operator in enumerate(plan.operators):
            kind, _, name = printing.title(plan, number).partition(" ")
            details = tuple(subscripts(text) for text in printing.details(plan, number, unit))
            numbered = isinstance(operator, PatternOp) and len(operator.inputs) > 1
            boxes.append(
                Box(f"{prefix}#{number} {kind}", subscripts(name), details, *COLORS[kind], numbered=numbered)
            )
            if isinstance(operator, ReceiveOp):
                edges.append((derived[operator.source.name], first + number))
            edges += [(first + source, first + number) for source in operator.inputs]
        for result in plan.results:
            if result.raw:
                derived[result.head] = first + result.input
            else:
                edges.append((first + result.input, len(boxes)))
                boxes.append(Box("", result.head, rounded=True))
    return draw_boxes(boxes, edges, title)
