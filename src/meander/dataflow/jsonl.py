"""Answers as lines of JSON: from columns to bytes, without a Python object for a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from meander.dataflow.answers import Answers
from meander.dataflow.edges import Text, concat_texts, empty_text
from meander.kernels.writing import MOST_DIGITS, MOST_ESCAPED, Columns, Records, write_records

Array = np.ndarray[Any, Any]

OUTPUT_BYTES = 1 << 20


def jsonl_bytes(answers: Answers) -> bytes:
    """The records, one a line, with the fields of an answer; `path` only where paths were asked for."""
    return b"".join(bytes(block) for block in jsonl_blocks(answers))


def jsonl_blocks(answers: Answers) -> Iterator[memoryview]:
    """The same in blocks of whole lines. The next block takes the place of the last, so that memory is warm."""
    pieces, bounds = _pieces(answers)
    records = _records(answers, pieces.size)
    out = np.empty(max(OUTPUT_BYTES, int(records.most.max(initial=0))), np.uint8)
    row = 0
    while row < answers.rows:
        row, length = write_records(records, pieces, bounds, row, out)
        yield out[:length].data


def _records(answers: Answers, literals: int) -> Records:
    path = answers.path
    none = empty_text()
    vertices = _columns(answers.rows, answers.vertices)
    ends = _columns(0, (none, none)) if path is None else _columns(path.src.rows, (path.src, path.trg))
    labels = _columns(0, (none,)) if path is None else _columns(path.label.rows, (path.label,))
    offsets = np.zeros(answers.rows + 1, np.int64)
    given = np.zeros(answers.rows, np.bool_)
    most = _most_bytes(vertices) + literals + 3 * MOST_DIGITS
    if path is not None:
        offsets = np.ascontiguousarray(path.offsets, np.int64)
        given = np.ascontiguousarray(path.given, np.bool_)
        edges = np.concatenate([[0], np.cumsum(_most_bytes(ends) + _most_bytes(labels))])
        most = most + edges[offsets[1:]] - edges[offsets[:-1]]
    return Records(
        most=most,
        vertices=vertices,
        ts=np.ascontiguousarray(answers.ts, np.int64),
        exp=np.ascontiguousarray(answers.exp, np.int64),
        op=np.ascontiguousarray(answers.op, np.int8),
        has_paths=path is not None,
        given=given,
        offsets=offsets,
        ends=ends,
        labels=labels,
    )


def _most_bytes(names: Columns) -> Array:
    """For each row the most bytes that its names can take, with what stands between them."""
    most: Array = (MOST_ESCAPED * (names.end - names.start) + MOST_DIGITS + 4).sum(axis=0)
    return most


def _columns(rows: int, texts: tuple[Text, ...]) -> Columns:
    """The texts as columns over one buffer, which those of one dataflow have anyway."""
    joined = concat_texts(texts)
    shape = (len(texts), rows)
    return Columns(
        joined.data,
        np.ascontiguousarray(joined.start).reshape(shape),
        np.ascontiguousarray(joined.end).reshape(shape),
        np.ascontiguousarray(joined.kind).reshape(shape),
    )


def _pieces(answers: Answers) -> tuple[Array, Array]:
    """The literal pieces of a record, in the order of the writing kernel, and where each begins."""
    arity = len(answers.vertices)
    if answers.is_edge:
        label = json.dumps(answers.label, ensure_ascii=False)
        pieces = ['{"src":', ',"trg":', f',"label":{label},"ts":']
    else:
        first = '{"answer":['
        pieces = [first, *[","] * (arity - 1), '],"ts":'] if arity else [first + '],"ts":']
    pieces += [',"exp":', ',"op":"', '"}\n', '","path":[', "]}\n", '","path":null}\n']
    encoded = [piece.encode() for piece in pieces]
    bounds = np.cumsum([0] + [len(piece) for piece in encoded]).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), bounds
