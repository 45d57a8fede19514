"""The outputs of a run: a sink for each query, and one for rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.sinks.merging import merge_blocks, merge_tables
from meander.dataflow.sinks.registry import open_sink
from meander.dataflow.sinks.sink import Encoding, Sink, SinkContext
from meander.dataflow.sinks.writer import reject_lines
from meander.spark.checkpoint.storage import Location, children
from meander.spark.edge_codec import decode_rejects
from meander.spark.messages import Kind
from meander.spark.output.dataframes import DataFrameSink, answers_of_query
from meander.spark.output.encode import decode_table
from meander.spark.output.journal import CheckpointJournal
from meander.spark.output.spool import contents

REJECTS = "rejects of all"
"""The name of the journal of rejects, which no query can have."""


@dataclass(frozen=True)
class SinkOpener:
    """Opens the sinks of a start; each has a journal in `folder`.

    `known` are the sinks that earlier starts have recorded; `held` holds the locks of outputs, and closes sinks.
    `spark` returns the Spark session, which is started if a sink needs it.
    """

    folder: Location
    known: frozenset[str]
    overwrite: bool
    bounded: bool
    held: ExitStack
    spark: Callable[[], SparkSession]

    def open(self, name: str, target: Any, schema: AnswerSchema) -> Sink[Any]:
        journal = CheckpointJournal(
            self.folder / f"{name}.json",
            expected=name in self.known,
            overwrite=self.overwrite,
            locks=self.held,
        )
        sink = open_sink(target, SinkContext(schema, journal, bounded=self.bounded, spark=self.spark))
        self.held.callback(sink.close)
        return sink

    @property
    def names(self) -> list[str]:
        """The sinks that have a journal."""
        return [path.stem for path in children(self.folder, ".json")]


@dataclass
class Outputs:
    """Where the answers of each query, and rejects, are written."""

    sinks: dict[str, Sink[Any]] = field(default_factory=dict)
    rejects: Sink[Any] | None = None

    @property
    def encodings(self) -> dict[str, str]:
        """By query: how cells encode its answers."""
        return {name: sink.encoding for name, sink in self.sinks.items()}

    def _all(self) -> Iterator[Sink[Any]]:
        yield from self.sinks.values()
        if self.rejects is not None:
            yield self.rejects

    def begin(self) -> None:
        """Everything has been checked: empty the outputs that are to be replaced."""
        for sink in self._all():
            sink.begin()

    @property
    def need_frame(self) -> bool:
        """Whether a sink reads the rows as a DataFrame."""
        return any(isinstance(sink, DataFrameSink) for sink in self.sinks.values())

    def write(self, outputs: DataFrame, rows: Sequence[Row], batch: int) -> None:
        """Write a batch: `outputs` are the rows of the cells as a DataFrame, `rows` the same, collected."""
        for name, sink in self.sinks.items():
            if isinstance(sink, DataFrameSink):
                sink.write(batch, answers_of_query(outputs, name, sink.schema))
        for name, sink in self.sinks.items():
            if isinstance(sink, DataFrameSink):
                continue
            answers = [row for row in rows if row.kind in (Kind.ANSWERS, Kind.SPOOLED) and row.query == name]
            with contents(answers) as blocks:
                if sink.encoding == Encoding.LINES:
                    sink.write(batch, merge_blocks(blocks))
                else:
                    sink.write(batch, merge_tables([decode_table(block) for block in blocks]))
            if sink.done:
                raise BrokenPipeError  # nobody reads the answers any more
        if self.rejects is not None:
            encoded = [bytes(row.data) for row in rows if row.kind == Kind.REJECTS]
            self.rejects.write(batch, [reject_lines(decode_rejects(data)) for data in encoded])

    def finish(self) -> None:
        """The input has ended, and no batch follows."""
        for sink in self._all():
            sink.finish()


def open_outputs(
    opener: SinkOpener, sinks: Mapping[str, Any], schemas: Mapping[str, AnswerSchema], rejects: Any
) -> Outputs:
    """Open and check the sinks, by query, without changing what the outputs hold."""
    opened = {
        name: opener.open(name, sinks[name], schema)
        for name, schema in schemas.items()
        if sinks.get(name) is not None
    }
    return Outputs(opened, None if rejects is None else opener.open(REJECTS, rejects, AnswerSchema()))
