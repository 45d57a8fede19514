"""Answers with their paths as a picture: a chain of vertices, or a ring if the path ends where it begins.

Each step has its label and, on a time-respecting path, its time. An edge that is read backwards has its arrow so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from meander.drawing.text import document, text_element, text_width, wrap
from meander.syntax.durations import MICROSECONDS, format_duration

MOST_ANSWERS = 30
"""A picture of more answers is truncated to this many."""

_MARGIN, _GAP, _WIDEST = 24.0, 18.0, 980.0
_NAME, _LABEL, _TITLE, _CAPTION = 13.0, 11.5, 15.0, 12.5
_LONGEST_NAME, _LONGEST_CAPTION = 180.0, 900.0
_BOX_HEIGHT, _PADDING, _LEAST_ARROW = 30.0, 12.0, 56.0
_TEXT, _FAINT, _LINE, _FILL, _STROKE = "#1f2328", "#57606a", "#0b5394", "#eef4fb", "#0b5394"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR = timedelta(days=365 * 10) // timedelta(microseconds=1)
"""From here on, in microseconds, a time is shown as a date: it was counted from 1970."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path to the next vertex; `backwards` if its edge leads the other way."""

    label: str
    time: str
    backwards: bool


def draw_paths(answers: Sequence[Mapping[str, Any]], title: str = "", *, unit: str = "s") -> str:
    """The SVG of the records that have a path, one below the other; their fields are those of an answer record."""
    drawn = [answer for answer in answers if answer.get("path")]
    if len(drawn) > MOST_ANSWERS:
        title = f"{title} (the first {MOST_ANSWERS} of {len(drawn)} answers)".strip()
        drawn = drawn[:MOST_ANSWERS]
    y = _MARGIN
    body: list[str] = []
    width = 420.0
    for line in wrap(title, _TITLE, _LONGEST_CAPTION, lines=3, bold=True) if title else []:
        body.append(text_element(_MARGIN, y + 14, line, _TITLE, anchor="start", bold=True))
        y += 22
    if not drawn:
        body.append(text_element(_MARGIN, y + 14, "no answer has a path", _NAME, anchor="start", fill=_FAINT))
        return document(width, y + 14 + _MARGIN, title, body)
    for answer in drawn:
        (caption,) = wrap(caption_of(answer, unit), _CAPTION, _LONGEST_CAPTION, lines=1, bold=True)
        body.append(text_element(_MARGIN, y + 14, caption, _CAPTION, anchor="start", bold=True))
        vertices, steps = walk_of(answer, unit)
        draw = _ring if len(steps) > 1 and answer["src"] == answer["trg"] else _chain
        elements, right, bottom = draw(vertices, steps, y + 26)
        body += ['<g class="path">', *elements, "</g>"]
        width = max(width, right + _MARGIN, text_width(caption, _CAPTION, bold=True) + 2 * _MARGIN)
        y = bottom + _GAP
    return document(width, y - _GAP + _MARGIN, title, body)


def caption_of(answer: Mapping[str, Any], unit: str) -> str:
    """`src label trg  [ts, exp)`, and the named values."""
    exp = "…" if answer.get("exp") is None else format_time(answer["exp"], unit)
    text = f"{answer['src']} {answer['label']} {answer['trg']}  [{format_time(answer['ts'], unit)}, {exp})"
    values = answer.get("properties") or {}
    return text + "".join(f"  {name}: {value}" for name, value in values.items())


def walk_of(answer: Mapping[str, Any], unit: str) -> tuple[list[str], list[Step]]:
    """The vertices of the answer's path from `src` on, and the steps between them."""
    here = answer["src"]
    vertices, steps = [str(here)], []
    for src, label, trg, *time in answer["path"]:
        backwards = src != here
        here = src if backwards else trg
        vertices.append(str(here))
        steps.append(Step(str(label), format_time(time[0], unit) if time else "", backwards))
    return vertices, steps


def format_time(time: int, unit: str) -> str:
    """A time as a date in UTC if it is counted from 1970, and else as a duration."""
    microseconds = time * MICROSECONDS[unit]
    if microseconds < _CALENDAR:
        return format_duration(time, unit)
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return str(time)
    return moment.isoformat(sep=" ", timespec="auto" if moment.microsecond else "seconds").removesuffix(
        "+00:00"
    )


# ---------------------------------------------------------------------------------------------------------
# Chains


def _chain(vertices: Sequence[str], steps: Sequence[Step], top: float) -> tuple[list[str], float, float]:
    """Vertices from left to right, in as many rows as they need."""
    body: list[str] = []
    x, y, right = _MARGIN, top + 14, 0.0
    for number, vertex in enumerate(vertices):
        name, width = _box_of(vertex)
        step = steps[number - 1] if number else None
        arrow = 0.0 if step is None else _arrow_length(step)
        if x + arrow + width > _WIDEST and number:
            x, y = _MARGIN, y + _BOX_HEIGHT + 34
        if step is not None:
            middle = y + _BOX_HEIGHT / 2
            body += _arrow((x, middle), (x + arrow, middle), backwards=step.backwards)
            body.append(text_element(x + arrow / 2, middle - 6, step.label, _LABEL, fill=_FAINT))
            if step.time:
                body.append(text_element(x + arrow / 2, middle + 15, step.time, _LABEL, fill=_FAINT))
        x += arrow
        body += _box(name, x + width / 2, y + _BOX_HEIGHT / 2, width)
        x += width
        right = max(right, x)
    return body, right, y + _BOX_HEIGHT + 10


