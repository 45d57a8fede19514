"""Every table of the closure: records with named fields, grouped by the module that works on them.

Names that recur: a `row` is a row of the window's graph, a `since` is the position of a row of the batch within its
segment, and a `key` is vertex * states + state. Lists (`queue`, `changed`, ...) hold numbers; their lengths are in
the `counts` beside them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meander.kernels.batch import Batch
from meander.kernels.jit import Array
from meander.kernels.record import Int32, Int64, Record, Table
from meander.kernels.steps import Steps

# Numba compiles a kernel again for each plain constant that is its argument, but not for a NumPy integer.
int64: Any = np.int64

WORDS = 8
BLOCK_ROOTS = 64 * WORDS  # roots per block of the bit-parallel search: one bit each
MAX_SEGMENT_ROWS = 65_534  # a position in a segment fits 16 bits, with one value before and one after all
CHUNK = 64  # columns of the matrix that are compared together


# ---------------------------------------------------------------------------------------------------------
# The query


class Move(Record):
    """The automaton reads an edge (backwards if `inverse`) from state `source` to state `target`."""

    inverse: Int32
    source: Int32
    target: Int32


class AutomatonInfo(Record):
    states: Int64  # the empty path's included
    empty_state: Int64  # the state of the empty path, or -1: the automaton does not accept it
    answer_state: Int64  # the first accepting state


class Moves(NamedTuple):
    """The automaton; its moves are sorted by the relation that they read."""

    begin: Array  # by relation, with one more for the end
    move: Table[Move]
    accepting: Array  # by state
    info: AutomatonInfo


class RequestOptions(Record):
    share: Int64  # which of the `shares` of the roots
    shares: Int64
    expiries: Int64  # whether expiries are requested; otherwise only starts and stops of answers
    paths: Int64  # whether each answer needs a path that lasts as long as the answer


class Request(NamedTuple):
    """Which answers are requested."""

    roots: Array  # the only roots; empty: all
    options: RequestOptions


# ---------------------------------------------------------------------------------------------------------
# The batch and the segment


class Input(NamedTuple):
    """A batch of edges and demanded pairs, merged by time; `Batch.source` is the relation of the window's graph."""

    batch: Batch
    row: Array  # the row of the window's graph
    has_deletion: Array  # whether an edge is deleted at the instant of this row


# Phases of a step.
START, PREPARE, STAGE, EMIT = 0, 1, 2, 3
# Kinds of steps.
GROW, DELETE, EXPIRE = 0, 1, 2


class Cursor(Record):
    """How far the walk over a batch is. The first two fields are what `run_to_end` watches."""

    next_row: Int64
    emitted: Int64
    upto: Int64  # after the batch, time advances to here
    phase: Int64
    kind: Int64
    time: Int64  # the instant of the step; of growth: its first
    last: Int64  # the position in the segment of its last row
    split: Int64  # if > 0: the first expiry after the segment, see `staging.stage_answer`
    deleted_at: Int64  # the last instant whose deletions are done, or -1
    by_levels: Int64  # whether the matrix has taken the segment, and its answers are not staged yet
    block: Int64  # the next block of roots to search from
    staged: Int64  # number of staged answers


class Edge(Record):
    """A row of the window's graph. Both expiries are equal unless a step is under way; expired: 0."""

    relation: Int32
    src: Int32
    trg: Int32
    since: Int32  # which row of the segment made it valid, or -1: it was valid before
    lo: Int64
    hi: Int64


# How a step changes an edge: not, so that pairs may start or stop, or only their expiries may change.
UNCHANGED, CHANGES_PAIRS, CHANGES_EXPIRY = int64(0), int64(1), int64(2)


class SegmentCounts(Record):
    current: Int64  # which order in `Segment.by_expiry` is the one before the step
    begin: Int64  # the valid rows in that order
    end: Int64
    next_end: Int64  # the valid rows in the other order, from 0
    changed: Int64
    has_vertex_ends: Int64  # whether `ClosureState.vertex_end` is up to date


class Segment(NamedTuple):
    """The valid input edges by row of the window's graph, and what the current step changes."""

    edge: Table[Edge]
    change: Array
    by_expiry: Array  # two lists of valid rows, earliest expiry first: before and after the step
    changed: Array
    sorting: Array  # two lists to sort in
    counts: SegmentCounts


class VertexEnd(Record):
    """For the empty path: until when a vertex has an edge."""

    expiry: Int64
    previous: Int64  # before the current step, or -1: the step has not changed it
    since: Int64


class StagedAnswer(Record):
    """An answer of the current step, emitted with the time of the segment's row `since`."""

    exp: Int64
    src: Int32
    trg: Int32
    since: Int32
    step: Int32  # the last step of its path
    node: Int32  # within the bit-parallel search: where the answer's bit is
    bit: Int32


class Staged(NamedTuple):
    """The answers of the current step, in no order; `Cursor.staged` counts them."""

    answer: Table[StagedAnswer]
    offset: Array  # by row of the segment: where its answers begin in the output


# ---------------------------------------------------------------------------------------------------------
# Demand


class DemandStamp(Record):
    """The last step in which a vertex was demanded, as a root and as a target."""

    root: Int64
    target: Int64


class DemandCounts(Record):
    relation: Int64  # of the window's graph: the demanded pairs; -1: all pairs are demanded
    is_enforced: Int64  # whether the current step keeps to the demand
    step: Int64  # the number of the current step, for stamps
    valid: Int64
    added: Int64
    undemanded: Int64  # pairs of the batch that were found and not demanded


