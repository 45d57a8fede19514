"""Answers on their way out of a cell: encoded for their sink, and set aside where they are large.

Where there are many answers that takes as long as to find them. It is done in a thread of its own, while the dataflow
goes on: the kernels of both run without the interpreter's lock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from meander.dataflow.answers import Answers
from meander.physical.plan import Result
from meander.spark.formats import ARROW, JSONL, encode_answers
from meander.spark.messages import Kind, Output
from meander.spark.output.spool import set_aside

if TYPE_CHECKING:
    from meander.spark.cell.job import Job

# So many answers, or edges of their paths, take longer than to start a thread, and are large on their way out.
MANY = 1 << 11
# Answers that wait to be encoded are held in memory.
MOST_WAITING = 2


class Encoder:
    """Answers to outputs, in the order in which they come."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.waiting: deque[Future[Output]] = deque()

    def put(self, result: Result, answers: Answers) -> Iterator[Output]:
        """Take answers; what is done by now comes out."""
        if not is_large(answers):
            yield from self.rest()
            yield self.encode(result, answers)
            return
        self.waiting.append(encoding_thread(os.getpid()).submit(self.encode, result, answers))
        while self.waiting and (len(self.waiting) > MOST_WAITING or self.waiting[0].done()):
            yield self.waiting.popleft().result()

    def rest(self) -> Iterator[Output]:
        """What is left, when it is done."""
        while self.waiting:
            yield self.waiting.popleft().result()

    def encode(self, result: Result, answers: Answers) -> Output:
        """The answers as one row; where they are many and go to a sink of the driver's, one that names a file."""
        how = self.job.formats.get(result.query)
        blocks = encode_answers(answers, how or ARROW)
        if self.job.spool and is_large(answers) and how in (JSONL, ARROW):
            name = set_aside(blocks, self.job.spool)
            return Output(Kind.SPOOLED, result.query, result.head, answers.rows, name)
        data = b"".join(bytes(block) for block in blocks)
        return Output(Kind.ANSWERS, result.query, result.head, answers.rows, data)


def is_large(answers: Answers) -> bool:
    return answers.rows + (0 if answers.path is None else answers.path.src.rows) >= MANY


@cache
def encoding_thread(process: int) -> ThreadPoolExecutor:
    """One for a process: a fork has none of its parent's threads."""
    return ThreadPoolExecutor(1)
