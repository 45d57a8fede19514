"""A timeline of answers: one row for each answer, and below it a row for each edge that proves it.

A row has a bar for each interval in which its answer holds or its edge is valid. Intervals are half-open, and drawn
as such: a stroke at the beginning (that instant included), a ring at the end (that instant excluded).
The time of an answer is tinted across the rows of its edges, to show which edge starts it and which ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from meander.drawing.text import document, escape, text_element, text_width, wrap
from meander.syntax.durations import MICROSECONDS

MOST_ANSWERS = 60
"""A longer timeline is truncated to this many answers."""

Interval = tuple[int, int | None]
"""`[ts, exp)`; an `exp` of None is an end that is not known yet."""

_MARGIN, _INDENT, _CHART = 24.0, 16.0, 620.0
_NAMES, _LONGEST_NAME = 150.0, 340.0
_TITLE, _NAME, _SMALL = 15.0, 13.0, 11.0
_TEXT, _FAINT, _GRID = "#1f2328", "#57606a", "#e4e8ec"
_ACCENTS = ("#a3261b", "#0b5394", "#1a6b33", "#5b3a9e", "#7a5b00")
_MOST_TICKS = 11
_TALL = 700.0
"""From this height on the times are written below the rows too."""


@dataclass(frozen=True, slots=True)
class Row:
    """A name, and the intervals in which it holds; those that overlap or meet are one bar."""

    name: str
    intervals: tuple[Interval, ...]

    @property
    def bars(self) -> list[Interval]:
        bars: list[Interval] = []
        for ts, exp in sorted(self.intervals, key=lambda interval: interval[0]):
            if bars and (bars[-1][1] is None or ts <= bars[-1][1]):
                begin, end = bars.pop()
                bars.append((begin, None if exp is None or end is None else max(end, exp)))
            else:
                bars.append((ts, exp))
        return bars


@dataclass(frozen=True, slots=True)
class Answer(Row):
    """An answer with the edges that prove it; answers of one `kind` have one color."""

    kind: str = ""
    proof: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class _Style:
    """Sizes of a row: its height, half of its bar's, and how strong its color is."""

    height: float
    half: float
    opacity: float
    size: float


_ANSWER, _EDGE = _Style(28.0, 7.0, 1.0, _NAME), _Style(20.0, 3.0, 0.45, 12.0)


class _Axis:
    """From time to x, and the ticks between the first and the last time."""

    def __init__(self, intervals: Iterable[Interval], left: float, unit: str) -> None:
        times = [time for interval in intervals for time in interval if time is not None] or [0]
        # An end that is not known lies beyond all times.
        first, last = min(times), max(max(times), min(times) + 1)
        self.left, self.unit = left, unit
        for self.step, self.tick_unit in _steps(unit):
            self.first, self.last = first - first % self.step, last + -last % self.step
            if self._has_room():
                break

    def _has_room(self) -> bool:
        """Whether there are few enough ticks, and none too close for its text."""
        ticks = (self.last - self.first) // self.step
        widest = max(text_width(self.text(time), _SMALL) for time in (self.first, self.last))
        return ticks <= _MOST_TICKS and (ticks == 1 or widest + 12 <= _CHART / ticks)

    def x(self, time: int | None) -> float:
        if time is None:
            return self.left + _CHART
        return self.left + _CHART * (time - self.first) / (self.last - self.first)

    def text(self, time: int) -> str:
        """A time in the unit of the ticks and smaller ones: `26h`, `26h30m`."""
        parts, rest = [], time
        for name in reversed(_STEPS):
            if MICROSECONDS[self.unit] <= MICROSECONDS[name] <= MICROSECONDS[self.tick_unit]:
                amount, rest = divmod(rest, _in_unit(name, self.unit))
                parts += [f"{amount}{name}"] if amount else []
        return "".join(parts) or f"0{self.tick_unit}"

    def interval_text(self, interval: Interval) -> str:
        ts, exp = interval
        return f"[{self.text(ts)}, {'…' if exp is None else self.text(exp)})"

    def draw(self, y: float, bottom: float) -> list[str]:
        """Lines from `y` to `bottom`, each with its time above, and also below if they are long."""
        body = []
        for time in range(self.first, self.last + 1, self.step):
            x = self.x(time)
            body.append(f'<path d="M{x:.1f} {y:.1f}V{bottom:.1f}" stroke="{_GRID}"/>')
            for base_line in [y - 6, bottom + 14] if bottom - y > _TALL else [y - 6]:
                body.append(text_element(x, base_line, self.text(time), _SMALL, fill=_FAINT))
        return body


