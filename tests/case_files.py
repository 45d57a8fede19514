"""Named cases as text: comments, options, the query, and for each stream its rows as JSON.

    # Why the case is here.
    #! lateness 3
    STREAM social WINDOW 10 SLIDE 1
    Answer(x, y) <- a+(x, y).

    --- social
    ["u", "a", "v", 0]
    {"src": "u", "label": "a", "trg": "v", "ts": 1, "amount": 0.5}

An option is a field of `Case`. What a law finds wrong is printed in this form, to be saved under
`tests/laws/cases/` with a name that states the claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from time import monotonic
from typing import Any

from oracle import Edge
from querytext import read_query
from strategies import Case

OPTIONS = {field.name: field.default for field in fields(Case) if field.name not in ("query", "streams")}


def read_case(file: Path) -> Case:
    text, *parts = file.read_text(encoding="utf-8").split("\n--- ")
    streams = {}
    for part in parts:
        name, *lines = part.splitlines()
        streams[name.strip()] = [row_of(json.loads(line)) for line in lines if line.strip()]
    given = dict(line[2:].split() for line in text.splitlines() if line.startswith("#!"))
    assert given.keys() <= OPTIONS.keys(), f"{file}: unknown options {sorted(given.keys() - OPTIONS.keys())}"
    options = {
        name: value if isinstance(OPTIONS[name], str) else json.loads(value) for name, value in given.items()
    }
    return Case(read_query(text), streams, **options)


def row_of(given: Any) -> Edge:
    """A row of a file: a list, or an object where it has properties."""
    return given if isinstance(given, dict) else tuple(given)


def case_text(case: Case) -> str:
    """The case as a file that `read_case` reads."""
    lines = ["# Say here why this case is worth its name."]
    for name, usual in OPTIONS.items():
        value = getattr(case, name)
        if value != usual:
            lines.append(f"#! {name} {value if isinstance(value, str) else json.dumps(value)}")
    lines += [case.text.rstrip(), ""]
    for name, edges in case.streams.items():
        lines += [f"--- {name}", *(json.dumps(edge, ensure_ascii=False) for edge in edges)]
    return "\n".join(lines) + "\n"


def named(error: BaseException, case: Case) -> None:
    """Let an error show the case in which it arose, ready to be saved."""
    error.add_note(f"save this as tests/laws/cases/WHAT_HOLDS.case:\n\n{case_text(case)}")


def reduced(case: Case, fails: Callable[[Case], bool], seconds: float = 60) -> Case:
    """The same failure with fewer edges: runs of edges go, long ones first, as long as the case still fails."""
    deadline = monotonic() + seconds
    for name in case.streams:
        size = len(case.streams[name]) // 2
        while size:
            at = 0
            while at < len(case.streams[name]) and monotonic() < deadline:
                fewer = replace(case, streams={**case.streams, name: without(case.streams[name], at, size)})
                if fails(fewer):
                    case = fewer
                else:
                    at += size
            size //= 2
    return case


def without(edges: Sequence[Edge], at: int, size: int) -> list[Edge]:
    return [*edges[:at], *edges[at + size :]]
