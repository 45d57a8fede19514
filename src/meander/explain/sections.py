"""An explanation is a list of sections, each a title and lines of plain text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of an explanation. The title of a section that stands alone is empty."""

    title: str
    text: str


def as_text(sections: Iterable[Section]) -> str:
    """Sections one below the other: titles at the margin, their text indented by two."""
    return "\n\n".join(_section_text(section) for section in sections) + "\n"


def _section_text(section: Section) -> str:
    if not section.title:
        return section.text
    return f"{section.title}\n" + indent(section.text)


def indent(text: str, by: int = 2) -> str:
    """Every line moved to the right; empty lines stay empty."""
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 plan`, `2 plans`"""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
