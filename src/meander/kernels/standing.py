"""Records that stand: handed out with a path, not expired, not cut.

A record says that every edge of its path is valid until its expiry. A deletion can make that untrue where the
answer itself holds on, by another path. Such an answer is cut, and given anew with the path that it has now. So
records are kept with the edges of their paths until they expire or are cut; a cut takes all records of an answer.

In `changes` mode a path is true of the instant at which its answer starts, so a record stands for that instant alone.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.graph import UNDONE, Graph, expiry_at, expiry_before, find_row, mix
from meander.kernels.jit import Array, kernel
from meander.kernels.pattern import Answers, KeyedRows, find_answer

# Places in `Standing.counts`.
RECORDS, EDGES = 0, 1

# In place of an edge's relation. No edge is found under any of these, so the path is taken to be cut.
UNKNOWN = -1  # it was emitted by a worker whose state is lost
BROKEN = -2  # it was cut together with its answer, within the instant in which it was emitted
EMPTY = -3  # it has no edges; what stands for them is its vertex, and it may be cut with an edge at that


class Standing(NamedTuple):
    src: Array  # by record
    trg: Array
    exp: Array  # 0 for one that is cut
    older: Array  # the record before it of the same answer, or -1
    begin: Array  # by record, with one more for the end: its edges
    slots: Array  # open addressing over (src, trg): the newest record, or -1
    edge_relation: Array
    edge_src: Array
    edge_trg: Array
    counts: Array


class ProvedEdges(NamedTuple):
    """The edges of the paths of a batch's records, as rows of the graph."""

    begin: Array  # by record, with one more for the end
    row: Array
    empty: Array  # by record: whether its path is an empty one that a deletion may cut


@kernel
def find_newest(standing: Standing, src: int, trg: int) -> int:
    """The place in the index of an answer's newest record, or where it would be put."""
    mask = standing.slots.size - 1
    at = mix(src, trg, 0) & mask
    while True:
        record = standing.slots[at]
        if record < 0 or (standing.src[record] == src and standing.trg[record] == trg):
            return at
        at = (at + 1) & mask


@kernel
def cut_records(standing: Standing, src: int, trg: int) -> int:
    """Cut all records of an answer; the largest expiry that they had."""
    newest = standing.slots[find_newest(standing, src, trg)]
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
    at = find_newest(standing, standing.src[record], standing.trg[record])
    standing.older[record] = standing.slots[at]
    standing.slots[at] = record


@kernel
def keep_records(graph: Graph, standing: Standing, rows: KeyedRows, proved: ProvedEdges) -> None:
    """Take records in their order. Needs room for all of them, and for all edges of their paths."""
    for i in range(rows.ts.size):
        src, trg = rows.key[i, 0], rows.key[i, 1]
        if rows.op[i] < 0:
            cut_records(standing, src, trg)
            continue
        record = standing.counts[RECORDS]
        edge = standing.counts[EDGES]
        for j in range(proved.begin[i], proved.begin[i + 1]):
            row = proved.row[j]
            standing.edge_relation[edge] = graph.relation[row]
            standing.edge_src[edge] = graph.src[row]
            standing.edge_trg[edge] = graph.trg[row]
            edge += 1
        if proved.empty[i]:
            standing.edge_relation[edge] = EMPTY
            standing.edge_src[edge] = src
            standing.edge_trg[edge] = trg
            edge += 1
        standing.src[record] = src
        standing.trg[record] = trg
        standing.exp[record] = rows.exp[i]
        standing.begin[record + 1] = edge
        standing.counts[RECORDS] = record + 1
        standing.counts[EDGES] = edge
        link_record(standing, record)


@kernel
def touch_ends(graph: Graph, time: int, touched: Array) -> int:
    """Mark both ends of the edges that are cut at `time`; how many edges these are."""
    count = 0
    for undo in range(graph.counts[UNDONE]):
        row = graph.undo_row[undo]
        if expiry_at(graph, row, time) < expiry_before(graph, row, time):
            touched[graph.src[row]] = True
            touched[graph.trg[row]] = True
            count += 1
    return count