def draw_timeline(answers: Sequence[Answer], title: str = "", *, unit: str = "s") -> str:
    """The SVG of answers in the order given; times are in `unit`."""
    if len(answers) > MOST_ANSWERS:
        title = f"{title} (the first {MOST_ANSWERS} of {len(answers)} answers)".strip()
        answers = answers[:MOST_ANSWERS]
    names = [_width(answer.name, _ANSWER, bold=True) for answer in answers]
    names += [_width(edge.name, _EDGE) + _INDENT for answer in answers for edge in answer.proof]
    left = 2 * _MARGIN + max([_NAMES, *names])
    rows = [row for answer in answers for row in (answer, *answer.proof)]
    axis = _Axis([bar for row in rows for bar in row.bars], left, unit)
    titles = wrap(title, _TITLE, left + _CHART - _MARGIN, lines=3, bold=True) if title else []
    body = [
        text_element(_MARGIN, _MARGIN + 12 + 20 * number, line, _TITLE, anchor="start", bold=True)
        for number, line in enumerate(titles)
    ]
    top = y = _MARGIN + 20.0 * len(titles) + 24
    colors = dict(zip(dict.fromkeys(answer.kind for answer in answers), _cycle(_ACCENTS), strict=False))
    groups = []
    room = 0.0
    for answer in answers:
        elements, y, right = _group(answer, axis, y, colors[answer.kind])
        groups += elements
        room = max(room, right)
    width = max(room, left + _CHART + _MARGIN) + _MARGIN
    if not answers:
        body.append(text_element(_MARGIN, y, "no answers", _NAME, anchor="start", fill=_FAINT))
        return document(width, y + _MARGIN, title, body)
    body += [*axis.draw(top, y + 4), *groups, *_legend(y + 42, colors)]
    return document(width, y + 42 + _MARGIN, title, body)


def _group(answer: Answer, axis: _Axis, y: float, color: str) -> tuple[list[str], float, float]:
    """An answer and its edges from `y` down; the y of the next answer; the right end of this one."""
    height = _ANSWER.height + _EDGE.height * len(answer.proof)
    body = ['<g class="answer">', f"<title>{escape(answer.name)}</title>"]
    body.append(f'<path d="M{_MARGIN} {y:.1f}H{axis.left + _CHART:.1f}" stroke="#d0d7de"/>')
    for ts, exp in answer.bars if answer.proof else ():
        x, end = axis.x(ts), axis.x(exp)
        body.append(
            f'<rect x="{x:.1f}" y="{y + _ANSWER.height / 2:.1f}" width="{end - x:.1f}" '
            f'height="{height - _ANSWER.height / 2:.1f}" fill="{color}" fill-opacity="0.08"/>'
        )
    right = 0.0
    for row, style in [(answer, _ANSWER), *((edge, _EDGE) for edge in answer.proof)]:
        middle = y + style.height / 2
        bold = style is _ANSWER
        indent = 0.0 if bold else _INDENT
        name = wrap(row.name, style.size, _LONGEST_NAME, lines=1, bold=bold)[0]
        fill = _TEXT if bold else _FAINT
        body.append(
            text_element(
                _MARGIN + indent, middle + 4.5, name, style.size, anchor="start", bold=bold, fill=fill
            )
        )
        elements, reached = _bars(row, axis, middle, style, color)
        body += elements
        right = max(right, reached)
        y += style.height
    return [*body, "</g>"], y + 6, right


