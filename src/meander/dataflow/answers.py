"""Answers on their way out: columns of names and times, one `Answers` for each batch of a query.

The engine emits a `Text` for each position of an answer, so that a sink can write the bytes of the names without
creating Python objects. `AnswerSchema` is the one definition of a record: its fields, their types and when they are
present. Dicts, Arrow tables, lines of JSON (`sinks/jsonl.py`) and the columns of a Spark DataFrame
(`spark/output/dataframes.py`) are derived from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import ARROW_TYPES, Text, concat_texts
from meander.errors import ArgumentError
from meander.kernels.jit import Array
from meander.physical.plan import Result, is_timed
from meander.syntax.values import Property, ValueType

NO_EXPIRY = -1
"""In `exp`: there is none (records that end an answer, and all records in `changes` mode)."""

NO_TIME = -1
"""In `Paths.ts`: the edge is on a path in no order of time."""

STRINGS = pa.large_string()
INTEGERS = pa.int64()

SLOT = "\0"
"""In the JSON template of a field: where a value is written. JSON text never contains this character."""


class Paths(NamedTuple):
    """The paths of n answers: the steps of answer i are those from `offsets[i]` to `offsets[i + 1]`.

    A step is an edge: a row of `src`, `label` and `trg`. Many steps may be one edge, so `step` has the row of each;
    without it the steps are all rows in order. `given` is False for an answer that is not a path; an empty path is
    given and has no steps. The edges of a time-respecting path have their times in `ts`, and those of other paths
    beside them `NO_TIME`.
    """

    offsets: Array
    src: Text
    label: Text
    trg: Text
    given: Array
    ts: Array | None = None
    step: Array | None = None

    @property
    def steps(self) -> Array:
        """The row of each step."""
        return np.arange(self.src.rows) if self.step is None else self.step


class ValueColumn(NamedTuple):
    """A named value of n answers: int64 for INT and TIME, float64, bool, a `Text` for STRING, `Paths` for PATH."""

    name: str
    type: ValueType
    values: Array | Text | Paths


class Answers(NamedTuple):
    """n answer records of one query; `vertices` has one `Text` for each position (two for an edge)."""

    label: str
    vertices: tuple[Text, ...]
    ts: Array
    exp: Array
    op: Array
    path: Paths | None = None
    properties: tuple[ValueColumn, ...] = ()
    proof: Text | None = None  # JSON text, `null` where there is none

    @property
    def rows(self) -> int:
        return int(self.ts.size)

    @property
    def schema(self) -> AnswerSchema:
        return AnswerSchema(
            arity=len(self.vertices),
            paths=self.path is not None,
            proofs=self.proof is not None,
            values=tuple(Property(column.name, column.type) for column in self.properties),
            timed_paths=self.path is not None and self.path.ts is not None,
            timed_values=tuple(
                column.name
                for column in self.properties
                if isinstance(column.values, Paths) and column.values.ts is not None
            ),
        )

    @property
    def all_paths(self) -> list[Paths]:
        """Every column of paths."""
        columns = [column.values for column in self.properties if isinstance(column.values, Paths)]
        return columns if self.path is None else [self.path, *columns]


class AnswerField(NamedTuple):
    """One field of an answer record, in every form that a record takes."""

    name: str
    arrow_type: Callable[[AnswerSchema], pa.DataType]
    """The Arrow type."""

    column: Callable[[Answers, pa.DataType], pa.Array]
    """The Arrow column of some answers, given the type of vertices."""

    values: Callable[[Answers], Iterable[Any]]
    """The Python values of some answers."""

    json: Callable[[str, AnswerSchema], str]
    """The JSON text of the field, given the answers' label, with a `SLOT` for each value that a record has."""


@dataclass(frozen=True)
class AnswerSchema:
    """The shape of a query's answers.

    A pair of vertices is an edge, so that it can be the input of another query; any other arity is a list. Vertices
    have one type in a table: integers, or strings (then integers are written in decimal). `values` are the named
    values of an answer. The edges of `timed_paths`, and those of the paths among the values that `timed_values`
    names, have their times. With `proofs` a record has the tree that proves it: an object in JSON and in dicts,
    elsewhere its text.
    """

    arity: int = 2
    paths: bool = False
    vertex: pa.DataType = STRINGS
    values: tuple[Property, ...] = ()
    timed_paths: bool = False
    timed_values: tuple[str, ...] = ()
    proofs: bool = False

    @classmethod
    def of(cls, result: Result, *, paths: bool, proofs: bool) -> AnswerSchema:
        """The shape of a result's answers."""
        timed = any(proof.path.order for proof in result.proofs)
        timed = timed or (result.traces_path and is_timed(result.trace, len(result.paths)))
        path_values = [Property(name, ValueType.PATH) for name in result.paths]
        return cls(
            result.arity,
            paths,
            values=tuple(sorted((*result.values, *path_values))),
            timed_paths=paths and timed,
            timed_values=tuple(
                name for value, name in enumerate(result.paths) if is_timed(result.trace, value)
            ),
            proofs=proofs,
        )

    @property
    def fields(self) -> tuple[AnswerField, ...]:
        subject = (SRC, TRG, LABEL) if self.arity == 2 else (ANSWER,)
        values = (PROPERTIES,) if self.values else ()
        proof = (PROOF,) if self.proofs else ()
        return (*subject, TS, EXP, OP, *values, *proof, *((PATH,) if self.paths else ()))

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([(field.name, field.arrow_type(self)) for field in self.fields])

    @property
    def has_integers(self) -> bool:
        return bool(self.vertex == INTEGERS)