@kernel
def is_cut(graph: Graph, standing: Standing, record: int, edge: int, time: int) -> bool:
    """Whether an edge of a record's path, as of `time`, ends before the record does."""
    row = find_row(graph, standing.edge_relation[edge], standing.edge_src[edge], standing.edge_trg[edge])
    return row < 0 or expiry_at(graph, row, time) < standing.exp[record]


@kernel
def find_cuts(
    graph: Graph, standing: Standing, rows: KeyedRows, time: int, touched: Array, out: KeyedRows
) -> int:
    """Hand out the answers that stand by a path which is cut at `time`, with the expiry they have; how many.

    Those that `rows` cut themselves are none of these. Needs room in `out` for as many as there are records.
    """
    for i in range(rows.ts.size):
        if rows.op[i] < 0 and rows.ts[i] == time:
            cut_records(standing, rows.key[i, 0], rows.key[i, 1])
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            if not touched[standing.edge_src[edge]]:
                continue
            if is_cut(graph, standing, record, edge, time):
                out.key[count, 0] = standing.src[record]
                out.key[count, 1] = standing.trg[record]
                out.ts[count] = time
                out.exp[count] = cut_records(standing, standing.src[record], standing.trg[record])
                out.op[count] = -1
                count += 1
                break
    return count


@kernel
def find_replaced(
    graph: Graph, standing: Standing, answers: Answers, time: int, touched: Array, out: KeyedRows
) -> int:
    """Cut and hand out the answers that hold at `time`, but not by the path that they stand by; how many.

    One that does not hold stands on: it may hold again before the instant is over. `touched` are the ends of the
    edges that this batch cuts. Needs room in `out` for as many as there are records.
    """
    count = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            if standing.edge_relation[edge] == EMPTY:
                if not touched[standing.edge_src[edge]]:
                    continue
                standing.edge_relation[edge] = BROKEN
            if not is_cut(graph, standing, record, edge, time):
                continue
            key = out.key[count]
            key[0] = standing.src[record]
            key[1] = standing.trg[record]
            entry = answers.slots[find_answer(answers, key)]
            if entry >= 0 and answers.exp[entry] > time:
                cut_records(standing, key[0], key[1])
                out.ts[count] = time
                out.exp[count] = answers.exp[entry]
                out.op[count] = -1
                count += 1
            break
    return count


@kernel
def break_paths(standing: Standing, answers: Answers, time: int, key: Array) -> None:
    """Mark the paths of the answers that do not hold at `time`; `key` is scratch for one answer."""
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= time:
            continue
        key[0] = standing.src[record]
        key[1] = standing.trg[record]
        entry = answers.slots[find_answer(answers, key)]
        if entry < 0 or answers.exp[entry] <= time:
            standing.edge_relation[standing.begin[record] : standing.begin[record + 1]] = BROKEN


@kernel
def pack_records(standing: Standing, horizon: int) -> None:
    """Drop the records that are cut or expired at `horizon`, and build the index anew."""
    kept = 0
    edges = 0
    for record in range(standing.counts[RECORDS]):
        if standing.exp[record] <= horizon:
            continue
        for edge in range(standing.begin[record], standing.begin[record + 1]):
            standing.edge_relation[edges] = standing.edge_relation[edge]
            standing.edge_src[edges] = standing.edge_src[edge]
            standing.edge_trg[edges] = standing.edge_trg[edge]
            edges += 1
        standing.src[kept] = standing.src[record]
        standing.trg[kept] = standing.trg[record]
        standing.exp[kept] = standing.exp[record]
        standing.begin[kept + 1] = edges
        kept += 1
    standing.counts[RECORDS] = kept
    standing.counts[EDGES] = edges
    standing.slots[:] = -1
    for record in range(kept):
        link_record(standing, record)
