"""Pictures as SVG text: plans as layered graphs, answers as a timeline, paths as chains and rings, proofs as trees.

They need no other program or package (docs/notes/drawing.md has the reasons), and have dark text on a white
background of their own, so that they read the same on a dark page.
"""

from meander.drawing.paths import draw_paths
from meander.drawing.plan import draw_plan
from meander.drawing.proofs import draw_proof
from meander.drawing.timeline import Answer, Row, draw_timeline

__all__ = ["Answer", "Row", "draw_paths", "draw_plan", "draw_proof", "draw_timeline"]
