"""The layout of a stream's rows: which columns hold the fields of an edge and the properties that a run reads.

It is sent to Spark's processes, some of which plan without kernels: nothing here imports these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from meander.errors import ArgumentError, InputError
from meander.physical.streams import PLAIN, ClassUse, LabelClass, StreamSchema
from meander.syntax.values import ALL_PROPERTIES, TIME_PROPERTY, Property, ValueType

EDGE_FIELDS = ("src", "label", "trg", "ts", "op")
"""The fields of an edge, in the order of a .tsv file without header."""

EXPIRY = Property("exp", ValueType.TIME)
"""The end of a tuple's validity; in a stream of tuples it is read like a property."""

PROPERTIES, ANSWER = "properties", "answer"
"""The fields of a record of an answer that has its properties, and its vertices if they are not two."""

RECORD_FIELDS = (PROPERTIES, ANSWER, "path", "proof")
"""The fields of a record of an answer that an edge does not have."""

ANSWER_LABEL = "Answer"
"""The label of an answer of one vertex, which is a vertex tuple: its record has none."""

TIME_DIGITS = {"s": 0, "ms": 3, "us": 6}
"""For each unit of times its decimal places of a second."""


@dataclass(frozen=True)
class StreamLayout:
    """How the rows of a stream are read.

    `columns` has the column of each field and property whose column has another name. With a `label` all rows have
    that label, and no column is read for it.
    """

    stream: str = ""
    time_unit: str = "s"
    schema: StreamSchema = PLAIN
    columns: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None

    def __post_init__(self) -> None:
        if self.time_unit not in TIME_DIGITS:
            raise ArgumentError(f"invalid unit of time: {self.time_unit}", hint="--time-unit is s, ms or us")
        if self.label is not None and "label" in self.columns:
            raise ArgumentError(
                f"the stream {self.stream} has the label {self.label} and a column of labels, "
                f"{self.columns['label']}",
                hint="give one of the two",
            )
        fields = (*EDGE_FIELDS, *(value.name for value in self.properties if value != ALL_PROPERTIES))
        for name in self.columns:
            if name not in fields:
                raise ArgumentError(
                    f"columns: the stream {self.stream} has no field {name}",
                    hint=f"its fields are {', '.join(fields)}; properties are those that the query reads",
                )
        if self.label == "":
            raise ArgumentError(f"the label of the stream {self.stream} is empty")

    @cached_property
    def properties(self) -> tuple[Property, ...]:
        """The properties that are read, with the expiry of tuples; an edge's own time is not one of them."""
        known = tuple(known for known in self.schema.properties if known.name != TIME_PROPERTY)
        return (EXPIRY, *known) if self.schema.tuples else known

    @cached_property
    def types(self) -> dict[str, ValueType]:
        """The type of each property."""
        types = {}
        for name, kind in self.properties:
            if kind is None:
                raise ArgumentError(
                    f"the type of {name} is not known", hint="declare it in the stream's line of the query"
                )
            types[name] = kind
        return types

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of an edge that are read."""
        return tuple(name for name in EDGE_FIELDS if name != "label" or self.label is None)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The fields that every row has."""
        optional = (
            {"op"} | ({"trg"} if self.schema.vertices else set()) | ({"ts"} if self.schema.table else set())
        )
        return tuple(name for name in self.fields if name not in optional)

    @property
    def digits(self) -> int:
        return TIME_DIGITS[self.time_unit]

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows have the fields of an edge and nothing else, under their own names."""
        return self.schema == PLAIN and not self.columns and self.label is None

    def column(self, name: str) -> str:
        """The column of a field or property."""
        return self.columns.get(name, name)

    @property
    def named_properties(self) -> list[str]:
        """The properties that the query names; tuples that never expire have no `exp`."""
        hidden = (EXPIRY.name, ALL_PROPERTIES.name) if self.schema.tuples else ()
        return [name for name in self.types if name not in hidden]

    @cached_property
    def columns_wanted(self) -> list[str]:
        """The columns that may hold what is read."""
        records = (PROPERTIES, ANSWER) if self.schema.tuples else ()
        return list(dict.fromkeys((*self.columns_read.values(), *records)))

    @cached_property
    def columns_read(self) -> dict[str, str]:
        """By field and property: its column."""
        return {name: self.column(name) for name in (*self.fields, *self.types)}

    def renamed(self) -> StreamLayout:
        """The layout of the same rows after their columns have got the names of their fields and properties."""
        return StreamLayout(self.stream, self.time_unit, self.schema, label=self.label)

    def check_columns(self, names: Sequence[str], where: str, hint: str = "") -> None:
        """Refuse rows that lack a field or have a column twice that is read; `names` are their columns."""
        for name in self.required:
            column = self.column(name)
            if column not in names:
                advice = (
                    f"{hint}; {column_hint(self.stream, name)}" if hint else column_hint(self.stream, name)
                )
                raise InputError(
                    f"{where} has no column {column}: it has {', '.join(names) or 'none'}", hint=advice
                )
        for column in self.columns_read.values():
            if names.count(column) > 1:
                raise InputError(
                    f"{where} has more than one column {column}",
                    hint="give one of them another name: which of them is meant cannot be told from the name",
                )

    def check_properties(self, names: Iterable[str], where: str) -> None:
        """Refuse rows without a column for one of the properties."""
        known = list(names)
        for name in self.named_properties:
            if self.column(name) not in known:
                raise InputError(
                    f"{where} has no column {self.column(name)}, which the query reads: it has "
                    f"{', '.join(known) or 'none'}",
                    hint=column_hint(self.stream, name),
                )

    def to_json(self) -> dict[str, Any]:
        schema = self.schema
        return {
            "stream": self.stream,
            "time_unit": self.time_unit,
            "properties": [[name, kind] for name, kind in schema.properties],
            "vertices": schema.vertices,
            "table": schema.table,
            "tuples": schema.tuples,
            "uses": [[use.of.label, use.of.vertex, use.read, use.named] for use in schema.uses],
            "columns": dict(self.columns),
            "label": self.label,
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> StreamLayout:
        properties = tuple(
            Property(name, None if kind is None else ValueType(kind)) for name, kind in fields["properties"]
        )
        uses = tuple(
            ClassUse(LabelClass(label, vertex), tuple(read), tuple(named))
            for label, vertex, read, named in fields["uses"]
        )
        schema = StreamSchema(properties, fields["vertices"], fields["table"], fields["tuples"], uses)
        return StreamLayout(fields["stream"], fields["time_unit"], schema, fields["columns"], fields["label"])


def column_hint(stream: str, name: str) -> str:
    """How a field or property is read from a column of another name."""
    stream = stream or "STREAM"
    if name == "label":
        return (
            f"--columns {stream}:label=COLUMN reads it from another column, --label {stream}=LABEL gives all rows "
            "one label (in Python, columns= and labels=)"
        )
    return f"--columns {stream}:{name}=COLUMN reads it from another column (in Python, columns=)"


def stream_layouts(
    schemas: Mapping[str, StreamSchema],
    streams: Iterable[str],
    *,
    time_unit: str,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, StreamLayout]:
    """The layout of each stream; `columns` and `labels` are by stream."""
    return {
        name: StreamLayout(
            name,
            time_unit,
            schemas.get(name, PLAIN),
            dict((columns or {}).get(name, {})),
            (labels or {}).get(name),
        )
        for name in streams
    }


def check_mappings(
    columns: Mapping[str, Any] | None, labels: Mapping[str, Any] | None, streams: Sequence[str]
) -> None:
    """Refuse mappings of columns and labels that are of no stream, or are not such."""
    for option, given in {"columns": columns, "labels": labels}.items():
        for name, value in (given or {}).items():
            if name not in streams:
                raise ArgumentError(
                    f"{option} has a stream {name}, and the query has none of that name",
                    hint=f"its streams are {', '.join(streams)}",
                )
            if not isinstance(value, Mapping if option == "columns" else str):
                example = '{"src": "account_from"}' if option == "columns" else '"transfer"'
                raise ArgumentError(
                    f"{option} of the stream {name} is {value!r}",
                    hint=f'write {option}={{"{name}": {example}}}',
                )


def ignores_expiry(layout: StreamLayout, names: Iterable[str]) -> bool:
    """Whether rows with these columns have an expiry that is not read."""
    return not layout.schema.tuples and EXPIRY.name in ignored_columns(layout, names)


def expiry_warning(stream: str) -> tuple[str, str]:
    """What to say of an expiry that is not read, and a hint."""
    return (
        f"the exp of the stream {stream} is ignored: its edges are valid by the window that the query gives it",
        f"STREAM {stream} TUPLES, in G-CORE ON {stream} TUPLES, reads the answers of another run as they are",
    )


def ignored_columns(layout: StreamLayout, names: Iterable[str]) -> Iterator[str]:
    """The columns that nothing reads."""
    read = {*layout.columns_read.values(), *(RECORD_FIELDS if layout.schema.tuples else ())}
    return (name for name in names if name and name not in read)
