"""What a source is, to both runners, and what a file format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meander.dataflow.files import Meter
from meander.dataflow.tabular import Chunk
from meander.errors import ArgumentError

TIME_UNITS = ("s", "ms", "us")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a stream: its name, the most rows of a chunk, the unit of times, and where to count bytes."""

    stream: str = ""
    batch_rows: int = 65536
    time_unit: str = "s"
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        if self.time_unit not in TIME_UNITS:
            raise ArgumentError(f"invalid unit of time: {self.time_unit}", hint="--time-unit is s, ms or us")


class Source(ABC):
    """Where the edges of a stream come from: a path, or a URL with a scheme of its own.

    A source is read by Meander (`chunks`, in either runner) or by Spark (`records`, for a source that needs Spark).
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def check(self, *, follow: bool = False) -> None:
        """Refuse what cannot be read. Called before a run has an output, and before Spark starts.

        With `follow` the source may still be empty.
        """

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        """The edges in chunks of at most `batch_rows`."""
        raise NotImplementedError

    def is_live(self) -> bool:
        """Whether a program may still be writing to the source, so that a reader has to wait for it."""
        return True

    def size(self) -> int | None:
        """The number of bytes that will be read, to show progress; None if it is not known."""
        return None

    def records(self, spark: Any) -> Any:
        """A streaming DataFrame with one column of bytes, each an edge as JSON or with tabs between its fields."""
        raise NotImplementedError

    def spark_settings(self) -> dict[str, str]:
        """Settings that a Spark session needs for this source, if Meander starts it."""
        return {}


class FileFormat(ABC):
    """How edges are written in a file."""

    row_hint: str
    """What a row has to look like, for the message about one that cannot be used."""

    @abstractmethod
    def check(self, path: Path) -> None:
        """Refuse a file that cannot be opened or that has not the columns of edges."""

    @abstractmethod
    def read(self, path: Path, options: ReadOptions) -> Iterator[Chunk]:
        """The edges of a file in chunks; the meter counts the bytes that were read of it."""

    @abstractmethod
    def column_names(self, path: Path) -> list[str]:
        """The names of its columns, if it has names; none if it cannot be read, which `check` reports."""
