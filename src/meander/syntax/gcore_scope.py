"""What the queries of one G-CORE text share: streams and views, the rules so far, and the names in use."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from meander.syntax.parsing import TextErrors
from meander.syntax.query import RegularQuery, Rule
from meander.syntax.sources import SourceClause, Sources


class Scope(TextErrors):
    """The regular query under construction."""

    def __init__(self, text: str, views: Mapping[str, RegularQuery]) -> None:
        self.text = text
        self.sources = Sources(text, views, keyword="ON", window="WINDOW(24h)", slide="SLIDE(1h)")
        self.rules: list[Rule] = []
        self.undefined_views: set[str] = set()
        self.names = {"Answer"}

    def fresh(self, name: str) -> str:
        """The name, or the name with a number, that no head and no path has."""
        numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
        unused = next(candidate for candidate in numbered if candidate not in self.names)
        self.names.add(unused)
        return unused

    def declare(self, clause: SourceClause) -> str:
        """Add the stream or view that a MATCH reads; returns its name, which is another one for a stream that is
        read through a second window."""
        clause = self.sources.windowed(clause)
        name = clause.name.value
        if name in self.undefined_views:
            raise self.error(
                f"the view {name} is used before it is defined",
                clause.span,
                "a view can read streams and the views before it; a stream needs a name of its own",
            )
        self.rules += self.sources.declare(clause)
        return name
