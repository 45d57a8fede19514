"""The path that proves an answer: a search over the edges that last as long as the record says.

A record (x, y, [ts, exp)) of a path expression is true because some path from x to y spells a word of it
over edges that are valid from ts until exp at least. Whichever plan and operator found the answer, a breadth-first
search finds that path here, so that it has the fewest edges.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.forest import EMPTY, STATES, Automaton
from meander.kernels.graph import Graph, expiry_at
from meander.kernels.jit import Array, kernel
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_SCRATCH, NEXT_ROW

# What `find_path` returns instead of a position in the queue.
UNPROVED, NO_ROOM = -1, -2


class Search(NamedTuple):
    seen: Array  # by vertex * states + state: the number of the last search that came there
    vertex: Array  # the queue
    state: Array
    before: Array  # the position in the queue that it was reached from
    row: Array  # over which edge
    move: Array  # and by which move of the automaton
    number: Array  # of the search, one element


class Records(NamedTuple):
    """Answers that start to hold at `ts` and hold until `exp`."""

    src: Array
    trg: Array
    ts: Array
    exp: Array


class PathRows(NamedTuple):
    """For each record whether it is proved and where its edges begin; the edges as rows of the graph.

    An edge that two names stand for has the name by which it is read: that of the move over it.
    """

    given: Array
    begin: Array  # by record, with one more for the end
    row: Array
    move: Array


@kernel
def find_path(
    graph: Graph, automaton: Automaton, search: Search, src: int, trg: int, time: int, exp: int
) -> int:
    """Search for a path that lasts until `exp`: the position in the queue where it ends, UNPROVED or NO_ROOM."""
    states = automaton.settings[STATES]
    relations = graph.linked_out.size
    number = search.number[0] + 1
    search.number[0] = number
    search.vertex[0] = src
    search.state[0] = 0
    search.before[0] = -1
    search.row[0] = -1
    search.seen[src * states] = number
    head, tail = 0, 1
    while head < tail:
        vertex, state = search.vertex[head], search.state[head]
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            inverse = automaton.out_inverse[move]
            to = automaton.out_to[move]
            bucket = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[bucket] if inverse else graph.first_out[bucket]
            while row >= 0:
                if expiry_at(graph, row, time) >= exp:
                    target = graph.src[row] if inverse else graph.trg[row]
                    # The start may be an end too: a cycle back to it is a path of its own.
                    arrived = target == trg and automaton.accepting[to] != 0
                    if arrived or search.seen[target * states + to] != number:
                        if tail == search.vertex.size:
                            return NO_ROOM
                        search.seen[target * states + to] = number
                        search.vertex[tail] = target
                        search.state[tail] = to
                        search.before[tail] = head
                        search.row[tail] = row
                        search.move[tail] = move
                        if arrived:
                            return tail
                        tail += 1
                row = graph.next_in[row] if inverse else graph.next_out[row]
        head += 1
    return UNPROVED


@kernel
def write_path(search: Search, end: int, out: PathRows, cursor: Array) -> bool:
    """Write the edges of the path that ends at a position in the queue; False if there is no room for them."""
    length = 0
    at = end
    while search.before[at] >= 0:
        length += 1
        at = search.before[at]
    if cursor[EMITTED] + length > out.row.size:
        return False
    at = end
    for step in range(length):
        out.row[cursor[EMITTED] + length - 1 - step] = search.row[at]
        out.move[cursor[EMITTED] + length - 1 - step] = search.move[at]
        at = search.before[at]
    cursor[EMITTED] += length
    return True


@kernel
def prove_records(
    graph: Graph,
    automaton: Automaton,
    search: Search,
    records: Records,
    out: PathRows,
    cursor: Array,
) -> int:
    """Find the path of every record from `cursor[NEXT_ROW]` on; `cursor[EMITTED]` counts the edges."""
    for i in range(cursor[NEXT_ROW], records.ts.size):
        cursor[NEXT_ROW] = i
        out.begin[i] = cursor[EMITTED]
        src, trg = records.src[i], records.trg[i]
        if automaton.settings[EMPTY] >= 0 and src == trg:
            out.given[i] = True
            continue
        end = find_path(graph, automaton, search, src, trg, records.ts[i], records.exp[i])
        if end == NO_ROOM:
            return FULL_SCRATCH
        if end >= 0:
            if not write_path(search, end, out, cursor):
                return FULL_OUTPUT
            out.given[i] = True
    cursor[NEXT_ROW] = records.ts.size
    out.begin[records.ts.size] = cursor[EMITTED]
    return DONE
