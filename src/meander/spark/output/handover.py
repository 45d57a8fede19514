"""How the batches of a run over Spark Connect reach the client, where their sinks are.

With a classic session Spark calls the run for each batch in the driver's process. Over Spark Connect it calls a
function in a process beside the server, which has neither the run nor its sinks. That function writes the rows of a
batch to the checkpoint, reports them as ready, and waits for the client to have written them to the sinks. So a batch
counts as done when it is in the sinks, as with a classic session, and one that failed is repeated under its number.

    server: N-attempt.rows, then ready.json  →  client: the sinks, then done.json  →  server: the batch is done
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from meander.errors import ArgumentError, SparkError
from meander.spark.checkpoint.notes import read_note, write_note
from meander.spark.checkpoint.storage import Location
from meander.spark.compat import is_connect
from meander.spark.messages import OUTPUT_TYPE

READY, DONE = "ready.json", "done.json"
POLL = 0.005
ORDER = "order_in_batch"
"""The column that keeps the order of rows: Spark reads files, and parts of files, in any order."""

PATIENCE = 60.0
"""The seconds after which a client that does not touch its lock is gone."""

Receive = Callable[[DataFrame, int], None]


def check_handover(spark: SparkSession, checkpoint: Location) -> None:
    """Refuse a checkpoint in an object store for a run over Spark Connect: both sides watch files there."""
    if is_connect(spark) and not isinstance(checkpoint, Path):
        raise ArgumentError(
            f"a run over Spark Connect cannot have its checkpoint in an object store: {checkpoint}",
            hint="choose a folder that server, executors and this machine share, or a classic session",
        )


class ServerSide:
    """The function that the server calls for each batch; `lock` is the file that the client touches."""

    def __init__(self, folder: str, lock: str) -> None:
        self.folder = folder
        self.lock = lock

    def __call__(self, frame: DataFrame, batch: int) -> None:
        folder = Path(self.folder)
        attempt = uuid.uuid4().hex
        rows = folder / f"{batch}-{attempt}.rows"
        ordered = frame.selectExpr("*", f"monotonically_increasing_id() AS {ORDER}")
        ordered.write.parquet(rows.as_uri())
        write_note(folder / READY, {"batch": batch, "attempt": attempt, "rows": rows.name})
        try:
            self._wait(folder, attempt)
        finally:
            shutil.rmtree(rows, ignore_errors=True)

    def _wait(self, folder: Path, attempt: str) -> None:
        """Until the client has written the batch; an error if it could not, or is gone."""
        touched, heard = 0, time.monotonic()
        while True:
            done = read_if_there(folder / DONE)
            if done.get("attempt") == attempt:
                if done["error"]:
                    raise RuntimeError(f"the client could not write the batch: {done['error']}")
                return
            if read_if_there(folder / READY).get("attempt") != attempt:
                raise RuntimeError("another start of the run has taken over")
            with contextlib.suppress(OSError):
                if (now := Path(self.lock).stat().st_mtime_ns) != touched:
                    touched, heard = now, time.monotonic()
            if time.monotonic() - heard > PATIENCE:
                raise RuntimeError(
                    "the client of the run is gone; the run can be resumed with its checkpoint"
                )
            time.sleep(POLL)


class ClientSide:
    """Gives each batch that is ready to `receive`, in a thread, until it is closed."""

    def __init__(self, spark: SparkSession, folder: Path, receive: Receive) -> None:
        self.spark = spark
        self.folder = folder
        self.receive = receive
        self._closed = threading.Event()
        # Batches of an earlier start: Spark repeats what was not done.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        threading.Thread(target=self._follow, name="meander-batches", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def check(self) -> None:
        """Refuse a server that does not see the files of this process."""
        path = self.folder / "probe"
        path.write_text("meander")
        try:
            seen = self.spark.read.text(path.as_uri()).collect()
        except Exception:  # Spark has no class of its own for this one.
            seen = []
        if [row.value for row in seen] != ["meander"]:
            raise SparkError(
                f"the Spark Connect server does not see {self.folder}, where this process hands over batches",
                hint="choose a checkpoint on storage that server, executors and this machine share",
            )
        path.unlink()

    def _follow(self) -> None:
        seen = ""
        while not self._closed.wait(POLL):
            ready = read_if_there(self.folder / READY)
            attempt = ready.get("attempt", seen)
            if attempt == seen:
                continue
            seen = attempt
            error = ""
            try:
                self.receive(self._rows(ready["rows"]), ready["batch"])
            except Exception as failure:  # it ends the batch on the server, and the run here
                error = str(failure) or type(failure).__name__
            with contextlib.suppress(OSError):  # the folder may be gone with the run
                write_note(self.folder / DONE, {"attempt": attempt, "error": error})

    def _rows(self, name: str) -> DataFrame:
        schema = f"{OUTPUT_TYPE}, {ORDER} long"
        frame = self.spark.read.schema(schema).parquet((self.folder / name).as_uri())
        return frame.orderBy(ORDER).drop(ORDER)


def read_if_there(path: Path) -> dict[str, Any]:
    try:
        return read_note(path)
    except FileNotFoundError:
        return {}
