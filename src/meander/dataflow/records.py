"""Records of answers as edges: the input of a stream of TUPLES.

A record has the fields of an edge and `exp`. It may have its properties in one field, `properties`, and its vertices
in a list, `answer`, in place of `src`, `trg` and `label`; a list of one is a vertex tuple, any other is no edge. The
expiry is read like a property, so that it goes wherever the properties of edges go.

Tuples that differ in a property which the query does not name are different tuples, and a record that ends one of
them does not end the other. So the properties of a record are also read as one text, `ALL_PROPERTIES`: each that is
not null as in JSON, after a comma. A scan compares what is left of it without the properties that it names. Paths are
not in it: no two tuples differ in their paths alone, and a record that ends a tuple has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.answers import NO_EXPIRY, STRINGS, Answers, ValueColumn
from meander.dataflow.answers import PROPERTIES as PROPERTIES_FIELD
from meander.dataflow.edges import ARROW_TYPES, INFINITY, Edges, constant_text
from meander.dataflow.layout import ANSWER, ANSWER_LABEL, EXPIRY, PROPERTIES, StreamLayout
from meander.dataflow.property_columns import decode_dictionary, is_nan, is_string
from meander.dataflow.value_names import value_array
from meander.kernels.jit import Array
from meander.syntax.values import ALL_PROPERTIES, ValueType


def expiries(edges: Edges) -> Array:
    """When each edge of a stream of tuples expires: never without `exp`, and a deletion at once."""
    column = (edges.properties or {}).get(EXPIRY.name)
    if column is None:
        given = np.full(edges.rows, INFINITY)
    else:
        given = np.minimum(column.fill_null(INFINITY).to_numpy(zero_copy_only=False), INFINITY)
    return np.where(edges.op > 0, given, edges.ts)


# ---------------------------------------------------------------------------------------------------------
# Arrow


def edge_columns(batch: pa.RecordBatch, layout: StreamLayout) -> tuple[pa.RecordBatch, Array | None]:
    """The batch with properties and single vertices in columns of their own, and which rows are no edges (None: none
    by their `answer`)."""
    names = list(batch.schema.names)
    if not layout.schema.tuples or not {PROPERTIES, ANSWER} & set(names) or len(set(names)) < len(names):
        return batch, None
    columns = dict(zip(names, batch.columns, strict=True))
    if is_struct(columns.get(PROPERTIES)):
        columns |= _properties(columns, layout)
        if ALL_PROPERTIES.name in layout.types:
            columns[ALL_PROPERTIES.name] = properties_column(columns[PROPERTIES])
    no_edge = None
    if is_list(columns.get(ANSWER)):
        no_edge = _split_answers(columns, layout)
    return pa.record_batch(list(columns.values()), names=list(columns)), no_edge


def edge_schema(schema: pa.Schema, layout: StreamLayout) -> pa.Schema:
    """The schema of `edge_columns` of a batch of this schema."""
    if not layout.schema.tuples:
        return schema
    return edge_columns(pa.RecordBatch.from_pylist([], schema), layout)[0].schema


def nested_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The type of each column, and of each field of `properties`."""
    types = dict(zip(schema.names, schema.types, strict=True))
    properties = types.get(PROPERTIES)
    if properties is not None and pa.types.is_struct(properties):
        types |= {field.name: field.type for field in properties}
    return types


def is_struct(column: pa.Array | None) -> bool:
    return column is not None and pa.types.is_struct(column.type)


def is_list(column: pa.Array | None) -> bool:
    return column is not None and (pa.types.is_list(column.type) or pa.types.is_large_list(column.type))


def _properties(columns: Mapping[str, pa.Array], layout: StreamLayout) -> dict[str, pa.Array]:
    """The properties that are read, each from its field, and where that is null from the column of its name."""
    import pyarrow.compute as pc

    fields = columns[PROPERTIES]
    known = {field.name for field in fields.type}
    found = {}
    for name in layout.types:
        column = layout.column(name)
        if name not in layout.named_properties or column not in known:
            continue
        found[column] = pc.struct_field(fields, column)
        beside = columns.get(column)
        if beside is not None and beside.type == found[column].type:
            found[column] = pc.coalesce(found[column], beside)
    return found


def properties_column(fields: pa.Array) -> pa.Array:
    """For each row of a struct its properties as one text."""
    import pyarrow.compute as pc

    nothing = pa.scalar("", STRINGS)
    members = []
    for field in fields.type:
        if pa.types.is_nested(field.type):
            continue
        name = pa.scalar(f",{json.dumps(field.name, ensure_ascii=False)}:", STRINGS)
        text = _json_column(pc.struct_field(fields, field.name))
        members.append(pc.binary_join_element_wise(name, text, nothing))
    if not members:
        return pa.nulls(len(fields), STRINGS)
    joined = pc.binary_join_element_wise(*members, nothing, null_handling="replace", null_replacement="")
    return pc.if_else(pc.equal(joined, ""), None, joined)


def without_named(texts: pa.Array, names: Iterable[str]) -> pa.Array:
    """Texts of all properties without those that are named; null where nothing is left."""
    import pyarrow.compute as pc

    # A quotation mark within a value has a backslash before it, so what looks like a name is one.
    named = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in names)
    rest = pc.replace_substring_regex(texts.cast(STRINGS), rf',(?:{named}):(?:"(?:[^"\\]|\\.)*"|[^,"]*)', "")
    return pc.if_else(pc.equal(rest, ""), None, rest)


