"""Edges on their way in: columns of names, without a Python object per edge.

A column of names is a `Text`: spans of one buffer of bytes. The raw bytes of a file are such a buffer, and
so are Arrow's string and integer columns, hence reading and ordering move spans, not names. The buffer of a
`Text` is never written to, and its array is read-only (which also spares the kernels a second compilation).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.dataflow.texts import CodedText as CodedText
from meander.dataflow.texts import Dictionary as Dictionary
from meander.dataflow.texts import Names as Names
from meander.dataflow.texts import Text as Text
from meander.dataflow.texts import arrow_text as arrow_text
from meander.dataflow.texts import as_text as as_text
from meander.dataflow.texts import code_texts as code_texts
from meander.dataflow.texts import concat_names as concat_names
from meander.dataflow.texts import concat_texts as concat_texts
from meander.dataflow.texts import constant_text as constant_text
from meander.dataflow.texts import empty_text as empty_text
from meander.dataflow.texts import frozen as frozen
from meander.dataflow.texts import integer_text as integer_text
from meander.dataflow.texts import nameless as nameless
from meander.kernels import parsing
from meander.kernels.jit import Array as Array
from meander.kernels.spans import index_spans, match_spans, wrapping
from meander.syntax.values import ValueType

ARROW_TYPES: Mapping[ValueType | None, pa.DataType] = {
    ValueType.INT: pa.int64(),
    ValueType.TIME: pa.int64(),
    ValueType.FLOAT: pa.float64(),
    ValueType.BOOL: pa.bool_(),
    ValueType.STRING: pa.large_string(),
    ValueType.PATH: pa.large_string(),
}
"""The Arrow type of a column of values, on the way in and on the way out; a path comes in as its JSON text."""

INFINITY = 2**62
"""Later than every time; the frontier of a finished run."""

MAX_TIME = parsing.MAX_TIME
"""The latest time of an edge: with a window added it is still before `INFINITY`."""

STRING, INTEGER, FLOAT, BOOL, PATH = 0, 1, 2, 3, 4
"""The kinds of a name: UTF-8 bytes; an int64 or a double as eight bytes, little-endian; a byte that is 0 or 1; the
JSON text of a path.

Vertices are strings and integers. All kinds are values of properties; a TIME is an integer.
"""


class Reason:
    """Why an edge cannot be used; the words in the rejects output."""

    MISSING = "missing field"
    BAD_TIME = "bad time"
    NEGATIVE = "negative time"
    OUT_OF_RANGE = "time out of range"
    BAD_OP = "bad op"
    BAD_VERTEX = "bad vertex"
    BAD_LABEL = "bad label"
    NOT_UTF8 = "not UTF-8"
    UNPARSABLE = "unparsable row"
    NO_EDGE = "not an edge"
    TOO_LATE = "too late"
    JUMPS_AHEAD = "time jumps ahead"

    @staticmethod
    def missing(column: str) -> str:
        """A column that every row has to have a value of is empty, or not there."""
        return f"{Reason.MISSING} {column}"

    @staticmethod
    def bad_value(name: str) -> str:
        """A property has a value that is not of its type."""
        return f"bad value of {name}"


VERDICTS: dict[int, str] = {
    parsing.MISSING: Reason.MISSING,
    parsing.BAD_TIME: Reason.BAD_TIME,
    parsing.NEGATIVE: Reason.NEGATIVE,
    parsing.OUT_OF_RANGE: Reason.OUT_OF_RANGE,
    parsing.BAD_OP: Reason.BAD_OP,
    parsing.BAD_VERTEX: Reason.BAD_VERTEX,
    parsing.BAD_LABEL: Reason.BAD_LABEL,
    parsing.NOT_UTF8: Reason.NOT_UTF8,
    parsing.UNPARSABLE: Reason.UNPARSABLE,
    parsing.NO_EDGE: Reason.NO_EDGE,
}
"""The reason for each verdict of the parsing kernels on a row that cannot be used."""


class Reject(NamedTuple):
    """An edge that cannot be used: its stream, the reason, its text, and its position.

    `line` is the number of a line of the file `path`, counted from byte `start` on, or of a row of a table; 0 if it
    is not known.
    """

    stream: str
    reason: str
    text: str
    path: str = ""
    line: int = 0
    start: int = 0

    @property
    def record(self) -> dict[str, str]:
        """The record in the rejects output."""
        return {"stream": self.stream, "reason": self.reason, "text": self.text}


class Origin(NamedTuple):
    """The origin of edges: the file, the byte from which its lines are counted, and the line (or row) of each.

    Of rows that are objects in memory, `text` gives the text of one by its number, for a reject.
    """

    path: str
    start: int
    line: Array
    text: Callable[[int], str] | None = None

    def take(self, chosen: Any) -> Origin:
        return self._replace(line=self.line[chosen])


class Edges(NamedTuple):
    """n edges in order of arrival (or, after ingest, of time); `op` is +1, or -1 for a deletion.

    `line` is the text of each edge, and `origin` its position in the input, if known, until the edge is accepted.
    Tuples that another stage has derived bring their expiry (`exp`): they hold in [ts, exp), or, with `op` -1, no
    longer hold from ts on.

    `properties` has the columns that the run reads, by name: int64 (INT and TIME), float64 without NaN, bool, or
    large_string, perhaps dictionary-encoded, each with nulls where a value is missing. A row that is a `vertex` tuple
    has its only vertex in `src` and in `trg`.
    """

    src: Names
    label: Names
    trg: Names
    ts: Array
    op: Array
    line: Text | None = None
    exp: Array | None = None
    origin: Origin | None = None
    properties: Mapping[str, pa.Array] | None = None
    vertex: Array | None = None  # bool; None: no row is a vertex tuple

    @property
    def rows(self) -> int:
        return int(self.ts.size)

    def take(self, chosen: Any) -> Edges:
        return Edges(
            src=self.src.take(chosen),
            label=self.label.take(chosen),
            trg=self.trg.take(chosen),
            ts=self.ts[chosen],
            op=self.op[chosen],
            line=None if self.line is None else self.line.take(chosen),
            exp=None if self.exp is None else self.exp[chosen],
            origin=None if self.origin is None else self.origin.take(chosen),
            properties=None
            if self.properties is None
            else {name: take_rows(column, chosen) for name, column in self.properties.items()},
            vertex=None if self.vertex is None else self.vertex[chosen],
        )

    def without_origin(self) -> Edges:
        """The same edges without their origin and their text."""
        return self._replace(line=None, origin=None)


def take_rows(column: pa.Array, chosen: Any) -> pa.Array:
    """The rows of an Arrow column that an index array, a mask or a slice selects; a slice copies nothing."""
    if isinstance(chosen, slice):
        first, stop, step = chosen.indices(len(column))
        if step == 1:
            return column.slice(first, max(0, stop - first))
        chosen = np.arange(first, stop, step)
    chosen = np.ascontiguousarray(chosen)
    return column.filter(pa.array(chosen)) if chosen.dtype == np.bool_ else column.take(pa.array(chosen))


def empty_edges() -> Edges:
    name: Names = empty_text()
    return Edges(src=name, label=name, trg=name, ts=np.empty(0, np.int64), op=np.empty(0, np.int8))


def concat_edges(parts: Sequence[Edges]) -> Edges:
    """The edges of all parts, in order; `line` and `exp` are there if all parts have them, `origin` is not.

    A part without a property that others have has no values of it.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return empty_edges()
    lines = [part.line for part in parts if part.line is not None]
    expiries = [part.exp for part in parts if part.exp is not None]
    src, trg = concat_names([(part.src, part.trg) for part in parts])
    (label,) = concat_names([(part.label,) for part in parts])
    return Edges(
        src=src,
        label=label,
        trg=trg,
        ts=np.concatenate([part.ts for part in parts]),
        op=np.concatenate([part.op for part in parts]),
        line=concat_texts(lines) if len(lines) == len(parts) else None,
        exp=np.concatenate(expiries) if len(expiries) == len(parts) else None,
        properties=_concat_properties(parts),
        vertex=_concat_flags(parts),
    )


