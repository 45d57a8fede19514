"""The paths of the answers that the matrix of levels gives.

Beside the level of a pair, `Levels.via` has the last edge of a path that lasts until that level. The node before it
lasts as long, and its own path may have become better since: following `via` leads back to the root. (An edge is
entered only where it raises a level, and no node lasts longer than the one before it, so these edges make no cycle.)
In the same way `Levels.early_via` leads back along a path by which a pair first became valid in the segment; at a
pair that was valid before, it has the edge of that time.

A path becomes steps (`kernels.steps`) when its answer is staged, and the pair remembers the last of them until it
gains. So answers from one root share the steps of their paths.

A pair that becomes valid in a segment is one answer if the path that lasts longest is among the first. Otherwise it
is two: by an early path until the first expiry after the segment, and by the path that lasts from when that is valid.
"""

from __future__ import annotations

from meander.kernels.closure.bits import NONE, ONE
from meander.kernels.closure.levels import padded_columns
from meander.kernels.closure.staging import put_answer
from meander.kernels.closure.tables import (
    CHUNK,
    Cursor,
    LevelPaths,
    Levels,
    Moves,
    Segment,
    Staged,
    int64,
)
from meander.kernels.closure.widest_path import LAST_BIT, gained_columns
from meander.kernels.jit import inner_kernel, kernel, lowest_bit, unsigned
from meander.kernels.status import DONE, FULL_STEPS, FULL_TABLE
from meander.kernels.steps import NO_STEP

NO_ROOM = int64(-3)  # in place of a step
AT_STEP = -2  # in `Levels.early_via`: minus the last step of the path, which is known


@inner_kernel
def set_step(
    segment: Segment, levels: Levels, automaton: Moves, paths: LevelPaths, step: int, edge: int, before: int
) -> None:
    """Let a step read an edge after another one."""
    row, position = divmod(levels.edge[edge].owner, levels.edge_of.shape[1])
    steps = paths.steps
    steps.before[step] = before
    steps.row[step] = row
    steps.move[step] = paths.out_move[automaton.begin[segment.edge[row].relation] + position]
    paths.since[step] = levels.edge[edge].since


@inner_kernel
def find_steps(
    segment: Segment, levels: Levels, automaton: Moves, paths: LevelPaths, node: int, column: int
) -> int:
    """The last step of the path that lasts until a pair's level; NO_STEP for the root itself, or NO_ROOM."""
    counts, steps = paths.counts, paths.steps
    root = levels.number[levels.root[column] * automaton.info.states]
    missing = int64(0)
    at = int64(node)
    while at != root and levels.step[at, column] < counts.first:
        missing += 1
        at = int64(levels.edge[levels.via[at, column]].source)
    before = int64(NO_STEP) if at == root else int64(levels.step[at, column] - counts.first)
    first = counts.count
    if missing == 0:
        return before
    if first + missing > steps.before.size:
        return NO_ROOM
    at = int64(node)
    for i in range(missing):
        step = first + missing - 1 - i
        edge = levels.via[at, column]
        set_step(segment, levels, automaton, paths, step, edge, step - 1 if i < missing - 1 else before)
        levels.step[at, column] = counts.first + step
        at = int64(levels.edge[edge].source)
    length = steps.length[before] if before >= 0 else 0
    since = paths.since[before] if before >= counts.segment else 0
    for step in range(first, first + missing):
        length += 1
        since = max(since, paths.since[step])
        steps.length[step] = length
        paths.since[step] = since
    counts.count = first + missing
    return first + missing - 1


