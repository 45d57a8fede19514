"""Standing records: emitted with a path, not expired, not retracted.

A record promises that every edge of its path is valid until its expiry. A deletion can break that promise although
the answer itself still holds, by another path. Such an answer is retracted, and emitted again with the path that it
has now. So records are stored with the edges of their paths until they expire or are retracted; a retraction covers
all records of an answer.

In `changes` mode a path is true of the instant at which its answer starts, so a record stands for that instant alone.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.answers import AnswerTable, find_answer
from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.graph import (
    FIRST_VALUE,
    UNDONE,
    Graph,
    Values,
    expiry_at,
    expiry_before,
    find_row,
    find_wide_row,
)
from meander.kernels.hashing import find_key
from meander.kernels.jit import Array, inner_kernel, kernel

# Positions in `Standing.counts`.
RECORDS, EDGES = 0, 1

# In place of an edge's relation. No edge is found under any of these, so the path counts as broken.
UNKNOWN = -1  # emitted by a worker whose state is lost
BROKEN = -2  # retracted together with its answer, within the instant in which it was emitted
# A path without edges: its vertex stands for them, and it may break with an edge of that vertex.
EMPTY_PATH = -3

NO_VALUE = -1  # of an edge in a relation without value columns


class Standing(NamedTuple):
    key: Array  # by record: source, target, and the values of the answer
    exp: Array  # 0 for a retracted record
    older: Array  # the record before it of the same answer, or -1
    begin: Array  # by record, with one more for the end: its edges
    slots: Array  # the hash index over keys: the newest record
    edge_relation: Array
    edge_key: Array  # int32 by edge: source, target, and its values if the relation has values
    counts: Array


class ProvedEdges(NamedTuple):
    """The edges of the paths of a batch's records, as rows of the graph."""

    begin: Array  # by record, with one more for the end
    row: Array
    empty: Array  # by record: whether its path is an empty one that a deletion may break


@kernel
def retract_records(standing: Standing, key: Array) -> int:
    """Retract all records of an answer; the largest expiry that they had."""
    newest = standing.slots[find_key(standing.slots, standing.key, key)]
    largest = 0
    record = newest
    while record >= 0:
        largest = max(largest, standing.exp[record])
        standing.exp[record] = 0
        record = standing.older[record]
    if newest >= 0:
        standing.older[newest] = -1
    return largest


@kernel
def link_record(standing: Standing, record: int) -> None:
    slot = find_key(standing.slots, standing.key, standing.key[record])
    standing.older[record] = standing.slots[slot]
    standing.slots[slot] = record


@kernel
def add_edge(standing: Standing, relation: int, src: int, trg: int) -> None:
    """Add an edge, without values, to the record that is being added. Needs room for one."""
    edge = standing.counts[EDGES]
    standing.edge_relation[edge] = relation
    standing.edge_key[edge, SRC] = src
    standing.edge_key[edge, TRG] = trg
    standing.edge_key[edge, FIRST_VALUE:] = NO_VALUE
    standing.counts[EDGES] = edge + 1


@kernel
def add_records(
    graph: Graph, values: Values | None, standing: Standing, batch: Batch, proved: ProvedEdges
) -> None:
    """Add records in their order. Needs room for all of them, and for all edges of their paths."""
    for i in range(batch.ts.size):
        if batch.op[i] < 0:
            retract_records(standing, batch.key[i])
            continue
        for j in range(proved.begin[i], proved.begin[i + 1]):
            row = proved.row[j]
            add_edge(standing, graph.relation[row], graph.src[row], graph.trg[row])
            if values is not None:
                edge = standing.counts[EDGES] - 1
                for column in range(values.width[graph.relation[row]]):
                    standing.edge_key[edge, FIRST_VALUE + column] = values.value[row, column]
        if proved.empty[i]:
            add_edge(standing, EMPTY_PATH, batch.key[i, SRC], batch.key[i, TRG])
        record = standing.counts[RECORDS]
        standing.counts[RECORDS] = record + 1
        for column in range(standing.key.shape[1]):
            standing.key[record, column] = batch.key[i, column]
        standing.exp[record] = batch.exp[i]
        standing.begin[record + 1] = standing.counts[EDGES]
        link_record(standing, record)


