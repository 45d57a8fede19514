"""The window's graph: one table of edges for every stream that some operator looks into.

Operators take a batch one after the other, each from its first row to its last, so an operator that reads
the graph at time t must not see what a later row of the same batch has changed. The table therefore keeps,
for the length of one batch, the older expiries of each edge that changed: `expiry_at(t)` answers as of the
end of instant t, `expiry_before(t)` as of its beginning. At the next batch the older ones are forgotten.

An edge is a row (relation, src, trg) with its largest expiry: what is valid now and until then. A pair index
finds a row, lists by source and by target walk a vertex's edges. Rows are only added during a batch; expired
rows go away when the table is packed between two batches.

The tuples of a relation may have value columns too. Its rows are then (relation, src, trg, values), so edges between
the same ends with other values are other rows; they are in the same lists, and in lists by value where a join asks
for them. `Values` has these columns beside the table. Where no relation has any it is None, and what would read it is
not even compiled.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.batch import SRC, TRG, Batch
from meander.kernels.hashing import find_triple, free_slot, mix
from meander.kernels.jit import Array, inner_kernel, kernel, prefetch
from meander.kernels.status import DONE, EMITTED, FULL_GRAPH, FULL_OUTPUT, NEXT_ROW

FIRST_VALUE = 2  # the column of `Batch.key` where values begin
UNCHANGED = -1  # stamp of a row that this batch has not changed: before every instant

# Positions in `Graph.counts`.
ROWS, UNDONE = 0, 1

AHEAD, NEAR = 16, 8
"""How many tuples before one is applied its slot in the pair index is fetched, and the row that the slot has."""


class Graph(NamedTuple):
    """Columns by row, lists by (vertex, relation), the pair index, and the batch's older expiries."""

    relation: Array
    src: Array
    trg: Array
    exp: Array
    stamp: Array  # the instant of the row's last change in this batch, or UNCHANGED
    older: Array  # into the undo columns, or -1
    next_out: Array
    next_in: Array
    pair: Array  # open addressing: row or -1; its length is a power of two
    first_out: Array  # by vertex * relations + relation: a row or -1
    first_in: Array
    degree_out: Array
    degree_in: Array
    undo_row: Array
    undo_exp: Array
    undo_stamp: Array
    undo_older: Array
    linked_out: Array  # by relation: whether lists by source are kept
    linked_in: Array
    counts: Array


class Values(NamedTuple):
    """The value columns of the graph's rows, and the lists of the rows that have a value in a column."""

    value: (
        Array  # by row and column: a number, as the ends are; beyond the columns of the row's relation unused
    )
    width: Array  # by relation: its number of value columns
    lists: Array  # by relation and column: which list has its rows by value, or -1
    listed: Array  # by list: its column
    next: Array  # by row and column
    first: Array  # by value * lists + list: a row or -1
    degree: Array


@kernel
def find_row(graph: Graph, relation: int, src: int, trg: int) -> int:
    """The row of an edge of a relation without value columns, or -1."""
    slot = find_triple(graph.pair, graph.src, graph.trg, graph.relation, (src, trg, relation))
    return graph.pair[slot]


@kernel
def find_wide_row(graph: Graph, values: Values, relation: int, key: Array) -> int:
    """The row of a tuple of any relation, whose columns `key` begins with; or -1."""
    src, trg = key[SRC], key[TRG]
    mask = graph.pair.size - 1
    slot = hash_row(src, trg, relation, values.width[relation], key, FIRST_VALUE) & mask
    while True:
        row = graph.pair[slot]
        if row < 0:
            return -1
        if graph.src[row] == src and graph.trg[row] == trg and graph.relation[row] == relation:
            equal = True
            for column in range(values.width[relation]):
                if values.value[row, column] != key[FIRST_VALUE + column]:
                    equal = False
                    break
            if equal:
                return row
        slot = (slot + 1) & mask


@kernel
def hash_row(src: int, trg: int, relation: int, width: int, columns: Array, first: int) -> int:
    """Hash all columns of a tuple, so that parallel edges do not share a slot; `columns` has its values from `first`
    on."""
    h = mix(src, trg, relation)
    for column in range(width):
        h = mix(columns[first + column], column, h & 0x7FFFFFFF)
    return h


@kernel
def expiry_at(graph: Graph, row: int, time: int) -> int:
    """The row's expiry once all changes of instants up to `time` are made."""
    if graph.stamp[row] <= time:
        return graph.exp[row]
    undo = graph.older[row]
    while graph.undo_stamp[undo] > time:
        undo = graph.undo_older[undo]
    return graph.undo_exp[undo]


