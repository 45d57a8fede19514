"""A run: a Spark query in motion, its sinks, its figures, and its end.

Each batch's output is a few rows, which the driver collects and hands to the sinks of their queries. A batch in
which every cell has reached the end of time is the last one of bounded input.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQueryManager

from meander import errors
from meander.dataflow.edges import INFINITY
from meander.errors import ArgumentError, InputError, MeanderError, StateError
from meander.spark.cells import Job
from meander.spark.chunks import ANSWERS, ERROR, FIGURES, FULL, REJECTS, SPOOLED
from meander.spark.formats import ARROW_INTEGERS, ARROW_STRINGS, answer_type, decode_table, spark_schema
from meander.spark.ledger import END_SIGNAL, LOOK_AGAIN
from meander.spark.notes import START_OVER
from meander.spark.sinks import Rejects, Sink
from meander.spark.spool import contents, empty_spool

RAISED = re.compile(r"meander\.errors\.(\w+): (.*?)(?:\n\s*SQLSTATE|\n\n|\n\tat |\Z)", re.DOTALL)
DAMAGE = re.compile(
    r"Checksum error: \S+|CANNOT_LOAD_STATE_STORE[\w.]*|(?:Incomplete|Malformed) log file \S+|Corruption: .*"
)
"""What Spark says of its own files in a checkpoint where they cannot be read back."""

KEPT = 100


@dataclass
class SparkSink:
    """A sink that Spark writes: a function of (DataFrame, batch number), or a format with its options."""

    take: Callable[[DataFrame, int], Any]
    arity: int
    paths: bool
    integers: bool

    @property
    def how(self) -> str:
        return ARROW_INTEGERS if self.integers else ARROW_STRINGS

    @staticmethod
    def of(given: Any, arity: int, *, paths: bool, integers: bool) -> SparkSink:
        if callable(given):
            take = given
        elif isinstance(given, Mapping) and "format" in given:
            take = format_writer(dict(given))
        elif isinstance(given, str) and given.startswith("kafka://"):
            from meander.spark.kafka import kafka_writer

            take = kafka_writer(given)
        else:
            raise ArgumentError(
                f"{given!r} is no sink\nhint: a path, a function of (DataFrame, batch number), or "
                '{"format": …, …} with Spark\'s options'
            )
        return SparkSink(take, arity, paths, integers)

    def write(self, outputs: DataFrame, query: str, batch: int) -> None:
        chosen = outputs.where((F.col("kind") == ANSWERS) & (F.col("query") == query)).select("data")
        schema = spark_schema(self.arity, paths=self.paths, integers=self.integers)

        def rows(batches: Any) -> Any:
            for one in batches:
                for data in one.column("data"):
                    yield from decode_table(data.as_py()).cast(schema).to_batches()

        kind = answer_type(self.arity, paths=self.paths, integers=self.integers)
        self.take(chosen.mapInArrow(rows, kind), batch)


def format_writer(options: dict[str, Any]) -> Callable[[DataFrame, int], None]:
    kind = options.pop("format")

    def take(frame: DataFrame, batch: int) -> None:
        writer = frame.write.format(kind).mode("append")
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.save()

    return take


def check_format(spark: SparkSession, kind: str) -> None:
    """Refuse a format that this Spark does not know."""
    try:
        spark.read.format(kind).load()
    except Exception as error:  # Spark has no class of its own for this one.
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            return  # It is known, and misses what only reading needs.
        if kind.lower() == "delta":
            raise ArgumentError(
                f"Spark has no Delta: its package is not there, or not made for Spark {spark.version}",
                hint="start Spark with --packages io.delta:delta-spark_2.13:VERSION and Delta's two settings; "
                "delta-spark up to 4.4 is for Spark up to 4.2",
            ) from None
        raise ArgumentError(
            f"Spark does not know the format {kind}", hint="start Spark with the --packages that bring it"
        ) from None


class Run:
    """Queries being answered."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        frame: DataFrame,
        checkpoint: Path,
        sinks: Mapping[str, Sink | SparkSink],
        rejects: Rejects | None,
        metrics: str | None,
        *,
        follow: bool,
        trigger: str | None,
    ) -> None:
        self.spark = spark
        self.job = job
        self.checkpoint = checkpoint
        self.sinks = sinks
        self.rejects = rejects
        self.follow = follow
        self.figures: list[dict[str, Any]] = []
        self.totals = dict.fromkeys(("edges", "answers", "late", "rejected"), 0)
        self.batch_hooks: list[Callable[[dict[str, Any]], None]] = []
        self.notes: list[str] = []  # what the user should know of this start
        self.held = contextlib.ExitStack()  # the locks of the checkpoint and of outputs
        self._ended = threading.Event()
        self._ended_file = checkpoint / "meander" / "ended"
        if self._ended_file.exists():
            self._ended.set()
        self._error: MeanderError | None = None
        self._level: Any = None  # of Spark's log, where it was told to be quiet
        self._metrics = Metrics(spark.streams, metrics) if metrics is not None else None
        empty_spool(job.spool)
        writer = frame.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(checkpoint / "spark")
        )
        if trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query = writer.queryName(f"meander-{job.run[:8]}").start()
        if self._metrics is not None:
            self._metrics.watch(str(self.query.id))

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.query for result in self.job.plan.results))

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def wait(self, timeout: float | None = None) -> bool:
        """Until bounded input has ended, the run is stopped or fails; False if `timeout` seconds passed first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ended.wait(0.02):
            if not self.query.isActive:
                self.release_if_over()
                self._raise()
                return True
            if deadline is not None and time.monotonic() > deadline:
                return False
        # The last batch is committed before the query is stopped, so that a restart finds it done.
        with self._errors():
            self.query.processAllAvailable()
        with self.held:
            self._stop_query()
            if self._error is not None:
                raise self._error
            for sink in self.sinks.values():
                if not isinstance(sink, SparkSink):
                    sink.finish()
            if self.rejects is not None:
                self.rejects.finish()
        return True

    def process_available(self) -> None:
        """Until all that is there now has been answered."""
        # Folders are looked at now and then: what has just come is seen after this.
        time.sleep(LOOK_AGAIN)
        with self._errors():
            self.query.processAllAvailable()
        if self._error is not None:
            self.stop()
            raise self._error

    def finish(self) -> None:
        """End the streams: what is there is answered, what is held is released, and the run stops."""
        self.process_available()
        (self.checkpoint / "meander" / "ledger" / END_SIGNAL).touch()
        self.wait()

    def release_if_over(self) -> None:
        """Let others have the checkpoint and the outputs, where this run uses them no longer."""
        if not self.query.isActive:
            self.held.close()

    def stop(self) -> None:
        with self.held:
            self._stop_query()

    def _stop_query(self) -> None:
        self.query.stop()
        if self._level is not None:
            log_level(self.spark, self._level)
            self._level = None
        if self._metrics is not None:
            self._metrics.close()

    def _take(self, outputs: DataFrame, batch: int) -> None:
        """The output of one batch to the sinks."""
        begun = time.perf_counter()
        by_spark = {name: sink for name, sink in self.sinks.items() if isinstance(sink, SparkSink)}
        if by_spark:
            outputs = outputs.persist()
        rows = outputs.collect()
        full = [json.loads(row.data) for row in rows if row.kind == FULL]
        if full:
            # The batch must not count as done; what Spark would say of that is said by the error itself.
            self._error = getattr(errors, full[0]["error"])(full[0]["message"], hint=full[0]["hint"])
            self._level = log_level(self.spark, "OFF")
            raise self._error
        try:
            for name, by_format in by_spark.items():
                by_format.write(outputs, name, batch)
        finally:
            if by_spark:
                outputs.unpersist()
        for name, sink in self.sinks.items():
            if not isinstance(sink, SparkSink):
                answers = [row for row in rows if row.kind in (ANSWERS, SPOOLED) and row.query == name]
                with contents(answers) as parts:
                    sink.write(batch, parts)
        if self.rejects is not None:
            self.rejects.write(batch, [bytes(row.data) for row in rows if row.kind == REJECTS])
        cells = [json.loads(row.data) for row in rows if row.kind == FIGURES]
        self._note(batch, cells, time.perf_counter() - begun)
        damage = next((bytes(row.data).decode() for row in rows if row.kind == ERROR), "")
        if damage:
            self._error = damaged_input(damage)
            self._ended.set()
        if len(cells) == self.job.cells_of_all_stages and all(cell["time"] >= INFINITY for cell in cells):
            self._ended_file.write_text(damage, encoding="utf-8")
            self._ended.set()

    def _note(self, batch: int, cells: list[dict[str, Any]], seconds: float) -> None:
        figures = {
            "batch": batch,
            "edges": sum(cell["edges"] for cell in cells if cell["stage"] == 0),
            "late": sum(cell["late"] for cell in cells),
            "rejected": sum(cell["rejected"] for cell in cells),
            "answers": sum(cell["answers"] for cell in cells),
            "state_rows": sum(cell["state_rows"] for cell in cells),
            "state_bytes": sum(cell["state_bytes"] for cell in cells),
            "seconds": round(seconds, 4),
            "cells": cells,
        }
        self.figures = [*self.figures[1 - KEPT :], figures]
        for name in self.totals:
            self.totals[name] += figures[name]
        if self._metrics is not None:
            self._metrics.add(figures)
        for hook in self.batch_hooks:
            hook(figures)

    @contextlib.contextmanager
    def _errors(self) -> Any:
        try:
            yield
        except StreamingQueryException as error:
            raise (self._error or translate_error(error)) from None

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        error = self.query.exception()
        if error is not None:
            raise translate_error(error)


def damaged_input(text: str) -> InputError:
    """The error that a reader has told in a row."""
    message, _, hint = text.partition("\nhint: ")
    return InputError(message, hint=hint)


def log_level(spark: SparkSession, level: str) -> str:
    """Set from which level on Spark's log speaks of streaming queries; what it was."""
    log4j: Any = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    name = "org.apache.spark.sql.execution.streaming"
    before = str(log4j.LogManager.getLogger(name).getLevel())
    log4j.core.config.Configurator.setLevel(name, log4j.Level.toLevel(level))
    return before


