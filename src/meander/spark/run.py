"""A run: a Spark query in motion, its sinks, its figures, and its end.

Each batch's output is a few rows, which the driver collects and hands to the sinks of their queries. A batch in
which every cell has reached the end of time is the last one of bounded input.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

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
from meander.dataflow.edges import INFINITY, Reject
from meander.dataflow.ingest import Jump
from meander.dataflow.sinks import unwritable, writing
from meander.dataflow.tally import Tally, jump_message
from meander.errors import ArgumentError, InputError, MeanderError
from meander.spark.cell.job import Job
from meander.spark.checkpoint.notes import START_OVER, read_note, write_note
from meander.spark.edge_codec import reject_reasons
from meander.spark.formats import ARROW_INTEGERS, ARROW_STRINGS, answer_type, decode_table, spark_schema
from meander.spark.input.ledger import END_SIGNAL, LOOK_AGAIN
from meander.spark.messages import ANSWERS, CHANGED, ERROR, FIGURES, FULL, JUMP, REJECTS, SPOOLED
from meander.spark.output.spool import contents, empty_spool
from meander.spark.sinks import Rejects, Sink
from meander.spark.workers.failures import java_may_have_ended, translate_error

KEPT = 100
DAMAGE = "damage.json"


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
        self.tally = Tally()
        self.state_bytes = 0
        self.bytes_read = 0  # of the files of all streams, since the checkpoint was made
        self.resumed = any((checkpoint / "spark" / "commits").glob("[0-9]*"))
        self.warn: Callable[[str], None] = lambda message: warnings.warn(message, stacklevel=2)
        self._labels: dict[str, bool] = {}
        self._jumped: set[str] = set()
        self.batch_hooks: list[Callable[[dict[str, Any]], None]] = []
        self.notes: list[str] = []  # what the user should know of this start
        self.held = contextlib.ExitStack()  # the locks of the checkpoint and of outputs
        self._ended = threading.Event()
        self._ended_file = checkpoint / "meander" / "ended"
        if self._ended_file.exists():
            self._ended.set()
        self._error: Exception | None = None
        self._last_batch = -1  # the one that ended the run
        self._stopping = False
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
    def totals(self) -> dict[str, int]:
        """Edges, answers, late and rejected since this start."""
        tally = self.tally
        return {
            "edges": tally.edges,
            "answers": tally.answers,
            "late": tally.late,
            "rejected": tally.rejected,
        }

    @property
    def labels_unseen(self) -> list[str]:
        """The labels that the queries read and that no edge has had; none where an earlier run may have seen them."""
        return [] if self.resumed else [label for label, seen in self._labels.items() if not seen]

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def wait(self, timeout: float | None = None) -> bool:
        """Until bounded input has ended, the run is stopped or fails; False if `timeout` seconds passed first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._errors():
            while not self._ended.wait(0.02):
                if not self.query.isActive:
                    self.release_if_over()
                    self._raise()
                    return True
                if deadline is not None and time.monotonic() > deadline:
                    return False
            self._await_commit()
        with self.held:
            self._stop_query()
            if self._error is not None:
                raise self._error
            for sink in self.sinks.values():
                if not isinstance(sink, SparkSink):
                    sink.finish()
            if self.rejects is not None:
                self.rejects.finish()
        if self._metrics is not None and self._metrics.error is not None:
            raise self._metrics.error
        return True

    def _await_commit(self) -> None:
        """Until the batch that ended the run is committed, so that a restart finds it done; later ones may come."""
        if (
            self._last_batch < 0
        ):  # an earlier start has ended the run, and may not have committed its last batch
            self.query.processAllAvailable()
            return
        commit = self.checkpoint / "spark" / "commits" / str(self._last_batch)
        while not commit.exists():
            if not self.query.isActive and not commit.exists():
                self._raise()
                return
            time.sleep(0.02)

    def process_available(self) -> None:
        """Until all that is there now has been answered."""
        # Folders are looked at now and then: what has just come is seen after this.
        time.sleep(LOOK_AGAIN)
        with self._errors():
            self.query.processAllAvailable()
            if self._error is not None:
                raise self._error

    def finish(self) -> None:
        """End the streams: what is there is answered, what is held is released, and the run stops."""
        self.process_available()
        (self.checkpoint / "meander" / "ledger" / END_SIGNAL).touch()
        self.wait()

    def release_if_over(self) -> None:
        """Let others have the checkpoint and the outputs, where this run uses them no longer."""
        active = False
        with java_may_have_ended():
            active = self.query.isActive
        if not active:
            self.held.close()

    def stop(self) -> None:
        with self.held:
            self._stop_query()

    def _stop_query(self) -> None:
        self._stopping = True
        with java_may_have_ended():
            self.query.stop()
        if self._metrics is not None:
            self._metrics.close()

    def _take(self, outputs: DataFrame, batch: int) -> None:
        """The output of one batch to the sinks; the batch does not count as done where that fails."""
        try:
            self._write(outputs, batch)
        except Exception as error:
            # What Spark makes of it is text. What a batch says that is being stopped is of no interest.
            if self._error is None and not self._stopping:
                self._error = error if isinstance(error, BrokenPipeError) else self._translate(error)
            raise

    def _write(self, outputs: DataFrame, batch: int) -> None:
        begun = time.perf_counter()
        by_spark = {name: sink for name, sink in self.sinks.items() if isinstance(sink, SparkSink)}
        if by_spark:
            outputs = outputs.persist()
        rows = outputs.collect()
        full = [json.loads(row.data) for row in rows if row.kind == FULL]
        if full:
            kind = getattr(errors, full[0]["error"])
            raise kind(full[0]["message"], hint=full[0]["hint"])
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
        for row in rows:
            if row.kind == REJECTS:
                for first, count in reject_reasons(bytes(row.data)):
                    self.tally.add_reason(first, count)
            elif row.kind == JUMP:
                edge, ts, before = json.loads(row.data)
                self._warn_of_jump(Jump(Reject(*edge), ts, before))
        cells = [json.loads(row.data) for row in rows if row.kind == FIGURES]
        self._note(batch, cells, time.perf_counter() - begun)
        for row in rows:
            if row.kind not in (ERROR, CHANGED):
                continue
            error = reported_error(bytes(row.data).decode())
            if row.kind == ERROR:
                # Rows that could not be read are lost to this checkpoint; a file that has changed may be put back.
                note_damage(self.checkpoint / "meander", error)
            self._end(batch, error)
        if len(cells) == self.job.cells_of_all_stages and all(cell["time"] >= INFINITY for cell in cells):
            self._ended_file.touch()
            self._end(batch)

    def _end(self, batch: int, error: Exception | None = None) -> None:
        self._error = self._error or error
        self._last_batch = batch
        self._ended.set()

    def _warn_of_jump(self, jump: Jump) -> None:
        """Once for a stream: a cell whose state is rebuilt does not know that it has reported one."""
        if jump.edge.stream not in self._jumped:
            self._jumped.add(jump.edge.stream)
            self.warn(jump_message(jump, self.job.time_unit))

    def _note(self, batch: int, cells: list[dict[str, Any]], seconds: float) -> None:
        self.bytes_read = sum(cell.pop("bytes") for cell in cells)
        for cell in cells:
            for label, seen in cell.pop("labels").items():
                self._labels[label] = self._labels.get(label, False) or seen
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
        self.tally.edges += figures["edges"]
        self.tally.answers += figures["answers"]
        self.state_bytes = figures["state_bytes"]
        if self._metrics is not None:
            self._metrics.add(figures)
        for hook in self.batch_hooks:
            hook(figures)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """What Spark raises within, as the error that a batch has ended with or that it means."""
        try:
            yield
        except Exception as error:
            self.stop()
            if isinstance(error, MeanderError):
                raise
            raise (self._error or self._translate(error)) from None

    def _translate(self, error: Exception) -> MeanderError:
        meant = translate_error(error, [self.checkpoint])
        meant.__cause__ = error
        return meant

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        error = self.query.exception()
        if error is not None:
            raise self._translate(error)


