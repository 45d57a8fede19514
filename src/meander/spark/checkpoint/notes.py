"""Notes: the small files of a checkpoint that Meander reads back, each with a format version and a checksum.

A note is one JSON object: the format of the checkpoint, a checksum, and the fields that it covers. A note that fails
its checksum is never used in part: a cache is rebuilt without it, and any other note is refused by its path.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from meander.errors import StateError
from meander.spark.checkpoint.storage import Location, ObjectPath, write_whole

FORMAT = 3
"""The format of checkpoints. The first one had no number and no checksums; the second named a cell's blocks of input
and the messages between stages differently."""

REQUESTS = 16
"""The requests to a store that are under way at once."""

START_OVER = "start over with a new --checkpoint, and another --out or --overwrite"


def write_note(path: Location, fields: dict[str, Any]) -> None:
    """Write the fields so that the file has all of them or does not change."""
    text = json.dumps(fields)
    note = f'{{"format": {FORMAT}, "checksum": {zlib.crc32(text.encode())}, "note": {text}}}'
    write_whole(path, note.encode())


def read_note(path: Location) -> dict[str, Any]:
    """The fields of a note; refuses another format and what fails its checksum. No note is a FileNotFoundError."""
    try:
        content = json.loads(path.read_bytes())
        version = content.get("format")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, AttributeError, RecursionError):
        raise damaged(path) from None
    if version is None and "checksum" not in content and "note" not in content:
        raise other_format(path, "1")
    if version != FORMAT:
        raise other_format(path, str(version))
    fields = content.get("note")
    if not isinstance(fields, dict) or zlib.crc32(json.dumps(fields).encode()) != content.get("checksum"):
        raise damaged(path)
    return fields


def read_notes(paths: Sequence[Location]) -> list[dict[str, Any]]:
    """The fields of many notes. A request to a store takes long, so there several are under way at once."""
    if not any(isinstance(path, ObjectPath) for path in paths):
        return [read_note(path) for path in paths]
    with ThreadPoolExecutor(REQUESTS) as readers:
        return list(readers.map(read_note, paths))


def damaged(path: Location) -> StateError:
    return StateError(
        f"{path} is damaged: it fails its checksum",
        hint=f"restore the checkpoint from a backup, or {START_OVER}",
    )


def other_format(path: Location | str, version: str) -> StateError:
    return StateError(
        f"{path} is of checkpoint format {version}, and this version of Meander reads and writes format {FORMAT}",
        hint=f"continue with the version of Meander that wrote it, or {START_OVER}",
    )


def missing_part(path: Location) -> StateError:
    """A checkpoint cannot be continued without one of its parts."""
    return StateError(
        f"the checkpoint is not whole: {path} is missing",
        hint=f"restore it from a backup, or {START_OVER}",
    )


def seal(content: bytes) -> bytes:
    """The content behind its checksum."""
    return zlib.crc32(content).to_bytes(4, "little") + content


def unseal(sealed: bytes) -> bytes | None:
    """The content that was sealed; None if it fails its checksum."""
    content = sealed[4:]
    return content if sealed[:4] == zlib.crc32(content).to_bytes(4, "little") else None
