"""Paths: a file, or all files of a folder, in any of the formats of the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from meander.dataflow.files import local_path
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.registry import ENDINGS, check_local_source, checked_ending, file_format
from meander.dataflow.sources.source import ReadOptions, Source
from meander.dataflow.tabular import Chunk
from meander.errors import ArgumentError, InputError
from meander.syntax.values import ValueType


class FileSource(Source):
    """The files of a path, sorted by name."""

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        files = input_files(self.url, follow=follow)
        for path in files:
            if path.is_file():  # what is read from a pipe is gone
                file_format(path).check(path, layout)
        if layout.named_properties and not follow:
            self._check_properties(files, layout)

    def _check_properties(self, files: list[Path], layout: StreamLayout) -> None:
        """Refuse a property that no file has: a file without it has no values of it, and other files may have."""
        names: dict[str, None] = {}
        for path in files:
            if not path.is_file() or not file_format(path).fixed_columns:
                return
            names |= dict.fromkeys(file_format(path).column_names(path, layout))
        if names:
            layout.check_properties(names, self.url)

    def column_types(self) -> Mapping[str, ValueType | None]:
        types: dict[str, ValueType | None] = {}
        for path in input_files(self.url):
            if path.is_file():
                types = {**file_format(path).column_types(path), **types}
        return types

    def column_names(self, layout: StreamLayout) -> list[str]:
        files = (path for path in input_files(self.url) if path.is_file())
        first = next(files, None)
        return [] if first is None else file_format(first).column_names(first, layout)

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        meter = options.meter
        for path in input_files(self.url):
            end = meter.bytes + path.stat().st_size if path.is_file() else None
            yield from file_format(path).read(path, options)
            if end is not None:
                meter.bytes = end

    def is_live(self) -> bool:
        return not all(path.is_file() for path in input_files(self.url))

    def size(self) -> int | None:
        files = input_files(self.url)
        return sum(path.stat().st_size for path in files) if all(path.is_file() for path in files) else None


def input_files(path: str, *, follow: bool = False) -> list[Path]:
    """The files that a `--stream` path names: itself, or all files of a folder, sorted by name.

    A folder to `follow` may be empty for now, and may hold files under other names that are still being copied.
    """
    check_local_source(path)
    root = local_path(path, "stream")
    if follow and root.is_dir():
        return sorted(file for file in _visible(root) if file.is_file() and file.name.endswith(ENDINGS))
    if not root.exists():
        raise InputError(f"{path} does not exist", hint="the path of a stream names a file or a folder")
    if not root.is_dir():
        return [checked_ending(root)]
    entries = sorted(_visible(root))
    if not entries:
        raise InputError(f"the folder {path} has no files", hint="files that begin with . or _ do not count")
    for entry in entries:
        if entry.is_dir():
            raise ArgumentError(
                f"the folder {path} holds another folder, {entry.name}",
                hint="name the folder that has the files",
            )
    return [checked_ending(entry) for entry in entries]


def _visible(folder: Path) -> Iterator[Path]:
    return (entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
