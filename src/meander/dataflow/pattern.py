"""PATTERN as an operator: its programs as arrays, its answers, and the room that its kernel asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meander.dataflow.graph import WindowGraph
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import Array, Store
from meander.kernels.graph import FULL_OUTPUT, FULL_SCRATCH, FULL_TABLE, Rows
from meander.kernels.pattern import (
    BY_SRC,
    BY_TRG,
    Answers,
    KeyedRows,
    MergedRows,
    Program,
    mark_answers,
    match_insertions,
    new_matching,
    pack_answers,
)
from meander.kernels.pattern_cuts import match_rows
from meander.physical.plan import PatternOp
from meander.physical.programs import Program as PlannedProgram

LEAST_ANSWERS = 256
LEAST_OUTPUT = 1024


def keyed_rows(length: int, arity: int) -> KeyedRows:
    """Room for `length` tuples of `arity` vertices, each position a column of its own."""
    return KeyedRows(
        np.empty((length, arity), np.int32, order="F"),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int8),
    )


def double_output(rows: KeyedRows, store: Store) -> KeyedRows:
    """An operator's output with twice the room, counted as memory of its store."""
    store.count_buffer("output", 2 * sum(column.nbytes for column in rows))
    grown = keyed_rows(2 * rows.ts.size, rows.key.shape[1])
    for column, old in zip(grown, rows, strict=True):
        column[: old.shape[0]] = old
    return grown


class AnswerTable:
    """Answers by their vertices, each with its largest expiry, in the arrays of a store."""

    def __init__(self, store: Store, arity: int) -> None:
        self.store = store
        capacity = store.first_capacity(LEAST_ANSWERS)
        self.columns = ["answers.key", "answers.exp"]
        store.array("answers.key", capacity, np.int32, width=arity)
        store.array("answers.exp", capacity, np.int64)
        store.array("answers.slots", 2 * capacity, np.int32, -1)
        store.array("answers.counts", 1, np.int64)
        self.bind()

    def add_column(self, name: str, dtype: type, width: int | None = None) -> None:
        """Another array of the store that has one row for each entry, and grows with the table."""
        self.store.array(name, self.capacity, dtype, width=width)
        self.columns.append(name)

    @property
    def capacity(self) -> int:
        return int(self.answers.exp.size)

    def bind(self) -> None:
        self.answers = Answers(*(self.store.arrays[f"answers.{column}"] for column in Answers._fields))

    def make_room(self, pack: Callable[[], None], more: int = 1) -> None:
        """Drop entries by `pack`, which also rebuilds the index; then there is room for `more`. If more than half of
        the entries stay, the table doubles anyway."""
        pack()
        held = int(self.answers.counts[0])
        if held > self.capacity // 2 or held + more > self.capacity:
            capacity = 1 << (max(2 * self.capacity, held + more) - 1).bit_length()
            for column in self.columns:
                self.store.grow(column, capacity)
            self.store.array("answers.slots", 2 * capacity, np.int32, -1)
            self.bind()
            pack()

    def mark(self, horizon: int, live: Array) -> None:
        mark_answers(self.answers, horizon, live)


def program_arrays(operator: PatternOp, relations: Sequence[int]) -> Program:
    """A pattern's programs, as its kernel reads them."""
    checks: list[int] = []
    steps: list[int] = []
    step_begin: list[int] = []
    scans: list[bool] = []
    walks: list[int] = []
    atoms: list[int] = []
    sides = {"src": BY_SRC, "trg": BY_TRG, None: -1}
    planned: tuple[PlannedProgram, ...] = operator.programs
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
        src=np.array([src for src, _ in operator.ends], np.int32),
        trg=np.array([trg for _, trg in operator.ends], np.int32),
        output=np.array(operator.output, np.int32),
        checks=np.array(checks, np.int32),
        steps=np.array(steps, np.int32),
        step_begin=np.array(step_begin, np.int32),
        step_scans=np.array(scans, np.bool_),
        step_walks=np.array(walks, np.int8),
        atoms=np.array(atoms, np.int32),
    )


class PatternOperator:
    def __init__(
        self, operator: PatternOp, graph: WindowGraph, relations: Sequence[int], store: Store
    ) -> None:
        self.graph = graph
        self.store = store
        self.program = program_arrays(operator, relations)
        variables = 1 + max(variable for pair in operator.ends for variable in pair)
        self.matching = new_matching(variables, max(len(one.steps) for one in operator.programs))
        self.arity = len(operator.output)
        self.key = np.zeros(self.arity, np.int32)
        self.table = AnswerTable(store, self.arity)
        store.array("affected", store.first_capacity(LEAST_ANSWERS), np.int32, scratch=True)
        self.out = keyed_rows(store.first_capacity(LEAST_OUTPUT), self.arity)

    def bind(self) -> None:
        self.table.bind()

    @property
    def rows(self) -> int:
        return int(self.table.answers.counts[0])

    def process(self, rows: MergedRows) -> KeyedRows:
        """The answers that the changes of the inputs lengthen or shorten."""
        cursor = np.array([0, 0, -1], np.int64)
        cuts = bool((rows.op < 0).any())

        def attempt() -> int:
            state = (self.graph.graph, self.program, rows, self.table.answers)
            if cuts:
                affected = self.store.arrays["affected"]
                return match_rows(*state, affected, self.out, self.matching, self.key, cursor)
            return match_insertions(*state, self.out, self.matching, self.key, cursor)

        def pack() -> None:
            pack_answers(self.table.answers, int(rows.ts[cursor[0]]) - 1)

        make_room = {
            FULL_OUTPUT: self._double_output,
            FULL_TABLE: lambda: self.table.make_room(pack),
            FULL_SCRATCH: lambda: self.store.grow("affected", 2 * self.store.arrays["affected"].size),
        }
        run_to_end(self.store, cursor, attempt, make_room)
        return KeyedRows(*(column[: cursor[1]] for column in self.out))

    def _double_output(self) -> None:
        self.out = double_output(self.out, self.store)

    def mark(self, horizon: int, live: Array) -> None:
        """The vertices of valid answers are those of valid edges: the graph marks them."""


def as_keyed(rows: Rows | KeyedRows) -> KeyedRows:
    """Pairs as tuples of two vertices."""
    if isinstance(rows, KeyedRows):
        return rows
    key = np.empty((rows.ts.size, 2), np.int32, order="F")
    key[:, 0] = rows.src
    key[:, 1] = rows.trg
    return KeyedRows(key, rows.ts, rows.exp, rows.op)


def as_pairs(rows: KeyedRows) -> Rows:
    """Tuples of two vertices as pairs, without a copy."""
    return Rows(rows.key[:, 0], rows.key[:, 1], rows.ts, rows.exp, rows.op)