def _arrow_length(step: Step) -> float:
    return max(_LEAST_ARROW, *(text_width(text, _LABEL) + 22 for text in (step.label, step.time)))


# ---------------------------------------------------------------------------------------------------------
# Rings


def _ring(vertices: Sequence[str], steps: Sequence[Step], top: float) -> tuple[list[str], float, float]:
    """Vertices on a circle, clockwise from the top; the text of a step is outside of it."""
    boxes = [_box_of(vertex) for vertex in vertices[:-1]]
    count = len(boxes)
    texts = max(max(text_width(step.label, _LABEL), text_width(step.time, _LABEL)) for step in steps)
    widest = max(width for _, width in boxes)
    # Neighbors keep room for an arrow between them, whatever the direction.
    radius = max(70.0, (widest + _LEAST_ARROW) / (2 * math.sin(math.pi / max(count, 2))))
    left = _MARGIN + max(texts + 16, widest / 2)
    center = (left + radius, top + _BOX_HEIGHT / 2 + radius + 6)
    centers = [_on_circle(center, radius, number / count) for number in range(count)]
    body: list[str] = []
    for number, step in enumerate(steps):
        start, end = centers[number], centers[(number + 1) % count]
        body += _arrow(
            _leave(start, end, boxes[number][1]),
            _leave(end, start, boxes[(number + 1) % count][1]),
            backwards=step.backwards,
        )
        # Beside the middle of the arrow, away from the center.
        angle = 2 * math.pi * (number + 0.5) / count
        distance = radius * math.cos(math.pi / count) + 12
        x, y = center[0] + distance * math.sin(angle), center[1] - distance * math.cos(angle)
        anchor = "start" if math.sin(angle) > 0.1 else "end" if math.sin(angle) < -0.1 else "middle"
        lines = [text for text in (step.label, step.time) if text]
        # Below the lowest arrow, a long text would run into the boxes at its ends.
        is_lowest = math.cos(angle) < -0.9
        base = y + _BOX_HEIGHT / 2 if is_lowest else y - 7 * (len(lines) - 1)
        body += [
            text_element(x, base + 4 + 14 * line, text, _LABEL, anchor=anchor, fill=_FAINT)
            for line, text in enumerate(lines)
        ]
    for (name, width), (x, y) in zip(boxes, centers, strict=True):
        body += _box(name, x, y, width)
    right = center[0] + radius + max(texts + 16, widest / 2)
    lowest = max(y for _, y in centers)
    return body, right, max(lowest + _BOX_HEIGHT / 2, center[1] + radius * math.cos(math.pi / count) + 48)


def _on_circle(center: Point, radius: float, turn: float) -> Point:
    angle = 2 * math.pi * turn
    return center[0] + radius * math.sin(angle), center[1] - radius * math.cos(angle)


def _leave(start: Point, end: Point, width: float) -> Point:
    """The point at which the line from the center of a box to `end` leaves the box."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    reach = min(
        (width / 2 + 3) / abs(dx) if dx else math.inf, (_BOX_HEIGHT / 2 + 3) / abs(dy) if dy else math.inf
    )
    return start[0] + dx * reach, start[1] + dy * reach


# ---------------------------------------------------------------------------------------------------------
# Parts of both


def _box_of(vertex: str) -> tuple[str, float]:
    """The name as it is shown, and the width of its box."""
    (name,) = wrap(vertex, _NAME, _LONGEST_NAME, lines=1)
    return name, text_width(name, _NAME) + 2 * _PADDING


def _box(name: str, x: float, y: float, width: float) -> list[str]:
    return [
        f'<rect x="{x - width / 2:.1f}" y="{y - _BOX_HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{_BOX_HEIGHT:g}" rx="15" fill="{_FILL}" stroke="{_STROKE}"/>',
        text_element(x, y + 4.5, name, _NAME, fill=_TEXT),
    ]


def _arrow(start: Point, end: Point, *, backwards: bool) -> list[str]:
    tail, head = (end, start) if backwards else (start, end)
    dx, dy = head[0] - tail[0], head[1] - tail[1]
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    base = head[0] - 8 * ux, head[1] - 8 * uy
    wings = [(base[0] + side * 4 * uy, base[1] - side * 4 * ux) for side in (1, -1)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (head, *wings))
    return [
        f'<path d="M{tail[0]:.1f} {tail[1]:.1f}L{base[0]:.1f} {base[1]:.1f}" stroke="{_LINE}" '
        'stroke-width="1.4" fill="none"/>',
        f'<polygon points="{points}" fill="{_LINE}"/>',
    ]
