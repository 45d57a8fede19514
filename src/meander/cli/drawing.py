"""Reading answers that a run has written, to draw them."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from meander.errors import InputError


def read_answers(source: str) -> list[dict[str, Any]]:
    """The answer records of a .jsonl file, of its compressed form, or of standard input (`-`)."""
    if source == "-":
        return _records(sys.stdin, "standard input")
    path = Path(source)
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                return _records(lines, source)
        with path.open(encoding="utf-8") as lines:
            return _records(lines, source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{source} cannot be read: {reason}", hint="give a .jsonl file of answers") from None


def _records(lines: Iterable[str], where: str) -> list[dict[str, Any]]:
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or not {"ts", "exp", "op"} <= record.keys():
            raise InputError(
                f"line {number} of {where} is not an answer", hint="give what `meander run --out` has written"
            )
        records.append(record)
    return records
