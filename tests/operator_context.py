"""Operators by themselves, without a dataflow around them."""

from __future__ import annotations

from collections.abc import Sequence

from meander.dataflow.batch import empty_batch, merge_inputs
from meander.dataflow.graph import WindowGraph
from meander.dataflow.operator import Context
from meander.dataflow.state import Store
from meander.dataflow.threads import LanePool
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC, TRG, Batch


def context_of(graph: WindowGraph, owner: str, vertices: Vertices | None = None) -> Context:
    """What an operator whose inputs are relations 0, 1, … of a graph gets from its dataflow."""
    return Context(
        number=0,
        store=Store(owner),
        graph=graph,
        relations={number: number for number in range(graph.relations)},
        labels={},
        vertices=vertices if vertices is not None else Vertices(Store("vertices")),
        pool=LanePool(1),
        mode="intervals",
        paths=False,
        is_read=False,
        proves=False,
        ahead=0,
    )


def batch_of(changes: Sequence[tuple[int, ...]]) -> Batch:
    """(src, trg, ts, exp, op) as a batch."""
    batch = empty_batch(len(changes))
    for row, (src, trg, ts, exp, op) in enumerate(changes):
        batch.key[row, SRC], batch.key[row, TRG] = src, trg
        batch.ts[row], batch.exp[row], batch.op[row], batch.source[row] = ts, exp, op, 0
    return batch


def rows_of(batch: Batch) -> list[tuple[int, ...]]:
    """A batch as tuples of its key, ts, exp and op."""
    columns = (*batch.key.T, batch.ts, batch.exp, batch.op)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def applied(graph: WindowGraph, changes: Sequence[tuple[int, ...]]) -> list[Batch]:
    """(relation, src, trg, ts, exp, op), applied to the graph: what they changed, by relation."""
    return [
        graph.update(relation, batch_of([change[1:] for change in changes if change[0] == relation]))
        for relation in range(graph.relations)
    ]


def merged(graph: WindowGraph, changes: Sequence[tuple[int, ...]]) -> Batch:
    """The same, merged by time."""
    return merge_inputs(applied(graph, changes), range(graph.relations))
