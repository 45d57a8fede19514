"""Answers on their way out: columns of names and times, one `Answers` for each batch of a query.

The engine emits a `Text` for each position of an answer, so that a sink can write the bytes of the names without
creating Python objects. `AnswerSchema` is the one definition of a record: its fields, their types and when they are
present. Dicts, Arrow tables, lines of JSON (`sinks/jsonl.py`) and the columns of a Spark DataFrame
(`spark/output/dataframes.py`) are derived from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import Text, concat_texts
from meander.errors import ArgumentError
from meander.kernels.jit import Array
from meander.syntax.values import ValueType

NO_EXPIRY = -1
"""In `exp`: there is none (records that end an answer, and all records in `changes` mode)."""

STRINGS = pa.large_string()
INTEGERS = pa.int64()

SLOT = "\0"
"""In the JSON template of a field: where a value is written. JSON text never contains this character."""


class Paths(NamedTuple):
    """The paths of n answers: the edges of answer i are those from `offsets[i]` to `offsets[i + 1]`.

    `given` is False for an answer that is not a path; an empty path is given and has no edges.
    """

    offsets: Array
    src: Text
    label: Text
    trg: Text
    given: Array


class ValueColumn(NamedTuple):
    """A named value of n answers: int64 for INT and TIME, float64, bool, or a `Text` for STRING."""

    name: str
    type: ValueType
    values: Array | Text


class Answers(NamedTuple):
    """n answer records of one query; `vertices` has one `Text` for each position (two for an edge)."""

    label: str
    vertices: tuple[Text, ...]
    ts: Array
    exp: Array
    op: Array
    path: Paths | None = None
    properties: tuple[ValueColumn, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.ts.size)

    @property
    def schema(self) -> AnswerSchema:
        return AnswerSchema(arity=len(self.vertices), paths=self.path is not None)


class AnswerField(NamedTuple):
    """One field of an answer record, in every form that a record takes."""

    name: str
    arrow_type: Callable[[pa.DataType], pa.DataType]
    """The Arrow type, given that of vertices."""

    column: Callable[[Answers, pa.DataType], pa.Array]
    """The Arrow column of some answers, given the type of vertices."""

    values: Callable[[Answers], Iterable[Any]]
    """The Python values of some answers."""

    json: Callable[[str, int], str]
    """The JSON text of the field, given label and arity, with a `SLOT` for each value that a record has."""


@dataclass(frozen=True)
class AnswerSchema:
    """The shape of a query's answers.

    A pair of vertices is an edge, so that it can be the input of another query; any other arity is a list. Vertices
    have one type in a table: integers, or strings (then integers are written in decimal).
    """

    arity: int = 2
    paths: bool = False
    vertex: pa.DataType = STRINGS

    @property
    def fields(self) -> tuple[AnswerField, ...]:
        subject = (SRC, TRG, LABEL) if self.arity == 2 else (ANSWER,)
        return (*subject, TS, EXP, OP, *((PATH,) if self.paths else ()))

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([(field.name, field.arrow_type(self.vertex)) for field in self.fields])

    @property
    def has_integers(self) -> bool:
        return bool(self.vertex == INTEGERS)


def take_answers(answers: Answers, chosen: Array) -> Answers:
    """The records that a mask chooses."""
    path = answers.path
    if path is not None:
        lengths = np.diff(path.offsets)
        edges = np.repeat(chosen, lengths)
        path = Paths(
            offsets=np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64),
            src=path.src.take(edges),
            label=path.label.take(edges),
            trg=path.trg.take(edges),
            given=path.given[chosen],
        )
    return answers._replace(
        vertices=tuple(text.take(chosen) for text in answers.vertices),
        ts=answers.ts[chosen],
        exp=answers.exp[chosen],
        op=answers.op[chosen],
        path=path,
        properties=tuple(
            column._replace(values=take_values(column.values, chosen)) for column in answers.properties
        ),
    )


def take_values(values: Array | Text, chosen: Array) -> Array | Text:
    return values.take(chosen) if isinstance(values, Text) else values[chosen]


def as_dicts(answers: Answers) -> Iterator[dict[str, Any]]:
    """Each record as a dict of the fields of an answer; `path` only if paths were asked for."""
    fields = answers.schema.fields
    to_dicts = _dict_builder(tuple(field.name for field in fields))
    return to_dicts(zip(*(field.values(answers) for field in fields), strict=True))


@cache
def _dict_builder(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Iterator[dict[str, Any]]]:
    """A function from rows of values to dicts with these keys.

    It is generated, as `dataclasses` does it: a dict display takes half the time of `dict(zip(…))`.
    """
    items = ", ".join(f"{name!r}: {name}" for name in names)
    builder: Callable[[Iterable[Any]], Iterator[dict[str, Any]]] = eval(
        f"lambda rows: ({{{items}}} for {', '.join(names)} in rows)"
    )
    return builder


def as_table(answers: Answers, *, vertex: pa.DataType | None = None) -> pa.Table:
    """The records as a pyarrow Table.

    A column has one type: unless `vertex` chooses it, vertices are int64 if all of them are integers, and strings
    otherwise, with integers in decimal.
    """
    if vertex is None:
        vertex = INTEGERS if answers.rows and all_integers(answers) else STRINGS
    fields = answers.schema.fields
    return pa.Table.from_arrays(
        [field.column(answers, vertex) for field in fields],
        schema=pa.schema([(field.name, field.arrow_type(vertex)) for field in fields]),
    )


def all_integers(answers: Answers) -> bool:
    """Whether every vertex in the records, those of the paths included, is an integer."""
    texts = list(answers.vertices)
    if answers.path is not None:
        texts += [answers.path.src, answers.path.trg]
    return all(bool(text.kind.all()) for text in texts)


def as_column(text: Text, vertex: pa.DataType = STRINGS) -> pa.Array:
    """Names as an Arrow column of integers, or of strings with integers in decimal."""
    if vertex == INTEGERS:
        if not text.kind.all():
            raise ArgumentError("a vertex of the answers is not an integer")
        data, _ = text.packed()
        return pa.array(data.view("<i8"))
    if text.kind.any():
        return pa.array([str(value) for value in text.values()], STRINGS)
    data, offsets = text.packed()
    return pa.LargeStringArray.from_buffers(text.rows, pa.py_buffer(offsets), pa.py_buffer(data))


def _vertex_field(name: str, position: int) -> AnswerField:
    return AnswerField(
        name=name,
        arrow_type=lambda vertex: vertex,
        column=lambda answers, vertex: as_column(answers.vertices[position], vertex),
        values=lambda answers: answers.vertices[position].values(),
        json=lambda label, arity: SLOT,
    )


def _vertex_lists(answers: Answers) -> Iterable[list[str | int]]:
    if not answers.vertices:
        return ([] for _ in range(answers.rows))
    return map(list, zip(*(text.values() for text in answers.vertices), strict=True))


def _vertex_list_column(answers: Answers, vertex: pa.DataType) -> pa.Array:
    arity = len(answers.vertices)
    # Row by row, from a concatenation position by position.
    order = np.arange(answers.rows * arity).reshape(arity, answers.rows).T.ravel()
    values = as_column(concat_texts(answers.vertices).take(order), vertex)
    offsets = np.arange(answers.rows + 1, dtype=np.int64) * arity
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)


def _path_type(vertex: pa.DataType) -> pa.DataType:
    return pa.large_list(pa.struct([("src", vertex), ("label", STRINGS), ("trg", vertex)]))


def _path_column(answers: Answers, vertex: pa.DataType) -> pa.Array:
    path = answers.path
    assert path is not None
    edge = pa.StructArray.from_arrays(
        [as_column(path.src, vertex), as_column(path.label), as_column(path.trg, vertex)],
        ["src", "label", "trg"],
    )
    # A list that is missing has a missing offset; the last offset closes the last list.
    missing = np.append(~path.given, False)
    return pa.LargeListArray.from_arrays(pa.array(path.offsets, mask=missing), edge)


def _path_lists(answers: Answers) -> Iterator[list[list[str | int]] | None]:
    path = answers.path
    assert path is not None
    ends = zip(path.src.values(), path.label.values(), path.trg.values(), strict=True)
    edges = [list(edge) for edge in ends]
    bounds = path.offsets.tolist()
    for row, given in enumerate(path.given.tolist()):
        yield edges[bounds[row] : bounds[row + 1]] if given else None


SRC, TRG = _vertex_field("src", 0), _vertex_field("trg", 1)
LABEL = AnswerField(
    name="label",
    arrow_type=lambda vertex: STRINGS,
    column=lambda answers, vertex: pa.repeat(pa.scalar(answers.label, STRINGS), answers.rows),
    values=lambda answers: [answers.label] * answers.rows,
    json=lambda label, arity: json.dumps(label, ensure_ascii=False),
)
ANSWER = AnswerField(
    name="answer",
    arrow_type=lambda vertex: pa.large_list(vertex),
    column=_vertex_list_column,
    values=_vertex_lists,
    json=lambda label, arity: "[" + ",".join([SLOT] * arity) + "]",
)
TS = AnswerField(
    name="ts",
    arrow_type=lambda vertex: INTEGERS,
    column=lambda answers, vertex: pa.array(answers.ts, INTEGERS),
    values=lambda answers: answers.ts.tolist(),
    json=lambda label, arity: SLOT,
)
EXP = AnswerField(
    name="exp",
    arrow_type=lambda vertex: INTEGERS,
    column=lambda answers, vertex: pa.array(answers.exp, INTEGERS, mask=answers.exp == NO_EXPIRY),
    values=lambda answers: [None if exp == NO_EXPIRY else exp for exp in answers.exp.tolist()],
    json=lambda label, arity: SLOT,
)
OP = AnswerField(
    name="op",
    arrow_type=lambda vertex: STRINGS,
    column=lambda answers, vertex: pa.array(["-", "+"], STRINGS).take(
        pa.array(answers.op > 0).cast(pa.int8())
    ),
    values=lambda answers: ["+" if op > 0 else "-" for op in answers.op.tolist()],
    json=lambda label, arity: f'"{SLOT}"',
)
PATH = AnswerField(
    name="path",
    arrow_type=_path_type,
    column=_path_column,
    values=_path_lists,
    json=lambda label, arity: f"[{SLOT}]",
)