@kernel
def find_early_steps(
    segment: Segment, levels: Levels, automaton: Moves, paths: LevelPaths, node: int, column: int
) -> int:
    """The same for a path by which the pair was valid first in the segment, of edges that last beyond it."""
    counts, steps = paths.counts, paths.steps
    root = levels.number[levels.root[column] * automaton.info.states]
    missing = int64(0)
    at, before = int64(node), int64(NO_STEP)
    while at != root:
        touch = levels.node[at].touch
        if touch < 0 or levels.level[at, column] <= levels.before[touch, column]:
            # It has not gained: what it has was there before.
            before = find_steps(segment, levels, automaton, paths, at, column)
            break
        via = levels.early_via[touch, column]
        if via <= AT_STEP:
            before = int64(AT_STEP - via)
            break
        missing += 1
        at = int64(levels.edge[via].source)
    if before == NO_ROOM or counts.count + missing > steps.before.size:
        return NO_ROOM
    first = counts.count
    length = (steps.length[before] if before >= 0 else 0) + missing
    at = int64(node)
    for i in range(missing):
        step = first + missing - 1 - i
        touch = levels.node[at].touch
        edge = levels.early_via[touch, column]
        set_step(segment, levels, automaton, paths, step, edge, step - 1 if i < missing - 1 else before)
        steps.length[step] = length - i
        levels.early_via[touch, column] = AT_STEP - step
        at = int64(levels.edge[edge].source)
    counts.count = first + missing
    return first + missing - 1 if missing else before


@kernel
def stage_proved(
    segment: Segment,
    levels: Levels,
    automaton: Moves,
    paths: LevelPaths,
    staged: Staged,
    cursor: Cursor,
) -> int:
    """Stage the answers that the segment has changed, with their paths. On FULL_TABLE and FULL_STEPS nothing is
    staged."""
    counts = levels.counts
    states = automaton.info.states
    accepts_empty = automaton.info.empty_state >= 0
    origin, unit, last = counts.origin, counts.unit, cursor.last
    passed = (cursor.time - origin) // unit
    cursor.staged = 0
    at = cursor.staged
    for i in range(counts.touched):
        touched = levels.touched[unsigned(i)]
        vertex, state = divmod(levels.node[touched].key, states)
        if not automaton.accepting[state]:
            continue
        for chunk in range(padded_columns(levels) // CHUNK):
            if levels.node[touched].gained_in_segment >> min(chunk, LAST_BIT) & 1 == 0:
                continue
            if at + 2 * CHUNK > staged.answer.size:
                return FULL_TABLE
            gained = gained_columns(levels, unsigned(touched), unsigned(i), chunk * CHUNK)
            while gained != NONE:
                column = chunk * CHUNK + lowest_bit(gained)
                gained &= gained - ONE
                source = levels.root[column]
                if accepts_empty and source == vertex:
                    continue
                lasting, early, before = choose_nodes(levels, automaton, vertex, column, i)
                level = int64(levels.level[lasting, column]) if lasting >= 0 else int64(0)
                if level <= before:
                    continue
                step = find_steps(segment, levels, automaton, paths, lasting, column)
                if step == NO_ROOM:
                    return FULL_STEPS
                row, exp = last, origin + level * unit
                if before <= passed:
                    first = int64(levels.since[levels.node[early].touch, column])
                    known = int64(paths.since[step]) if step >= paths.counts.segment else int64(0)
                    row = min(max(known, first) - 1, last)
                    if known > first:
                        step_before = find_early_steps(segment, levels, automaton, paths, early, column)
                        if step_before == NO_ROOM:
                            return FULL_STEPS
                        put_answer(staged, at, source, vertex, min(exp, cursor.split), first - 1, step_before)
                        at += 1
                put_answer(staged, at, source, vertex, exp, row, step)
                at += 1
    cursor.staged = at
    return DONE


@inner_kernel
def choose_nodes(
    levels: Levels, automaton: Moves, vertex: int, column: int, first: int
) -> tuple[int, int, int]:
    """Of a vertex and a root: the node that lasts longest, the one that was valid first, and until which level the
    pair was valid before the segment.

    Both nodes are -1 if the pair is staged already: an accepting node that was touched before `first` has gained too.
    """
    states = automaton.info.states
    lasting, early, before = int64(-1), int64(-1), int64(0)
    for state in range(states):
        node = int64(levels.number[vertex * states + state])
        if not automaton.accepting[state] or node < 0:
            continue
        touch = levels.node[node].touch
        held = had = int64(levels.level[node, column])
        if touch >= 0:
            had = int64(levels.before[touch, column])
            if touch < first and held > had:
                return int64(-1), int64(-1), int64(0)
            since = levels.since[touch, column]
            if early < 0 or since < levels.since[levels.node[early].touch, column]:
                early = node
        before = max(before, had)
        if lasting < 0 or held > levels.level[lasting, column]:
            lasting = node
    return lasting, early, before