def take_answers(answers: Answers, chosen: Array) -> Answers:
    """The records that a mask chooses."""

    def taken(values: Array | Text | Paths) -> Array | Text | Paths:
        if isinstance(values, Paths):
            return take_paths(values, chosen)
        return values.take(chosen) if isinstance(values, Text) else values[chosen]

    return answers._replace(
        vertices=tuple(text.take(chosen) for text in answers.vertices),
        ts=answers.ts[chosen],
        exp=answers.exp[chosen],
        op=answers.op[chosen],
        path=None if answers.path is None else take_paths(answers.path, chosen),
        proof=None if answers.proof is None else answers.proof.take(chosen),
        properties=tuple(column._replace(values=taken(column.values)) for column in answers.properties),
    )


def take_paths(path: Paths, chosen: Array) -> Paths:
    """The paths of the records that a mask chooses."""
    lengths = np.diff(path.offsets)
    return path._replace(
        offsets=np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64),
        given=path.given[chosen],
        step=path.steps[np.repeat(chosen, lengths)],
    )


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
    schema = replace(answers.schema, vertex=vertex)
    return pa.Table.from_arrays(
        [field.column(answers, vertex) for field in schema.fields], schema=schema.arrow
    )


def all_integers(answers: Answers) -> bool:
    """Whether every vertex in the records, those of the paths included, is an integer."""
    kinds = [text.kind for text in answers.vertices]
    for path in answers.all_paths:
        # Some edges may be steps of no path.
        kinds += [path.src.kind[path.steps], path.trg.kind[path.steps]]
    return all(bool(kind.all()) for kind in kinds)


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
        arrow_type=lambda schema: schema.vertex,
        column=lambda answers, vertex: as_column(answers.vertices[position], vertex),
        values=lambda answers: answers.vertices[position].values(),
        json=lambda label, schema: SLOT,
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


def _properties_type(schema: AnswerSchema) -> pa.DataType:
    return pa.struct(
        [
            (
                name,
                path_type(schema.vertex, timed=name in schema.timed_values)
                if kind is ValueType.PATH
                else ARROW_TYPES[kind],
            )
            for name, kind in schema.values
        ]
    )


def _properties_column(answers: Answers, vertex: pa.DataType) -> pa.Array:
    columns = [_value_column(column, vertex) for column in answers.properties]
    return pa.StructArray.from_arrays(columns, [column.name for column in answers.properties])


def _value_column(column: ValueColumn, vertex: pa.DataType) -> pa.Array:
    if isinstance(column.values, Paths):
        return paths_array(column.values, vertex)
    if isinstance(column.values, Text):
        return as_column(column.values)
    return pa.array(column.values, ARROW_TYPES[column.type])


def _properties_dicts(answers: Answers) -> Iterator[dict[str, Any]]:
    names = [column.name for column in answers.properties]
    columns = [_python_values(column.values) for column in answers.properties]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _python_values(values: Array | Text | Paths) -> Iterable[Any]:
    if isinstance(values, Paths):
        return path_lists(values)
    return values.values() if isinstance(values, Text) else values.tolist()


def path_type(vertex: pa.DataType, *, timed: bool) -> pa.DataType:
    """The Arrow type of paths between vertices of a type, whose edges may have times."""
    step = [("src", vertex), ("label", STRINGS), ("trg", vertex)]
    return pa.large_list(pa.struct([*step, ("ts", INTEGERS)] if timed else step))


