"""PATTERN: a delta generic join (`kernels.pattern`); its programs as arrays, its answers, and its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from meander.dataflow.answer_table import LEAST_ANSWERS, AnswerTable
from meander.dataflow.batch import Batch, OutputBuffer, merge_inputs
from meander.dataflow.conditions import CompiledConditions
from meander.dataflow.operator import Context, Operator, Ready
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Store
from meander.kernels.batch import SRC, TRG
from meander.kernels.graph import FIRST_VALUE
from meander.kernels.pattern import (
    BY_SRC,
    BY_TRG,
    BY_VALUE,
    SCAN,
    Extension,
    PatternState,
    Program,
    match_insertions,
    new_matching,
)
from meander.kernels.pattern_retractions import match_changes
from meander.kernels.spans import wrapping
from meander.kernels.status import EMITTED, FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, NEXT_ROW
from meander.physical.plan import PatternOp
from meander.physical.programs import Side, Walk
from meander.syntax.values import conjuncts

_SIDES: Final[dict[Side, int]] = {"src": BY_SRC, "trg": BY_TRG, None: SCAN}


class Pattern(Operator):
    def __init__(self, node: PatternOp, context: Context) -> None:
        self.inputs = tuple(dict.fromkeys(node.inputs))
        self.relations = context.relations_of(dict.fromkeys(node.inputs))
        self.graph = context.graph
        self.store: Store = context.store
        store = self.store
        self.program = program_arrays(node, context.relations_of(node.inputs))
        variables = 1 + max(variable for columns in node.ends for variable in columns)
        steps = max(len(program.steps) for program in node.programs)
        self.matching = new_matching(variables, steps, len(node.output))
        is_plain = node.predicate is None and all(len(columns) == FIRST_VALUE for columns in node.ends)
        self.value_join = None if is_plain else ValueJoin(node, context, steps)
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
            extension = None if self.value_join is None else self.value_join.extension()
            state = PatternState(
                self.graph.graph, self.program, extension, self.table.answers, self.matching, affected
            )
            return match(state, batch, self.out.batch, cursor)

        def make_room() -> None:
            time = int(batch.ts[cursor[NEXT_ROW]])
            self.table.make_room(lambda: self.table.outlasts(time - 1))

        remedies = {
            FULL_OUTPUT: self.out.grow,
            FULL_TABLE: make_room,
            FULL_SCRATCH: lambda: self.store.grow("affected", 2 * self.store.arrays["affected"].size),
        }
        with wrapping():
            run_to_end(self.store, cursor, attempt, remedies)
        return Ready(self.out.rows(cursor[EMITTED]))


def program_arrays(node: PatternOp, relations: Sequence[int]) -> Program:
    """A pattern's programs, as its kernel reads them."""
    checks: list[int] = []
    steps: list[int] = []
    step_begin: list[int] = []
    atoms: list[int] = []
    walk_begin: list[int] = []
    walks: list[Walk] = []
    for program in node.programs:
        checks.append(len(atoms))
        atoms += program.checks
    checks.append(len(atoms))
    for program in node.programs:
        steps.append(len(step_begin))
        for step in program.steps:
            step_begin.append(len(atoms))
            atoms += step.completes
            walk_begin.append(len(walks))
            walks += step.walks
    steps.append(len(step_begin))
    step_begin.append(len(atoms))
    walk_begin.append(len(walks))
    return Program(
        relation=np.array(relations, np.int32),
        src=np.array([columns[SRC] for columns in node.ends], np.int32),
        trg=np.array([columns[TRG] for columns in node.ends], np.int32),
        output=np.array(node.output, np.int32),
        checks=np.array(checks, np.int32),
        steps=np.array(steps, np.int32),
        step_begin=np.array(step_begin, np.int32),
        atoms=np.array(atoms, np.int32),
        walk_begin=np.array(walk_begin, np.int32),
        walk_atom=np.array([walk.atom for walk in walks], np.int32),
        walk_side=np.array([_SIDES.get(walk.side, BY_VALUE) for walk in walks], np.int8),
    )


class ValueJoin:
    """What a pattern with value columns or a predicate has beside its programs."""

    def __init__(self, node: PatternOp, context: Context, steps: int) -> None:
        self.graph, self.vertices = context.graph, context.vertices
        parts = conjuncts(node.predicate)
        starts = [program.comparisons for program in node.programs]
        later = [step.comparisons for program in node.programs for step in program.steps]
        places = [[parts[number] for number in comparisons] for comparisons in (*starts, *later)]
        self.conditions = CompiledConditions(places, node.types, context.pin)

        relations = context.relations_of(node.inputs)
        widest = max(len(columns) for columns in node.ends)
        columns = np.full((len(node.ends), widest), -1, np.int32)
        for atom, variables in enumerate(node.ends):
            columns[atom, : len(variables)] = variables
        walks = [walk for program in node.programs for step in program.steps for walk in step.walks]
        masks = np.array(walk_masks(node), np.int64).reshape(-1, 2)
        self.arrays = Extension(
            values=self.graph.value_columns(),
            columns=columns,
            width=np.array([len(variables) - FIRST_VALUE for variables in node.ends], np.int32),
            walk_equal=masks[:, 0].copy(),
            walk_binds=masks[:, 1].copy(),
            walk_list=np.array(
                [self.graph.list_by_value(relations[walk.atom], walk.side) for walk in walks], np.int32
            ),
            walk_again=np.array([walk.again for walk in walks], np.bool_),
            walk=np.zeros(max(1, steps), np.int32),
            row=np.zeros(max(1, steps), np.int32),
            key=np.zeros(widest, np.int32),
            conditions=self.conditions.arrays(self.vertices.names),
        )

    def extension(self) -> Extension:
        """For the kernels, with the graph and the names as they are now."""
        conditions = self.conditions.arrays(self.vertices.names)
        return self.arrays._replace(values=self.graph.value_columns(), conditions=conditions)


def walk_masks(node: PatternOp) -> list[tuple[int, int]]:
    """By walk: masks of the columns that must agree with their variables, and of those that bind them.

    A variable that stands in two columns is bound by the first.
    """
    masks = []
    for start, program in zip((*node.ends, node.output), node.programs, strict=True):
        bound = set(start)
        for step in program.steps:
            for walk in step.walks:
                equal = bind = 0
                columns = node.ends[walk.atom]
                for column, variable in enumerate(columns):
                    if variable in bound or (variable in step.binds and variable in columns[:column]):
                        equal |= 1 << column
                    elif variable in step.binds:
                        bind |= 1 << column
                masks.append((equal, bind))
            bound |= set(step.binds)
    return masks
