"""Columns of input files that Meander ignores, so that a run can name them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from meander.dataflow.sources.files import input_files
from meander.dataflow.sources.registry import file_format
from meander.dataflow.tabular import EDGE_FIELDS
from meander.errors import MeanderError

MOST_FILES = 100


def extra_columns(url: str) -> Iterator[tuple[Path, list[str]]]:
    """The first file of a stream that has columns which nothing reads, and their names.

    Of a text file only the first line is examined; pipes, and URLs that are not files, are not.
    """
    try:
        files = input_files(url)
    except MeanderError:
        return
    for path in files[:MOST_FILES]:
        if not path.is_file():
            continue
        names = [name for name in file_format(path).column_names(path) if name and name not in EDGE_FIELDS]
        if names:
            yield path, names
            return