@kernel
def expiry_before(graph: Graph, row: int, time: int) -> int:
    """The row's expiry before the first change of instant `time` in this batch."""
    if graph.stamp[row] < time:
        return graph.exp[row]
    undo = graph.older[row]
    while graph.undo_stamp[undo] >= time:
        undo = graph.undo_older[undo]
    return graph.undo_exp[undo]


@kernel
def link_row(graph: Graph, values: Values | None, row: int) -> None:
    """Put a row, whose columns are set, into the pair index and the lists."""
    relation, src, trg = graph.relation[row], graph.src[row], graph.trg[row]
    if values is None:
        slot = free_slot(graph.pair, src, trg, relation)
    else:
        slot = free_wide_slot(graph, values, row)
        link_values(values, relation, row)
    graph.pair[slot] = row
    relations = graph.linked_out.size
    if graph.linked_out[relation]:
        bucket = src * relations + relation
        graph.next_out[row] = graph.first_out[bucket]
        graph.first_out[bucket] = row
        graph.degree_out[bucket] += 1
    if graph.linked_in[relation]:
        bucket = trg * relations + relation
        graph.next_in[row] = graph.first_in[bucket]
        graph.first_in[bucket] = row
        graph.degree_in[bucket] += 1


@kernel
def free_wide_slot(graph: Graph, values: Values, row: int) -> int:
    """The free slot for a row that is not in the pair index."""
    relation = graph.relation[row]
    hashed = hash_row(graph.src[row], graph.trg[row], relation, values.width[relation], values.value[row], 0)
    mask = graph.pair.size - 1
    slot = hashed & mask
    while graph.pair[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def link_values(values: Values, relation: int, row: int) -> None:
    """Put a row into the lists by value."""
    for column in range(values.width[relation]):
        number = values.lists[relation, column]
        if number >= 0:
            bucket = values.value[row, column] * values.listed.size + number
            values.next[row, column] = values.first[bucket]
            values.first[bucket] = row
            values.degree[bucket] += 1


@kernel
def change_expiry(graph: Graph, row: int, time: int, exp: int) -> None:
    """Set the row's expiry at `time`, keeping what it was before this instant. Needs room for one undo."""
    if graph.stamp[row] != time:
        undo = graph.counts[UNDONE]
        graph.undo_row[undo] = row
        graph.undo_exp[undo] = graph.exp[row]
        graph.undo_stamp[undo] = graph.stamp[row]
        graph.undo_older[undo] = graph.older[row]
        graph.counts[UNDONE] = undo + 1
        graph.older[row] = undo
        graph.stamp[row] = time
    graph.exp[row] = exp


@kernel
def begin_batch(graph: Graph) -> None:
    """Forget the older expiries of the batch before."""
    for undo in range(graph.counts[UNDONE]):
        row = graph.undo_row[undo]
        graph.stamp[row] = UNCHANGED
        graph.older[row] = -1
    graph.counts[UNDONE] = 0


@inner_kernel
def fetch_slot(graph: Graph, relation: int, src: int, trg: int) -> None:
    """Fetch what applying a tuple without values reads first: its slot in the pair index, and its lists."""
    prefetch(graph.pair, mix(src, trg, relation) & (graph.pair.size - 1))
    relations = graph.linked_out.size
    if graph.linked_out[relation]:
        prefetch(graph.first_out, src * relations + relation)
        prefetch(graph.degree_out, src * relations + relation)
    if graph.linked_in[relation]:
        prefetch(graph.first_in, trg * relations + relation)
        prefetch(graph.degree_in, trg * relations + relation)


@inner_kernel
def fetch_row(graph: Graph, relation: int, src: int, trg: int) -> None:
    """Fetch the row in the slot of a tuple."""
    row = graph.pair[mix(src, trg, relation) & (graph.pair.size - 1)]
    if row >= 0:
        prefetch(graph.src, row)
        prefetch(graph.trg, row)
        prefetch(graph.relation, row)
        prefetch(graph.exp, row)
        prefetch(graph.stamp, row)


@kernel
def update_relation(
    graph: Graph, values: Values | None, relation: int, batch: Batch, out: Batch, cursor: Array
) -> int:
    """Apply a batch to a relation, instant by instant, and emit the changes of each instant, one per edge.

    `cursor` is [next row, output rows]; returns DONE, or what is full, to be called again with that room.
    An instant is applied whole or not at all: both checks for room come before it.
    """
    position = cursor[NEXT_ROW]
    total = batch.ts.size
    while position < total:
        time = batch.ts[position]
        end = position + 1
        while end < total and batch.ts[end] == time:
            end += 1
        size = end - position
        if graph.counts[ROWS] + size > graph.src.size or graph.counts[UNDONE] + size > graph.undo_row.size:
            cursor[NEXT_ROW] = position
            return FULL_GRAPH
        if cursor[EMITTED] + size > out.ts.size:
            cursor[NEXT_ROW] = position
            return FULL_OUTPUT
        first_undo = graph.counts[UNDONE]
        for i in range(position, end):
            src, trg, exp = batch.key[i, SRC], batch.key[i, TRG], batch.exp[i]
            if values is None:
                if i + AHEAD < total:
                    fetch_slot(graph, relation, batch.key[i + AHEAD, SRC], batch.key[i + AHEAD, TRG])
                    fetch_row(graph, relation, batch.key[i + NEAR, SRC], batch.key[i + NEAR, TRG])
                row = find_row(graph, relation, src, trg)
            else:
                row = find_wide_row(graph, values, relation, batch.key[i])
            if batch.op[i] > 0:
                if exp <= time:
                    continue
                if row < 0:
                    row = graph.counts[ROWS]
                    graph.counts[ROWS] = row + 1
                    graph.relation[row] = relation
                    graph.src[row] = src
                    graph.trg[row] = trg
                    graph.exp[row] = 0
                    graph.stamp[row] = UNCHANGED
                    graph.older[row] = -1
                    if values is not None:
                        for column in range(values.width[relation]):
                            values.value[row, column] = batch.key[i, FIRST_VALUE + column]
                    link_row(graph, values, row)
                if exp > graph.exp[row]:
                    change_expiry(graph, row, time, exp)
            elif row >= 0 and graph.exp[row] > time and graph.exp[row] > exp:
                change_expiry(graph, row, time, max(exp, time))
        for undo in range(first_undo, graph.counts[UNDONE]):
            row = graph.undo_row[undo]
            before = graph.undo_exp[undo] if graph.undo_exp[undo] > time else time
            after = graph.exp[row] if graph.exp[row] > time else time
            if before != after:
                at = cursor[EMITTED]
                out.key[at, SRC] = graph.src[row]
                out.key[at, TRG] = graph.trg[row]
                if values is not None:
                    for column in range(values.width[relation]):
                        out.key[at, FIRST_VALUE + column] = values.value[graph.undo_row[undo], column]
                out.ts[at] = time
                out.exp[at] = after
                out.op[at] = 1 if after > before else -1
                cursor[EMITTED] = at + 1
        position = end
    cursor[NEXT_ROW] = position
    return DONE


@kernel
def pack_rows(graph: Graph, values: Values | None, horizon: int) -> None:
    """Drop the rows that are expired at `horizon`, and rebuild the pair index and all lists.

    Rows keep their order, so that a vertex's edges stay near each other. Only between two batches.
    """
    kept = 0
    for row in range(graph.counts[ROWS]):
        if graph.exp[row] > horizon:
            graph.relation[kept] = graph.relation[row]
            graph.src[kept] = graph.src[row]
            graph.trg[kept] = graph.trg[row]
            graph.exp[kept] = graph.exp[row]
            graph.stamp[kept] = UNCHANGED
            graph.older[kept] = -1
            if values is not None:
                for column in range(values.value.shape[1]):
                    values.value[kept, column] = values.value[row, column]
            kept += 1
    graph.counts[ROWS] = kept
    relink_rows(graph, values)


@kernel
def relink_rows(graph: Graph, values: Values | None) -> None:
    """Rebuild the pair index and all lists from the columns."""
    graph.pair[:] = -1
    graph.first_out[:] = -1
    graph.first_in[:] = -1
    graph.degree_out[:] = 0
    graph.degree_in[:] = 0
    if values is not None:
        values.first[:] = -1
        values.degree[:] = 0
    for row in range(graph.counts[ROWS]):
        link_row(graph, values, row)


@kernel
def mark_vertices(graph: Graph, values: Values | None, horizon: int, live: Array) -> None:
    """Mark the vertices and values of the rows that are valid after `horizon`."""
    for row in range(graph.counts[ROWS]):
        if graph.exp[row] > horizon:
            live[graph.src[row]] = True
            live[graph.trg[row]] = True
            if values is not None:
                for column in range(values.width[graph.relation[row]]):
                    live[values.value[row, column]] = True


@kernel
def count_rows(graph: Graph, horizon: int, rows: Array) -> None:
    """Count, by relation, the rows that are valid after `horizon`."""
    for row in range(graph.counts[ROWS]):
        if graph.exp[row] > horizon:
            rows[graph.relation[row]] += 1
