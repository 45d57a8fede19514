"""The geometry of a picture: boxes apart, texts inside their boxes, arrows clear of boxes.

Widths of characters are those of DejaVu Sans, the widest of the fonts that a viewer is likely to take.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

SVG = "{http://www.w3.org/2000/svg}"
# Thousandths of the font's size, from the space to the tilde.
ADVANCES = """
318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 636
337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 748 787 603 787 695 635
611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 579 278 974
634 612 635 635 411 521 392 634 592 818 592 592 525 636 337 636 838
"""
ADVANCE = {chr(code): int(width) / 1000 for code, width in enumerate(ADVANCES.split(), start=32)}
ADVANCE |= dict.fromkeys("₀₁₂₃₄₅₆₇₈₉", 0.401) | {"\u00a0": 0.318, "∧": 0.732, "σ": 0.634}
BOLD = 1.14


def advance(text: str, size: float, *, bold: bool) -> float:
    return sum(ADVANCE.get(character, 1.0) for character in text) * size * (BOLD if bold else 1.0)


def number(element: ET.Element, name: str) -> float:
    return float(element.get(name, "0"))


def boxes_of(svg: str) -> list[tuple[ET.Element, ET.Element]]:
    root = ET.fromstring(svg)
    return [
        (group, group.find(f"{SVG}rect")) for group in root.iter(f"{SVG}g") if group.get("class") == "box"
    ]


def rectangle(rect: ET.Element) -> tuple[float, float, float, float]:
    x, y = number(rect, "x"), number(rect, "y")
    return x, y, x + number(rect, "width"), y + number(rect, "height")


def text_rectangle(text: ET.Element) -> tuple[float, float, float, float]:
    size = number(text, "font-size")
    width = advance(text.text or "", size, bold=text.get("font-weight") == "bold")
    x, y = number(text, "x"), number(text, "y")
    left = x if text.get("text-anchor") == "start" else x - width / 2
    return left, y - 0.76 * size, left + width, y + 0.24 * size


def overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def check_picture(svg: str) -> None:
    root = ET.fromstring(svg)
    width, height = number(root, "width"), number(root, "height")
    boxes = boxes_of(svg)
    assert boxes
    for (_, first), (_, second) in combinations(boxes, 2):
        assert not overlap(rectangle(first), rectangle(second))
    for group, rect in boxes:
        left, top, right, bottom = rectangle(rect)
        assert 0 <= left <= right <= width
        assert 0 <= top < bottom <= height
        texts = [text_rectangle(text) for text in group.iter(f"{SVG}text")]
        for text in texts:
            assert left - 0.1 <= text[0], "a text leaves its box"
            assert text[2] <= right + 0.1, "a text leaves its box"
            assert top <= text[1] < text[3] <= bottom
        assert not any(overlap(first, second) for first, second in combinations(texts, 2))
    for x, y in arrow_points(root):
        assert 0 <= x <= width
        for _, rect in boxes:
            left, top, right, bottom = rectangle(rect)
            assert not (left < x < right and top + 0.2 < y < bottom - 0.2), "an arrow runs under a box"
    for text in root.iter(f"{SVG}text"):
        left, _, right, _ = text_rectangle(text)
        assert 0 <= left <= right <= width


def arrow_points(root: ET.Element) -> list[tuple[float, float]]:
    """Points along every arrow of a plan: its upright pieces and its curves."""
    points = []
    for group in root.iter(f"{SVG}g"):
        if group.get("class") != "arrow":
            continue
        x = y = 0.0
        for command, rest in re.findall(r"([MLC])([^MLC]*)", group.find(f"{SVG}path").get("d", "")):
            values = list(map(float, rest.split()))
            end_x, end_y = values[-2:]
            for step in range(11):
                part = step / 10
                if command == "C":
                    ax, ay, bx, by = values[:4]
                    weights = (1 - part) ** 3, 3 * (1 - part) ** 2 * part, 3 * (1 - part) * part**2, part**3
                    points.append(
                        (
                            sum(w * v for w, v in zip(weights, (x, ax, bx, end_x), strict=True)),
                            sum(w * v for w, v in zip(weights, (y, ay, by, end_y), strict=True)),
                        )
                    )
                elif command == "L":
                    points.append((x + part * (end_x - x), y + part * (end_y - y)))
            x, y = end_x, end_y
    return points