def paths_array(path: Paths, vertex: pa.DataType) -> pa.Array:
    """Paths as an Arrow column."""
    if path.step is not None:
        # An edge that is a step of no path may have another type.
        used, step = np.unique(path.step, return_inverse=True)
        texts = [text.take(used) for text in (path.src, path.label, path.trg)]
        path = path._replace(
            src=texts[0],
            label=texts[1],
            trg=texts[2],
            ts=path.ts if path.ts is None else path.ts[used],
            step=step,
        )
    columns = [as_column(path.src, vertex), as_column(path.label), as_column(path.trg, vertex)]
    names = ["src", "label", "trg"]
    if path.ts is not None:
        columns.append(pa.array(path.ts, INTEGERS, mask=path.ts == NO_TIME))
        names.append("ts")
    edge = pa.StructArray.from_arrays(columns, names)
    if path.step is not None:
        edge = edge.take(pa.array(path.step))
    # A list that is missing has a missing offset; the last offset closes the last list.
    missing = np.append(~path.given, False)
    return pa.LargeListArray.from_arrays(pa.array(path.offsets, mask=missing), edge)


def path_lists(path: Paths) -> Iterator[list[list[str | int]] | None]:
    """Paths as lists of edges."""
    columns: list[Sequence[Any]] = [path.src.values(), path.label.values(), path.trg.values()]
    edges = [list(edge) for edge in zip(*columns, strict=True)]
    if path.ts is not None:
        for edge, time in zip(edges, path.ts.tolist(), strict=True):
            if time != NO_TIME:
                edge.append(time)
    bounds = path.offsets.tolist()
    steps = path.steps.tolist()
    for row, given in enumerate(path.given.tolist()):
        # Each path has lists of its own: they are the user's to change.
        yield [edges[step].copy() for step in steps[bounds[row] : bounds[row + 1]]] if given else None


def _path_of(answers: Answers) -> Paths:
    assert answers.path is not None
    return answers.path


def _proof_column(answers: Answers, vertex: pa.DataType) -> pa.Array:
    assert answers.proof is not None
    data, offsets = answers.proof.packed()
    missing = answers.op < 0
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.LargeStringArray.from_buffers(answers.rows, pa.py_buffer(offsets), pa.py_buffer(data), valid)


def _proof_dicts(answers: Answers) -> Iterator[dict[str, Any] | None]:
    assert answers.proof is not None
    data, offsets = answers.proof.packed()
    text, bounds = data.tobytes(), offsets.tolist()
    return (json.loads(text[start:end]) for start, end in pairwise(bounds))


SRC, TRG = _vertex_field("src", 0), _vertex_field("trg", 1)
LABEL = AnswerField(
    name="label",
    arrow_type=lambda schema: STRINGS,
    column=lambda answers, vertex: pa.repeat(pa.scalar(answers.label, STRINGS), answers.rows),
    values=lambda answers: [answers.label] * answers.rows,
    json=lambda label, schema: json.dumps(label, ensure_ascii=False),
)
ANSWER = AnswerField(
    name="answer",
    arrow_type=lambda schema: pa.large_list(schema.vertex),
    column=_vertex_list_column,
    values=_vertex_lists,
    json=lambda label, schema: "[" + ",".join([SLOT] * schema.arity) + "]",
)
TS = AnswerField(
    name="ts",
    arrow_type=lambda schema: INTEGERS,
    column=lambda answers, vertex: pa.array(answers.ts, INTEGERS),
    values=lambda answers: answers.ts.tolist(),
    json=lambda label, schema: SLOT,
)
EXP = AnswerField(
    name="exp",
    arrow_type=lambda schema: INTEGERS,
    column=lambda answers, vertex: pa.array(answers.exp, INTEGERS, mask=answers.exp == NO_EXPIRY),
    values=lambda answers: [None if exp == NO_EXPIRY else exp for exp in answers.exp.tolist()],
    json=lambda label, schema: SLOT,
)
OP = AnswerField(
    name="op",
    arrow_type=lambda schema: STRINGS,
    column=lambda answers, vertex: pa.array(["-", "+"], STRINGS).take(
        pa.array(answers.op > 0).cast(pa.int8())
    ),
    values=lambda answers: ["+" if op > 0 else "-" for op in answers.op.tolist()],
    json=lambda label, schema: f'"{SLOT}"',
)
PROPERTIES = AnswerField(
    name="properties",
    arrow_type=_properties_type,
    column=_properties_column,
    values=_properties_dicts,
    json=lambda label, schema: (
        "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{SLOT}" for name, _ in schema.values) + "}"
    ),
)
PROOF = AnswerField(
    name="proof",
    arrow_type=lambda schema: STRINGS,
    column=_proof_column,
    values=_proof_dicts,
    json=lambda label, schema: SLOT,
)
PATH = AnswerField(
    name="path",
    arrow_type=lambda schema: path_type(schema.vertex, timed=schema.timed_paths),
    column=lambda answers, vertex: paths_array(_path_of(answers), vertex),
    values=lambda answers: path_lists(_path_of(answers)),
    json=lambda label, schema: f"[{SLOT}]",
)
