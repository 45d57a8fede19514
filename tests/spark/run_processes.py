"""Runs in processes of their own, for tests that end them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from command import environment
from meander.spark.checkpoint.notes import read_note

PATIENCE = 600


class Command:
    """A process with a group of its own, and with what it says in a file."""

    def __init__(self, folder, *arguments, **variables) -> None:
        self.log = folder / "log"
        with open(self.log, "ab") as log:
            # Sending an interrupt must work though the shell that started the tests may ignore it.
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=log,
                stderr=log,
                env=environment(**variables),
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *exception) -> None:
        """Whatever is left of it, its JVM and their Python workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_for_batch(self, note) -> None:
        """Until the note of a sink speaks of another batch than now."""
        before = last_batch(note)
        deadline = time.monotonic() + PATIENCE
        while last_batch(note) == before:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02 if isinstance(note, Path) else 0.3)

    def wait_for_file(self, path) -> None:
        deadline = time.monotonic() + PATIENCE
        while not path.exists():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.3)

    def said(self) -> str:
        return self.log.read_text()[-3000:]


def last_batch(note) -> int:
    return read_note(note)["batch"] if note.exists() else -1
