"""What a source is, to both runners, and what a file format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meander.dataflow.files import Meter
from meander.dataflow.layout import StreamLayout
from meander.dataflow.tabular import Chunk
from meander.syntax.values import ValueType


@dataclass(frozen=True)
class ReadOptions:
    """How to read a stream: the layout of its rows, the most rows of a chunk, and where to count bytes."""

    layout: StreamLayout = field(default_factory=StreamLayout)
    batch_rows: int = 65536
    meter: Meter = field(default_factory=Meter)

    @property
    def stream(self) -> str:
        return self.layout.stream


class Source(ABC):
    """Where the edges of a stream come from: a path, or a URL with a scheme of its own.

    A source is read by Meander (`chunks`, in either runner) or by Spark (`records`, for a source that needs Spark).
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        """Refuse what cannot be read. Called before a run has an output, and before Spark starts.

        With `follow` the source may still be empty, and a property may be in what comes later.
        """

    def column_types(self) -> Mapping[str, ValueType | None]:
        """The columns of a source whose columns have types; None for a type that no property has."""
        return {}

    def column_names(self, layout: StreamLayout) -> Iterable[str]:
        """The names of columns, or of the fields of the first row, as far as they are known before it is read."""
        return ()

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

    fixed_columns = True
    """Whether all rows of a file have the same columns."""

    def hint_for_row(self, text: str) -> str:
        """What to do about a row that cannot be read."""
        return self.row_hint

    @abstractmethod
    def check(self, path: Path, layout: StreamLayout) -> None:
        """Refuse a file that cannot be opened or that has not the columns of edges."""

    def has_header(self, path: Path, layout: StreamLayout) -> bool:
        """Whether a file of text begins with the names of its columns, without which no part of it can be read."""
        return False

    @abstractmethod
    def read(self, path: Path, options: ReadOptions) -> Iterator[Chunk]:
        """The edges of a file in chunks; the meter counts the bytes that were read of it."""

    @abstractmethod
    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        """The names of its columns, if it has names; none if it cannot be read, which `check` reports."""

    def column_types(self, path: Path) -> Mapping[str, ValueType | None]:
        """The columns of a file whose columns have types; None for a type that no property has."""
        return {}
