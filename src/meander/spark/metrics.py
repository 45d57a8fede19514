"""The file of metrics of a run."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, TextIO

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQueryManager

from meander.dataflow.sinks.write_errors import unwritable, writing
from meander.errors import ArgumentError, MeanderError
from meander.spark.workers.failures import java_may_have_ended


class Metrics(StreamingQueryListener):
    """One line of JSON for each batch: the cells' figures, and the times that Spark reports.

    `batches` is how many the run had before those that Spark counts.
    """

    def __init__(self, streams: StreamingQueryManager, path: str, batches: int) -> None:
        self.streams = streams
        self.path = path
        self.batches = batches
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
            figures = self._waiting.pop(self.batches + progress.batchId, None)
            if figures is not None:
                figures["spark"] = {
                    "timestamp": progress.timestamp,
                    "durations_ms": dict(progress.durationMs),
                    "input_rows": progress.numInputRows,
                    "commit_ms": sum(operator.commitTimeMs for operator in progress.stateOperators),
                }
                self._write(figures)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def await_reports(self) -> None:
        """Wait until Spark has reported on all batches: it does not report on one whose query is stopped first."""
        deadline = time.monotonic() + 2
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.02)

    def close(self) -> None:
        """Write the batches that Spark has not reported on."""
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
        """A line, unless an earlier one could not be written: the run continues without metrics, and reports that
        at its end."""
        if self.error is not None or self._file.closed:
            return
        try:
            self._file.write(json.dumps(figures) + "\n")
            self._file.flush()
        except OSError as error:
            self.error = unwritable(self.path, error)
