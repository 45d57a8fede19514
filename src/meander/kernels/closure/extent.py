"""How large the valid part of the window's graph is: what choosing between path operators needs to know."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from meander.kernels.graph import ROWS, Graph
from meander.kernels.jit import Array, kernel


class Extent(NamedTuple):
    """The number of edges and vertices, and the expiries of the edges."""

    rows: int
    sources: int
    ends: int  # sources and targets
    latest: int
    unit: int  # expiries differ by multiples of it


@kernel
def measure_graph(graph: Graph, reads: Array, time: int, seen: Array) -> tuple[int, int, int, int, int]:
    """The extent of the edges that are read and valid after `time`, without those that change after it.

    `seen` has a zero for each vertex.
    """
    rows = sources = ends = unit = 0
    latest, first, previous = time, -1, -1
    for row in range(graph.counts[ROWS]):
        exp = graph.exp[row]
        if exp <= time or graph.stamp[row] > time or not reads[graph.relation[row]]:
            continue
        rows += 1
        src, trg = graph.src[row], graph.trg[row]
        if seen[src] != 2:
            sources += 1
            ends += seen[src] == 0
            seen[src] = 2
        if seen[trg] == 0:
            ends += 1
            seen[trg] = 1
        if exp != previous:
            first = exp if first < 0 else first
            unit = gcd(unit, abs(exp - first))
            latest = max(latest, exp)
            previous = exp
    return rows, sources, ends, latest, max(unit, 1)