def _bars(row: Row, axis: _Axis, y: float, style: _Style, color: str) -> tuple[list[str], float]:
    """The bars of a row, each with its interval as text: within the bar, behind it, or, if neither has room, only as
    the bar's title."""
    body, right = [], 0.0
    bars = row.bars
    for bar, following in pairwise([*bars, None]):
        assert bar is not None
        x, end = axis.x(bar[0]), axis.x(bar[1])
        text = axis.interval_text(bar)
        body.append(f'<g class="bar"><title>{escape(text)}</title>{_bar(x, end, y, bar, style, color)}</g>')
        width = text_width(text, _SMALL)
        behind = end + style.half + 5
        if style is _ANSWER and width <= end - x - 2 * style.half - 6:
            body.append(text_element((x + end) / 2, y + 4, text, _SMALL, fill="#ffffff"))
        elif following is None or behind + width + 12 < axis.x(following[0]):
            body.append(text_element(behind, y + 4, text, _SMALL, anchor="start", fill=_FAINT))
            right = max(right, behind + width)
    return body, right


def _bar(x: float, end: float, y: float, bar: Interval, style: _Style, color: str) -> str:
    half, opacity = style.half, style.opacity
    stroke = f'<rect x="{x - 1:.1f}" y="{y - half - 3:.1f}" width="2.5" height="{2 * half + 6:g}"/>'
    length = f'<rect x="{x:.1f}" y="{y - half:.1f}" width="{end - x:.1f}" height="{2 * half:g}"/>'
    if bar[1] is None:
        points = f"{end:.1f},{y - half - 3:.1f} {end + half + 5:.1f},{y:.1f} {end:.1f},{y + half + 3:.1f}"
        return f'<g fill="{color}" opacity="{opacity:g}">{stroke}{length}<polygon points="{points}"/></g>'
    # The ring of a bar that is shorter than it leaves something of the bar to be seen.
    radius = max(1.5, min(half + 0.5, end - x) - 0.75)
    return (
        f'<g fill="{color}" opacity="{opacity:g}">{stroke}{length}</g>'
        f'<circle cx="{end:.1f}" cy="{y:.1f}" r="{radius:g}" fill="#ffffff" stroke="{color}" stroke-width="1.5" '
        f'stroke-opacity="{min(1.0, opacity + 0.3):g}"/>'
    )


def _legend(y: float, colors: dict[str, str]) -> list[str]:
    """What bars, strokes and rings mean."""
    color = next(iter(colors.values()), _ACCENTS[0])
    body, x = [], _MARGIN
    for style, words in ((_ANSWER, "an answer holds"), (_EDGE, "an edge of its proof is valid")):
        body.append(_bar(x + 1, x + 40, y, (0, 1), style, color))
        body.append(text_element(x + 54, y + 4, words, _SMALL, anchor="start", fill=_FAINT))
        x += 54 + text_width(words, _SMALL) + 24
    words = "from the stroke on, up to but not including the ring"
    body.append(text_element(x, y + 4, words, _SMALL, anchor="start", fill=_FAINT))
    return ['<g class="legend">', *body, "</g>"]


def _width(name: str, style: _Style, *, bold: bool = False) -> float:
    return text_width(wrap(name, style.size, _LONGEST_NAME, lines=1, bold=bold)[0], style.size, bold=bold)


def _cycle(colors: Sequence[str]) -> Iterable[str]:
    return (colors[number % len(colors)] for number in count())


_STEPS = {
    "us": (1, 2, 5, 10, 20, 50, 100, 200, 500),
    "ms": (1, 2, 5, 10, 20, 50, 100, 200, 500),
    "s": (1, 2, 5, 10, 15, 30),
    "m": (1, 2, 5, 10, 15, 30),
    "h": (1, 2, 3, 4, 6, 12),
    "d": (1, 2, 5, 7, 14, 28),
}


def _in_unit(name: str, unit: str) -> int:
    """A unit of time in another that divides it."""
    return MICROSECONDS[name] // MICROSECONDS[unit]


def _steps(unit: str) -> Iterator[tuple[int, str]]:
    """Distances between ticks, from the smallest up, each with the unit in which it is a round number."""
    for name, steps in _STEPS.items():
        if MICROSECONDS[name] >= MICROSECONDS[unit]:
            yield from ((step * _in_unit(name, unit), name) for step in steps)
    yield from ((50 * 2**power * _in_unit("d", unit), "d") for power in count())
