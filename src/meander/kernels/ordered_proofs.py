"""The path that proves an answer of a time-respecting path: a search in which no edge is older than the one before.

As in `proofs` the search is breadth-first, so the path has the fewest edges: the k-th round knows how early each
vertex and state is reached over k edges at most, and follows those that it has just reached earlier than before
(Bellman and Ford's rounds, for arrival times instead of distances).
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.forest import EMPTY, STATES, Automaton
from meander.kernels.graph import Graph, expiry_at
from meander.kernels.interning import HEAD
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.proofs import NO_ROOM, UNPROVED, PathRows, Records, Search, write_path
from meander.kernels.status import DONE, EMITTED, FULL_OUTPUT, FULL_SCRATCH, NEXT_ROW

TIME = 0  # the value column that has the number of an edge's own time


class OrderedSearch(NamedTuple):
    """What a search over ordered paths needs beside a `Search`."""

    earliest: Array  # by vertex * states + state: when the last search that came there arrived first
    arrival: Array  # by position in the queue
    value: Array  # by row of the graph and column: its values by number
    span: Array  # by number: its name, with the value in the column `HEAD`
    strict: Array  # whether each edge must be newer than the one before: one element


@inner_kernel
def time_of(ordered: OrderedSearch, row: int) -> int:
    """The own time of an edge of the graph."""
    return ordered.span[ordered.value[row, TIME], HEAD]


@kernel
def find_ordered_path(
    graph: Graph,
    automaton: Automaton,
    search: Search,
    ordered: OrderedSearch,
    ends: tuple[int, int],
    time: int,
    exp: int,
) -> int:
    """As `find_path`, over edges in order of their own times."""
    src, trg = ends
    states = automaton.settings[STATES]
    relations = graph.linked_out.size
    number = search.number[0] + 1
    search.number[0] = number
    search.vertex[0] = src
    search.state[0] = 0
    search.before[0] = -1
    search.row[0] = -1
    ordered.arrival[0] = -1
    search.seen[src * states] = number
    ordered.earliest[src * states] = -1
    head, tail = 0, 1
    while head < tail:
        vertex, state = search.vertex[head], search.state[head]
        least = ordered.arrival[head] + ordered.strict[0]
        for move in range(automaton.out_begin[state], automaton.out_begin[state + 1]):
            inverse = automaton.out_inverse[move]
            to = automaton.out_to[move]
            bucket = vertex * relations + automaton.out_relation[move]
            row = graph.first_in[bucket] if inverse else graph.first_out[bucket]
            while row >= 0:
                arrival = time_of(ordered, row)
                if arrival >= least and expiry_at(graph, row, time) >= exp:
                    target = graph.src[row] if inverse else graph.trg[row]
                    node = target * states + to
                    arrived = target == trg and automaton.accepting[to] != 0
                    if arrived or search.seen[node] != number or arrival < ordered.earliest[node]:
                        if tail == search.vertex.size:
                            return NO_ROOM
                        search.seen[node] = number
                        ordered.earliest[node] = arrival
                        search.vertex[tail] = target
                        search.state[tail] = to
                        search.before[tail] = head
                        search.row[tail] = row
                        search.move[tail] = move
                        ordered.arrival[tail] = arrival
                        if arrived:
                            return tail
                        tail += 1
                row = graph.next_in[row] if inverse else graph.next_out[row]
        head += 1
    return UNPROVED


@kernel
def prove_ordered_records(
    graph: Graph,
    automaton: Automaton,
    search: Search,
    ordered: OrderedSearch,
    records: Records,
    out: PathRows,
    cursor: Array,
) -> int:
    """As `prove_records`, over edges in order of their own times."""
    for i in range(cursor[NEXT_ROW], records.ts.size):
        cursor[NEXT_ROW] = i
        out.begin[i] = cursor[EMITTED]
        src, trg = records.src[i], records.trg[i]
        if automaton.settings[EMPTY] >= 0 and src == trg:
            out.given[i] = True
            continue
        end = find_ordered_path(graph, automaton, search, ordered, (src, trg), records.ts[i], records.exp[i])
        if end == NO_ROOM:
            return FULL_SCRATCH
        if end >= 0:
            if not write_path(search, end, out, cursor):
                return FULL_OUTPUT
            out.given[i] = True
    cursor[NEXT_ROW] = records.ts.size
    out.begin[records.ts.size] = cursor[EMITTED]
    return DONE
