"""A small graph of edges and answers, each with the interval in which it holds.

Vertices stand on a circle, their names outside it and all edges inside: so no line runs through a vertex or a
name. The circle grows until every label has a place of its own along its edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin

from meander.drawing.text import document, text_element, text_width, wrap

MOST_EDGES = 60
"""More edges than that are no picture: answers come first, then edges in the order given."""

_MARGIN, _DOT, _BEND = 20.0, 6.0, 46.0
_NAME, _LABEL = 13.0, 11.0
_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8)
_EDGE, _ANSWER = "#57606a", "#a3261b"

Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`src -label-> trg`, valid in [ts, exp); an `exp` of None is an end that is not known yet."""

    src: str
    label: str
    trg: str
    ts: int
    exp: int | None

    @property
    def text(self) -> str:
        return f"{self.label} [{self.ts}, {'…' if self.exp is None else self.exp})"


@dataclass(frozen=True, slots=True)
class _Curve:
    start: Point
    control: Point
    end: Point
    color: str
    text: str

    def at(self, part: float) -> Point:
        rest = 1 - part
        return (
            rest * rest * self.start[0] + 2 * rest * part * self.control[0] + part * part * self.end[0],
            rest * rest * self.start[1] + 2 * rest * part * self.control[1] + part * part * self.end[1],
        )


def draw_graph(edges: Sequence[GraphEdge], answers: Sequence[GraphEdge] = (), title: str = "") -> str:
    """The SVG of a graph: input edges in grey, answers on top of them in red."""
    shown = [(edge, _ANSWER) for edge in dict.fromkeys(answers)] + [
        (edge, _EDGE) for edge in dict.fromkeys(edges)
    ]
    if len(shown) > MOST_EDGES:
        title = f"{title} (the first {MOST_EDGES} of {len(shown)} edges)".strip()
        shown = shown[:MOST_EDGES]
    names = _around([(edge.src, edge.trg) for edge, _ in shown])
    radius = 100.0 + 10.0 * len(names) + 5.0 * len(shown)
    while True:
        dots = _circle(names, radius)
        labels = {name: _name_box(name, dots[name]) for name in names}
        curves = _curves(shown, dots, radius)
        taken = [*labels.values(), *((x - 9, y - 9, x + 9, y + 9) for x, y in dots.values())]
        places = None if _any_overlap(list(labels.values())) else _place_labels(curves, taken)
        if places is not None:
            break
        radius *= 1.2
    titles = wrap(title, 14, max(2 * radius, 420.0), lines=3, bold=True) if title else []
    everything = [*taken, *places, *_reach(curves)]
    head = 20.0 * len(titles)
    left = min((box[0] for box in everything), default=0.0) - _MARGIN
    top = min((box[1] for box in everything), default=0.0) - _MARGIN - head
    wide = [text_width(line, 14, bold=True) for line in titles]
    width = max([max((box[2] for box in everything), default=0.0) - left, *(line + _MARGIN for line in wide)])
    height = max((box[3] for box in everything), default=0.0) - top + _MARGIN
    body = [
        text_element(_MARGIN, _MARGIN + 8 + 20 * number, line, 14, anchor="start", bold=True)
        for number, line in enumerate(titles)
    ]
    body.append(f'<g transform="translate({-left:.1f} {-top:.1f})">')
    body += [_curve_element(curve) for curve in reversed(curves)]
    body += [_label_element(curve, box) for curve, box in zip(curves, places, strict=True)]
    body += [_vertex_element(name, dots[name], labels[name]) for name in names]
    return document(width + _MARGIN, height, title, [*body, "</g>"])


def _around(pairs: list[tuple[str, str]]) -> list[str]:
    """The vertices in an order around the circle that keeps neighbours near: swaps as long as one helps."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    count = len(names)

    def cost(order: list[str]) -> int:
        place = {name: number for number, name in enumerate(order)}
        steps = (abs(place[src] - place[trg]) for src, trg in pairs)
        return sum(min(step, count - step) for step in steps)

    best = cost(names)
    improved = count <= 2 * MOST_EDGES
    while improved:
        improved = False
        for first in range(count - 1):
            for second in range(first + 1, min(count, first + 8)):
                names[first], names[second] = names[second], names[first]
                found = cost(names)
                if found < best:
                    best, improved = found, True
                else:
                    names[first], names[second] = names[second], names[first]
    return names


def _circle(names: list[str], radius: float) -> dict[str, Point]:
    turn = 2 * pi / max(1, len(names))
    # Starting at the left keeps two vertices side by side, so that their labels lie along the edge.
    return {
        name: (-radius * 1.25 * cos(turn * number), -radius * sin(turn * number))
        for number, name in enumerate(names)
    }


def _name_box(name: str, dot: Point) -> Rectangle:
    """A vertex's name, outside of the circle."""
    x, y = dot
    length = hypot(x, y) or 1.0
    width, height = text_width(_shown(name), _NAME), _NAME * 1.3
    center_x = x + x / length * (_DOT + 8 + width / 2)
    center_y = y + y / length * (_DOT + 8 + height / 2)
    return (center_x - width / 2, center_y - height / 2, center_x + width / 2, center_y + height / 2)


