"""Charts as SVG, without a dependency: logarithmic axes with units, and a name for each series.

The upward axis begins and ends at 1, 2 or 5 times a power of ten, and spans a factor of ten at least, so that noise
does not look like a difference.

`line_chart` has a quantity on both axes, `dot_chart` categories on the lower one, `ranking` many values in
order of size, of which some have names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 84, 190, 44, 52
INKS = ("#1b6ca8", "#c4451c", "#2e7d32", "#7b3fa0", "#8a6d00", "#44546a", "#b0306a", "#00838f")
GRID, AXIS = "#d8dde3", "#44546a"
NAME_HEIGHT = 15
MOST_LINES = 8

Series = Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from one value to another."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)


def line_chart(
    title: str,
    across: str,
    upward: str,
    series: Series,
    *,
    show: Callable[[float], str] = lambda value: f"{value:,g}",
) -> str:
    """A line for each series, its name at its end. Every value is above zero; `show` prints those on the lower
    axis."""
    points = [point for line in series.values() for point in line]
    positions = sorted({x for x, _ in points})
    x_axis = Axis(positions[0] / 1.15, positions[-1] * 1.15, LEFT, WIDTH - RIGHT)
    y_axis = _upward(y for _, y in points)
    parts = _frame(title, across, upward, y_axis)
    for value in positions:
        parts += _tick(x_axis.at(value), show(value))
    ends = {name: y_axis.at(sorted(line)[-1][1]) for name, line in series.items()}
    heights = _spread(ends)
    for number, (name, line) in enumerate(series.items()):
        ink = INKS[number % len(INKS)]
        points_of_line = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(line)]
        line_path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points_of_line)
        parts.append(f'<path d="M{line_path}" fill="none" stroke="{ink}" stroke-width="2"/>')
        parts += [_dot(x, y, ink) for x, y in points_of_line]
        x, y = points_of_line[-1]
        end = WIDTH - RIGHT + 20
        parts.append(_leader(x + 5, y, end, heights[name], ink))
        parts.append(_text(end + 4, heights[name] + 4, name, "start", f'fill="{ink}"'))
    return _whole(parts)


def dot_chart(
    title: str,
    across: str,
    upward: str,
    series: Mapping[str, Mapping[str, float]],
    *,
    rings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """For each series a dot in each category in which it has a value; the names are a legend. Values are above
    zero. A series of `rings` has rings in the color of the series that it names."""
    categories = list(dict.fromkeys(category for dots in series.values() for category in dots))
    y_axis = _upward(value for dots in series.values() for value in dots.values())
    parts = _frame(title, across, upward, y_axis)
    width = (WIDTH - LEFT - RIGHT) / len(categories)
    for position, category in enumerate(categories):
        parts += _tick(LEFT + (position + 0.5) * width, category)
        if position:
            x = LEFT + position * width
            parts.append(
                f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GRID}" stroke-dasharray="2 3"/>'
            )
    step = min(12.0, 0.8 * width / len(series))
    colored = [name for name in series if name not in rings]
    for number, (name, dots) in enumerate(series.items()):
        ink = INKS[colored.index(rings.get(name, name)) % len(INKS)]
        mark = _ring if name in rings else _dot
        shift = (number - (len(series) - 1) / 2) * step
        parts += [
            mark(LEFT + (categories.index(category) + 0.5) * width + shift, y_axis.at(value), ink)
            for category, value in dots.items()
        ]
        y = TOP + 10 + number * (NAME_HEIGHT + 3)
        parts.append(mark(WIDTH - RIGHT + 14, y - 4, ink))
        parts.append(_text(WIDTH - RIGHT + 24, y, name, "start", f'fill="{ink}"'))
    return _whole(parts)


def ranking(title: str, across: str, upward: str, values: Sequence[tuple[float, str]]) -> str:
    """A dot for each value, from the smallest to the greatest; those with a name have it beside them."""
    ordered = sorted(values)
    y_axis = _upward(value for value, _ in ordered)
    parts = _frame(title, across, upward, y_axis)
    width = (WIDTH - LEFT - RIGHT) / len(ordered)
    positions = [
        (LEFT + (position + 0.5) * width, y_axis.at(value), name)
        for position, (value, name) in enumerate(ordered)
    ]
    named = {f"{number}": y for number, (_, y, name) in enumerate(positions) if name}
    heights = _spread(named)
    for number, (x, y, name) in enumerate(positions):
        ink = INKS[1] if name else INKS[0]
        parts.append(_dot(x, y, ink))
        if name:
            height = heights[f"{number}"]
            end = WIDTH - RIGHT + 4
            parts.append(_leader(x, y, end, height, ink))
            parts.append(_text(end + 4, height + 4, name, "start", f'fill="{ink}"'))
    return _whole(parts)


def _upward(values: Iterable[float]) -> Axis:
    """The upward axis, just large enough."""
    known = list(values)
    low = max(value for value in _round_values(min(known) / 10, min(known)))
    high = min(value for value in _round_values(max(known), 10 * max(known)))
    return Axis(low, max(high, 10 * low), HEIGHT - BOTTOM, TOP)


def _round_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 times each power of ten, from `low` to `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return [value for value in values if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]


def _grid_values(axis: Axis) -> list[float]:
    """The values with a line: powers of ten, and what is between them if they are few."""
    values = _round_values(axis.low, axis.high)
    powers = [value for value in values if math.log10(value).is_integer()]
    return values if len(values) <= MOST_LINES else powers


def _frame(title: str, across: str, upward: str, y_axis: Axis) -> list[str]:
    """The title, the grid, and the names of both axes."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, "start", 'font-size="14" font-weight="600"'),
    ]
    for value in _grid_values(y_axis):
        y = y_axis.at(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:,.0f}" if value >= 1 else f"{value:g}", "end"))
    parts.append(f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="{AXIS}"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_text(16, middle, upward, "middle", f'transform="rotate(-90 16 {middle:.1f})"'))
    return parts


def _tick(x: float, label: str) -> list[str]:
    return [
        f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="{AXIS}"/>',
        _text(x, HEIGHT - BOTTOM + 20, label, "middle"),
    ]


def _spread(ends: Mapping[str, float]) -> dict[str, float]:
    """The heights for the names: where the lines end, moved so that no two names overlap or leave the picture."""
    heights: dict[str, float] = {}
    above = 0.0
    for name, height in sorted(ends.items(), key=lambda item: item[1]):
        heights[name] = above = max(height, above + NAME_HEIGHT)
    excess = max(0.0, above - (HEIGHT - NAME_HEIGHT))
    return {name: height - excess for name, height in heights.items()}


def _leader(x: float, y: float, end: float, height: float, ink: str) -> str:
    """A thin line from a dot to its name."""
    return f'<path d="M{x:.1f} {y:.1f}L{end} {height:.1f}" stroke="{ink}" stroke-width="0.7"/>'


def _ring(x: float, y: float, ink: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="white" stroke="{ink}" stroke-width="1.6"/>'


def _dot(x: float, y: float, ink: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{ink}"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _whole(parts: Sequence[str]) -> str:
    return "\n".join([*parts, "</svg>"]) + "\n"