class Demand(NamedTuple):
    """The demanded pairs are rows of the window's graph too: `Segment.edge` has their ends and expiries."""

    row: Array  # all, by source
    begin: Array  # by vertex, with one more for the end: its part of `row`
    stamp: Table[DemandStamp]  # by vertex
    valid: Array  # list of the rows that are valid
    added: Array  # list of those that the current segment added
    counts: DemandCounts


# ---------------------------------------------------------------------------------------------------------
# The subgraph of a step, and the bits of the search in it

# Marks of a node: it reaches a changed edge; it is reached over one; answers at it may change; it reaches a node
# at which they may.
REACHES_CHANGE, BEYOND_CHANGE, MAY_CHANGE, REACHES_ANSWER = int64(1), int64(2), int64(4), int64(8)


class Node(Record):
    key: Int32
    marks: Int32
    answer: Int32  # the node that holds the vertex's answer bits (in the first accepting state); -1: not accepting
    begin_out: Int32
    end_out: Int32
    begin_in: Int32
    is_queued: Int32
    is_touched: Int32


class SubgraphEdge(Record):
    """Edges are sorted by `hi`, latest first."""

    source: Int32
    target: Int32
    row: Int32
    lo: Int64
    hi: Int64


class OutEdge(Record):
    """What a search needs of an edge, beside its siblings."""

    target: Int32
    since: Int32
    lo: Int64
    hi: Int64


class SubgraphCounts(Record):
    nodes: Int64
    edges: Int64
    lowered: Int64
    roots: Int64
    queued: Int64
    touched: Int64


class Subgraph(NamedTuple):
    """The nodes and edges of a step."""

    number: Array  # by key: the node, or -1
    node: Table[Node]
    edge: Table[SubgraphEdge]
    out: Table[OutEdge]  # by source node, latest `hi` first
    out_edges: Array  # list of edges by source node
    in_edges: Array  # list of edges by target node; once pruned: those that matter, latest `hi` first
    lowered: Array  # list of the edges with `lo` < `hi` that are valid by `lo`, latest first
    first_edge: Array  # by row
    queue: Array
    touched: Array
    root: Array  # list of the nodes to search from
    counts: SubgraphCounts


class Bits(NamedTuple):
    """By node, a bit per root of the block; `reached` and `fresh` have words for `hi` and then words for `lo`."""

    reached: Array
    fresh: Array  # reached and not yet propagated
    settled: Array  # by answer node: bits whose level is settled
    known: Array  # by answer node: answers before the segment (in a deletion: those that lose their level)
    since: Array  # by answer node and bit: which row of the segment made it an answer
    demanded: Array  # by answer node; empty without a demand
    added: Array  # by answer node: demanded from this segment on; empty without a demand


# ---------------------------------------------------------------------------------------------------------
# The matrix of levels


class LevelNode(Record):
    gained: Int64  # a bit for each chunk of columns that gained since its edges were last relaxed
    gained_in_segment: Int64
    key: Int32  # or -1: free
    first_out: Int32  # its first edge; of a free node: the next free one
    touch: Int32  # its position in `Levels.touched`, or -1
    is_queued: Int32
    has_new_pairs: Int32  # whether the segment made pairs valid at it
    is_alive: Int32  # whether it has edges


class LevelEdge(Record):
    target: Int32
    next_out: Int32  # the next edge of the same source; of a free edge: the next free one
    level: Int32
    since: Int32  # 1 + the row of the segment that made it valid; 0: before the segment
    owner: Int32  # its position in `Levels.edge_of`
    source: Int32


class LevelCounts(Record):
    is_ready: Int64
    is_off: Int64  # the matrix would be too large
    nodes: Int64
    columns: Int64
    edges: Int64
    free_node: Int64
    free_column: Int64
    free_edge: Int64
    queued: Int64
    touched: Int64
    is_dated: Int64  # whether relaxing keeps what was before the segment, and the rows that make pairs valid
    origin: Int64  # level n is the expiry origin + n * unit
    unit: Int64
    short_nodes: Int64  # which table was full
    short_columns: Int64
    short_edges: Int64


class Levels(NamedTuple):
    """By node and column, the largest expiry of a path from the column's root, as a level of 16 bits."""

    level: Array
    before: Array  # by touched node and column: the level before the segment
    since: Array  # by touched node and column: 1 + the row of the segment that made the pair valid; 0: before
    via: Array  # by node and column: the last edge of a path that lasts until the level; empty if no paths are wanted
    early_via: Array  # by touched node and column: that of a path at `since`, or `AT_STEP` - its last step
    step: Array  # by node and column: the last step of the path by `via`, see `level_paths`
    node: Table[LevelNode]
    edge: Table[LevelEdge]
    edge_of: Array  # by row of the window's graph and move of its relation: the edge, or -1
    number: Array  # by key: the node, or -1
    root: Array  # by column: its vertex
    column_of: Array  # by vertex: its column, or -1
    queue: Array
    touched: Array
    counts: LevelCounts


class StepCounts(Record):
    count: Int64  # number of steps
    first: Int64  # the number of the batch's first step, as `Levels.step` has it
    segment: Int64  # number of steps before the segment


class LevelPaths(NamedTuple):
    """The paths of the batch's answers as steps (`kernels.steps`), if paths are wanted."""

    steps: Steps
    since: Array  # by step: 1 + the row of the segment from which on the path is valid
    last: Array  # by row of the output: the last step of its path
    out_move: Array  # by move: its number among the moves by state
    counts: StepCounts


class ClosureState(NamedTuple):
    """All that a walk reads and writes, but for its input and output."""

    automaton: Moves
    request: Request
    segment: Segment
    demand: Demand
    vertex_end: Table[VertexEnd]  # by vertex; empty unless the automaton accepts the empty path
    subgraph: Subgraph
    bits: Bits
    levels: Levels
    staged: Staged
    paths: LevelPaths
