"""Locks: one run at a time on a checkpoint, and one run at a time on an output.

The lock is the operating system's (`flock`), which ends with the process that holds it: a run that was killed, or
whose machine was restarted, leaves nothing to clean up, and a reused process number means nothing. The lock file
names its holder for the message of whoever is refused.

If storage is shared between machines, `flock` may be known to one machine alone. A holder therefore also touches
its file every few seconds. A run on another machine that gets the lock of a file which still names a holder watches
the file for a while, and is refused if it is touched.

An object store has no locks. There the holder writes its object again every few seconds, and everyone who finds the
object of another holder watches it. Two runs that start at once write one after the other: the one that does not find
its own name afterwards is refused, at the latest when it is about to write answers.
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
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from meander.errors import ArgumentError, StateError
from meander.spark.checkpoint.storage import Location, ObjectPath

LOCK = "lock"
TOUCH_SECONDS = 2.0
WATCH_SECONDS = 7.0
"""How long the lock file of a holder on another machine is watched: a few touches."""

SETTLE_SECONDS = 0.5
"""After this time a run reads back whether its object is still the lock: another may have written its own."""


class Lock(Protocol):
    """The lock of a checkpoint, held until `release`."""

    def check(self) -> None:
        """Refuse to continue if another run has the lock by now."""

    def release(self) -> None: ...


def lock_checkpoint(folder: Location, checkpoint: Location) -> Lock:
    """Lock a checkpoint by a file in the folder that has Meander's part of it; refused while another run has it."""
    if isinstance(folder, ObjectPath):
        return ObjectLock(folder, checkpoint)
    return CheckpointLock(folder, checkpoint)


class CheckpointLock:
    """The lock of a checkpoint on a disk."""

    def __init__(self, folder: Path, checkpoint: Location) -> None:
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

    def check(self) -> None:
        """The operating system gives the lock to no other."""

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


class ObjectLock:
    """The lock of a checkpoint in an object store."""

    def __init__(self, folder: ObjectPath, checkpoint: Location) -> None:
        self.path = folder / LOCK
        self.checkpoint = checkpoint
        self._id = uuid.uuid4().hex
        self._holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        self._beats = 0
        self._taken_by: dict[str, Any] | None = None
        try:
            if self._is_alive():
                raise in_use(checkpoint, self._read())
            self._beat()
            time.sleep(SETTLE_SECONDS)
            holder = self._read()
        except OSError as error:
            raise ArgumentError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from None
        if holder.get("id") != self._id:
            raise in_use(checkpoint, holder)
        self._released = threading.Event()
        self._beating = threading.Thread(target=self._touch, name="meander-lock", daemon=True)
        self._beating.start()

    def check(self) -> None:
        if self._taken_by is not None:
            raise in_use(self.checkpoint, self._taken_by)

    def release(self) -> None:
        """Release the lock: its object is deleted, unless it is that of another run by now."""
        if self._released.is_set():
            return
        self._released.set()
        self._beating.join()
        with contextlib.suppress(OSError):
            if self._read().get("id") == self._id:
                self.path.unlink()

    def _touch(self) -> None:
        while self._taken_by is None and not self._released.wait(TOUCH_SECONDS):
            with contextlib.suppress(OSError):  # the next one may get through
                holder = self._read()
                if holder.get("id") == self._id:
                    self._beat()
                else:
                    self._taken_by = holder

    def _beat(self) -> None:
        self._beats += 1
        self.path.write_bytes(json.dumps(self._holder | {"id": self._id, "beats": self._beats}).encode())

    def _is_alive(self) -> bool:
        """Whether the holder that the object names writes it again."""
        before = self._read()
        deadline = time.monotonic() + WATCH_SECONDS
        while before and time.monotonic() < deadline:
            time.sleep(TOUCH_SECONDS / 10)
            now = self._read()
            if now != before:
                return bool(now)  # it may have been released in the meantime
        return False

    def _read(self) -> dict[str, Any]:
        try:
            fields = json.loads(self.path.read_bytes() or b"{}")
        except (FileNotFoundError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}


def in_use(checkpoint: Location, holder: dict[str, Any]) -> StateError:
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
def lock_for_process(folder: Location) -> Lock:
    """The lock of a folder, held until this process ends: when the run of a DataFrame ends is not known here."""
    return lock_checkpoint(folder, folder)


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
