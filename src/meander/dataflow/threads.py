"""The threads that a dataflow may use: kernels run without the interpreter's lock, so they run side by side.

Work is given out as tasks. Whoever is free takes the oldest task that may begin, and so does the caller's own thread
while it waits for one. Tasks of one lane share state: they are done one after the other, as they were given out, and
with what one has left half done no other goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Condition
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Task(Generic[Made]):
    """Something that is being made."""

    def __init__(self, function: Callable[[], Made], lane: object) -> None:
        self.function: Callable[[], Made] | None = function
        self.lane = lane
        self.done = False
        self.made: list[Made] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        # What it was given is not kept longer than it works.
        function, self.function = self.function, None
        assert function is not None
        try:
            self.made.append(function())
        except BaseException as error:
            self.error = error  # for whoever asks for the result
            if not isinstance(error, Exception):
                raise


class Team:
    """So many threads; one is the caller's own."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self.at_work = 0  # threads of the pool
        self.waiting: list[Task[Any]] = []
        self.busy: set[object] = set()
        self.failed: dict[object, BaseException] = {}
        self.changed = Condition()

    def start(self, function: Callable[[], Made], lane: object = None) -> Task[Made]:
        """Have something made, after what the lane has to do before it; without a lane, whenever someone is free."""
        task = Task(function, object() if lane is None else lane)
        with self.changed:
            self.waiting.append(task)
        self._call()
        return task

    def wait(self, tasks: Sequence[Task[Any]]) -> None:
        """Work until the tasks are done."""
        for wanted in tasks:
            while not wanted.done:
                task = self._take(wanted)
                if task is not None:
                    self._run(task)
                    continue
                with self.changed:
                    if not wanted.done and self._first(wanted) is None:
                        self.changed.wait()
        self._call()

    def rest(self) -> None:
        """Work until there is nothing left to do."""
        while True:
            task = self._take()
            if task is not None:
                self._run(task)
                continue
            with self.changed:
                if not self.busy and not self.waiting:
                    return
                if self._first(None) is None:
                    self.changed.wait()

    def results(self, tasks: Sequence[Task[Made]]) -> list[Made]:
        """What the tasks have made; where one has failed, that is raised when all are done."""
        self.wait(tasks)
        for task in tasks:
            if task.error is not None:
                raise task.error
        return [made for task in tasks for made in task.made]

    def map(self, function: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """What the function makes of each item, side by side."""
        return self.results([self.start(partial(function, item)) for item in items])

    def _call(self) -> None:
        """Have another thread look for something to do, if one is left."""
        with self.changed:
            if self.pool is None or not self.waiting or self.at_work == self.threads - 1:
                return
            self.at_work += 1
        self.pool.submit(self._work)

    def _work(self) -> None:
        while True:
            with self.changed:
                task = self._take()
                if task is None:
                    self.at_work -= 1
                    return
            self._run(task)

    def _take(self, wanted: Task[Any] | None = None) -> Task[Any] | None:
        with self.changed:
            task = self._first(wanted)
            if task is not None:
                self.waiting.remove(task)
                self.busy.add(task.lane)
            return task

    def _first(self, wanted: Task[Any] | None) -> Task[Any] | None:
        """The task that is wanted, if it may begin; else the first that may."""
        seen = set(self.busy)
        first = None
        for task in self.waiting:
            if task.lane not in seen:
                if task is wanted:
                    return task
                first = first or task
            seen.add(task.lane)
        return first

    def _run(self, task: Task[Any]) -> None:
        try:
            task.error = self.failed.get(task.lane)
            if task.error is None:
                task.run()
        finally:
            with self.changed:
                if task.error is not None:
                    self.failed[task.lane] = task.error
                self.busy.discard(task.lane)
                task.done = True
                self.changed.notify_all()
