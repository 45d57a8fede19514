"""Pictures as SVG text, laid out here: plans as layered graphs, answers as a small graph.

No program and no package is needed for it. Pictures have dark text on a white ground of their own, so that
they read the same on a dark page.
"""

from meander.drawing.graph import GraphEdge, draw_graph
from meander.drawing.plan import draw_plan

__all__ = ["GraphEdge", "draw_graph", "draw_plan"]
