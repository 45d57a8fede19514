"""Columns of input files that Meander does not read, so that a person can be told of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from meander.dataflow.edges import shown
from meander.dataflow.files import input_files, open_bytes
from meander.errors import InputError, MeanderError

FIELDS = ("src", "label", "trg", "ts", "op")
LONGEST_LINE = 1 << 20
MOST_FILES = 100


def extra_columns(place: str) -> Iterator[tuple[Path, list[str]]]:
    """The first file of a stream that has columns which nothing reads, and their names.

    Of a text file only the first line is looked at; pipes and other places than files are not.
    """
    try:
        files = input_files(place)
    except MeanderError:
        return
    for path in files[:MOST_FILES]:
        if not path.is_file():
            continue
        names = [name for name in column_names(path) if name and name not in FIELDS]
        if names:
            yield path, names
            return


def column_names(path: Path) -> list[str]:
    """The columns of a file, as far as it has any; what cannot be read is for the reader to report."""
    if path.name.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return []
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        return [one.strip() for one in next(csv.reader([first_line(path)]), [])]
    if name.endswith(".jsonl"):
        try:
            fields = json.loads(first_line(path))
        except (ValueError, RecursionError):
            return []
        return list(fields) if isinstance(fields, dict) else []
    return []


def first_line(path: Path) -> str:
    """The first line of a text file that is not empty."""
    try:
        reader = open_bytes(path)
    except InputError:
        return ""
    content = b""
    try:
        while len(content) < LONGEST_LINE and b"\n" not in content.lstrip(b"\r\n"):
            block = reader.read(1 << 16)
            if not block:
                break
            content += block
    finally:
        reader.close()
    return shown(content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").partition(b"\n")[0]).rstrip("\r")