def reported_error(text: str) -> InputError:
    """The error that a reader reported in a row."""
    message, _, hint = text.partition("\nhint: ")
    return InputError(message, hint=hint)


def note_damage(folder: Path, error: InputError) -> None:
    """Note that rows of the input are lost: no later start may continue as if they had not been there."""
    write_note(folder / DAMAGE, {"message": error.message, "hint": error.hint})


def check_damage(folder: Path) -> None:
    """Refuse a checkpoint of which a reader has lost rows."""
    try:
        known = read_note(folder / DAMAGE)
    except FileNotFoundError:
        return
    raise InputError(
        f"a run with this checkpoint could not read all of its input: {known['message']}",
        hint=f"mend the input and {START_OVER}",
    )


class Metrics(StreamingQueryListener):
    """One line of JSON for each batch: the cells' figures, and what Spark says it took."""

    def __init__(self, streams: StreamingQueryManager, path: str) -> None:
        self.streams = streams
        self.path = path
        self._lock = threading.Lock()
        self._waiting: dict[int, dict[str, Any]] = {}
        self._query = ""
        self.error: MeanderError | None = None
        with writing(path, ArgumentError):
            self._file: TextIO = open(path, "a", encoding="utf-8")  # noqa: SIM115
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
                self._close()
                with java_may_have_ended():
                    self.streams.removeListener(self)

    def _close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or unwritable(self.path, error)

    def _write(self, figures: dict[str, Any]) -> None:
        """A line, unless an earlier one could not be written: answers go on without metrics, and then it is said."""
        if self.error is not None or self._file.closed:
            return
        try:
            self._file.write(json.dumps(figures) + "\n")
            self._file.flush()
        except OSError as error:
            self.error = unwritable(self.path, error)
