"""Reading answers that a run has written, to draw them or to show why they hold."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from meander.errors import InputError


def read_answers(source: str, is_wanted: Callable[[str], bool] | None = None) -> Iterator[dict[str, Any]]:
    """The answer records of a .jsonl file, of its compressed form, or of standard input (`-`), which may be read
    again; of lines that are not wanted only the first is."""
    if source == "-":
        yield from _records(_standard_input(), "standard input", is_wanted)
        return
    path = Path(source)
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from _records(lines, source, is_wanted)
        else:
            with path.open(encoding="utf-8") as lines:
                yield from _records(lines, source, is_wanted)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{source} cannot be read: {reason}", hint="give a .jsonl file of answers") from None


@cache
def _standard_input() -> list[str]:
    return list(sys.stdin)


def _records(
    lines: Iterable[str], where: str, is_wanted: Callable[[str], bool] | None
) -> Iterator[dict[str, Any]]:
    is_first = True
    for number, line in enumerate(lines, start=1):
        if not line.strip() or not (is_first or is_wanted is None or is_wanted(line)):
            continue
        is_first = False
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or not {"ts", "exp", "op"} <= record.keys():
            raise InputError(
                f"line {number} of {where} is not an answer", hint="give what `meander run --out` has written"
            )
        yield record