def translate_error(error: Exception) -> MeanderError:
    """The error that a worker raised on purpose, or what Spark says, in its first line."""
    text = str(error)
    found = RAISED.search(text)
    kind = getattr(errors, found.group(1), None) if found is not None else None
    if found is not None and kind is not None:
        message, _, hint = found.group(2).strip().partition("\nhint: ")
        made: MeanderError = kind(message, hint=hint)
        return made
    causes = [line for line in text.splitlines() if line.strip()]
    damage = DAMAGE.findall(text)
    if damage:
        return StateError(
            f"Spark's part of the checkpoint is damaged: {damage[-1]}",  # the last is the cause of those before
            hint=f"restore the checkpoint from a backup, or {START_OVER}",
        )
    return MeanderError(f"the Spark query failed: {causes[0] if causes else type(error).__name__}")


class Metrics(StreamingQueryListener):
    """One line of JSON for each batch: the cells' figures, and what Spark says it took."""

    def __init__(self, streams: StreamingQueryManager, path: str) -> None:
        self.streams = streams
        self.path = path
        self._lock = threading.Lock()
        self._waiting: dict[int, dict[str, Any]] = {}
        self._query = ""
        try:
            self._file: TextIO = open(path, "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
        streams.addListener(self)

    def watch(self, query: str) -> None:
        self._query = query

    def add(self, figures: dict[str, Any]) -> None:
        with self._lock:
            self._waiting[figures["batch"]] = figures

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if str(progress.id) != self._query:
            return
        with self._lock:
            figures = self._waiting.pop(progress.batchId, None)
            if figures is not None:
                figures["spark"] = {
                    "timestamp": progress.timestamp,
                    "durations_ms": dict(progress.durationMs),
                    "input_rows": progress.numInputRows,
                    "commit_ms": sum(one.commitTimeMs for one in progress.stateOperators),
                }
                self._write(figures)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def close(self) -> None:
        """Write what Spark has said nothing of yet, after giving it a moment."""
        deadline = time.monotonic() + 2
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.02)
        with self._lock:
            for figures in self._waiting.values():
                self._write(figures)
            self._waiting.clear()
            if not self._file.closed:
                self._file.close()
                self.streams.removeListener(self)

    def _write(self, figures: dict[str, Any]) -> None:
        if not self._file.closed:
            self._file.write(json.dumps(figures) + "\n")
            self._file.flush()
