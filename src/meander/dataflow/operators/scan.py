"""WSCAN: the edges of a stream with one label, each with its validity interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.arrivals import ArrivalLog, without_empty_intervals
from meander.dataflow.batch import NO_PAIRS, Batch, empty_batch, take_rows
from meander.dataflow.edges import INFINITY
from meander.dataflow.encoding import Selection, class_of, selection_of
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.operators.filter import BatchPredicate
from meander.dataflow.state import Array
from meander.physical.plan import ScanOp


class Scan(Operator):
    """A scan without a log: every row of its input is a tuple, and a deletion is a retraction of its tuple."""

    def __init__(self, node: ScanOp, context: Context) -> None:
        selection = selection_of(node)
        self.inputs = (node.stream if selection is None else selection,)
        self.store = context.store
        self.node = node
        self.source: int | None = None
        self.predicate = BatchPredicate(None if selection else node.predicate, context)
        if selection is None:
            classes = context.labels[node.stream]
            self.source = classes.index(class_of(node)) if len(classes) > 1 else None

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        (edges,) = inputs
        if self.source is not None:
            edges = take_rows(edges, edges.source == self.source)
        if edges.ts.size == 0:
            return Ready(NO_PAIRS)
        return Ready(self.predicate.select(with_expiry(edges, self.node)))


class LoggedScan(Operator):
    """A scan with values, or with properties by which deletions are matched."""

    def __init__(self, node: ScanOp, selection: Selection, context: Context) -> None:
        self.inputs = (selection,)
        self.store = context.store
        self.node = node
        self.selection = selection
        self.log = ArrivalLog(selection, context.store)

    def bind(self) -> None:
        self.log.bind()

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        (edges,) = inputs
        # No later edge or deletion is before these times.
        self.log.give_back(int(edges.ts[0]) if edges.ts.size else upto)
        if edges.ts.size == 0:
            return Ready(empty_batch(0, self.selection.arity))
        return Ready(self.log.process(without_empty_intervals(with_expiry(edges, self.node))))

    def mark(self, horizon: int, live: Array) -> None:
        self.log.mark(horizon, live)

    @property
    def state_rows(self) -> int:
        return self.log.rows


def open_scan(node: ScanOp, context: Context) -> Operator:
    selection = selection_of(node)
    if selection is not None and selection.has_log:
        return LoggedScan(node, selection, context)
    return Scan(node, context)


def with_expiry(edges: Batch, node: ScanOp) -> Batch:
    """Each edge until it leaves the window, for ever in a table, or as long as it says itself; a deletion ends its
    tuple at once."""
    if node.tuples:
        return edges
    if node.table:
        exp = np.where(edges.op > 0, INFINITY, edges.ts)
    else:
        begin = edges.ts // node.slide * node.slide
        exp = np.where(edges.op > 0, begin + node.window, edges.ts)
    return Batch(edges.key, edges.ts, exp, edges.op, edges.source)
