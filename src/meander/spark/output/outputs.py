"""The outputs of a run: a sink for each query, and one for rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from meander.dataflow.answers import answer_schema
from meander.dataflow.files import is_kafka
from meander.spark.messages import Kind
from meander.spark.output.spark_sink import SparkSink, check_format
from meander.spark.output.spool import contents
from meander.spark.sinks import Record, Rejects, Sink, open_sink

REJECTS = "rejects of all"
"""The name of the record of rejects, which no query can have."""


@dataclass(frozen=True)
class SinkRecords:
    """The folder of a checkpoint in which each sink records how far it has written.

    `known` are the sinks that earlier starts have recorded; `held` holds the locks of outputs.
    """

    folder: Path
    known: frozenset[str]
    overwrite: bool
    held: ExitStack

    def record(self, name: str) -> Record:
        return Record(self.folder / f"{name}.json", name in self.known, self.overwrite, self.held)

    @property
    def names(self) -> list[str]:
        return [path.stem for path in self.folder.glob("*.json")]


@dataclass(frozen=True)
class AnswerShape:
    """The answers of a query: how many vertices, with paths or without, all vertices integers or not."""

    arity: int
    paths: bool
    integers: bool


@dataclass
class Outputs:
    """Where the answers of each query, and rejects, are written."""

    sinks: dict[str, Sink | SparkSink] = field(default_factory=dict)
    rejects: Rejects | None = None

    @property
    def formats(self) -> dict[str, str]:
        """By query: how cells encode its answers."""
        return {name: sink.how for name, sink in self.sinks.items()}

    def _own(self) -> Iterator[Sink | Rejects]:
        """The outputs that Meander writes itself."""
        for sink in self.sinks.values():
            if not isinstance(sink, SparkSink):
                yield sink
        if self.rejects is not None:
            yield self.rejects

    def begin(self) -> None:
        """Everything has been checked: empty the outputs that are to be replaced."""
        for output in self._own():
            output.begin()

    def write(self, outputs: DataFrame, rows: Sequence[Row], batch: int) -> None:
        """Write a batch: `outputs` are the rows of the cells as a DataFrame, `rows` the same, collected."""
        for name, sink in self.sinks.items():
            if isinstance(sink, SparkSink):
                sink.write(outputs, name, batch)
        for name, sink in self.sinks.items():
            if not isinstance(sink, SparkSink):
                answers = [
                    row for row in rows if row.kind in (Kind.ANSWERS, Kind.SPOOLED) and row.query == name
                ]
                with contents(answers) as parts:
                    sink.write(batch, parts)
        if self.rejects is not None:
            self.rejects.write(batch, [bytes(row.data) for row in rows if row.kind == Kind.REJECTS])

    @property
    def need_frame(self) -> bool:
        """Whether a sink reads the rows as a DataFrame."""
        return any(isinstance(sink, SparkSink) for sink in self.sinks.values())

    def finish(self) -> None:
        """The input has ended, and no batch follows."""
        for output in self._own():
            output.finish()


def open_outputs(
    sinks: Mapping[str, Any],
    shapes: Mapping[str, AnswerShape],
    rejects: Any,
    records: SinkRecords,
    *,
    bounded: bool,
    spark: Callable[[], SparkSession],
) -> Outputs:
    """Open the sinks of a start, by query, and check them, without changing what they hold.

    `spark` returns the Spark session, which is started if a sink needs it.
    """
    outputs = Outputs()
    for name, target in _in_order(sinks, shapes):
        shape = shapes[name]
        if isinstance(target, str | Path) and not is_kafka(str(target)):
            schema = answer_schema(shape.arity, paths=shape.paths)
            outputs.sinks[name] = open_sink(str(target), records.record(name), bounded=bounded, empty=schema)
            continue
        if isinstance(target, Mapping) and "format" in target:
            check_format(spark(), str(target["format"]))
        outputs.sinks[name] = SparkSink.of(target, shape.arity, paths=shape.paths, integers=shape.integers)
    if rejects is not None:
        lines = open_sink(str(rejects), records.record(REJECTS), bounded=bounded, empty=pa.schema([]))
        outputs.rejects = Rejects(lines)
    return outputs


def _in_order(sinks: Mapping[str, Any], names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        if sinks.get(name) is not None:
            yield name, sinks[name]
