"""A graph of boxes as SVG: texts measured and wrapped, boxes in layers, arrows from inputs up to their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meander.drawing.layers import Layout, lay_out
from meander.drawing.text import document, text_element, text_width, wrap

MARGIN = 20.0
PORT = 24.0
"""Between the arrows that reach one box."""
_PADDING = 12.0
_WIDEST = 300.0
_HEAD, _NAME, _DETAIL, _NUMBER = 11.5, 13.0, 11.5, 9.5


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the picture: a heading, a name, and details below it; `numbered` shows the order of its inputs."""

    heading: str
    name: str
    details: tuple[str, ...] = ()
    fill: str = "#f6f8fa"
    stroke: str = "#57606a"
    numbered: bool = False
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class _Measured:
    lines: list[tuple[str, float, bool]]
    width: float
    height: float


def draw_boxes(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], title: str) -> str:
    """The picture of a directed acyclic graph; an edge `(a, b)` is an arrow from `a` up to `b`, and the
    edges that reach one box are its inputs in that order."""
    fan_in = [sum(upper == node for _, upper in edges) for node in range(len(boxes))]
    measured = [_measure(box, inputs) for box, inputs in zip(boxes, fan_in, strict=True)]
    layout = lay_out([(box.width, box.height) for box in measured], edges)
    titles = wrap(title, 14, max(layout.width, 420.0), lines=3, bold=True) if title else []
    top = MARGIN + 20.0 * len(titles) + (8.0 if titles else 0.0)
    width = max(layout.width, *(text_width(line, 14, bold=True) for line in titles), 0.0) + 2 * MARGIN
    left = (width - layout.width) / 2
    body = [
        text_element(MARGIN, MARGIN + 12 + 20 * number, line, 14, anchor="start", bold=True)
        for number, line in enumerate(titles)
    ]
    leaving, arriving = _ports(edges, layout, [box.width for box in measured])
    for number, (lower, upper) in enumerate(edges):
        points = _way(number, lower, upper, layout, measured, leaving[number], arriving[number])
        body.append(_arrow([(x + left, y + top) for x, y in points]))
    for node, (box, size) in enumerate(zip(boxes, measured, strict=True)):
        x, y = layout.centers[node]
        ports = [arriving[number] for number, (_, upper) in enumerate(edges) if upper == node]
        body.append(_box(box, size, x + left, y + top, ports))
    return document(width, layout.height + top + MARGIN, title, body)


def _measure(box: Box, inputs: int) -> _Measured:
    lines: list[tuple[str, float, bool]] = [(box.heading, _HEAD, True)] if box.heading else []
    lines += [(line, _NAME, False) for line in wrap(box.name, _NAME, _WIDEST, lines=4)] if box.name else []
    for detail in box.details:
        lines += [(line, _DETAIL, False) for line in wrap(detail, _DETAIL, _WIDEST)]
    wide = max(text_width(line, size, bold=bold) for line, size, bold in lines)
    height = sum(size * 1.4 for _, size, _ in lines) + _PADDING + (_NUMBER + 3 if box.numbered else 0)
    return _Measured(lines, max(wide + 2 * _PADDING, PORT * (inputs + 1), 64.0), height)


def _ports(
    edges: Sequence[tuple[int, int]], layout: Layout, widths: list[float]
) -> tuple[list[float], list[float]]:
    """The horizontal distance from the center of its box at which each edge leaves, and at which it arrives.

    Edges of one box are sorted by the direction they come from or go to, so that they do not cross right at the box.
    """
    leaving, arriving = [0.0] * len(edges), [0.0] * len(edges)
    for node, width in enumerate(widths):
        for offsets, own, other, nearest_lane, apart in (
            (leaving, 0, 1, 0, 10.0),
            (arriving, 1, 0, -1, 2 * PORT),
        ):
            numbers = [number for number, edge in enumerate(edges) if edge[own] == node]
            numbers.sort(
                key=lambda number: (
                    layout.lanes[number][nearest_lane]
                    if layout.lanes[number]
                    else layout.centers[edges[number][other]]
                )[0]
            )
            space = min(apart, (width - PORT) / max(1, len(numbers)))
            for position, number in enumerate(numbers):
                offsets[number] = (position - (len(numbers) - 1) / 2) * space
    return leaving, arriving


def _way(
    number: int,
    lower: int,
    upper: int,
    layout: Layout,
    measured: list[_Measured],
    leave: float,
    arrive: float,
) -> list[tuple[float, float]]:
    """The points of an edge from box to box: vertical within each layer's band, curved between bands."""
    x, y = layout.centers[lower]
    points = [(x + leave, y - measured[lower].height / 2), (x + leave, layout.bands[layout.layer[lower]][0])]
    for lane, level in layout.lanes[number]:
        points += [(lane, layout.bands[level][1]), (lane, layout.bands[level][0])]
    x, y = layout.centers[upper]
    return [
        *points,
        (x + arrive, layout.bands[layout.layer[upper]][1]),
        (x + arrive, y + measured[upper].height / 2),
    ]


def _arrow(points: list[tuple[float, float]]) -> str:
    """Vertical segments joined by curves, with a head at the last point."""
    x, y = points[0]
    path = [f"M{x:.1f} {y:.1f}"]
    for (from_x, from_y), (to_x, to_y) in zip(points[1::2], points[2::2], strict=False):
        middle = (from_y + to_y) / 2
        path.append(f"L{from_x:.1f} {from_y:.1f}")
        path.append(f"C{from_x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    x, y = points[-1]
    path.append(f"L{x:.1f} {y + 6:.1f}")
    head = f"{x:.1f},{y + 1:.1f} {x - 4:.1f},{y + 9:.1f} {x + 4:.1f},{y + 9:.1f}"
    return (
        f'<g class="arrow"><path d="{" ".join(path)}" fill="none" stroke="#57606a" stroke-width="1.3"/>'
        f'<polygon points="{head}" fill="#57606a"/></g>'
    )


def _box(box: Box, size: _Measured, x: float, y: float, ports: list[float]) -> str:
    """A box around (x, y); a numbered one shows at its `ports` which input arrives there."""
    left, top = x - size.width / 2, y - size.height / 2
    corner = size.height / 2 if box.rounded else 6.0
    parts = [
        f'<g class="box"><rect x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" '
        f'rx="{corner:.1f}" fill="{box.fill}" stroke="{box.stroke}" stroke-width="1.2"/>'
    ]
    baseline = top + _PADDING / 2
    for line, text_size, bold in size.lines:
        baseline += text_size * 1.4
        parts.append(
            text_element(
                x,
                baseline - text_size * 0.32,
                line,
                text_size,
                bold=bold,
                fill=box.stroke if bold else "#1f2328",
            )
        )
    for number, port in enumerate(ports if box.numbered else (), start=1):
        parts.append(text_element(x + port, top + size.height - 4, str(number), _NUMBER, fill="#57606a"))
    return "".join(parts) + "</g>"
