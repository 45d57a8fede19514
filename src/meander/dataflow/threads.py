"""The threads of a dataflow: kernels release the interpreter's lock, so they run in parallel.

Work is submitted as tasks. A free thread runs the oldest task that may start, and so does the caller's thread while
it waits for one. Tasks of one lane share state: they run one after the other, in the order of submission, and none
runs after one of its lane has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Condition
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


class Task(Generic[Value]):
    """A function call that is submitted, running or done."""

    def __init__(self, function: Callable[[], Value], lane: object) -> None:
        self.function: Callable[[], Value] | None = function
        self.lane = lane
        self.done = False
        self.value: list[Value] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        # The arguments are not held longer than the call takes.
        function, self.function = self.function, None
        assert function is not None
        try:
            self.value.append(function())
        except BaseException as error:
            self.error = error  # raised by `LanePool.results`
            if not isinstance(error, Exception):
                raise


class LanePool:
    """A pool of `threads` workers, the caller's thread included; tasks of one lane run in order."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self.workers = 0  # threads of the pool that are running
        self.queue: list[Task[Any]] = []
        self.busy_lanes: set[object] = set()
        self.failures: dict[object, BaseException] = {}  # by lane
        self.changed = Condition()

    def submit(self, function: Callable[[], Value], lane: object = None) -> Task[Value]:
        """Run a function after the earlier tasks of its lane; without a lane, as soon as a thread is free."""
        task = Task(function, object() if lane is None else lane)
        with self.changed:
            self.queue.append(task)
        self._wake()
        return task

    def results(self, tasks: Sequence[Task[Value]]) -> list[Value]:
        """The values of the tasks, once all are done; if one has failed, its error is raised."""
        for task in tasks:
            self._await(task)
        self._wake()
        for task in tasks:
            if task.error is not None:
                raise task.error
        return [value for task in tasks for value in task.value]

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> list[Value]:
        """The function's value for each item, computed in parallel."""
        return self.results([self.submit(partial(function, item)) for item in items])

    def drain(self) -> None:
        """Work until no task is left."""
        while True:
            task = self._next()
            if task is not None:
                self._run(task)
                continue
            with self.changed:
                if not self.busy_lanes and not self.queue:
                    return
                if self._first_runnable(None) is None:
                    self.changed.wait()

    def _await(self, wanted: Task[Any]) -> None:
        while not wanted.done:
            task = self._next(wanted)
            if task is not None:
                self._run(task)
                continue
            with self.changed:
                if not wanted.done and self._first_runnable(wanted) is None:
                    self.changed.wait()

    def _wake(self) -> None:
        """Let another thread of the pool look for a task, if one is idle."""
        with self.changed:
            if self.pool is None or not self.queue or self.workers == self.threads - 1:
                return
            self.workers += 1
        self.pool.submit(self._work)

    def _work(self) -> None:
        while True:
            with self.changed:
                task = self._next()
                if task is None:
                    self.workers -= 1
                    return
            self._run(task)

    def _next(self, wanted: Task[Any] | None = None) -> Task[Any] | None:
        with self.changed:
            task = self._first_runnable(wanted)
            if task is not None:
                self.queue.remove(task)
                self.busy_lanes.add(task.lane)
            return task

    def _first_runnable(self, wanted: Task[Any] | None) -> Task[Any] | None:
        """The wanted task, if it may start; else the first that may."""
        blocked = set(self.busy_lanes)
        first = None
        for task in self.queue:
            if task.lane not in blocked:
                if task is wanted:
                    return task
                first = first or task
            blocked.add(task.lane)
        return first

    def _run(self, task: Task[Any]) -> None:
        try:
            task.error = self.failures.get(task.lane)
            if task.error is None:
                task.run()
        finally:
            with self.changed:
                if task.error is not None:
                    self.failures[task.lane] = task.error
                self.busy_lanes.discard(task.lane)
                task.done = True
                self.changed.notify_all()
