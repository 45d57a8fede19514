"""The edges of a stream as batches: names and values become numbers, labels become positions.

Scans that read nothing but ends share one batch of the stream, in which `source` is the position of the label. Every
other scan has a `Selection`: which edges it reads, and which columns. It is decided on the columns as they were read,
so that an edge that no scan selects is never interned; scans with equal selections share a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from meander.dataflow.batch import Batch
from meander.dataflow.edges import Edges, Names
from meander.dataflow.labels import LabelIndex
from meander.dataflow.predicates import EdgeColumns, property_of, reads_ends_only, satisfying
from meander.dataflow.records import expiries, without_named
from meander.dataflow.state import Array
from meander.dataflow.value_names import float_of, missing_rows, numbers_of
from meander.dataflow.vertices import Vertices
from meander.kernels.arrivals import ARRIVE, GIVEN, HIGH, LOW, REPLACE_ONLY, WORDS
from meander.kernels.batch import SRC, TRG
from meander.physical.plan import ReceiveOp, ScanOp
from meander.physical.streams import LabelClass
from meander.syntax.values import ALL_PROPERTIES, TIME_PROPERTY, Predicate, Property, Ref, ValueType


@dataclass(frozen=True, slots=True)
class Selection:
    """The edges that a scan reads, and their columns beside the ends: values, and the properties of deletions.

    Deletions are selected whatever their properties. So are the rows of a table, to replace those before them: in the
    batch, `source` is REPLACE_ONLY for those that do not satisfy the predicate.
    """

    stream: str
    of: LabelClass
    predicate: Predicate | None
    values: tuple[Property, ...]
    named: tuple[Property, ...]
    table: bool

    @property
    def arity(self) -> int:
        """The number of columns of a tuple."""
        return 2 + len(self.values)

    @property
    def label_words(self) -> int:
        """The width of the label in a key, for a scan that reads edges of any."""
        return WORDS if self.of.label is None else 0

    @property
    def width(self) -> int:
        """The number of columns of a key: those of the tuple, then words of what deletions are matched by."""
        return self.arity + self.label_words + WORDS * len(self.named)

    @property
    def has_log(self) -> bool:
        """Whether several arrivals may be one tuple, or one deletion be of several tuples."""
        return self.table or self.width > 2


StreamInput = str | Selection
"""What a dataflow gives operators from outside: the batch of a stream, or that of a selection from it."""


def class_of(node: ScanOp) -> LabelClass:
    return LabelClass(node.label, node.vertex)


def selection_of(node: ScanOp) -> Selection | None:
    """The selection of a scan; None if it reads the batch of the stream."""
    selection = Selection(node.stream, class_of(node), node.predicate, node.values, node.named, node.table)
    return selection if selection.has_log or not reads_ends_only(node.predicate) else None


class StreamEncoder:
    """Encodes the edges of one stream that some operator reads."""

    def __init__(self, stream: str, nodes: Sequence[ScanOp | ReceiveOp], vertices: Vertices) -> None:
        self.stream = stream
        self.vertices = vertices
        scans = [node for node in nodes if isinstance(node, ScanOp)]
        self.classes = list(dict.fromkeys(class_of(scan) for scan in scans if selection_of(scan) is None))
        """The label classes whose edges are in the batch of the stream, as `source` numbers them."""
        self.selections = list(dict.fromkeys(filter(None, map(selection_of, scans))))
        self.has_tuples = any(scan.tuples for scan in scans)
        self.received = next((node.values for node in nodes if isinstance(node, ReceiveOp)), ())
        read = [*self.classes, *(selection.of for selection in self.selections)]
        names = list(dict.fromkeys(of.label for of in read if of.label is not None))
        self.labels = LabelIndex(names)
        self.has_vertices = any(of.vertex for of in read)
        self.positions = {name: position for position, name in enumerate(names)}
        # By position of a label, and whether it is of a vertex; the last row is of labels that nobody reads.
        self.sources = np.full((len(names) + 1, 2), -1, np.int16)
        for number, of in enumerate(self.classes):
            self.sources[self.positions[str(of.label)], int(of.vertex)] = number
        self.seen = {of: False for of in read if of.label is not None}
        """Whether a row has had the label, whatever a scan's predicate says of it."""

    def encode(self, edges: Edges) -> dict[StreamInput, Batch]:
        """The batch of the stream, and those of the selections from it. Edges with an expiry come from another stage:
        they have one label, and all are in the batch."""
        if edges.exp is not None:
            return {self.stream: self._received(edges)}
        if self.has_tuples:
            edges = edges._replace(exp=expiries(edges))
        label = self.labels.match(edges.label)
        self._note_labels(label, edges.vertex)
        if self.selections or self.has_vertices or edges.vertex is not None:
            return self._select(edges, label)
        wanted = label >= 0
        if wanted.all():
            return {self.stream: _batch(edges, self._ends(edges.src, edges.trg), label)}
        rows = np.flatnonzero(wanted)
        ends = self._ends(edges.src.take(rows), edges.trg.take(rows))
        return {self.stream: _batch_of_rows(edges, rows, ends, label[rows])}

    def _note_labels(self, label: Array, vertex: Array | None) -> None:
        for of, seen in self.seen.items():
            if not seen:
                rows = label == self.positions[str(of.label)]
                if vertex is not None:
                    rows &= vertex == of.vertex
                self.seen[of] = bool(rows.any()) and (vertex is not None or not of.vertex)

    def _received(self, edges: Edges) -> Batch:
        key = np.empty((edges.rows, 2 + len(self.received)), np.int32)
        key[:, :2] = self._ends(edges.src, edges.trg)
        for position, value in enumerate(self.received, start=2):
            column = (edges.properties or {}).get(value.name)
            assert column is not None or edges.rows == 0
            if column is not None:
                key[:, position] = self.vertices.intern_column(column, value.type)
        return _batch(edges, key, np.zeros(edges.rows, np.int16))

    def _ends(self, src: Names, trg: Names) -> Array:
        key = np.empty((src.rows, 2), np.int32)
        self.vertices.intern(src, key[:, SRC])
        self.vertices.intern(trg, key[:, TRG])
        return key

    def _select(self, edges: Edges, label: Array) -> dict[StreamInput, Batch]:
        """The batches of edges of which each scan chooses some; only the ends of these are interned."""
        vertex = np.zeros(edges.rows, np.bool_) if edges.vertex is None else edges.vertex
        source = self.sources[label, vertex.view(np.int8)]
        wanted = source >= 0
        chosen = {}
        rows_of_class: dict[LabelClass, Array | None] = {}
        for selection in self.selections:
            if selection.of not in rows_of_class:
                rows_of_class[selection.of] = self._rows_of(selection.of, label, vertex)
            of_class = rows_of_class[selection.of]
            accepted = accepted_rows(selection, EdgeColumns(edges, of_class))
            if not selection.table:
                op = edges.op if of_class is None else edges.op[of_class]
                kept = np.flatnonzero(accepted | (op < 0))
                of_class = kept if of_class is None else of_class[kept]
                accepted = accepted[kept]
            rows = np.arange(edges.rows) if of_class is None else of_class
            wanted[rows] = True
            chosen[selection] = rows, accepted
        every = np.flatnonzero(wanted)
        if every.size == edges.rows:
            ends = self._ends(edges.src, edges.trg)
        else:
            ends = self._ends(edges.src.take(every), edges.trg.take(every))
            positions = np.cumsum(wanted) - 1
        batches: dict[StreamInput, Batch] = {}
        for selection, (rows, accepted) in chosen.items():
            of_selection = ends[rows if every.size == edges.rows else positions[rows]]
            batches[selection] = self._selected(selection, edges, rows, accepted, of_selection)
        if self.classes:
            shared = np.flatnonzero(source >= 0)
            key = ends[shared if every.size == edges.rows else positions[shared]]
            batches[self.stream] = _batch_of_rows(edges, shared, key, source[shared])
        return batches

    def _rows_of(self, of: LabelClass, label: Array, vertex: Array) -> Array | None:
        """The rows of a class; None for all rows."""
        of_class = vertex == of.vertex
        if of.label is not None:
            of_class &= label == self.positions[of.label]
        return None if of_class.all() else np.flatnonzero(of_class)

    def _selected(
        self, selection: Selection, edges: Edges, rows: Array, accepted: Array, ends: Array
    ) -> Batch:
        """The batch of a selection: some rows of the edges, those of them that satisfy its predicate, and the numbers
        of their ends."""
        batch = _batch_of_rows(edges, rows, ends, np.empty(0, np.int16))
        arriving = accepted & (batch.op > 0)
        source = np.where(arriving | (batch.op < 0), ARRIVE, REPLACE_ONLY).astype(np.int16)
        if selection.width == 2:
            return batch._replace(source=source)
        key = np.zeros((rows.size, selection.width), np.int32)
        key[:, :2] = ends
        for position, value in enumerate(selection.values, start=2):
            if value.name == TIME_PROPERTY:
                key[:, position] = self.vertices.intern_times(batch.ts)
            elif arriving.any():
                chosen = slice(None) if arriving.all() else arriving
                column = property_of(edges, value.name, _all_or(edges, rows[chosen]))
                assert column is not None
                key[chosen, position] = self.vertices.intern_column(column, value.type)
        words = key[:, selection.arity :]
        if selection.of.label is None:
            words[:, GIVEN] = 1
            self.vertices.intern(edges.label.take(rows), words[:, LOW])
        for position, value in enumerate(selection.named):
            named = property_of(edges, value.name, _all_or(edges, rows))
            if named is not None:
                begin = selection.label_words + WORDS * position
                if value == ALL_PROPERTIES:
                    named = without_named(named, [other.name for other in selection.named])
                self._write_words(named, value.type, words[:, begin : begin + WORDS])
        return batch._replace(key=key, source=source)

    def _write_words(self, column: pa.Array, kind: ValueType | None, out: Array) -> None:
        """What identifies a property in each row: whether it is there, and its bits or the number of its string."""
        nulls = missing_rows(column)
        there = slice(None) if nulls is None else ~nulls
        out[there, GIVEN] = 1
        if is_text(column):
            given = column if nulls is None else column.drop_null()
            out[there, LOW] = self.vertices.intern_column(given, kind)
            return
        if kind is ValueType.FLOAT or pa.types.is_floating(column.type):
            bits = (float_of(column) + 0.0).view(np.int64)
        else:
            bits = numbers_of(column).astype(np.int64, copy=False)
        out[:, LOW : HIGH + 1] = np.ascontiguousarray(bits).view(np.int32).reshape(-1, 2)