def _concat_properties(parts: Sequence[Edges]) -> dict[str, pa.Array] | None:
    types = {name: column.type for part in parts for name, column in (part.properties or {}).items()}
    if not types:
        return None if all(part.properties is None for part in parts) else {}

    def column(part: Edges, name: str, kind: pa.DataType) -> pa.Array:
        known = part.properties or {}
        return known[name] if name in known else pa.nulls(part.rows, kind)

    return {
        name: pa.concat_arrays([column(part, name, kind) for part in parts]) for name, kind in types.items()
    }


def _concat_flags(parts: Sequence[Edges]) -> Array | None:
    if all(part.vertex is None for part in parts):
        return None
    return np.concatenate(
        [np.zeros(part.rows, np.bool_) if part.vertex is None else part.vertex for part in parts]
    )


def by_time(edges: Edges) -> Edges:
    """The edges sorted by time; edges of equal time keep their order."""
    ts = edges.ts
    if (ts[1:] >= ts[:-1]).all():
        return edges
    return edges.take(np.argsort(ts, kind="stable"))


def match_labels(label: Names, wanted: Sequence[bytes]) -> Array:
    """For each label its index in `wanted` as int16, or -1 if it is not there."""
    if isinstance(label, CodedText):
        of_name: Array = match_labels(label.dictionary.text, wanted)[label.code]
        return of_name
    out = np.empty(label.rows, np.int16)
    offsets = np.cumsum([0] + [len(name) for name in wanted])
    known = np.frombuffer(b"".join(wanted), np.uint8)
    slots = np.zeros(1 << (2 * len(wanted) + 1).bit_length(), np.int64)
    with wrapping():
        index_spans(known, offsets[:-1], offsets[1:], slots)
        match_spans(label.data, label.start, label.end, known, offsets[:-1], offsets[1:], slots, out)
    return out


def reject_edge(edges: Edges, row: int, stream: str, reason: str) -> Reject:
    """The edge in this row as a reject."""
    origin = edges.origin
    if origin is None:
        return Reject(stream, reason, edge_line(edges, row))
    return Reject(stream, reason, edge_line(edges, row), origin.path, int(origin.line[row]), origin.start)


def edge_line(edges: Edges, row: int) -> str:
    """The text of an edge: as it was read, or else the line that a file would hold for it, of JSON if edges have
    properties."""
    if edges.line is not None:
        line = edges.line
        return shown(line.data[line.start[row] : line.end[row]].tobytes())
    origin = edges.origin
    if origin is not None and origin.text is not None:
        return origin.text(int(origin.line[row]))
    edge = edges.take(slice(row, row + 1))
    is_vertex = edge.vertex is not None and edge.vertex[0]
    src, label, trg = (name.values()[0] for name in (edge.src, edge.label, edge.trg))
    fields = {"src": src, "label": label, "trg": None if is_vertex else trg, "ts": int(edges.ts[row])}
    if edges.op[row] < 0:
        fields["op"] = "-"
    if edge.properties is None:
        return "\t".join("" if value is None else str(value) for value in fields.values())
    fields |= {name: column[0].as_py() for name, column in edge.properties.items()}
    return json.dumps(fields, ensure_ascii=False)


def shown(raw: bytes) -> str:
    """Bytes as text that any output can hold: bytes that are not UTF-8 become \\xNN."""
    return raw.decode("utf-8", errors="backslashreplace")