def _json_column(column: pa.Array) -> pa.Array:
    """The JSON text of values."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = decode_dictionary(column)
    if pa.types.is_binary(column.type):
        values = column.to_pylist()
        return pa.array([None if value is None else _json(value) for value in values], STRINGS)
    text = column.cast(STRINGS)
    if is_string(column.type):
        text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
        quote = pa.scalar('"', STRINGS)
        return pc.binary_join_element_wise(quote, text, quote, pa.scalar("", STRINGS))
    if pa.types.is_floating(column.type):
        text = pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
        return pc.if_else(pc.is_nan(column), None, text)
    return text


def _split_answers(columns: dict[str, pa.Array], layout: StreamLayout) -> Array:
    """Put single vertices into the columns of edges; which rows have an `answer` that is no vertex tuple."""
    import pyarrow.compute as pc

    answer = columns.pop(ANSWER)
    rows = len(answer)
    count = pc.list_value_length(answer).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    given = answer.is_valid().to_numpy(zero_copy_only=False)
    single = given & (count == 1)
    vertices = answer.flatten().take(pa.array(np.cumsum(count) - count, mask=~single))
    src, trg, label = (layout.column(name) for name in ("src", "trg", "label"))
    beside = columns.get(src)
    if beside is not None and not pa.types.is_null(beside.type):
        vertices = pc.coalesce(vertices.cast(beside.type), beside)
    columns[src] = vertices
    columns.setdefault(trg, pa.nulls(rows, vertices.type))
    if layout.label is None:
        named = columns.get(label, pa.nulls(rows, pa.large_string())).cast(pa.large_string())
        columns[label] = pc.if_else(pa.array(given), ANSWER_LABEL, named)
    no_edge: Array = given & ~single if layout.schema.vertices else given
    return no_edge


# ---------------------------------------------------------------------------------------------------------
# Python objects


class NumberText(str):
    """A number as it is written in a line of JSON."""


class NoEdge:
    """In place of the fields of a row: its `answer` is not one vertex."""


NO_EDGE = NoEdge()


def given_value(row: Mapping[str, Any], layout: StreamLayout, name: str) -> Any:
    """A property of a mapping; None if it is missing."""
    column = layout.column(name)
    if layout.schema.tuples and name != EXPIRY.name:
        fields = row.get(PROPERTIES)
        if name == ALL_PROPERTIES.name:
            return properties_text(fields) if isinstance(fields, Mapping) else None
        if isinstance(fields, Mapping) and fields.get(column) is not None:
            return fields[column]
    return row.get(column)


def properties_text(properties: Mapping[str, Any]) -> str | None:
    """The properties of a record as one text."""
    members = [
        f",{json.dumps(name, ensure_ascii=False)}:{_json(value)}"
        for name, value in properties.items()
        if value is not None and not is_nan(value) and not isinstance(value, list | tuple | Mapping)
    ]
    return "".join(members) or None


def _json(value: Any) -> str:
    if isinstance(value, NumberText):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def single_vertex(row: Mapping[str, Any], layout: StreamLayout) -> Mapping[str, Any] | NoEdge:
    """A record of an answer of one vertex with the fields of a vertex tuple; any other record as it is."""
    answer = row.get(ANSWER) if layout.schema.tuples else None
    if not isinstance(answer, list | tuple):
        return row
    if len(answer) != 1 or not layout.schema.vertices:
        return NO_EDGE
    fields = {"src": answer[0], "label": ANSWER_LABEL, "trg": None}
    return {**row, **{layout.column(name): value for name, value in fields.items()}}


# ---------------------------------------------------------------------------------------------------------
# Answers of a run in the same process


def edges_of_answers(answers: Answers, layout: StreamLayout) -> Edges | None:
    """The records of a run as edges, without a detour over Python objects; None if they are no edges."""
    names = answers.vertices
    is_vertex = len(names) == 1
    if len(names) != 2 and not (is_vertex and layout.schema.vertices):
        return None
    label = ANSWER_LABEL if is_vertex else answers.label
    given = {column.name: column for column in answers.properties}
    if answers.path is not None:
        given.setdefault("path", ValueColumn("path", ValueType.PATH, answers.path))
    properties = {}
    for name, kind in layout.types.items():
        column = given.get(layout.column(name))
        if name == EXPIRY.name:
            properties[name] = pa.array(answers.exp, mask=answers.exp == NO_EXPIRY)
        elif name == ALL_PROPERTIES.name and answers.properties:
            properties[name] = properties_column(PROPERTIES_FIELD.column(answers, STRINGS))
        elif column is None:
            properties[name] = pa.nulls(answers.rows, ARROW_TYPES[kind])
        else:
            properties[name] = value_array(column).cast(ARROW_TYPES[kind])
    return Edges(
        src=names[0],
        label=constant_text(layout.label or label, answers.rows),
        trg=names[-1],
        ts=answers.ts,
        op=answers.op,
        properties=properties,
        vertex=np.full(answers.rows, is_vertex) if layout.schema.vertices else None,
    )
