"""Standing records: emitted with a path, not expired, not retracted.

A record promises that every edge of its path is valid until its expiry. A deletion can break that promise although
the answer itself still holds, by another path. Such an answer is retracted, and emitted again with the path that it
has now. So records are stored with the edges of their paths until they expire or are retracted; a retraction covers
all records of an answer.

Paths share their steps (`kernels.steps`), and the steps of a batch share their edges. Records are looked up by their
answers only if something is retracted: until then there is no index.

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
from meander.kernels.status import FOREVER
from meander.kernels.steps import NO_STEP

# Positions in `Standing.counts`; `INDEXED`: whether there is an index over keys.
RECORDS, STEPS, EDGES, INDEXED = 0, 1, 2, 3

# In place of an edge's relation. No edge is found under any of these, so the path counts as broken.
UNKNOWN = -1  # emitted by a worker whose state is lost
BROKEN = (
    -2
)  # retracted together with its answer, within the instant in which it was emitted; also a last step
# A path without edges: its vertex stands for them, and it may break with an edge of that vertex.
EMPTY_PATH = -3

NO_VALUE = -1  # of an edge in a relation without value columns


class Standing(NamedTuple):
    key: Array  # by record: source, target, and the values of the answer
    exp: Array  # 0 for a retracted record
    older: Array  # the record before it of the same answer, or -1; without an index unused
    last: Array  # the last step of its path, NO_STEP or BROKEN
    slots: Array  # the hash index over keys: the newest record
    before: Array  # by step: the one before it, or NO_STEP
    edge: Array  # by step
    edge_relation: Array
    edge_key: Array  # int32 by edge: source, target, and its values if the relation has values
    counts: Array


class ProvedEdges(NamedTuple):
    """The edges of the paths of a batch's records, as rows of the graph."""

    begin: Array  # by record, with one more for the end
    row: Array
    empty: Array  # by record: whether its path is an empty one that a deletion may break


class ProvedSteps(NamedTuple):
    """The same with shared steps (see `kernels.steps`)."""

    last: Array  # by record
    before: Array  # by step
    edge: Array  # by step
    row: Array  # by edge: the row of the graph
    empty: Array  # by record


@kernel
def retract_records(standing: Standing, key: Array) -> int:
    """Retract all records of an answer, which the index must have; the largest expiry that they had."""
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
def link_records(standing: Standing) -> None:
    """Build the index over keys. Needs slots for twice as many records as there may be."""
    standing.slots[:] = -1
    for record in range(standing.counts[RECORDS]):
        link_record(standing, record)
    standing.counts[INDEXED] = 1


@kernel
def add_edge(standing: Standing, relation: int, src: int, trg: int) -> int:
    """Add an edge without values; its number. Needs room for one."""
    edge = standing.counts[EDGES]
    standing.edge_relation[edge] = relation
    standing.edge_key[edge, SRC] = src
    standing.edge_key[edge, TRG] = trg
    standing.edge_key[edge, FIRST_VALUE:] = NO_VALUE
    standing.counts[EDGES] = edge + 1
    return edge


@kernel
def add_records(
    graph: Graph, values: Values | None, standing: Standing, batch: Batch, proved: ProvedSteps
) -> None:
    """Add records in their order. Needs room for all of them, with their steps and edges; to retract, an index."""
    first_step, first_edge = standing.counts[STEPS], standing.counts[EDGES]
    for i in range(proved.row.size):
        row = proved.row[i]
        edge = add_edge(standing, graph.relation[row], graph.src[row], graph.trg[row])
        if values is not None:
            for column in range(values.width[graph.relation[row]]):
                standing.edge_key[edge, FIRST_VALUE + column] = values.value[row, column]
    for i in range(proved.before.size):
        before = proved.before[i]
        standing.before[first_step + i] = before + first_step if before >= 0 else NO_STEP
        standing.edge[first_step + i] = proved.edge[i] + first_edge
    standing.counts[STEPS] = first_step + proved.before.size
    for i in range(batch.ts.size):
        if batch.op[i] < 0:
            retract_records(standing, batch.key[i])
            continue
        record = standing.counts[RECORDS]
        standing.counts[RECORDS] = record + 1
        for column in range(standing.key.shape[1]):
            standing.key[record, column] = batch.key[i, column]
        standing.exp[record] = batch.exp[i]
        last = proved.last[i]
        standing.last[record] = last + first_step if last >= 0 else NO_STEP
        if proved.empty[i]:
            step = standing.counts[STEPS]
            standing.before[step] = NO_STEP
            standing.edge[step] = add_edge(standing, EMPTY_PATH, batch.key[i, SRC], batch.key[i, TRG])
            standing.last[record] = step
            standing.counts[STEPS] = step + 1
        if standing.counts[INDEXED]:
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
def measure_edges(
    graph: Graph, values: Values | None, standing: Standing, time: int, touched: Array, lasts: Array
) -> None:
    """Until when each edge lasts as of `time`: for ever if its source is not `touched`, and so unchanged, or if it
    stands for an empty path that is not broken."""
    for edge in range(standing.counts[EDGES]):
        if not touched[standing.edge_key[edge, SRC]] or standing.edge_relation[edge] == EMPTY_PATH:
            lasts[edge] = FOREVER
            continue
        row = row_of(graph, values, standing, edge)
        lasts[edge] = expiry_at(graph, row, time) if row >= 0 else 0


