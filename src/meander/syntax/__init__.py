"""Text to regular query, in two languages, and back.

`parse` reads Datalog or G-CORE; both meet in `meander.syntax.query.RegularQuery`. `to_datalog` prints one as
Datalog that parses to the same query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from meander.errors import ArgumentError
from meander.syntax.datalog import parse_datalog
from meander.syntax.durations import UNITS
from meander.syntax.parsing import blank_out, check_characters
from meander.syntax.printing import to_datalog
from meander.syntax.query import RegularQuery
from meander.syntax.types import KnownTypes

__all__ = ["guess_language", "parse", "to_datalog"]


def _parse_gcore(
    text: str, *, unit: str, views: Mapping[str, RegularQuery] | None, types: KnownTypes | None
) -> RegularQuery:
    # Queries in Datalog do not wait for this import.
    from meander.syntax.gcore import parse_gcore

    return parse_gcore(text, unit=unit, views=views, types=types)


_PARSERS = {"datalog": parse_datalog, "gcore": _parse_gcore}


def parse(
    text: str,
    *,
    language: str | None = None,
    unit: str = "s",
    views: Mapping[str, RegularQuery] | None = None,
    types: KnownTypes | None = None,
) -> RegularQuery:
    """The regular query of a text in Datalog or G-CORE.

    `language` is "datalog", "gcore", or None to guess from the text. Durations are converted to `unit`, the
    time unit of the streams: "s", "ms" or "us". `views` are the queries that the text may read as streams,
    by name; `types` are the types of properties that the inputs know, by stream. Raises `QueryError`, with the
    position marked in the text, if the text is not a regular query.
    """
    if language not in (None, *_PARSERS):
        raise ArgumentError(f"unknown language {language!r}", hint=f"languages are {', '.join(_PARSERS)}")
    if unit not in UNITS:
        raise ArgumentError(f"unknown time unit {unit!r}", hint=f"time units are {', '.join(UNITS)}")
    check_characters(text)
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    return _PARSERS[language or guess_language(text)](text, unit=unit, views=views, types=types)


def guess_language(text: str) -> str:
    """The language that a text looks like, "datalog" or "gcore", by its first words, or else by its arrows.

    `path(x, y) <- …` is a rule whose head is spelled like a keyword; G-CORE has `-[`, `]-` or `/` at its arrows.
    """
    structure = blank_out(text)
    if re.match(
        r"\s*(?:\w|\.)+\s*\([^()]*\)\s*(?:as\s+\w+\s*)?(?::-|←|<-(?!\s*[\[/]))", structure, re.IGNORECASE
    ):
        return "datalog"
    if re.match(r"\s*(?:graph\s+view|path|construct|match)\b", structure, re.IGNORECASE):
        return "gcore"
    if re.match(r"\s*(?:stream|table)\b", structure, re.IGNORECASE):
        return "datalog"
    return "gcore" if re.search(r"-\[|\]-|-/|/-", structure) else "datalog"
