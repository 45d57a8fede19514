"""A proof as a picture: a tree from left to right, the answer on the left, edges of the input on the right.

Each tuple has its label on the arrow between its two ends; an edge of the input has its own interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meander.drawing.paths import format_time
from meander.drawing.text import document, text_element, text_width, wrap

MOST_TUPLES = 400
"""A picture of a larger proof leaves out what is below the tuples that come first, level by level."""

_MARGIN, _COLUMN_GAP, _ROW_GAP, _BAND = 24.0, 46.0, 12.0, 18.0
_NAME, _TIME, _TITLE = 13.0, 11.5, 15.0
_WIDEST, _PADDING, _LONGEST_TITLE = 420.0, 12.0, 900.0
_TEXT, _FAINT, _LINE = "#1f2328", "#57606a", "#8c959f"
_DERIVED, _INPUT = ("#eef4fb", "#0b5394"), ("#eef8f0", "#1a7f37")  # fill and stroke


def proof_text(node: Mapping[str, Any]) -> str:
    """A tuple of a proof on one line: `u -label→ v`, the vertices of an answer, and the named values."""
    if "edge" in node:
        src, label, trg = node["edge"]
        text = f"{src} -{label}→ {trg}"
    elif "vertex" in node:
        text = f"{node['vertex'][1]}({node['vertex'][0]})"
    else:
        text = f"{node['label']}({', '.join(map(str, node['answer']))})"
    values = node.get("properties") or {}
    text += "".join(f"  {name}: {value}" for name, value in values.items())
    return text + ("  (the empty path)" if node.get("because") == [] else "")


def interval_text(node: Mapping[str, Any], unit: str) -> str:
    """`[ts, exp)`, with the times as people write them."""
    exp = "…" if node["exp"] is None else format_time(node["exp"], unit)
    return f"[{format_time(node['ts'], unit)}, {exp})"


@dataclass(slots=True)
class _Box:
    """A tuple on the picture: its lines of text, its column, and its place in it."""

    name: str
    time: str
    column: int
    is_input: bool
    below: list[_Box]
    y: float = 0.0

    @property
    def width(self) -> float:
        return 2 * _PADDING + max(text_width(self.name, _NAME), text_width(self.time, _TIME))

    @property
    def height(self) -> float:
        return 44.0 if self.time else 30.0


def draw_proof(proof: Mapping[str, Any], title: str = "", *, unit: str = "s") -> str:
    """The SVG of a proof, as an answer record has it."""
    root, boxes = _boxes(proof, unit)
    y = _MARGIN
    body: list[str] = []
    width = 320.0
    for line in wrap(title, _TITLE, _LONGEST_TITLE, lines=3, bold=True) if title else []:
        body.append(text_element(_MARGIN, y + 14, line, _TITLE, anchor="start", bold=True))
        width = max(width, 2 * _MARGIN + text_width(line, _TITLE, bold=True))
        y += 22
    bottom = _stack(root, y + _BAND / 2)
    widths: dict[int, float] = {}
    for box in boxes:
        widths[box.column] = max(widths.get(box.column, 0.0), box.width)
    left = [_MARGIN]
    for column in range(len(widths)):
        left.append(left[-1] + widths[column] + _COLUMN_GAP)
    for box in boxes:
        x, middle = left[box.column], box.y + box.height / 2
        for lower in box.below:
            start, end, to = x + box.width, left[lower.column], lower.y + lower.height / 2
            turn = left[lower.column] - _COLUMN_GAP / 2
            body.append(
                f'<path class="because" d="M{start:.1f} {middle:.1f}H{turn:.1f}V{to:.1f}H{end:.1f}" '
                f'stroke="{_LINE}" stroke-width="1.2" fill="none"/>'
            )
    for box in boxes:
        body += _draw(box, left[box.column])
    width = max(width, left[-1] - _COLUMN_GAP + _MARGIN)
    return document(width, bottom + _MARGIN, title, body)


def _boxes(proof: Mapping[str, Any], unit: str) -> tuple[_Box, list[_Box]]:
    """The boxes of a proof, level by level; only the first, and edges of the input, have a time of their own."""

    def box_of(node: Mapping[str, Any], column: int) -> _Box:
        (name,) = wrap(proof_text(node), _NAME, _WIDEST, lines=1)
        is_input = "because" not in node
        return _Box(name, interval_text(node, unit) if is_input or not column else "", column, is_input, [])

    root = box_of(proof, 0)
    boxes, level = [root], [(root, proof)]
    while level:
        below = [(box, node) for box, upper in level for node in upper.get("because", ())]
        level = []
        if len(boxes) + len(below) > MOST_TUPLES:
            for box in {id(box): box for box, _ in below}.values():
                box.name += "  …"
            break
        for box, node in below:
            lower = box_of(node, box.column + 1)
            box.below.append(lower)
            boxes.append(lower)
            level.append((lower, node))
    return root, boxes


def _stack(root: _Box, top: float) -> float:
    """Place a tuple beside the middle of what is below it; returns the bottom of all of them."""
    bottom = top
    pending: list[tuple[_Box, bool]] = [(root, False)]
    while pending:
        box, is_entered = pending.pop()
        if not box.below:
            box.y = bottom
            bottom += box.height + _ROW_GAP
        elif not is_entered:
            pending.append((box, True))
            pending += [(lower, False) for lower in reversed(box.below)]
        else:
            first, last = box.below[0], box.below[-1]
            box.y = (first.y + last.y + last.height - box.height) / 2
            # A tall box beside a low one.
            bottom = max(bottom, box.y + box.height + _ROW_GAP)
    return bottom - _ROW_GAP


def _draw(box: _Box, x: float) -> Sequence[str]:
    fill, stroke = _INPUT if box.is_input else _DERIVED
    parts = [
        '<g class="box">',
        f'<rect x="{x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:g}" rx="8" '
        f'fill="{fill}" stroke="{stroke}"/>',
        text_element(x + _PADDING, box.y + 19, box.name, _NAME, anchor="start", fill=_TEXT),
    ]
    if box.time:
        parts.append(text_element(x + _PADDING, box.y + 36, box.time, _TIME, anchor="start", fill=_FAINT))
    return [*parts, "</g>"]
