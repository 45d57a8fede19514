"""What a sink is, to both runners.

A sink writes the answers of one query, batch after batch. It names the encoding in which it wants them, and the
runner encodes: the local runner in its own process, Spark's in the cells, in parallel.

A batch has a number. On Spark a batch that was not committed is run again with the same edges, and written a second
time under the same number: it replaces the first, because it may prove its answers by other paths, and these are what
the cells remember. A sink that cannot take back what it has written (standard output, Kafka) may show the last batch
twice after a crash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.sinks.journal import Journal

Block = bytes | memoryview | Path
"""Lines of JSON in memory, valid until the next block is requested, or in a file."""

Content = TypeVar("Content")


class Encoding(StrEnum):
    """How answers reach a sink, and so what its `write` receives."""

    LINES = "jsonl"
    """An iterable of `Block`s."""

    TABLES = "arrow"
    """An iterable of pyarrow Tables; vertices are integers if all those of the table are, and strings otherwise."""

    STRING_FRAME = "arrow-strings"
    """A Spark DataFrame whose vertices are strings."""

    INTEGER_FRAME = "arrow-integers"
    """A Spark DataFrame whose vertices are integers."""


@dataclass(frozen=True)
class SinkContext:
    """What a sink may need to know when it is opened.

    `bounded`: the input ends, so that `finish` will be called. `spark` returns the Spark session, and starts it if
    need be; there is none in the local runner.
    """

    schema: AnswerSchema = field(default_factory=AnswerSchema)
    journal: Journal = field(default_factory=Journal)
    bounded: bool = True
    spark: Callable[[], Any] | None = None


class Sink(ABC, Generic[Content]):
    """Writes the answers of one query. The calls are `check`, `open`, `begin`, `write` …, `finish`, `close`."""

    encoding: Encoding

    done = False
    """Whether nobody reads the answers any more, so that the run may end."""

    @classmethod
    def check(cls, target: Any) -> None:
        """Refuse a target that cannot work. Called before Spark starts and before any output is opened."""

    @classmethod
    def spark_settings(cls, target: Any) -> dict[str, str]:
        """Settings that a Spark session needs for this sink, if Meander starts it."""
        return {}

    @classmethod
    @abstractmethod
    def open(cls, target: Any, context: SinkContext) -> Sink[Any]:
        """Open an output and check it, without changing what it holds."""

    def begin(self) -> None:
        """Everything has been checked: empty an output that is to be replaced."""

    @abstractmethod
    def write(self, batch: int, answers: Content) -> None:
        """Write a batch. A batch that is repeated replaces the one of the same number."""

    def finish(self) -> None:
        """The input has ended, and no batch follows. A run that is stopped to be resumed does not call this."""

    def close(self) -> None:
        """Release what is open. Always called, also after an error."""
