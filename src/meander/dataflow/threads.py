"""The threads that a dataflow may use: kernels run without the interpreter's lock, so they run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Team:
    """So many threads; one is the caller's own."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def map(self, function: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """What the function makes of each item, side by side: whoever is free takes the next one."""
        every = list(items)
        made: dict[int, Made] = {}
        waiting = iter(range(len(every)))

        def work() -> None:
            for at in waiting:
                made[at] = function(every[at])

        others = [self.pool.submit(work) for _ in every[1 : self.threads]] if self.pool else []
        try:
            work()
        finally:
            wait(others)
        for one in others:
            one.result()
        return [made[at] for at in range(len(every))]
