"""A line chart as SVG: both axes logarithmic, a line for each series, its name at its end. No dependency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 72, 190, 44, 52
INKS = ("#1b6ca8", "#c4451c", "#2e7d32", "#7b3fa0", "#8a6d00", "#44546a", "#b0306a")
NAME_HEIGHT = 15

Series = Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from the power of ten (or the value) below the least to that above the greatest."""

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
    """The chart. Every value is above zero; `show` prints the values on the lower axis."""
    points = [point for line in series.values() for point in line]
    positions = sorted({x for x, _ in points})
    x_axis = Axis(positions[0] / 1.15, positions[-1] * 1.15, LEFT, WIDTH - RIGHT)
    decades = range(
        math.floor(math.log10(min(y for _, y in points))),
        math.ceil(math.log10(max(y for _, y in points))) + 1,
    )
    if len(decades) == 1:
        decades = range(decades[0], decades[0] + 2)
    y_axis = Axis(10.0 ** decades[0], 10.0 ** decades[-1], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, "start", 'font-size="14" font-weight="600"'),
    ]
    for power in decades:
        y = y_axis.at(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#d8dde3"/>')
        label = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts.append(_text(LEFT - 8, y + 4, label, "end"))
    for value in positions:
        x = x_axis.at(value)
        parts.append(f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="#44546a"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 20, show(value), "middle"))
    parts.append(f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#44546a"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_text(16, middle, upward, "middle", f'transform="rotate(-90 16 {middle:.1f})"'))
    ends = {name: y_axis.at(sorted(line)[-1][1]) for name, line in series.items()}
    heights = _spread(ends)
    for number, (name, line) in enumerate(series.items()):
        ink = INKS[number % len(INKS)]
        points_of_line = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(line)]
        line_path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points_of_line)
        parts.append(f'<path d="M{line_path}" fill="none" stroke="{ink}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{ink}"/>' for x, y in points_of_line]
        parts.append(_text(WIDTH - RIGHT + 8, heights[name] + 4, name, "start", f'fill="{ink}"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _spread(ends: Mapping[str, float]) -> dict[str, float]:
    """The heights for the names: where the lines end, moved so that no two names overlap or leave the picture."""
    heights: dict[str, float] = {}
    above = 0.0
    for name, height in sorted(ends.items(), key=lambda item: item[1]):
        heights[name] = above = max(height, above + NAME_HEIGHT)
    excess = max(0.0, above - (HEIGHT - NAME_HEIGHT))
    return {name: height - excess for name, height in heights.items()}


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
