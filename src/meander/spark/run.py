"""A run: a Spark query in motion, its outputs, its figures, and its end.

Each batch's output is a few rows, which the driver collects and gives to the sinks of their queries. A batch in
which every cell has reached the end of time is the last one of bounded input.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from meander.dataflow.edges import INFINITY, Reject
from meander.dataflow.ingest import Jump
from meander.dataflow.tally import Tally, jump_message
from meander.errors import InputError, MeanderError
from meander.spark.cell.job import Job
from meander.spark.checkpoint.generations import Generation, batch_files
from meander.spark.checkpoint.locks import LOCK
from meander.spark.checkpoint.notes import START_OVER, read_note, write_note
from meander.spark.checkpoint.storage import Location
from meander.spark.compat import is_connect
from meander.spark.edge_codec import reject_reasons
from meander.spark.input.ledger import END_SIGNAL, LOOK_AGAIN
from meander.spark.messages import Kind, cell_failure, input_error
from meander.spark.metrics import Metrics
from meander.spark.output.handover import ClientSide, ServerSide
from meander.spark.output.outputs import Outputs
from meander.spark.output.spool import empty_spool
from meander.spark.workers.failures import java_may_have_ended, translate_error

MOST_FIGURES = 100
"""The batches whose figures a run remembers."""

DAMAGE = "damage.json"


class Run:
    """Queries being answered."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        checkpoint: Location,
        outputs: Outputs,
        metrics: str | None,
        generation: Generation,
        tally: Tally,
    ) -> None:
        self.spark = spark
        self.job = job
        self.checkpoint = checkpoint
        self.generation = generation
        self.outputs = outputs
        self.figures: list[dict[str, Any]] = []
        self.tally = tally
        self.tally.read_properties(job.layouts)
        self.state_bytes = 0
        self.bytes_read = 0  # of the files of all streams, since the checkpoint was created
        self.left_early = False  # a broken pipe is an error of this runner
        self.resumed = bool(generation.batches or batch_files(generation.spark(checkpoint), "commits"))
        self.warn: Callable[[str], None] = lambda message: warnings.warn(message, stacklevel=2)
        self.batch_hooks: list[Callable[[dict[str, Any]], None]] = []
        self.notes: list[str] = []  # what the user should know of this start
        self.check_lock: Callable[[], None] = lambda: None
        self.held = contextlib.ExitStack()  # the locks of the checkpoint and of outputs
        self._labels: dict[str, bool] = {}
        self._jumped: set[str] = set()
        self._ended = threading.Event()
        self._ended_file = checkpoint / "meander" / "ended"
        if self._ended_file.exists():
            self._ended.set()
        self._error: Exception | None = None
        self._last_batch = -1  # the one that ended the run
        self._stopping = False
        self._metrics = None if metrics is None else Metrics(spark.streams, metrics, generation.batches)
        self._client: ClientSide | None = None
        empty_spool(job.spool)

    def begin(self, frame: DataFrame, trigger: str | None) -> None:
        """Start the Spark query that writes the outputs of the cells, `frame`."""
        writer = frame.writeStream.foreachBatch(self._receiver()).option(
            "checkpointLocation", str(self.generation.spark(self.checkpoint))
        )
        if trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        try:
            self.query = writer.queryName(f"meander-{self.job.run[:8]}").start()
        except BaseException:
            self._close_client()
            raise
        if self._metrics is not None:
            self._metrics.watch(str(self.query.id))

    def _receiver(self) -> Callable[[DataFrame, int], None]:
        """The function that Spark calls for each batch."""
        if not is_connect(self.spark):
            return self._receive
        folder = Path(str(self.checkpoint)).resolve() / "meander"
        self._client = ClientSide(self.spark, folder / "batches", self._receive)
        self._client.check()
        return ServerSide(str(folder / "batches"), str(folder / LOCK))

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

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
        """The labels that the queries read and that no edge has had; none if an earlier run may have seen them."""
        return [] if self.resumed else [label for label, seen in self._labels.items() if not seen]

    @property
    def has_ended(self) -> bool:
        """Whether all input, which was bounded, has been answered."""
        return self._ended_file.exists()

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    # -----------------------------------------------------------------------------------------------------
    # Waiting and stopping

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
            self.outputs.finish()
        if self._metrics is not None and self._metrics.error is not None:
            raise self._metrics.error
        return True

    def _await_commit(self) -> None:
        """Until the batch that ended the run is committed, so that a restart does not repeat it."""
        if self._last_batch < 0:
            # An earlier start has ended the run, and may not have committed its last batch.
            self.query.processAllAvailable()
            return
        number = self._last_batch - self.generation.batches
        commit = self.generation.spark(self.checkpoint) / "commits" / str(number)
        while not commit.exists():
            if not self.query.isActive and not commit.exists():
                self._raise()
                return
            time.sleep(0.02)

    def process_available(self) -> None:
        """Until all input that has arrived by now has been answered."""
        # Folders are listed at intervals: a file that has just arrived is listed after this.
        time.sleep(LOOK_AGAIN)
        with self._errors():
            self.query.processAllAvailable()
            if self._error is not None:
                raise self._error

    def finish(self) -> None:
        """End the streams: available input is answered, held answers are released, and the run stops."""
        self.process_available()
        (self.checkpoint / "meander" / "ledger" / END_SIGNAL).touch()
        self.wait()

    def release_if_over(self) -> None:
        """Release the checkpoint and the outputs, if this run no longer uses them."""
        active = False
        with java_may_have_ended():
            active = self.query.isActive
        if not active:
            self.held.close()

    def stop(self) -> None:
        with self.held:
            self._stop_query()

    def _stop_query(self) -> None:
        if self._metrics is not None:
            self._metrics.await_reports()
        self._stopping = True
        with java_may_have_ended():
            self.query.stop()
        self._close_client()
        if self._metrics is not None:
            self._metrics.close()

    # -----------------------------------------------------------------------------------------------------
    # A batch

    def _receive(self, frame: DataFrame, batch: int) -> None:
        """Write the output of one batch; if that fails, the batch does not count as done.

        Spark numbers the batches of each generation from 0 on.
        """
        try:
            self._write(frame, self.generation.batches + batch)
        except Exception as error:
            # Spark turns the error into text. Errors of a batch that is being stopped are of no interest.
            if self._error is None and not self._stopping:
                self._error = error if isinstance(error, BrokenPipeError) else self._translate(error)
            raise

    def _write(self, frame: DataFrame, batch: int) -> None:
        begun = time.perf_counter()
        if self.outputs.need_frame:
            frame = frame.persist()
        try:
            rows = frame.collect()
            for row in rows:
                if row.kind == Kind.CELL_FAILED:
                    raise cell_failure(bytes(row.data))
            self.check_lock()
            self.outputs.write(frame, rows, batch)
        finally:
            if self.outputs.need_frame:
                frame.unpersist()
        self._report_edges(rows)
        cells = [json.loads(row.data) for row in rows if row.kind == Kind.FIGURES]
        self._add_figures(batch, cells, time.perf_counter() - begun)
        for row in rows:
            if row.kind not in (Kind.LOST_ROWS, Kind.INPUT_CHANGED):
                continue
            error = input_error(bytes(row.data))
            if row.kind == Kind.LOST_ROWS:
                # Rows that could not be read are lost to this checkpoint; a file that has changed may be restored.
                record_damage(self.checkpoint / "meander", error)
            self._end(batch, error)
        if len(cells) == self.job.cells_of_all_stages and all(cell["time"] >= INFINITY for cell in cells):
            self._ended_file.touch()
            self._end(batch)

    def _end(self, batch: int, error: Exception | None = None) -> None:
        self._error = self._error or error
        self._last_batch = batch
        self._ended.set()

    def _report_edges(self, rows: Sequence[Row]) -> None:
        """Count rejects by their reasons, and warn of jumps in time."""
        for row in rows:
            if row.kind == Kind.REJECTS:
                for first, count in reject_reasons(bytes(row.data)):
                    self.tally.add_reason(first, count)
            elif row.kind == Kind.JUMP:
                edge, ts, before = json.loads(row.data)
                self._warn_of_jump(Jump(Reject(*edge), ts, before))

    def _warn_of_jump(self, jump: Jump) -> None:
        """Once for a stream: a cell whose state is rebuilt does not know that it has reported one."""
        if jump.edge.stream not in self._jumped:
            self._jumped.add(jump.edge.stream)
            self.warn(jump_message(jump, self.job.options.time_unit))

    def _add_figures(self, batch: int, cells: list[dict[str, Any]], seconds: float) -> None:
        self.bytes_read = sum(cell.pop("bytes") for cell in cells)
        for cell in cells:
            for label, seen in cell.pop("labels").items():
                self._labels[label] = self._labels.get(label, False) or seen
            for stream, name, count in cell.pop("values"):
                self.tally.values[stream, name] = self.tally.values.get((stream, name), 0) + count
        figures = {
            "batch": batch,
            "edges": sum(cell["arrived"] for cell in cells),
            "late": sum(cell["late"] for cell in cells),
            "rejected": sum(cell["rejected"] for cell in cells),
            "answers": sum(cell["answers"] for cell in cells),
            "state_rows": sum(cell["state_rows"] for cell in cells),
            "state_bytes": sum(cell["state_bytes"] for cell in cells),
            "seconds": round(seconds, 4),
            "cells": cells,
        }
        self.figures = [*self.figures[1 - MOST_FIGURES :], figures]
        self.tally.edges += figures["edges"]
        self.tally.answers += figures["answers"]
        self.state_bytes = figures["state_bytes"]
        if self._metrics is not None:
            self._metrics.add(figures)
        for hook in self.batch_hooks:
            hook(figures)

    # -----------------------------------------------------------------------------------------------------
    # Errors

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Translates an error of Spark to the one that ended a batch, or that it stands for."""
        try:
            yield
        except Exception as error:
            self.stop()
            if isinstance(error, MeanderError):
                raise
            raise (self._error or self._translate(error)) from None

    def _translate(self, error: Exception) -> MeanderError:
        translated = translate_error(error, [self.checkpoint])
        translated.__cause__ = error
        return translated

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        error = self.query.exception()
        if error is not None:
            raise self._translate(error)


def record_damage(folder: Location, error: InputError) -> None:
    """Record that rows of the input are lost: no later start may continue as if they had not existed."""
    write_note(folder / DAMAGE, {"message": error.message, "hint": error.hint})


def check_damage(folder: Location) -> None:
    """Refuse a checkpoint for which a reader has lost rows."""
    try:
        damage = read_note(folder / DAMAGE)
    except FileNotFoundError:
        return
    raise InputError(
        f"a run with this checkpoint could not read all of its input: {damage['message']}",
        hint=f"mend the input and {START_OVER}",
    )
