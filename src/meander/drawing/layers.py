"""Where to put the boxes of a directed acyclic graph: in layers, arrows upwards.

A box stands one layer below the lowest that reads it. An arrow that skips layers passes each through a
narrow lane of its own, so that no arrow runs under a box. Within a layer the order is that of the readers'
inputs; sweeps by median are tried where arrows cross. Then each layer is moved as near to its neighbours as
the distances between boxes allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

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
    left = min(place - width / 2 for place, width in zip(x, widths, strict=True))
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
        width=max(place + width / 2 for place, width in zip(x, widths, strict=True)) - left,
        height=top - GAP,
    )


def _layers(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest way of each node up to one that nothing reads."""
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
    """The order with the fewest crossings that twelve sweeps of the median rule find."""
    best, fewest = order, _crossings(order, below)
    for sweep in range(12):
        if fewest == 0:
            break
        order = [list(row) for row in order]
        neighbours, rows = (above, order) if sweep % 2 == 0 else (below, order[::-1])
        for fixed, row in pairwise(rows):
            place = {node: number for number, node in enumerate(fixed)}
            own = {node: float(number) for number, node in enumerate(row)}
            wanted = {
                node: median([place[other] for other in neighbours[node]]) if neighbours[node] else own[node]
                for node in row
            }
            row.sort(key=lambda node: (wanted[node], own[node]))
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def _crossings(order: Layers, below: list[list[int]]) -> int:
    count = 0
    for upper, lower in pairwise(order):
        place = {node: number for number, node in enumerate(lower)}
        ends = [place[other] for node in upper for other in sorted(below[node], key=place.__getitem__)]
        count += sum(first > second for number, first in enumerate(ends) for second in ends[number + 1 :])
    return count


def _positions(
    order: Layers, widths: list[float], boxes: int, below: list[list[int]], above: list[list[int]]
) -> list[float]:
    """The x of each node: near the mean of its neighbours, boxes of a layer in order and apart."""
    x = [0.0] * len(widths)

    def distance(left: int, right: int) -> float:
        lanes = (left >= boxes) + (right >= boxes)
        return (widths[left] + widths[right]) / 2 + SPACE / (1 + lanes)

    for row in order:
        x_next = 0.0
        for left, right in zip([None, *row], row, strict=False):
            x_next += distance(left, right) if left is not None else 0.0
            x[right] = x_next
    # Sweeps down, then up, then to the middle of both: straight lanes, readers over what they read.
    for sweep in range(24):
        neighbours: Callable[[int], list[int]] = (
            above.__getitem__,
            below.__getitem__,
            lambda node: above[node] + below[node],
        )[sweep % 3]
        for row in order if sweep % 3 != 1 else order[::-1]:
            wanted = []
            for node in row:
                others = neighbours(node)
                wanted.append(sum(x[other] for other in others) / len(others) if others else x[node])
            weights = [4.0 if node >= boxes else float(max(1, len(neighbours(node)))) for node in row]
            gaps = [distance(left, right) for left, right in pairwise(row)]
            for node, place in zip(row, _spread(wanted, weights, gaps), strict=True):
                x[node] = place
    return x


def _spread(wanted: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """The places nearest to `wanted` (weighted squares) at least `gaps` apart: pool adjacent violators."""
    offset, offsets = 0.0, [0.0]
    for gap in gaps:
        offset += gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # weight, mean, members
    for want, weight, moved in zip(wanted, weights, offsets, strict=True):
        pool = (weight, want - moved, 1)
        while pools and pools[-1][1] > pool[1]:
            other = pools.pop()
            total = other[0] + pool[0]
            pool = (total, (other[0] * other[1] + pool[0] * pool[1]) / total, other[2] + pool[2])
        pools.append(pool)
    means = [mean for _, mean, members in pools for _ in range(members)]
    return [mean + moved for mean, moved in zip(means, offsets, strict=True)]
