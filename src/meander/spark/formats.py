"""Answers as bytes and back: how they leave a cell.

A cell encodes its answers for the sink that they go to, in parallel with the others, and the driver only joins
bytes. Lines of JSON go to a `.jsonl` file as they are. Arrow bytes go to everything else, with vertices as
strings or integers, whichever they all are; a DataFrame needs one type throughout, so its answers say which.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from meander.dataflow.answers import INTEGERS, STRINGS, Answers, as_table
from meander.dataflow.jsonl import jsonl_blocks

Part = bytes | Path
"""Encoded answers, at hand or in a file."""

JSONL, ARROW, ARROW_STRINGS, ARROW_INTEGERS = "jsonl", "arrow", "arrow-strings", "arrow-integers"

VERTEX_TYPES = {ARROW: None, ARROW_STRINGS: STRINGS, ARROW_INTEGERS: INTEGERS}


def encode_answers(answers: Answers, how: str) -> Iterator[bytes | memoryview]:
    """The answers in blocks; each is valid until the next is asked for."""
    if how == JSONL:
        yield from jsonl_blocks(answers)
        return
    yield encode_table(as_table(answers, vertex=VERTEX_TYPES[how]))


def encode_table(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def decode_table(data: Part) -> pa.Table:
    source = pa.memory_map(str(data)) if isinstance(data, Path) else pa.py_buffer(data)
    with pa.ipc.open_stream(source) as reader:
        return reader.read_all()


def answer_type(arity: int, *, paths: bool, integers: bool) -> str:
    """The schema of a DataFrame of answers, as Spark writes it."""
    vertex = "bigint" if integers else "string"
    first = f"src {vertex}, trg {vertex}, label string" if arity == 2 else f"answer array<{vertex}>"
    path = f", path array<struct<src: {vertex}, label: string, trg: {vertex}>>" if paths else ""
    return f"{first}, ts bigint, exp bigint, op string{path}"


def spark_schema(arity: int, *, paths: bool, integers: bool) -> pa.Schema:
    """The same for Arrow, with the small offsets that Spark expects."""
    vertex: Any = pa.int64() if integers else pa.string()
    fields = [("src", vertex), ("trg", vertex), ("label", pa.string())]
    if arity != 2:
        fields = [("answer", pa.list_(vertex))]
    fields += [("ts", pa.int64()), ("exp", pa.int64()), ("op", pa.string())]
    if paths:
        edge = pa.struct([("src", vertex), ("label", pa.string()), ("trg", vertex)])
        fields.append(("path", pa.list_(edge)))
    return pa.schema(fields)
