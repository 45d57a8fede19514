"""Reclaiming vertex numbers: those that nothing valid refers to are reused, so memory follows the window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.graph import WindowGraph
from meander.dataflow.operator import Operator
from meander.dataflow.results import ResultStream
from meander.dataflow.state import Fields, Store
from meander.dataflow.vertices import Vertices


class SweepState(Fields):
    live: int = 0  # vertices after the last sweep


class VertexReclaimer:
    slack = 1024
    """A sweep comes when there are twice as many vertices as after the last one, and `slack` more."""

    def __init__(
        self,
        store: Store,
        vertices: Vertices,
        graph: WindowGraph,
        operators: Sequence[Operator],
        results: Sequence[ResultStream],
    ) -> None:
        self.state = SweepState(store, "sweep")
        self.vertices, self.graph = vertices, graph
        self.operators, self.results = operators, results

    def reclaim(self, horizon: int) -> None:
        """Between two parts: free the numbers of vertices that nothing valid after `horizon` refers to."""
        if self.vertices.count <= 2 * self.state.live + self.slack:
            return
        live = np.zeros(self.vertices.capacity, np.bool_)
        self.graph.mark(horizon, live)
        for operator in self.operators:
            operator.mark(horizon, live)
        for result in self.results:
            result.mark(live)
        self.vertices.sweep(live)
        self.state.live = self.vertices.count