def _shown(name: str) -> str:
    return wrap(name, _NAME, 150.0, lines=1)[0]


def _curves(shown: list[tuple[GraphEdge, str]], dots: dict[str, Point], radius: float) -> list[_Curve]:
    """Edges between the same two vertices bend more and more towards the middle. All bends grow with the circle,
    so that a large enough one has room for all labels."""
    alike = Counter(frozenset((edge.src, edge.trg)) for edge, _ in shown)
    beside: Counter[frozenset[str]] = Counter()
    curves = []
    for edge, color in shown:
        pair = frozenset((edge.src, edge.trg))
        place, count = beside[pair], alike[pair]
        beside[pair] += 1
        start, end = dots[edge.src], dots[edge.trg]
        if edge.src == edge.trg:
            start, control, end = _loop(start, 2 * radius * (place + 1) / (count + 1))
        else:
            control = _control(start, end, place * min(_BEND * radius / 100, 1.2 * radius / count), place)
        curves.append(_Curve(start, control, end, color, wrap(edge.text, _LABEL, 220.0, lines=1)[0]))
    return curves


def _loop(dot: Point, depth: float) -> tuple[Point, Point, Point]:
    """A narrow leaf from a vertex inwards and back."""
    length = hypot(*dot) or 1.0
    inward_x, inward_y = -dot[0] / length, -dot[1] / length
    side_x, side_y = -inward_y * 5, inward_x * 5
    tip = (dot[0] + inward_x * depth, dot[1] + inward_y * depth)
    return (dot[0] + side_x, dot[1] + side_y), tip, (dot[0] - side_x, dot[1] - side_y)


def _control(start: Point, end: Point, bend: float, place: int) -> Point:
    """The control point of a curve whose middle is `bend` away from the straight line, towards the center; on a
    diameter, which has the center on both sides, to the one and the other in turn."""
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    normal = (start[1] - end[1], end[0] - start[0])
    length = hypot(*normal) or 1.0
    inward = 1.0 if normal[0] * middle[0] + normal[1] * middle[1] <= 0 else -1.0
    if hypot(*middle) < length * 1e-9:
        inward = (1.0 if start < end else -1.0) * (1 if place % 2 else -1)
        bend = bend * ((place + 1) // 2) / max(1, place)
    push = 2 * bend * inward / length
    return (middle[0] + normal[0] * push, middle[1] + normal[1] * push)


def _place_labels(curves: list[_Curve], taken: list[Rectangle]) -> list[Rectangle] | None:
    """A place for each curve's label along it, free of `taken` and of the others; None where there is none."""
    taken = list(taken)
    places = []
    for curve in curves:
        width, height = text_width(curve.text, _LABEL) + 6, _LABEL * 1.5
        for part in _PLACES:
            x, y = curve.at(part)
            box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            if not any(_overlap(box, other) for other in taken):
                taken.append(box)
                places.append(box)
                break
        else:
            return None
    return places


def _reach(curves: list[_Curve]) -> list[Rectangle]:
    points = [curve.at(step / 8) for curve in curves for step in range(9)]
    return [(x, y, x, y) for x, y in points]


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _any_overlap(boxes: list[Rectangle]) -> bool:
    return any(_overlap(box, other) for number, box in enumerate(boxes) for other in boxes[:number])


def _curve_element(curve: _Curve) -> str:
    (x0, y0), (cx, cy), (x1, y1) = curve.start, curve.control, curve.end
    length = hypot(x1 - cx, y1 - cy) or 1.0
    ux, uy = (x1 - cx) / length, (y1 - cy) / length
    tip_x, tip_y = x1 - ux * (_DOT + 1), y1 - uy * (_DOT + 1)
    base_x, base_y = tip_x - ux * 9, tip_y - uy * 9
    head = (
        f"{tip_x:.1f},{tip_y:.1f} {base_x - uy * 4:.1f},{base_y + ux * 4:.1f} "
        f"{base_x + uy * 4:.1f},{base_y - ux * 4:.1f}"
    )
    wide = 2.2 if curve.color == _ANSWER else 1.3
    return (
        f'<g class="arrow"><path d="M{x0:.1f} {y0:.1f} Q{cx:.1f} {cy:.1f} {base_x:.1f} {base_y:.1f}" fill="none" '
        f'stroke="{curve.color}" stroke-width="{wide}"/><polygon points="{head}" fill="{curve.color}"/></g>'
    )


def _label_element(curve: _Curve, box: Rectangle) -> str:
    left, top, right, bottom = box
    ground = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" rx="3" '
        'fill="#ffffff" fill-opacity="0.92"/>'
    )
    text = text_element((left + right) / 2, bottom - _LABEL * 0.42, curve.text, _LABEL, fill=curve.color)
    return f'<g class="box">{ground}{text}</g>'


def _vertex_element(name: str, dot: Point, box: Rectangle) -> str:
    left, _, right, bottom = box
    text = text_element((left + right) / 2, bottom - _NAME * 0.3, _shown(name), _NAME)
    return (
        f'<circle cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="{_DOT:g}" fill="#0b5394" stroke="#ffffff" '
        f'stroke-width="1.5"/><g class="name">{text}</g>'
    )