@kernel
def measure_steps(standing: Standing, edge_lasts: Array, lasts: Array) -> None:
    """Until when the path up to each step lasts."""
    for step in range(standing.counts[STEPS]):
        exp = edge_lasts[standing.edge[step]]
        before = standing.before[step]
        lasts[step] = min(exp, lasts[before]) if before >= 0 else exp


@inner_kernel
def is_broken(standing: Standing, record: int, lasts: Array) -> bool:
    """Whether a record's path ends before the record does; `lasts` is by step."""
    last = standing.last[record]
    return last == BROKEN or (last >= 0 and lasts[last] < standing.exp[record])


@kernel
def emit_retraction(out: Batch, row: int, key: Array, time: int, exp: int) -> None:
    for column in range(key.size):
        out.key[row, column] = key[column]
    out.ts[row] = time
    out.exp[row] = exp
    out.op[row] = -1


@kernel
def find_broken(standing: Standing, batch: Batch, time: int, lasts: Array, out: Batch) -> int:
    """Emit the answers whose path breaks at `time`, with the expiry they have; how many. `lasts` is by step.

    Answers that the batch itself retracts are left out. Needs room in `out` for as many rows as there are records.
    """
    for i in range(batch.ts.size):
        if batch.op[i] < 0 and batch.ts[i] == time:
            retract_records(standing, batch.key[i])
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] > time and is_broken(standing, record, lasts):
            key = standing.key[record]
            emit_retraction(out, count, key, time, retract_records(standing, key))
            count += 1
    return count


@kernel
def break_empty_paths(standing: Standing, touched: Array) -> None:
    """Mark the empty paths of `touched` vertices as broken."""
    for edge in range(standing.counts[EDGES]):
        if standing.edge_relation[edge] == EMPTY_PATH and touched[standing.edge_key[edge, SRC]]:
            standing.edge_relation[edge] = BROKEN


@kernel
def find_replaced(standing: Standing, answers: AnswerTable, time: int, lasts: Array, out: Batch) -> int:
    """Retract and emit the answers that hold at `time`, but not by their recorded path; how many.

    The record of an answer that does not hold stays: it may hold again before the instant is over. `lasts` is by
    step. Needs room in `out` for as many rows as there are records.
    """
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time or not is_broken(standing, record, lasts):
            continue
        key = standing.key[record]
        entry = answers.slots[find_answer(answers, key)]
        if entry >= 0 and answers.exp[entry] > time:
            retract_records(standing, key)
            emit_retraction(out, count, key, time, answers.exp[entry])
            count += 1
    return count


@kernel
def break_paths(standing: Standing, answers: AnswerTable, time: int) -> None:
    """Mark the paths of the answers that do not hold at `time`."""
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time or standing.last[record] == NO_STEP:
            continue
        entry = answers.slots[find_answer(answers, standing.key[record])]
        if entry < 0 or answers.exp[entry] <= time:
            standing.last[record] = BROKEN


@kernel
def pack_records(standing: Standing, horizon: int, step_to: Array, edge_to: Array) -> None:
    """Drop the records that are retracted or expired at `horizon`, and the steps and edges that only they had.

    `step_to` and `edge_to` are zeros, for as many steps and edges as there are. The index is lost.
    """
    counts = standing.counts
    records = 0
    for record in range(counts[RECORDS]):
        if standing.exp[record] <= horizon:
            continue
        if standing.last[record] >= 0:
            step_to[standing.last[record]] = 1
        for column in range(standing.key.shape[1]):
            standing.key[records, column] = standing.key[record, column]
        standing.exp[records] = standing.exp[record]
        standing.last[records] = standing.last[record]
        records += 1
    for step in range(counts[STEPS] - 1, -1, -1):
        if step_to[step]:
            edge_to[standing.edge[step]] = 1
            if standing.before[step] >= 0:
                step_to[standing.before[step]] = 1
    edges = 0
    for edge in range(counts[EDGES]):
        if edge_to[edge]:
            standing.edge_relation[edges] = standing.edge_relation[edge]
            for column in range(standing.edge_key.shape[1]):
                standing.edge_key[edges, column] = standing.edge_key[edge, column]
            edge_to[edge] = edges
            edges += 1
    steps = 0
    for step in range(counts[STEPS]):
        if step_to[step]:
            before = standing.before[step]
            standing.before[steps] = step_to[before] if before >= 0 else NO_STEP
            standing.edge[steps] = edge_to[standing.edge[step]]
            step_to[step] = steps
            steps += 1
    for record in range(records):
        if standing.last[record] >= 0:
            standing.last[record] = step_to[standing.last[record]]
    counts[RECORDS], counts[STEPS], counts[EDGES], counts[INDEXED] = records, steps, edges, 0
