"""Answers as bytes and back: how they leave a cell and reach the sinks of the driver.

A cell encodes its answers for the sink that they go to, in parallel with the other cells, and the driver only joins
bytes. Encoding many answers takes as long as finding them, so it runs in a thread beside the dataflow: the kernels of
both release the interpreter's lock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pyarrow as pa

from meander.dataflow.answers import INTEGERS, STRINGS, Answers, as_table
from meander.dataflow.sinks.jsonl import jsonl_blocks
from meander.dataflow.sinks.sink import Encoding
from meander.physical.plan import Result
from meander.spark.messages import Kind, Output
from meander.spark.output.spool import set_aside

MANY = 1 << 11
"""As many answers, or edges of their paths, take longer to encode than a thread takes to start, and are spooled."""

NODE_BYTES = 64
"""A node of a proof is about as many bytes, which take as long as an edge of a path."""

MOST_WAITING = 2
"""Answers that wait to be encoded are held in memory."""

VERTEX_TYPES = {
    Encoding.TABLES: None,
    Encoding.STRING_FRAME: STRINGS,
    Encoding.INTEGER_FRAME: INTEGERS,
}


def encode_answers(answers: Answers, encoding: Encoding) -> Iterable[bytes | memoryview]:
    """The answers in blocks; each is valid until the next is requested."""
    if encoding == Encoding.LINES:
        return jsonl_blocks(answers)
    return [encode_table(as_table(answers, vertex=VERTEX_TYPES[encoding]))]


def encode_table(table: pa.Table) -> memoryview:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def decode_table(data: bytes | memoryview | Path) -> pa.Table:
    """The table of an Arrow stream in memory or in a file."""
    source = pa.memory_map(str(data)) if isinstance(data, Path) else pa.py_buffer(data)
    with pa.ipc.open_stream(source) as reader:
        return reader.read_all()


class Encoder:
    """Encodes answers into output rows of a cell, in the order in which they come.

    `encodings` has that of each query, by name; `spool` is the folder of large answers, or "".
    """

    def __init__(self, encodings: Mapping[str, str], spool: str) -> None:
        self.encodings = encodings
        self.spool = spool
        self.waiting: deque[Future[Output]] = deque()

    def put(self, result: Result, answers: Answers) -> Iterator[Output]:
        """Take answers; yields the rows that are ready."""
        if not is_large(answers):
            yield from self.rest()
            yield self.encode(result, answers)
            return
        self.waiting.append(encoding_thread(os.getpid()).submit(self.encode, result, answers))
        while self.waiting and (len(self.waiting) > MOST_WAITING or self.waiting[0].done()):
            yield self.waiting.popleft().result()

    def rest(self) -> Iterator[Output]:
        """The rows that are left, each as soon as it is ready."""
        while self.waiting:
            yield self.waiting.popleft().result()

    def encode(self, result: Result, answers: Answers) -> Output:
        """The answers as one row; if they are many and go to a sink of the driver, the row names a file."""
        encoding = self.encodings.get(result.query)
        blocks = encode_answers(answers, Encoding(encoding or Encoding.TABLES))
        if self.spool and is_large(answers) and encoding in (Encoding.LINES, Encoding.TABLES):
            name = set_aside(blocks, self.spool)
            return Output(Kind.SPOOLED, result.query, result.head, answers.rows, name)
        data = b"".join(bytes(block) for block in blocks)
        return Output(Kind.ANSWERS, result.query, result.head, answers.rows, data)


def is_large(answers: Answers) -> bool:
    edges = sum(int(path.offsets[-1]) for path in answers.all_paths)
    if answers.proof is not None and answers.rows:
        edges += int(answers.proof.end[-1] - answers.proof.start[0]) // NODE_BYTES
    return answers.rows + edges >= MANY


@cache
def encoding_thread(process: int) -> ThreadPoolExecutor:
    """One thread per process: a fork has none of its parent's threads."""
    return ThreadPoolExecutor(1)