def is_text(column: pa.Array) -> bool:
    """Whether a column has strings."""
    kinds = pa.types.is_dictionary, pa.types.is_string, pa.types.is_large_string
    return any(is_kind(column.type) for is_kind in kinds)


def accepted_rows(selection: Selection, columns: EdgeColumns) -> Array:
    """The edges that satisfy the predicate of a selection and have all of its values."""
    accepted = np.ones(columns.rows, np.bool_)
    if selection.predicate is not None:
        accepted = satisfying(selection.predicate, columns)
    for value in selection.values:
        missing = columns.column(Ref(value.name, value.type)).missing
        if missing is not None:
            accepted = accepted & ~missing
    return accepted


def arrival_names(selection: Selection, key: Array) -> Array:
    """The numbers of all names in some keys of a selection's log: ends, values, and strings among the words."""
    names = [key[:, : selection.arity].ravel()]
    begin = selection.arity
    kinds = [ValueType.STRING] * (selection.of.label is None) + [value.type for value in selection.named]
    for kind in kinds:
        if kind in (None, ValueType.STRING, ValueType.PATH):
            names.append(key[key[:, begin + GIVEN] != 0, begin + LOW])
        begin += WORDS
    return np.concatenate(names)


def _batch(edges: Edges, key: Array, source: Array) -> Batch:
    ts = writable(edges.ts)
    exp = ts if edges.exp is None else writable(edges.exp)
    return Batch(key, ts, exp, writable(edges.op), source)


def _batch_of_rows(edges: Edges, rows: Array, key: Array, source: Array) -> Batch:
    if rows.size == edges.rows:
        return _batch(edges, key, source)
    ts = edges.ts.take(rows)
    exp = ts if edges.exp is None else edges.exp.take(rows)
    return Batch(key, ts, exp, edges.op.take(rows), source)


def _all_or(edges: Edges, rows: Array) -> Array | None:
    """Some rows of the edges, or None for all of them."""
    return None if rows.size == edges.rows else rows


def writable(column: Array) -> Array:
    """Kernels are compiled for writable, contiguous arrays alone."""
    return column if column.flags.carray else np.require(column, requirements=("C", "W"))
