"""A sink, a source or a file format is a class and a line in a registry: nothing else knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import meander
from meander.dataflow.answers import Answers, AnswerSchema
from meander.dataflow.edges import as_text
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sinks.registry import SINKS, Entry, sink_key
from meander.dataflow.sinks.sink import Encoding, Sink, SinkContext
from meander.dataflow.sinks.writer import open_answers
from meander.dataflow.sources.registry import FORMATS, SOURCES, needs_spark
from meander.dataflow.sources.source import FileFormat, ReadOptions, Source
from meander.dataflow.tabular import Chunk, from_tuples
from meander.errors import ArgumentError

WRITTEN: list[Any] = []


class Counter(Sink[Iterable[Any]]):
    """Notes the number of rows of each batch."""

    encoding = Encoding.TABLES

    @classmethod
    def open(cls, target: Any, context: SinkContext) -> Counter:
        WRITTEN.append((target, context.schema))
        return cls()

    def write(self, batch: int, answers: Iterable[Any]) -> None:
        WRITTEN.append((batch, sum(table.num_rows for table in answers)))

    def finish(self) -> None:
        WRITTEN.append("finished")


class Sequence(Source):
    """A chain of edges, as long as the URL names."""

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        if not self.url.partition(":")[2].isdigit():
            raise ArgumentError(f"not a number of edges: {self.url}")

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        length = int(self.url.partition(":")[2])
        return from_tuples(((n, "a", n + 1, n) for n in range(length)), stream=options.stream)


def test_a_sink_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS, "count:", Entry(f"{__name__}:Counter"))
    WRITTEN.clear()
    vertices = as_text(["x", "y"])
    times = np.arange(2)
    answers = Answers("A", (vertices, vertices), times, times + 9, np.ones(2, np.int8))
    with open_answers("count:anything", AnswerSchema(2)) as sink:
        sink.write(answers)
        sink.write(answers)
    assert [("count:anything", AnswerSchema(2)), (0, 2), (1, 2), "finished"] == WRITTEN


def test_a_source_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "chain:", Entry(f"{__name__}:Sequence"))
    query = "STREAM s WINDOW 100 Answer(x, y) <- a+(x, y)."
    assert len(list(meander.run(query, "chain:4"))) == 4 + 3 + 2 + 1
    with pytest.raises(ArgumentError, match="not a number of edges: chain:x"):
        meander.run(query, "chain:x")


def test_every_entry_can_be_loaded() -> None:
    assert all(issubclass(entry.load(), Sink) for entry in SINKS.values())
    assert all(issubclass(entry.load(), Source) for entry in SOURCES.values())
    assert all(issubclass(known.entry.load(), FileFormat) for known in FORMATS.values())


def test_only_what_needs_spark_is_kept_from_the_local_runner() -> None:
    assert needs_spark("kafka://host:1/topic")
    assert not needs_spark("kafka.tsv")
    assert {key for key, entry in SINKS.items() if entry.spark_only} == {"kafka:", "format:", "function"}
    assert sink_key(lambda frame, batch: None) == "function"
    assert sink_key({"format": "delta"}) == "format:"
    with pytest.raises(ArgumentError, match="not a sink: 7"):
        sink_key(7)
