"""PATTERN: a delta generic join (`kernels.pattern`); its programs as arrays, its answers, and its output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.answer_table import LEAST_ANSWERS, AnswerTable
from meander.dataflow.batch import Batch, OutputBuffer, merge_inputs
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Store
from meander.kernels.pattern import (
    BY_SRC,
    BY_TRG,
    PatternState,
    Program,
    match_insertions,
    new_matching,
)
from meander.kernels.pattern_retractions import match_changes
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, NEXT_ROW
from meander.physical.plan import PatternOp
from meander.physical.programs import Program as PlannedProgram


class Pattern(Operator):
    def __init__(self, node: PatternOp, context: Context) -> None:
        self.inputs = tuple(dict.fromkeys(node.inputs))
        self.relations = context.relations_of(dict.fromkeys(node.inputs))
        self.graph = context.graph
        self.store: Store = context.store
        store = self.store
        self.program = program_arrays(node, context.relations_of(node.inputs))
        variables = 1 + max(variable for ends in node.ends for variable in ends)
        steps = max(len(program.steps) for program in node.programs)
        self.matching = new_matching(variables, steps, len(node.output))
        self.table = AnswerTable(store, len(node.output))
        store.array("affected", store.first_capacity(LEAST_ANSWERS), np.int32, scratch=True)
        self.out = OutputBuffer(store, len(node.output))

    def bind(self) -> None:
        self.table.bind()

    @property
    def state_rows(self) -> int:
        return self.table.entries

    def start(self, inputs: Sequence[Batch], upto: int) -> Ready:
        batch = merge_inputs(inputs, self.relations)
        cursor = np.array([0, 0, -1], np.int64)
        match = match_changes if (batch.op < 0).any() else match_insertions

        def attempt() -> int:
            affected = self.store.arrays["affected"]
            state = PatternState(self.graph.graph, self.program, self.table.answers, self.matching, affected)
            return match(state, batch, self.out.batch, cursor)

        def make_room() -> None:
            time = int(batch.ts[cursor[NEXT_ROW]])
            self.table.make_room(lambda: self.table.outlasts(time - 1))

        remedies = {
            FULL_OUTPUT: self.out.grow,
            FULL_TABLE: make_room,
            FULL_SCRATCH: lambda: self.store.grow("affected", 2 * self.store.arrays["affected"].size),
        }
        run_to_end(self.store, cursor, attempt, remedies)
        return Ready(self.out.rows(cursor[EMITTED]))


def program_arrays(node: PatternOp, relations: Sequence[int]) -> Program:
    """A pattern's programs, as its kernel reads them."""
    checks: list[int] = []
    steps: list[int] = []
    step_begin: list[int] = []
    scans: list[bool] = []
    walks: list[int] = []
    atoms: list[int] = []
    sides = {"src": BY_SRC, "trg": BY_TRG, None: -1}
    planned: tuple[PlannedProgram, ...] = node.programs
    for program in planned:
        checks.append(len(atoms))
        atoms += program.checks
        walks += [-1] * len(program.checks)
    checks.append(len(atoms))
    for program in planned:
        steps.append(len(step_begin))
        for step in program.steps:
            step_begin.append(len(atoms))
            scans.append(step.scans)
            atoms += step.atoms
            walks += [sides[walk] for walk in step.walks]
    steps.append(len(step_begin))
    step_begin.append(len(atoms))
    return Program(
        relation=np.array([relations[i] for i in range(len(relations))], np.int32),
        src=np.array([src for src, _ in node.ends], np.int32),
        trg=np.array([trg for _, trg in node.ends], np.int32),
        output=np.array(node.output, np.int32),
        checks=np.array(checks, np.int32),
        steps=np.array(steps, np.int32),
        step_begin=np.array(step_begin, np.int32),
        step_scans=np.array(scans, np.bool_),
        step_walks=np.array(walks, np.int8),
        atoms=np.array(atoms, np.int32),
    )
