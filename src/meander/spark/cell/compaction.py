"""What compaction drops of input that never expires: memory follows what holds, not what once did.

A rebuild answers for the time that the manifest has reached and for later. Of the rows before that instant only the
outcome counts: of a table the last row for each source, label and target, of a derived tuple its expiry, and of a
stream of tuples the records that have neither expired nor been retracted. These rows are the first `settled` of the
edges, which are in order of time.

A row that removes others stays where these may have been stored before: in an earlier block, or in a snapshot. With
`from_start` there is nothing before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meander.dataflow.edges import Array, Edges, Names
from meander.dataflow.encoding import writable
from meander.dataflow.layout import EXPIRY
from meander.kernels.expiries import bound_expiries
from meander.spark.edge_codec import binary_column

ANY_TIME = np.iinfo(np.int64).max


def drop_replaced(edges: Edges, settled: int, *, from_start: bool) -> Edges:
    """The rows of a table without those that later ones replace or remove.

    Which properties a deletion is matched by depends on the query that reads the table. So of the deletions since a
    row arrived those stay that differ in which properties disagree with it; if none does, it is gone for every query.
    """
    past = edges.take(slice(settled))
    vertex = np.zeros(settled, np.bool_) if past.vertex is None else past.vertex
    key = number_rows([name_codes(past.src), name_codes(past.label), name_codes(past.trg), vertex], settled)
    order = np.argsort(key, kind="stable")
    key = key[order]
    row = np.arange(settled)
    first = np.flatnonzero(np.diff(key, prepend=-1))
    arrived = np.maximum.reduceat(np.where(past.op[order] > 0, row, -1), first) if settled else row
    arrival = arrived[key]
    kept = row == arrival
    deletions = np.flatnonzero(row > arrival)
    if deletions.size:
        of = arrival[deletions]
        known = of >= 0
        disagrees = np.zeros(deletions.size, np.bool_)
        signature = [key[deletions]]
        for column in (past.properties or {}).values():
            codes = value_codes(column)[order]
            given = codes[deletions]
            differs = known & (given >= 0) & (given != codes[of])
            disagrees |= differs
            # Where the row is not among these, all that is known of two deletions is whether they are the same.
            signature.append(np.where(known, differs, given + 2))
        numbers = number_rows(signature, deletions.size)
        chosen = np.diff(np.maximum.accumulate(numbers), prepend=-1) > 0
        if from_start:
            gone = np.zeros(first.size, np.bool_)
            gone[key[deletions[known & ~disagrees]]] = True
            kept &= ~gone[key]
            chosen &= known & ~gone[key[deletions]]
        kept[deletions[chosen]] = True
    return edges.take(np.concatenate([np.sort(order[kept]), np.arange(settled, edges.rows)]))


def drop_ended(edges: Edges, ends: Array, settled: int, reached: int, *, from_start: bool) -> Edges:
    """The records of a stream of tuples, which expire at `ends`, without those that ended before the time reached.

    A retraction that says the same as a record in all properties removes it whatever a query names. Any other stays
    as long as a record that it may remove, and of equal ones the last.
    """
    past = edges.take(slice(settled))
    vertex = np.zeros(settled, np.bool_) if past.vertex is None else past.vertex
    key = number_rows([name_codes(past.src), name_codes(past.label), name_codes(past.trg), vertex], settled)
    values = [value_codes(column) for name, column in (past.properties or {}).items() if name != EXPIRY.name]
    alike = number_rows([key, *values], settled)
    row = np.arange(settled)
    retracts = past.op < 0
    last_retraction = np.full(settled, -1)
    np.maximum.at(last_retraction, alike[retracts], row[retracts])
    holds = ~retracts & (ends[:settled] >= reached) & (last_retraction[alike] < row)
    first_held = np.full(settled, settled)
    np.minimum.at(first_held, key[holds], row[holds])
    may_remove = first_held[key] < row if from_start else np.ones(settled, np.bool_)
    kept = holds | (retracts & (row == last_retraction[alike]) & may_remove)
    return edges.take(np.concatenate([np.flatnonzero(kept), np.arange(settled, edges.rows)]))


def sum_up(edges: Edges, settled: int, reached: int, *, from_start: bool) -> Edges:
    """Derived tuples, each once with the expiry that all of its rows before the time reached lead to.

    Where there may be rows before these, a tuple that has been retracted is first cut to what these leave of it.
    """
    past = edges.take(slice(settled))
    assert past.exp is not None
    assert edges.exp is not None
    columns = [name_codes(past.src), name_codes(past.trg)]
    columns += [value_codes(column) for column in (past.properties or {}).values()]
    key = number_rows(columns, settled)
    tuples = int(key.max(initial=-1)) + 1
    least, most = np.zeros(tuples, np.int64), np.full(tuples, ANY_TIME)
    bound_expiries(key, writable(past.ts), writable(past.exp), writable(past.op), least, most)
    last = np.zeros(tuples, np.int64)
    last[key] = np.arange(settled)
    cut = (most < ANY_TIME) & (not from_start)
    held = least >= reached
    later = np.arange(settled, edges.rows)
    rows = np.concatenate([last[cut], last[held], later])
    op = np.concatenate([np.full(int(cut.sum()), -1), np.full(int(held.sum()), 1), edges.op[later]])
    exp = np.concatenate([most[cut], least[held], edges.exp[later]])
    order = np.argsort(rows, kind="stable")
    return edges.take(rows[order])._replace(op=op[order].astype(np.int8), exp=exp[order])


def number_rows(columns: Sequence[Array], rows: int) -> Array:
    """A number for each row, from 0 on without gaps in the order in which they come: the same for rows that are equal
    in all columns."""
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        least = int(column.min(initial=0))
        codes = numbers * (int(column.max(initial=0)) - least + 1) + (column - least)
        numbers = pc.dictionary_encode(pa.array(codes)).indices.to_numpy().astype(np.int64)
    return numbers


def name_codes(text: Names) -> Array:
    """Equal numbers for equal names of the same kind."""
    codes: Array = pc.dictionary_encode(binary_column(text.plain())).indices.to_numpy().astype(np.int64)
    return codes << 2 | text.kind


def value_codes(column: pa.Array) -> Array:
    """Equal numbers for equal values, and -1 where there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    elif pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 is 0.0
    codes: Array = pc.dictionary_encode(column).indices.fill_null(-1).to_numpy().astype(np.int64)
    return codes
