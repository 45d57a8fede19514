"""Proof trees as JSON text, one value for each record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from meander.dataflow.answers import ValueColumn
from meander.dataflow.edges import FLOAT, Text, frozen
from meander.dataflow.proofs.trees import ProofTrees
from meander.dataflow.resumption import run_to_end
from meander.dataflow.sinks.jsonl import json_text
from meander.dataflow.state import Array, Store
from meander.dataflow.vertices import Vertices
from meander.kernels.interning import KIND
from meander.kernels.proof_texts import (
    CHILDREN,
    END,
    EXPIRY,
    TIME,
    Branch,
    Shapes,
    Trees,
    Values,
    collect_rows,
    measure_texts,
    write_proofs,
)
from meander.kernels.standing import ProvedEdges
from meander.kernels.status import EMITTED, FULL_OUTPUT
from meander.kernels.writing import VERBATIM
from meander.physical.proofs import HeadNode, LeafNode, ProofNode, ProofPlan
from meander.syntax.values import LABEL, ValueType

LEAST_ROWS = 1024


class ProofTexts:
    """Writes the proofs of one result."""

    def __init__(self, plan: ProofPlan, store: Store) -> None:
        self.store = store
        pieces = [list(_pieces(node)) for node in plan.nodes]
        literals = [literal.encode() for of_node in pieces for literal, _ in of_node]
        self.shapes = Shapes(
            piece=np.cumsum([0] + [len(of_node) for of_node in pieces]),
            slot=np.array([slot for of_node in pieces for _, slot in of_node], np.int64),
            literals=np.frombuffer(b"".join(literals), np.uint8),
            literal=np.cumsum([0] + [len(literal) for literal in literals]),
            is_leaf=np.array([isinstance(node, LeafNode) for node in plan.nodes], np.bool_),
        )
        depth = len(plan.nodes) + 1
        self.branch = Branch(*(np.zeros(depth, np.int64) for _ in Branch._fields))
        self.rows = np.empty(LEAST_ROWS, np.int64)

    def write(self, trees: ProofTrees, ts: Array, exp: Array, vertices: Vertices) -> Text:
        """The proofs of records with these times, as they are emitted."""
        walked = _walked(trees)
        values = self._values(trees, vertices)
        most = np.empty(trees.kind.size, np.int64)
        measure_texts(walked, self.shapes, values, most)
        proved = trees.root[trees.root >= 0]
        count = trees.root.size
        out = np.empty(int(most[proved].sum()) + len("null") * (count - proved.size), np.uint8)
        end = np.zeros(count, np.int64)
        write_proofs(walked, self.shapes, values, self.branch, ts, exp, out, end)
        start = np.concatenate([np.zeros(1, np.int64), end[:-1]])[:count]
        return Text(frozen(out), start, end, np.full(count, VERBATIM, np.int8))

    def _values(self, trees: ProofTrees, vertices: Vertices) -> Values:
        kinds = vertices.names.span[trees.columns, KIND]
        positions = np.flatnonzero(kinds == FLOAT)
        start = end = np.zeros(0, np.int64)
        text = np.zeros(0, np.uint8)
        if positions.size:
            floats = vertices.values(trees.columns[positions], ValueType.FLOAT)
            spans = json_text(ValueColumn("", ValueType.FLOAT, floats))
            start, end = np.zeros(kinds.size, np.int64), np.zeros(kinds.size, np.int64)
            start[positions], end[positions], text = spans.start, spans.end, spans.data
        return Values(vertices.names, text, start, end)

    def standing_edges(self, trees: ProofTrees) -> ProvedEdges:
        """The rows that the proofs rest on, for `StandingRecords`."""
        count = trees.root.size
        begin = np.zeros(count + 1, np.int64)
        seen = np.zeros(trees.kind.size, np.int64)
        cursor = np.zeros(2, np.int64)
        walked = _walked(trees)

        def grow() -> None:
            self.store.count_buffer("rows of proofs", 2 * self.rows.nbytes)
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])

        run_to_end(
            self.store,
            cursor,
            lambda: collect_rows(walked, self.shapes, self.branch, seen, begin, self.rows, cursor),
            {FULL_OUTPUT: grow},
        )
        return ProvedEdges(begin, self.rows[: cursor[EMITTED]].copy(), np.zeros(count, np.bool_))


def _walked(trees: ProofTrees) -> Trees:
    return Trees(*(getattr(trees, name) for name in Trees._fields))


def _pieces(node: ProofNode) -> Iterator[tuple[str, int]]:
    """The text of a node: literals, and what follows each."""
    quoted = "" if node.label is None else json.dumps(node.label, ensure_ascii=False)
    arity = node.arity if isinstance(node, HeadNode) else 2
    shown = [(at, value.name) for at, value in enumerate(node.values, start=arity)]
    text = ""
    match node:
        case LeafNode(label=None):
            ((column, _),) = [each for each in shown if each[1] == LABEL]
            shown = [each for each in shown if each[1] != LABEL]
            yield '{"edge":[', 0
            yield ",", column
            yield ",", 1
            text = "]"
        case LeafNode(vertex=True):
            yield '{"vertex":[', 0
            text = f",{quoted}]"
        case HeadNode() if arity != 2:
            opening = '{"answer":['
            for column in range(arity):
                yield opening if column == 0 else ",", column
            text = f'{"" if arity else opening}],"label":{quoted}'
        case _:
            yield '{"edge":[', 0
            yield f",{quoted},", 1
            text = "]"
    yield f'{text},"ts":', TIME
    yield ',"exp":', EXPIRY
    text = ""
    for number, (column, name) in enumerate(shown):
        opening = ',"properties":{' if number == 0 else ","
        yield f"{opening}{json.dumps(name, ensure_ascii=False)}:", column
        text = "}"
    if not isinstance(node, LeafNode):
        yield f'{text},"because":[', CHILDREN
        text = "]"
    yield f"{text}}}", END
