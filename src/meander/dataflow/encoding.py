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

from meander.dataflow.batch import Batch, take_rows
from meander.dataflow.edges import Edges
from meander.dataflow.labels import LabelIndex
from meander.dataflow.predicates import EdgeColumns, as_predicate, reads_ends_only, satisfying
from meander.dataflow.state import Array
from meander.dataflow.value_columns import float_of, missing_rows, numbers_of, take_column
from meander.dataflow.vertices import Vertices
from meander.kernels.arrivals import ARRIVE, GIVEN, HIGH, LOW, REPLACE_ONLY, WORDS
from meander.kernels.batch import SRC, TRG
from meander.physical.plan import ReceiveOp, ScanOp
from meander.syntax.values import TIME_PROPERTY, Predicate, Property, Ref, ValueType


@dataclass(frozen=True, slots=True)
class LabelClass:
    """Edges, or vertex tuples, with a label; None: with any."""

    label: str | None
    vertex: bool = False


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
    predicate = as_predicate(node.condition)
    selection = Selection(node.stream, class_of(node), predicate, node.values, node.named, node.table)
    return selection if selection.has_log or not reads_ends_only(predicate) else None


class StreamEncoder:
    """Encodes the edges of one stream that some operator reads."""

    def __init__(self, stream: str, nodes: Sequence[ScanOp | ReceiveOp], vertices: Vertices) -> None:
        self.stream = stream
        self.vertices = vertices
        scans = [node for node in nodes if isinstance(node, ScanOp)]
        self.classes = list(dict.fromkeys(class_of(scan) for scan in scans if selection_of(scan) is None))
        """The label classes whose edges are in the batch of the stream, as `source` numbers them."""
        self.selections = list(dict.fromkeys(filter(None, map(selection_of, scans))))
        self.received = next((node.values for node in nodes if isinstance(node, ReceiveOp)), ())
        read = [*self.classes, *(selection.of for selection in self.selections)]
        names = list(dict.fromkeys(of.label for of in read if of.label is not None))
        self.labels = LabelIndex(names)
        self.reads_any = any(of.label is None for of in read)
        self.has_vertices = any(of.vertex for of in read)
        self.positions = {name: position for position, name in enumerate(names)}
        # By position of a label, and whether it is of a vertex; the last row is of labels that nobody reads.
        self.sources = np.full((len(names) + 1, 2), -1, np.int16)
        for number, of in enumerate(self.classes):
            self.sources[self.positions[str(of.label)], int(of.vertex)] = number

    def encode(self, edges: Edges) -> dict[StreamInput, Batch]:
        """The batch of the stream, and those of the selections from it. Edges with an expiry come from another stage:
        they have one label, and all are in the batch."""
        if edges.exp is not None:
            return {self.stream: self._received(edges, edges.exp)}
        label = self.labels.match(edges.label)
        if not self.reads_any:
            wanted = label >= 0
            if not wanted.all():
                edges, label = edges.take(wanted), label[wanted]
        if not self.selections and not self.has_vertices and edges.vertex is None:
            return {self.stream: _batch(edges, self._ends(edges), label)}
        return self._select(edges, label)

    def _received(self, edges: Edges, exp: Array) -> Batch:
        key = np.empty((edges.rows, 2 + len(self.received)), np.int32)
        self.vertices.intern(edges.src, key[:, SRC])
        self.vertices.intern(edges.trg, key[:, TRG])
        for position, value in enumerate(self.received, start=2):
            column = (edges.properties or {}).get(value.name)
            assert column is not None or edges.rows == 0
            if column is not None:
                key[:, position] = self.vertices.intern_column(column, value.type)
        return _batch(edges, key, np.zeros(edges.rows, np.int16))._replace(exp=writable(exp))

    def _ends(self, edges: Edges) -> Array:
        key = np.empty((edges.rows, 2), np.int32)
        self.vertices.intern(edges.src, key[:, SRC])
        self.vertices.intern(edges.trg, key[:, TRG])
        return key

    def _select(self, edges: Edges, label: Array) -> dict[StreamInput, Batch]:
        vertex = np.zeros(edges.rows, np.bool_) if edges.vertex is None else edges.vertex
        source = self.sources[label, vertex.view(np.int8)]
        chosen = {}
        cache: dict[LabelClass, tuple[Array, Edges]] = {}
        wanted = source >= 0
        for selection in self.selections:
            if selection.of not in cache:
                of_class = vertex == selection.of.vertex
                if selection.of.label is not None:
                    of_class &= label == self.positions[selection.of.label]
                rows = np.flatnonzero(of_class)
                cache[selection.of] = rows, edges if rows.size == edges.rows else edges.take(rows)
            rows, candidates = cache[selection.of]
            accepted = accepted_rows(selection, candidates)
            kept = np.flatnonzero(accepted | (candidates.op < 0) | selection.table)
            chosen[selection] = rows[kept], accepted[kept]
            wanted[rows[kept]] = True
        if not wanted.all():
            edges, source = edges.take(wanted), source[wanted]
            moved = np.cumsum(wanted) - 1
            chosen = {selection: (moved[rows], accepted) for selection, (rows, accepted) in chosen.items()}
        ends = self._ends(edges)
        batches: dict[StreamInput, Batch] = {
            selection: self._selected(selection, edges, ends, rows, accepted)
            for selection, (rows, accepted) in chosen.items()
        }
        if self.classes:
            shared = _batch(edges, ends, source)
            batches[self.stream] = shared if (source >= 0).all() else take_rows(shared, source >= 0)
        return batches

    def _selected(
        self, selection: Selection, edges: Edges, ends: Array, rows: Array, accepted: Array
    ) -> Batch:
        """The batch of a selection: some rows of the edges, and which of these satisfy its predicate."""
        if rows.size < edges.rows:
            edges, ends = edges.take(rows), ends[rows]
        arriving = accepted & (edges.op > 0)
        key = np.zeros((edges.rows, selection.width), np.int32)
        key[:, :2] = ends
        for position, value in enumerate(selection.values, start=2):
            self._intern_values(edges, value, arriving, key[:, position])
        words = key[:, selection.arity :]
        if selection.of.label is None:
            words[:, GIVEN] = 1
            self.vertices.intern(edges.label, words[:, LOW])
        for position, value in enumerate(selection.named):
            begin = selection.label_words + WORDS * position
            self._write_words(edges, value, words[:, begin : begin + WORDS])
        return _batch(edges, key, np.where(arriving | (edges.op < 0), ARRIVE, REPLACE_ONLY).astype(np.int16))

    def _intern_values(self, edges: Edges, value: Property, chosen: Array, out: Array) -> None:
        """The numbers of a value in the chosen rows, none of which lacks it."""
        every = bool(chosen.all())
        if value.name == TIME_PROPERTY:
            out[...] = self.vertices.intern_times(edges.ts)
            return
        column = (edges.properties or {}).get(value.name)
        if column is None:
            return
        if every:
            out[...] = self.vertices.intern_column(column, value.type)
        else:
            out[chosen] = self.vertices.intern_column(take_column(column, chosen), value.type)

    def _write_words(self, edges: Edges, value: Property, out: Array) -> None:
        """What identifies a property in each row: whether it is there, and its bits or the number of its string."""
        column = (edges.properties or {}).get(value.name)
        if column is None:
            return
        nulls = missing_rows(column)
        there = np.ones(edges.rows, np.bool_) if nulls is None else ~nulls
        out[:, GIVEN] = there
        if is_text(column):
            given = column if nulls is None else take_column(column, there)
            out[there, LOW] = self.vertices.intern_column(given, value.type)
            return
        if value.type is ValueType.FLOAT or pa.types.is_floating(column.type):
            bits = (float_of(column) + 0.0).view(np.int64)
        else:
            bits = numbers_of(column).astype(np.int64)
        # A column of 64 bits may be a view of what was read, in which rows are not adjacent.
        out[:, LOW : HIGH + 1] = np.ascontiguousarray(bits).view(np.int32).reshape(-1, 2)


def is_text(column: pa.Array) -> bool:
    """Whether a column has strings."""
    kinds = pa.types.is_dictionary, pa.types.is_string, pa.types.is_large_string
    return any(is_kind(column.type) for is_kind in kinds)


def accepted_rows(selection: Selection, edges: Edges) -> Array:
    """The edges that satisfy the predicate of a selection and have all of its values."""
    columns = EdgeColumns(edges)
    accepted = np.ones(edges.rows, np.bool_)
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
        if kind is None or kind is ValueType.STRING:
            names.append(key[key[:, begin + GIVEN] != 0, begin + LOW])
        begin += WORDS
    return np.concatenate(names)


def _batch(edges: Edges, key: Array, source: Array) -> Batch:
    ts = writable(edges.ts)
    return Batch(key, ts, ts, writable(edges.op), source)


def writable(column: Array) -> Array:
    """Kernels are compiled for writable, contiguous arrays alone."""
    return column if column.flags.carray else np.require(column, requirements=("C", "W"))