@kernel
def touch_ends(graph: Graph, time: int, touched: Array) -> int:
    """Mark both ends of the edges that are shortened at `time`; the number of these edges."""
    count = 0
    for undo in range(graph.counts[UNDONE]):
        row = graph.undo_row[undo]
        if expiry_at(graph, row, time) < expiry_before(graph, row, time):
            touched[graph.src[row]] = True
            touched[graph.trg[row]] = True
            count += 1
    return count


@inner_kernel
def row_of(graph: Graph, values: Values | None, standing: Standing, edge: int) -> int:
    """The row of an edge of a path, or -1."""
    relation, key = standing.edge_relation[edge], standing.edge_key[edge]
    if values is not None and relation >= 0:
        return find_wide_row(graph, values, relation, key)
    return find_row(graph, relation, key[SRC], key[TRG])


@kernel
def is_broken(
    graph: Graph, values: Values | None, standing: Standing, record: int, edge: int, time: int
) -> bool:
    """Whether an edge of a record's path, as of `time`, ends before the record does."""
    row = row_of(graph, values, standing, edge)
    return row < 0 or expiry_at(graph, row, time) < standing.exp[record]


@kernel
def emit_retraction(out: Batch, row: int, key: Array, time: int, exp: int) -> None:
    for column in range(key.size):
        out.key[row, column] = key[column]
    out.ts[row] = time
    out.exp[row] = exp
    out.op[row] = -1


@kernel
def find_broken(
    graph: Graph,
    values: Values | None,
    standing: Standing,
    batch: Batch,
    time: int,
    touched: Array,
    out: Batch,
) -> int:
    """Emit the answers whose path breaks at `time`, with the expiry they have; how many.

    Answers that the batch itself retracts are left out. Needs room in `out` for as many rows as there are records.
    """
    for i in range(batch.ts.size):
        if batch.op[i] < 0 and batch.ts[i] == time:
            retract_records(standing, batch.key[i])
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            if not touched[standing.edge_key[edge, SRC]]:
                continue
            if is_broken(graph, values, standing, record, edge, time):
                key = standing.key[record]
                emit_retraction(out, count, key, time, retract_records(standing, key))
                count += 1
                break
    return count


@kernel
def find_replaced(
    graph: Graph,
    values: Values | None,
    standing: Standing,
    answers: AnswerTable,
    time: int,
    touched: Array,
    out: Batch,
) -> int:
    """Retract and emit the answers that hold at `time`, but not by their recorded path; how many.

    The record of an answer that does not hold stays: it may hold again before the instant is over. `touched` marks
    the ends of the edges that this batch shortens. Needs room in `out` for as many rows as there are records.
    """
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            if standing.edge_relation[edge] == EMPTY_PATH:
                if not touched[standing.edge_key[edge, SRC]]:
                    continue
                standing.edge_relation[edge] = BROKEN
            if not is_broken(graph, values, standing, record, edge, time):
                continue
            key = standing.key[record]
            entry = answers.slots[find_answer(answers, key)]
            if entry >= 0 and answers.exp[entry] > time:
                retract_records(standing, key)
                emit_retraction(out, count, key, time, answers.exp[entry])
                count += 1
            break
    return count


@kernel
def break_paths(standing: Standing, answers: AnswerTable, time: int) -> None:
    """Mark the paths of the answers that do not hold at `time`."""
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        entry = answers.slots[find_answer(answers, standing.key[record])]
        if entry < 0 or answers.exp[entry] <= time:
            standing.edge_relation[standing.begin[record] : standing.begin[record + 1]] = BROKEN


@kernel
def pack_records(standing: Standing, horizon: int) -> None:
    """Drop the records that are retracted or expired at `horizon`, and rebuild the index."""
    kept = 0
    edges = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= horizon:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            standing.edge_relation[edges] = standing.edge_relation[edge]
            for column in range(standing.edge_key.shape[1]):
                standing.edge_key[edges, column] = standing.edge_key[edge, column]
            edges += 1
        for column in range(standing.key.shape[1]):
            standing.key[kept, column] = standing.key[record, column]
        standing.exp[kept] = standing.exp[record]
        standing.begin[kept + 1] = edges
        kept += 1
    standing.counts[RECORDS] = kept
    standing.counts[EDGES] = edges
    standing.slots[:] = -1
    for record in range(kept):
        link_record(standing, record)
