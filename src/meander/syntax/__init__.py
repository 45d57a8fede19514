"""Text to regular query, in two languages, and back.

`parse` reads Datalog or G-CORE; both meet in `meander.syntax.query.RegularQuery`. `to_datalog` prints one as
Datalog that parses to the same query.
"""

from __future__ import annotations

from collections.abc import Mapping

from meander.syntax.datalog import parse_datalog
from meander.syntax.printing import to_datalog
from meander.syntax.query import RegularQuery

__all__ = ["parse", "to_datalog"]


def parse(
    text: str,
    *,
    language: str | None = None,
    unit: str = "s",
    views: Mapping[str, RegularQuery] | None = None,
) -> RegularQuery:
    """x"""
    return parse_datalog(text, unit=unit, views=views)
