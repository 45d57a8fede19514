"""Answers on their way out: columns of names and times, one `Answers` for each batch of a query.

What leaves the engine is a `Text` for each position of the answer, so that a sink can write the bytes of the
names without making Python objects. For programs there are two other shapes: a pyarrow Table and dicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import Text, concat_texts
from meander.errors import ArgumentError

Array = np.ndarray[Any, Any]

NO_EXPIRY = -1
"""In `exp`: there is none (records that end an answer, and all records in `changes` mode)."""

STRINGS = pa.large_string()
INTEGERS = pa.int64()


class Paths(NamedTuple):
    """The paths of n answers: the edges of answer i are those from `offsets[i]` to `offsets[i + 1]`.

    `given` is False for an answer that is no path; an empty path is given and has no edges.
    """

    offsets: Array
    src: Text
    label: Text
    trg: Text
    given: Array


class Answers(NamedTuple):
    """n answer records of one query; `vertices` has one `Text` for each position (two for an edge)."""

    label: str
    vertices: tuple[Text, ...]
    ts: Array
    exp: Array
    op: Array
    path: Paths | None = None

    @property
    def rows(self) -> int:
        return int(self.ts.size)

    @property
    def is_edge(self) -> bool:
        """Whether records have `src`, `trg` and `label`; otherwise they have `answer`."""
        return len(self.vertices) == 2


def take_answers(answers: Answers, chosen: Array) -> Answers:
    """The records that a mask chooses."""
    path = answers.path
    if path is not None:
        lengths = np.diff(path.offsets)
        edges = np.repeat(chosen, lengths)
        path = Paths(
            np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64),
            path.src.take(edges),
            path.label.take(edges),
            path.trg.take(edges),
            path.given[chosen],
        )
    return Answers(
        answers.label,
        tuple(text.take(chosen) for text in answers.vertices),
        answers.ts[chosen],
        answers.exp[chosen],
        answers.op[chosen],
        path,
    )


def as_dicts(answers: Answers) -> Iterator[dict[str, Any]]:
    """Each record as a dict of the fields of an answer; `path` only where paths were asked for."""
    columns = [text.values() for text in answers.vertices]
    ends = [None if exp == NO_EXPIRY else exp for exp in answers.exp.tolist()]
    ops = ["+" if op > 0 else "-" for op in answers.op.tolist()]
    rest = zip(answers.ts.tolist(), ends, ops, strict=True)
    records: Iterator[dict[str, Any]]
    if answers.is_edge:
        label = answers.label
        records = (
            {"src": src, "trg": trg, "label": label, "ts": ts, "exp": exp, "op": op}
            for src, trg, (ts, exp, op) in zip(*columns, rest, strict=True)
        )
    else:
        records = (
            {"answer": list(names), "ts": ts, "exp": exp, "op": op}
            for *names, (ts, exp, op) in zip(*columns, rest, strict=True)
        )
    if answers.path is None:
        return records
    return (record | {"path": path} for record, path in zip(records, _path_lists(answers.path), strict=True))


def _path_lists(path: Paths) -> Iterator[list[list[str | int]] | None]:
    edges = [
        list(edge) for edge in zip(path.src.values(), path.label.values(), path.trg.values(), strict=True)
    ]
    bounds = path.offsets.tolist()
    for row, given in enumerate(path.given.tolist()):
        yield edges[bounds[row] : bounds[row + 1]] if given else None


def all_integers(answers: Answers) -> bool:
    """Whether every vertex in the records, those of the paths included, is an integer."""
    texts = list(answers.vertices)
    if answers.path is not None:
        texts += [answers.path.src, answers.path.trg]
    return all(bool(text.kind.all()) for text in texts)


def answer_schema(arity: int, *, paths: bool, vertex: pa.DataType = STRINGS) -> pa.Schema:
    """The columns of a table of answers, whose vertices are strings or integers throughout."""
    if arity == 2:
        fields = [pa.field("src", vertex), pa.field("trg", vertex), pa.field("label", STRINGS)]
    else:
        fields = [pa.field("answer", pa.large_list(vertex))]
    fields += [pa.field("ts", INTEGERS), pa.field("exp", INTEGERS), pa.field("op", STRINGS)]
    if paths:
        edge = pa.struct([("src", vertex), ("label", STRINGS), ("trg", vertex)])
        fields.append(pa.field("path", pa.large_list(edge)))
    return pa.schema(fields)


def as_table(answers: Answers, *, vertex: pa.DataType | None = None) -> pa.Table:
    """The records as a pyarrow Table.

    A table's column has one type: vertices are int64 where all of them are integers, and otherwise strings,
    integers among them in decimal (or as `vertex` says).
    """
    if vertex is None:
        vertex = INTEGERS if answers.rows and all_integers(answers) else STRINGS
    if answers.is_edge:
        columns = [as_column(text, vertex) for text in answers.vertices]
        columns.append(pa.repeat(pa.scalar(answers.label, STRINGS), answers.rows))
    else:
        columns = [_answer_lists(answers, vertex)]
    columns += [
        pa.array(answers.ts, INTEGERS),
        pa.array(answers.exp, INTEGERS, mask=answers.exp == NO_EXPIRY),
        pa.array(["-", "+"], STRINGS).take(pa.array(answers.op > 0).cast(pa.int8())),
    ]
    if answers.path is not None:
        columns.append(_path_column(answers.path, vertex))
    schema = answer_schema(len(answers.vertices), paths=answers.path is not None, vertex=vertex)
    return pa.Table.from_arrays(columns, schema=schema)


def as_column(text: Text, vertex: pa.DataType = STRINGS) -> pa.Array:
    """Names as an Arrow column of integers, or of strings with integers in decimal."""
    if vertex == INTEGERS:
        if not text.kind.all():
            raise ArgumentError("a vertex of the answers is no integer")
        data, _ = text.packed()
        return pa.array(data.view("<i8"))
    if text.kind.any():
        return pa.array([str(value) for value in text.values()], STRINGS)
    data, offsets = text.packed()
    return pa.LargeStringArray.from_buffers(text.rows, pa.py_buffer(offsets), pa.py_buffer(data))


def _answer_lists(answers: Answers, vertex: pa.DataType) -> pa.Array:
    arity = len(answers.vertices)
    # All first positions, then all second ones, read across.
    across = np.arange(answers.rows * arity).reshape(arity, answers.rows).T.ravel()
    values = as_column(concat_texts(answers.vertices).take(across), vertex)
    offsets = np.arange(answers.rows + 1, dtype=np.int64) * arity
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)


def _path_column(path: Paths, vertex: pa.DataType) -> pa.Array:
    edge = pa.StructArray.from_arrays(
        [as_column(path.src, vertex), as_column(path.label), as_column(path.trg, vertex)],
        ["src", "label", "trg"],
    )
    # A list that is missing has a missing offset; the last offset closes the last list.
    missing = np.append(~path.given, False)
    return pa.LargeListArray.from_arrays(pa.array(path.offsets, mask=missing), edge)
