"""The driver: a batch step by step, each step in phases that can be resumed when a table was full.

Each step marks the edges that it changes, lets them into the matrix of levels or else builds the subgraph that they
affect and searches it block by block, and emits the staged answers in order of time.
"""

from __future__ import annotations

from meander.kernels.batch import Batch
from meander.kernels.closure.bits import search_block
from meander.kernels.closure.demand import stamp_demand
from meander.kernels.closure.empty_path import stage_empty_paths
from meander.kernels.closure.level_paths import stage_proved
from meander.kernels.closure.segment import finish_step, take_step
from meander.kernels.closure.staging import emit_answers
from meander.kernels.closure.subgraph import build_subgraph
from meander.kernels.closure.tables import (
    BLOCK_ROOTS,
    EMIT,
    GROW,
    PREPARE,
    STAGE,
    START,
    ClosureState,
    Cursor,
    Input,
)
from meander.kernels.closure.widest_path import grow_levels, settle_levels, stage_demanded, stage_gained
from meander.kernels.jit import kernel
from meander.kernels.status import DONE, FULL_MATRIX, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, UNUSABLE


@kernel
def walk_batch(changes: Input, state: ClosureState, out: Batch, cursor: Cursor) -> int:
    """Walk a batch of changes, then let time advance to `cursor.upto`.

    Returns DONE, or what is full: FULL_SCRATCH (the subgraph), FULL_MATRIX, FULL_TABLE (what is staged), FULL_STEPS,
    FULL_OUTPUT; called again with more room, it continues where it stopped.
    """
    # One kernel for all phases: with one for each, all kernels below would be optimized once more.
    automaton, request, segment, demand, _, subgraph, bits, levels, staged, paths = state
    while True:
        if cursor.phase == START:
            if not take_step(changes, segment, demand, request, cursor):
                return DONE
            demand.counts.is_enforced = demand.counts.relation >= 0 and cursor.kind == GROW
            if demand.counts.is_enforced:
                stamp_demand(segment, demand)
            cursor.phase = PREPARE

        if cursor.phase == PREPARE:
            status = UNUSABLE
            if request.options.expiries and cursor.kind == GROW and levels.counts.is_off == 0:
                status = grow_levels(segment, levels, automaton, request, cursor.time)
                if status == FULL_SCRATCH:
                    return FULL_MATRIX
            cursor.by_levels = status == DONE
            subgraph.counts.roots = 0
            if status == UNUSABLE:
                levels.counts.is_ready = 0
                if build_subgraph(segment, subgraph, automaton, request, demand, cursor) != DONE:
                    return FULL_SCRATCH
            cursor.block = cursor.staged = 0
            cursor.phase = STAGE

        if cursor.phase == STAGE:
            if cursor.by_levels:
                if demand.counts.is_enforced:
                    status = stage_demanded(segment, levels, automaton, demand, staged, cursor)
                elif paths.last.size:
                    status = stage_proved(segment, levels, automaton, paths, staged, cursor)
                else:
                    status = stage_gained(levels, automaton, staged, cursor)
                if status != DONE:
                    return status
                settle_levels(segment, levels, automaton)
                cursor.by_levels = 0
            while cursor.block * BLOCK_ROOTS < subgraph.counts.roots:
                status = search_block(segment, subgraph, bits, staged, automaton, demand, cursor)
                if status != DONE:
                    return status
                cursor.block += 1
            if automaton.info.empty_state >= 0 and request.options.share == 0:
                if cursor.staged + 4 * segment.counts.changed > staged.answer.size:
                    return FULL_TABLE
                stage_empty_paths(segment, state.vertex_end, staged, request, cursor)
            cursor.phase = EMIT

        if cursor.emitted + cursor.staged > out.ts.size:
            return FULL_OUTPUT
        emit_answers(changes, staged, request, out, paths.last, cursor)
        paths.counts.segment = paths.counts.count
        finish_step(segment, demand, cursor)
