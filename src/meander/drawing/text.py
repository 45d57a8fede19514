"""The width of a text, its line breaks, and its SVG element.

The viewer's font is unknown, so widths are those of a wide one (DejaVu Sans) or a little more: a box of this
width holds the text in narrower fonts too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', 'STIX Two Math', 'Cambria Math', sans-serif"
BOLD = 1.16
"""The assumed width of bold text, relative to regular text."""

_WIDTHS = {
    0.41: " \u00a0!',./:;IJ\\`fijlt|-()[]·",
    0.54: '"_*?crsz₀₁₂₃₄₅₆₇₈₉',
    0.66: "EFKLPSTYabdeghknopquvxy$0123456789{}σβ",
    0.80: "ABCDGHNORQUVXZ&∪∧φ",
    0.86: "#+<=>^~wM→≥∞Φ",
}
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# What XML cannot hold, or a viewer would not show.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


@cache
def _character_width(character: str) -> float:
    if character in _WIDTH:
        return _WIDTH[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or unicodedata.category(character) == "So":
        return 1.4
    return 1.06


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line of text, in the same unit as `size`; at least what common fonts need."""
    return sum(map(_character_width, text)) * size * (BOLD if bold else 1.0)


def wrap(text: str, size: float, width: float, *, lines: int = 8, bold: bool = False) -> list[str]:
    """`text` broken into lines no wider than `width`, at spaces where possible, then after `/` and `|`.

    A text of more than `lines` lines is truncated and ends in `…`.
    """
    wrapped: list[str] = []
    line = ""
    # Only the part that could be shown is measured: a label may be megabytes long.
    longest = int(lines * width / (size * 0.2)) + 1
    for piece in _pieces(printable(text[:longest]), size, width, bold):
        if line and text_width((line + piece).rstrip(), size, bold=bold) > width:
            wrapped.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    if line.strip() or not wrapped:
        wrapped.append(line.rstrip())
    if len(wrapped) > lines or len(text) > longest:
        wrapped = wrapped[:lines]
        last = wrapped[-1]
        while last and text_width(last + "…", size, bold=bold) > width:
            last = last[:-1]
        wrapped[-1] = last + "…"
    return wrapped


def _pieces(text: str, size: float, width: float, bold: bool) -> list[str]:
    """`text` in parts between which a line may end, none wider than `width`."""
    pieces = []
    for word in re.findall(r"[^ /|]*(?:[/|]| +|$)", text):
        part = ""
        for character in word:
            if part and text_width((part + character).rstrip(), size, bold=bold) > width:
                pieces.append(part)
                part = ""
            part += character
        if part:
            pieces.append(part)
    return pieces


def printable(text: str) -> str:
    """`text` without the characters that a picture cannot show."""
    return _UNPRINTABLE.sub("\ufffd", text)


def subscripts(text: str) -> str:
    """`trg1 = src2` → `trg₁ = src₂`"""
    return re.sub(r"\b(src|trg)(\d+)\b", lambda match: match[1] + match[2].translate(_SUBSCRIPTS), text)


def text_element(
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    anchor: str = "middle",
    bold: bool = False,
    fill: str = "#1f2328",
) -> str:
    """One line of text as an SVG element; `y` is its base line."""
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"{weight} '
        f'xml:space="preserve">{escape(text)}</text>'
    )


def escape(text: str) -> str:
    """`text` as character data or attribute value."""
    return (
        printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    )


def document(width: float, height: float, title: str, body: list[str]) -> str:
    """A whole SVG document on a white background."""
    name = escape(title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{name}" font-family="{FONTS}">',
            f"<title>{name}</title>",
            f'<rect class="ground" width="{width:.0f}" height="{height:.0f}" rx="6" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )
