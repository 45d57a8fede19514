"""Demand: the pairs that a reader probes for, so that no others need to be emitted (sideways information passing).

Only roots that are demanded are searched from, and only demanded pairs are emitted. A pair that a segment adds to
the demand is emitted as if all of its answer were new. More pairs than demanded may be emitted, and are if something
is deleted: an answer that a reader has received must be retracted, demanded still or not.
"""

from __future__ import annotations

from meander.kernels.closure.tables import MAY_CHANGE, REACHES_CHANGE, Demand, Moves, Segment, Subgraph
from meander.kernels.jit import kernel


@kernel
def add_demand(segment: Segment, demand: Demand, row: int, exp: int, time: int, since: int) -> None:
    """A row of the segment that begins at `time` demands a pair until `exp`."""
    pair, counts = segment.edge[row], demand.counts
    if pair.hi <= time:
        pair.since = since
        demand.added[counts.added] = row
        counts.added += 1
        demand.valid[counts.valid] = row
        counts.valid += 1
    pair.hi = exp


@kernel
def drop_demand(segment: Segment, demand: Demand, time: int) -> None:
    """Drop the pairs that are no longer demanded."""
    total = 0
    for i in range(demand.counts.valid):
        row = demand.valid[i]
        if segment.edge[row].hi > time:
            demand.valid[total] = row
            total += 1
    demand.counts.valid = total


@kernel
def stamp_demand(segment: Segment, demand: Demand) -> None:
    """Stamp the vertices that are demanded in the step."""
    counts = demand.counts
    counts.step += 1
    for i in range(counts.valid):
        pair = segment.edge[demand.valid[i]]
        demand.stamp[pair.src].root = counts.step
        demand.stamp[pair.trg].target = counts.step


@kernel
def is_demanded_root(demand: Demand, vertex: int) -> bool:
    """Whether a pair with this root is demanded in the step."""
    return demand.counts.is_enforced == 0 or demand.stamp[vertex].root == demand.counts.step


@kernel
def is_demanded_target(demand: Demand, vertex: int) -> bool:
    """Whether a pair with this target is demanded in the step."""
    return demand.counts.is_enforced == 0 or demand.stamp[vertex].target == demand.counts.step


@kernel
def mark_added(segment: Segment, demand: Demand, subgraph: Subgraph, automaton: Moves) -> None:
    """Mark the ends of the pairs that the segment adds to the demand, as if all between them had changed."""
    states = automaton.info.states
    for i in range(demand.counts.added):
        pair = segment.edge[demand.added[i]]
        root = subgraph.number[pair.src * states]
        answer = subgraph.number[pair.trg * states + automaton.info.answer_state]
        if root >= 0 and answer >= 0:
            subgraph.node[root].marks |= REACHES_CHANGE
            subgraph.node[answer].marks |= MAY_CHANGE
