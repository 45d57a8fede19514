"""Reading the sources that Meander reads itself, whatever their scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from meander.dataflow.files import Meter, local_path
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.registry import check_local_source, checked_ending, file_format, open_url
from meander.dataflow.sources.source import ReadOptions
from meander.dataflow.tabular import Chunk


def open_source(
    url: str,
    *,
    stream: str = "",
    batch_rows: int = 65536,
    time_unit: str = "s",
    meter: Meter | None = None,
    layout: StreamLayout | None = None,
) -> Iterator[Chunk]:
    """The edges of a stream in chunks of at most `batch_rows`, each with the rejects met on the way.

    `layout` says which columns are read, in place of `stream` and `time_unit`. `meter` receives how much of the files
    has been read (of files, not of pipes). Errors that `Source.check` finds are raised at once, others while reading.
    """
    check_local_source(url)
    options = ReadOptions(layout or StreamLayout(stream, time_unit), max(1, batch_rows), meter or Meter())
    source = open_url(url)
    source.check(options.layout)
    return source.chunks(options)


def read_file(path: str, options: ReadOptions) -> Iterator[Chunk]:
    """The edges of one file of a stream; the other files may have properties that it lacks."""
    file = checked_ending(local_path(path, "stream"))
    return file_format(file).read(file, options)


def is_live(url: str) -> bool:
    """Whether a program may still be writing to a source, so that a reader has to wait for it."""
    check_local_source(url)
    return open_url(url).is_live()


def input_size(urls: Iterable[str]) -> int | None:
    """The size of all sources in bytes; None if it is not known, or if there is nothing to count."""
    sizes = [open_url(url).size() for url in urls]
    known = [size for size in sizes if size is not None]
    return sum(known) or None if len(known) == len(sizes) else None
