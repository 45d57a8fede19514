"""Reading the sources that Meander reads itself, whatever their scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from meander.dataflow.files import Meter
from meander.dataflow.sources.registry import check_local_source, open_url
from meander.dataflow.sources.source import ReadOptions
from meander.dataflow.tabular import Chunk


def open_source(
    url: str,
    *,
    stream: str = "",
    batch_rows: int = 65536,
    time_unit: str = "s",
    meter: Meter | None = None,
) -> Iterator[Chunk]:
    """The edges of a stream in chunks of at most `batch_rows`, each with the rejects met on the way.

    `meter` receives how much of the files has been read (of files, not of pipes). Errors that `Source.check` finds
    are raised at once, others while reading.
    """
    check_local_source(url)
    options = ReadOptions(stream, max(1, batch_rows), time_unit, meter or Meter())
    source = open_url(url)
    source.check()
    return source.chunks(options)


def is_live(url: str) -> bool:
    """Whether a program may still be writing to a source, so that a reader has to wait for it."""
    check_local_source(url)
    return open_url(url).is_live()


def input_size(urls: Iterable[str]) -> int | None:
    """The size of all sources in bytes; None if it is not known, or if there is nothing to count."""
    sizes = [open_url(url).size() for url in urls]
    known = [size for size in sizes if size is not None]
    return sum(known) or None if len(known) == len(sizes) else None
