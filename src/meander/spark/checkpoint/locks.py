"""Locks: one run at a time on a checkpoint, and one run at a time on an output.

The lock is the operating system's (`flock`), which ends with the process that holds it: a run that was killed, or
whose machine was restarted, leaves nothing to clean up, and a reused process number means nothing. The lock file
names its holder for the message of whoever is refused.

If storage is shared between machines, `flock` may be known to one machine alone. A holder therefore also touches
its file every few seconds. A run on another machine that gets the lock of a file which still names a holder watches
the file for a while, and is refused if it is touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from meander.errors import ArgumentError, StateError

LOCK = "lock"
TOUCH_SECONDS = 2.0
WATCH_SECONDS = 7.0
"""How long the lock file of a holder on another machine is watched: a few touches."""


class CheckpointLock:
    """The lock of a checkpoint, in the folder that has Meander's part of it; held until `release`."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self.path = folder / LOCK
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (closed by `release`)
        except OSError as error:
            raise ArgumentError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from None
        try:
            if not lock_file(self._file.fileno()) or self._held_elsewhere():
                raise in_use(checkpoint, self._holder())
            self._note({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()})
        except BaseException as error:
            self._file.close()
            if not isinstance(error, OSError):
                raise
            raise ArgumentError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from None
        self._released = threading.Event()
        threading.Thread(target=self._touch, name="meander-lock", daemon=True).start()

    def release(self) -> None:
        """Release the lock; the file stays, and names no holder."""
        if self._released.is_set():
            return
        self._released.set()
        with contextlib.suppress(OSError):  # the folder may be gone
            self._note({})
        self._file.close()

    def _touch(self) -> None:
        while not self._released.wait(TOUCH_SECONDS):
            with contextlib.suppress(OSError, ValueError):
                os.utime(self._file.fileno())

    def _held_elsewhere(self) -> bool:
        """Whether a holder on another machine is alive: it touches the file."""
        holder = self._holder()
        if holder.get("host", socket.gethostname()) == socket.gethostname():
            return False
        before = self._touched()
        deadline = time.monotonic() + WATCH_SECONDS
        while time.monotonic() < deadline:
            time.sleep(TOUCH_SECONDS / 10)
            if self._touched() != before:
                return True
        return False

    def _touched(self) -> int:
        # Opened each time: network file systems then read the present attributes.
        with open(self.path, "rb") as file:
            return os.fstat(file.fileno()).st_mtime_ns

    def _holder(self) -> dict[str, Any]:
        try:
            fields = json.loads(self.path.read_bytes() or b"{}")
        except (OSError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    def _note(self, holder: dict[str, Any]) -> None:
        self._file.truncate(0)
        self._file.write(json.dumps(holder).encode())


def in_use(checkpoint: Path, holder: dict[str, Any]) -> StateError:
    """The refusal of a second run, which names the first."""
    who = "another run"
    if holder.get("pid") == os.getpid() and holder.get("host") == socket.gethostname():
        who = "another run of this process"
    elif "pid" in holder:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.get("since", 0)))
        who = f"process {holder['pid']} on {holder.get('host')}, since {since}"
    return StateError(
        f"the checkpoint {checkpoint} is in use by {who}",
        hint="wait for that run or stop it, or give this one another --checkpoint and another --out",
    )


@functools.cache
def lock_for_process(folder: Path) -> CheckpointLock:
    """The lock of a folder, held until this process ends: when the run of a DataFrame ends is not known here."""
    return CheckpointLock(folder, folder)


@contextlib.contextmanager
def output_lock(path: Path) -> Iterator[None]:
    """Lock a file or folder that answers are written to; refused while another run holds it."""
    try:
        held = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
    try:
        if not lock_file(held):
            raise StateError(
                f"another run, or another sink of this one, is writing to {path}",
                hint="wait for that run or stop it, or name another --out or --rejects",
            )
        yield
    finally:
        os.close(held)


def lock_file(descriptor: int) -> bool:
    """Lock an open file, or a folder; False if another has it locked. Some file systems have no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True
