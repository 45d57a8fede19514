"""Pictures as SVG text, laid out here: plans as layered graphs, answers as a timeline.

No program and no package is needed for it. Pictures have dark text on a white ground of their own, so that
they read the same on a dark page.
"""

from meander.drawing.plan import draw_plan
from meander.drawing.timeline import Answer, Row, draw_timeline

__all__ = ["Answer", "Row", "draw_plan", "draw_timeline"]
