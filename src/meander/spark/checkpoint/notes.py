"""Notes: the small files of a checkpoint that Meander reads back, each with a format version and a checksum.

A note is one JSON object: the format of the checkpoint, a checksum, and the fields that it covers. A note that fails
its checksum is never used in part: a cache is rebuilt without it, and any other note is refused by its path.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from meander.errors import StateError

FORMAT = 3
"""The format of checkpoints. The first one had no number and no checksums; the second named a cell's blocks of input
and the messages between stages differently."""

START_OVER = "start over with a new --checkpoint, and another --out or --overwrite"


def write_note(path: Path, fields: dict[str, Any]) -> None:
    """Write the fields so that the file has all of them or does not change."""
    text = json.dumps(fields)
    write_atomically(path, f'{{"format": {FORMAT}, "checksum": {zlib.crc32(text.encode())}, "note": {text}}}')


def read_note(path: Path) -> dict[str, Any]:
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


def damaged(path: Path) -> StateError:
    return StateError(
        f"{path} is damaged: it fails its checksum",
        hint=f"restore the checkpoint from a backup, or {START_OVER}",
    )


def other_format(path: Path | str, version: str) -> StateError:
    return StateError(
        f"{path} is of checkpoint format {version}, and this version of Meander reads and writes format {FORMAT}",
        hint=f"continue with the version of Meander that wrote it, or {START_OVER}",
    )


def missing_part(path: Path) -> StateError:
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


def write_atomically(path: Path, text: str) -> None:
    """The file has all of the text or does not change, even if the machine stops."""
    draft = path.with_name(f".{path.name}.draft")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
