"""The threads that a dataflow may use: kernels run without the interpreter's lock, so they run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Team:
    """So many threads; one is the caller's own."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def map(self, function: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """What the function makes of each item, side by side."""
        if self.pool is None:
            return [function(one) for one in items]
        every = list(items)
        waiting = [self.pool.submit(function, one) for one in every[1:]]
        return [*map(function, every[:1]), *(one.result() for one in waiting)]
