"""Layered layout of a directed acyclic graph of boxes, arrows upwards, by Sugiyama's method.

A box stands one layer below its lowest reader. An arrow that skips layers passes each through a narrow lane of
its own, so that no arrow runs under a box. The order within a layer is that of the readers' inputs, improved by
median sweeps if arrows cross. Then each node moves as near to its neighbors as the distances within its layer allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from statistics import fmean, median

LANE = 14.0
SPACE = 28.0
"""Between two boxes of a layer; a lane needs half of it."""
GAP = 52.0
"""Between two layers."""

Layers = list[list[int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Centers of the boxes, the vertical bands of their layers, and for each edge the lanes it takes."""

    centers: list[tuple[float, float]]
    bands: list[tuple[float, float]]
    layer: list[int]
    lanes: list[list[tuple[float, int]]]
    """For each edge, from its lower end up: the x and the layer of each lane."""
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes of the given width and height; an edge `(a, b)` is an arrow from `a` up to `b`."""
    layer = _layers(len(sizes), edges)
    nodes = len(sizes)
    widths = [width for width, _ in sizes]
    links: list[tuple[int, int]] = []
    lane_nodes: list[list[int]] = []
    for lower, upper in edges:
        chain = [lower]
        for level in range(layer[lower] - 1, layer[upper], -1):
            chain.append(len(widths))
            widths.append(LANE)
            layer.append(level)
        chain.append(upper)
        links.extend(pairwise(chain))
        lane_nodes.append(chain[1:-1])
    below: list[list[int]] = [[] for _ in widths]
    above: list[list[int]] = [[] for _ in widths]
    for lower, upper in links:
        below[upper].append(lower)
        above[lower].append(upper)
    order = _order(_first_order(layer, below), below, above)
    x = _positions(order, widths, nodes, below, above)
    left = min(center - width / 2 for center, width in zip(x, widths, strict=True))
    bands, top = [], 0.0
    for row in order:
        height = max((sizes[node][1] for node in row if node < nodes), default=0.0)
        bands.append((top, top + height))
        top += height + GAP
    return Layout(
        centers=[(x[node] - left, sum(bands[layer[node]]) / 2) for node in range(nodes)],
        bands=bands,
        layer=layer[:nodes],
        lanes=[[(x[node] - left, layer[node]) for node in chain] for chain in lane_nodes],
        width=max(center + width / 2 for center, width in zip(x, widths, strict=True)) - left,
        height=top - GAP,
    )


def _layers(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest path from each node up to one without readers."""
    layer = [0] * nodes
    for _ in range(nodes):
        before = list(layer)
        for lower, upper in edges:
            layer[lower] = max(layer[lower], layer[upper] + 1)
        if layer == before:
            return layer
    raise ValueError("the graph has a cycle")


def _first_order(layer: list[int], below: list[list[int]]) -> Layers:
    """The order in which a walk from the topmost boxes, inputs from left to right, meets the nodes."""
    order: Layers = [[] for _ in range(max(layer) + 1)]
    seen: set[int] = set()
    pending = [node for node in reversed(range(len(layer))) if layer[node] == 0]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            order[layer[node]].append(node)
            pending.extend(reversed(below[node]))
    return order


def _order(order: Layers, below: list[list[int]], above: list[list[int]]) -> Layers:
    """The order with the fewest crossings found in twelve sweeps of the median heuristic."""
    best, fewest = order, _crossings(order, below)
    for sweep in range(12):
        if fewest == 0:
            break
        order = [list(row) for row in order]
        neighbors, rows = (above, order) if sweep % 2 == 0 else (below, order[::-1])
        for fixed, row in pairwise(rows):
            position = {node: number for number, node in enumerate(fixed)}
            # A node without neighbors keeps its own position; sorting is stable.
            medians = {
                node: median([position[other] for other in neighbors[node]]) if neighbors[node] else number
                for number, node in enumerate(row)
            }
            row.sort(key=medians.__getitem__)
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def _crossings(order: Layers, below: list[list[int]]) -> int:
    count = 0
    for upper, lower in pairwise(order):
        position = {node: number for number, node in enumerate(lower)}
        ends = [position[other] for node in upper for other in sorted(below[node], key=position.__getitem__)]
        count += sum(first > second for first, second in combinations(ends, 2))
    return count


def _positions(
    order: Layers, widths: list[float], boxes: int, below: list[list[int]], above: list[list[int]]
) -> list[float]:
    """The x of each node: near the mean of its neighbors, with the nodes of a layer in order and apart."""
    x = [0.0] * len(widths)

    def gaps(row: list[int]) -> list[float]:
        return [
            (widths[left] + widths[right]) / 2 + SPACE / (1 + (left >= boxes) + (right >= boxes))
            for left, right in pairwise(row)
        ]

    for row in order:
        for node, offset in zip(row, accumulate(gaps(row), initial=0.0), strict=True):
            x[node] = offset
    # Sweeps down, up, and towards both sides: lanes become straight, and readers stand over their inputs.
    both = [[*upper, *lower] for upper, lower in zip(above, below, strict=True)]
    for neighbors, rows in [(above, order), (below, order[::-1]), (both, order)] * 8:
        for row in rows:
            means = [
                fmean(x[other] for other in neighbors[node]) if neighbors[node] else x[node] for node in row
            ]
            for node, center in zip(row, _spread(means, gaps(row)), strict=True):
                x[node] = center
    return x


def _spread(wanted: list[float], gaps: list[float]) -> list[float]:
    """Positions near the wanted ones, at least `gaps` apart.

    Pushing all to the right keeps the distances, so does pushing all to the left, and so does the mean of both.
    """
    rightmost, leftmost = wanted[:1], wanted[-1:]
    for position, gap in zip(wanted[1:], gaps, strict=True):
        rightmost.append(max(position, rightmost[-1] + gap))
    for position, gap in zip(wanted[-2::-1], gaps[::-1], strict=True):
        leftmost.append(min(position, leftmost[-1] - gap))
    return [(right + left) / 2 for right, left in zip(rightmost, leftmost[::-1], strict=True)]
