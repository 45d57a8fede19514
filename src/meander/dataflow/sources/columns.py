"""Columns of input files: which of them nothing reads, which are missing, and the types that a source gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from meander.dataflow.layout import EDGE_FIELDS, StreamLayout, ignored_columns
from meander.dataflow.sources.files import input_files
from meander.dataflow.sources.registry import file_format, open_url
from meander.errors import MeanderError
from meander.syntax.values import RESERVED_PROPERTIES, ValueType

MOST_FILES = 100


def extra_columns(url: str, layout: StreamLayout | None = None) -> Iterator[tuple[Path, list[str]]]:
    """The first file of a stream that has columns which nothing reads, and their names.

    Of a text file only the first line is examined; pipes, and URLs that are not files, are not.
    """
    layout = layout or StreamLayout()
    try:
        files = input_files(url)
    except MeanderError:
        return
    for path in files[:MOST_FILES]:
        if not path.is_file():
            continue
        names = list(ignored_columns(layout, file_format(path).column_names(path, layout)))
        if names:
            yield path, names
            return


def property_types(
    columns: Mapping[str, ValueType | None], mapped: Mapping[str, str] | None = None
) -> dict[str, ValueType | None]:
    """The type of each property that rows with these columns can have; None for a type that no property has.

    `mapped` has the column of each field and property whose column has another name.
    """
    types = {name: kind for name, kind in columns.items() if name not in RESERVED_PROPERTIES}
    renamed = {
        name: columns[column]
        for name, column in (mapped or {}).items()
        if name not in EDGE_FIELDS and column in columns
    }
    return types | renamed


class InputTypes(Mapping[str, Mapping[str, ValueType]]):
    """The types of properties by stream, as inputs know them; an input is only asked when its stream is.

    `find` gives the types of a stream; None is a type that no property has.
    """

    def __init__(self, find: Callable[[str], Mapping[str, ValueType | None]]) -> None:
        self.find = find

    def __getitem__(self, stream: str) -> Mapping[str, ValueType]:
        return {name: kind for name, kind in self.find(stream).items() if kind is not None}

    def __iter__(self) -> Iterator[str]:
        return iter(())  # which streams there are is for the query to say

    def __len__(self) -> int:
        return 0


def url_types(url: str, mapped: Mapping[str, str] | None = None) -> dict[str, ValueType | None]:
    """The types of the properties of a path or URL; none if its columns have no types, or it cannot be read yet."""
    try:
        return property_types(open_url(url).column_types(), mapped)
    except MeanderError:  # `check` reports it
        return {}
