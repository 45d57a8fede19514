"""How large the valid part of the window's graph is: what choosing between path operators needs to know."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from meander.kernels.graph import ROWS, Graph
from meander.kernels.jit import Array, kernel


class Extent(NamedTuple):
    """The number of edges and vertices, and the expiries of the edges."""

    rows: int
    roots: int  # vertices at which a path can begin
    ends: int  # sources and targets
    latest: int
    unit: int  # expiries differ by multiples of it


AT_SOURCE, AT_TARGET = 1, 2
"""By relation: at which ends of its edges a path can begin."""

END, ROOT = 1, 2


@kernel
def measure_graph(
    graph: Graph, reads: Array, begins: Array, time: int, seen: Array
) -> tuple[int, int, int, int, int]:
    """The extent of the edges that are read and valid after `time`, without those that change after it.

    `seen` has a zero for each vertex.
    """
    rows = roots = ends = unit = 0
    latest, first, previous = time, -1, -1
    for row in range(graph.counts[ROWS]):
        exp = graph.exp[row]
        if exp <= time or graph.stamp[row] > time or not reads[graph.relation[row]]:
            continue
        rows += 1
        at = begins[graph.relation[row]]
        for vertex, is_root in (
            (graph.src[row], at & AT_SOURCE != 0),
            (graph.trg[row], at & AT_TARGET != 0),
        ):
            if seen[vertex] == 0:
                ends += 1
                seen[vertex] = END
            if is_root and seen[vertex] == END:
                roots += 1
                seen[vertex] = ROOT
        if exp != previous:
            first = exp if first < 0 else first
            unit = gcd(unit, abs(exp - first))
            latest = max(latest, exp)
            previous = exp
    return rows, roots, ends, latest, max(unit, 1)
