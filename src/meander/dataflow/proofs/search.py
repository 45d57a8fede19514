"""The search for proofs, from the answers down to the edges of the input.

For the length of a part the graph has older expiries, so every relation can be read as of the end of instant t, and
every operator whose tuples are read here keeps the largest expiry of each tuple exact at every instant. A tuple that
lasts until e as of t was therefore derived from tuples that last until e as of t, and of these any will do: the
search goes straight down and never turns back. It proves all tuples of one kind before those that they are derived
from, each (row, instant) once, and each until its own expiry, which may be later than the records above it need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meander.dataflow.batch import Batch, empty_batch
from meander.dataflow.graph import WindowGraph
from meander.dataflow.matching import MatchSearch, key_of
from meander.dataflow.operator import Context
from meander.dataflow.proofs.trees import ProofTrees
from meander.dataflow.proving import Prover
from meander.dataflow.state import Array
from meander.dataflow.vertices import Vertices
from meander.errors import StateError
from meander.kernels.graph import FIRST_VALUE
from meander.kernels.lookups import (
    UNPROVED,
    Targets,
    find_tuples,
    read_expiries,
    read_validity,
)
from meander.kernels.spans import wrapping
from meander.physical.plan import Proof
from meander.physical.proofs import HeadNode, JoinRule, LeafNode, ProofNode, ProofPlan, StepsNode

NONE = np.zeros(0, np.int64)


class ProofSearch:
    """Finds the proofs of one result's answers."""

    def __init__(self, plan: ProofPlan, context: Context) -> None:
        self.plan = plan
        self.graph = context.graph
        self.relations = context.relations
        self.joins: dict[JoinRule, JoinSearch] = {}
        self.provers: dict[int, Prover] = {}
        for number, node in enumerate(plan.nodes):
            if isinstance(node, StepsNode):
                proof = Proof(node.path, node.labels)
                self.provers[number] = Prover([proof], context.graph, context.relations, context.store)
            elif isinstance(node, HeadNode):
                for rule in node.rules:
                    if isinstance(rule, JoinRule):
                        self.joins[rule] = JoinSearch(rule, plan.nodes, context)

    def prove(self, records: Batch, vertices: Vertices) -> ProofTrees:
        """The proofs of the `+` records of a batch, at the end of its part."""
        return _Proving(self, records, vertices).trees()


class JoinSearch:
    """Finds the tuples from which a rule derives a tuple of its head."""

    def __init__(self, rule: JoinRule, nodes: Sequence[ProofNode], context: Context) -> None:
        # The tuple of an atom is looked up where it is derived, not where a filter has selected it.
        relations = [0] * len(rule.pattern.inputs)
        for number, atom in zip(rule.inputs, rule.atoms, strict=True):
            relations[number] = context.relations[nodes[atom].operator]
        self.inputs = np.array(rule.inputs, np.intp)
        self.matches = MatchSearch(rule.pattern, relations, context)

    def find(self, targets: Targets) -> Array:
        """For each target the rows of its atoms, in the order of the text; UNPROVED in the first if the rule does not
        derive it."""
        found = self.matches.find(targets)
        out = found[:, self.inputs]
        out[found[:, 0] == UNPROVED] = UNPROVED
        return out


class _Proving:
    """The proofs of one batch while they are found.

    A reference to a node that is not proved yet is a position in `child`; `waiting` has by kind those references, the
    rows that they are to, and the instants, as positions in `times`.
    """

    def __init__(self, search: ProofSearch, records: Batch, vertices: Vertices) -> None:
        self.search = search
        self.plan = search.plan
        self.window: WindowGraph = search.graph
        self.records = records
        self.vertices = vertices
        self.proved = np.flatnonzero(records.op > 0)
        self.times, self.instant = np.unique(records.ts[self.proved], return_inverse=True)
        self.waiting: list[list[tuple[Array, Array, Array]]] = [[] for _ in self.plan.nodes]
        self.nodes = 0
        self.references = 0
        self.parts: dict[str, list[Array]] = {
            name: [] for name in ("kind", "rule", "row", "columns", "widths", "counts", "since", "until")
        }
        self.child = NONE
        self.last_references = NONE
        self.targets: list[tuple[Array, Array]] = []  # references and the nodes that they are to
        self.skipped: list[tuple[int, int]] = []  # the nodes that stand for their only child

    def trees(self) -> ProofTrees:
        for kind in range(len(self.plan.nodes)):
            self._prove_kind(kind)
        return self._assemble()

    # -----------------------------------------------------------------------------------------------------
    # Kind by kind

    def _prove_kind(self, kind: int) -> None:
        node = self.plan.nodes[kind]
        if kind < self.plan.chain:
            records = self.proved
            key = np.ascontiguousarray(self.records.key[records])
            targets = Targets(key, self.records.ts[records], self.records.exp[records])
            rows, instant = np.full(records.size, -1, np.int64), self.instant
            if kind:
                # A node of the chain forwards each record to the next.
                self.targets.append((self.last_references, self.nodes + np.arange(records.size)))
        else:
            rows, instant = self._rows_of(kind)
            if rows.size == 0:
                return
            ts = self.times[instant]
            exp = np.empty(rows.size, np.int64)
            read_expiries(self.window.graph, rows, ts, exp)
            targets = Targets(self._key_of(rows, node), ts, exp)
        if not targets.ts.size:
            return
        rule = np.zeros(rows.size, np.int16)
        counts, kinds, children = self._children(kind, targets, rule)
        since = until = np.zeros(rows.size, np.int64)
        if isinstance(node, LeafNode):
            found = rows if kind >= self.plan.chain else self._look_up(node, targets.key)
            rows = found
            if self.window.validity:
                since, until = np.empty_like(since), np.empty_like(until)
                read_validity(self.window.graph, self.window.since, rows, targets.ts, since, until)
        if isinstance(node, HeadNode) and node.label is None:
            self.skipped.append((self.nodes, self.nodes + rows.size))
        columns: dict[str, Array] = {
            "kind": np.full(rows.size, kind, np.int16),
            "rule": rule,
            "row": rows,
            "columns": targets.key.ravel(),
            "widths": np.full(rows.size, targets.key.shape[1], np.int64),
            "counts": counts,
            "since": since,
            "until": until,
        }
        for name, column in columns.items():
            self.parts[name].append(column)
        self.nodes += rows.size
        references = self.references + np.arange(kinds.size)
        self.references += kinds.size
        if kind + 1 < self.plan.chain:
            self.last_references = references
            return
        instants = np.repeat(instant, counts)
        for other in np.unique(kinds):
            chosen = np.flatnonzero(kinds == other)
            self.waiting[other].append((references[chosen], children[chosen], instants[chosen]))

    def _rows_of(self, kind: int) -> tuple[Array, Array]:
        """The rows of a kind that are waiting, each at each instant once, and their instants."""
        waiting = self.waiting[kind]
        if not waiting:
            return NONE, NONE
        references, rows, instants = (np.concatenate(column) for column in zip(*waiting, strict=True))
        self.waiting[kind] = []
        pairs, node = np.unique(rows * self.times.size + instants, return_inverse=True)
        self.targets.append((references, self.nodes + node))
        return pairs // self.times.size, pairs % self.times.size

    def _key_of(self, rows: Array, node: ProofNode) -> Array:
        """The columns of rows."""
        width = FIRST_VALUE + len(node.values)
        if isinstance(node, HeadNode):
            width = node.arity + len(node.values)
        return key_of(self.window, rows, width)

    def _look_up(self, node: ProofNode, key: Array) -> Array:
        """The rows of tuples in the relation of a node."""
        return self._find(node.operator, key)

    def _find(self, operator: int, key: Array) -> Array:
        rows = np.empty(key.shape[0], np.int64)
        relation = self.search.relations[operator]
        with wrapping():
            find_tuples(self.window.graph, self.window.values, relation, np.ascontiguousarray(key), rows)
        return rows

    # -----------------------------------------------------------------------------------------------------
    # Children: how many by target, their kinds, and their rows

    def _children(self, kind: int, targets: Targets, rule: Array) -> tuple[Array, Array, Array]:
        node = self.plan.nodes[kind]
        if kind + 1 < self.plan.chain:
            count = targets.ts.size
            return np.ones(count, np.int64), np.zeros(count, np.int16), np.full(count, -1, np.int64)
        match node:
            case LeafNode():
                return np.zeros(targets.ts.size, np.int64), np.zeros(0, np.int16), NONE
            case StepsNode():
                return self._steps(kind, node, targets)
            case HeadNode():
                return self._atoms(node, targets, rule)

    def _steps(self, kind: int, node: StepsNode, targets: Targets) -> tuple[Array, Array, Array]:
        batch = empty_batch(targets.ts.size)
        batch.key[:] = targets.key
        batch.ts[:], batch.exp[:], batch.op[:] = targets.ts, targets.exp, 1
        proved = self.search.provers[kind].prove(batch, self.vertices)
        if not proved.given.all():
            raise unproved(node.label)
        kinds = np.array(node.steps, np.int16)[proved.name]
        rows = proved.row.astype(np.int64)
        relations = self.window.graph.relation[rows]
        for child in set(node.steps):
            operator = self.plan.nodes[child].operator
            # A step may be a selection: its own row is where it is derived.
            elsewhere = np.flatnonzero((kinds == child) & (relations != self.search.relations[operator]))
            if elsewhere.size:
                rows[elsewhere] = self._find(operator, self._key_of(rows[elsewhere], self.plan.nodes[child]))
        return np.diff(proved.offsets), kinds, rows

    def _atoms(self, node: HeadNode, targets: Targets, rule: Array) -> tuple[Array, Array, Array]:
        left = np.arange(targets.ts.size)
        widths = [len(each.children) for each in node.rules]
        rows = np.full((targets.ts.size, max(widths)), UNPROVED, np.int64)
        for number, each in enumerate(node.rules):
            if not left.size:
                break
            chosen = Targets(targets.key[left], targets.ts[left], targets.exp[left])
            if isinstance(each, JoinRule):
                found = self.search.joins[each].find(chosen)
            else:
                found = self._find(self.plan.nodes[each.atom].operator, chosen.key)[:, np.newaxis]
                selected = found[:, 0]
                if each.operator != self.plan.nodes[each.atom].operator:
                    selected = self._find(each.operator, chosen.key)
                exp = np.empty(left.size, np.int64)
                read_expiries(self.window.graph, selected, chosen.ts, exp)
                found[exp < chosen.exp] = UNPROVED
            rows[left, : widths[number]] = found
            rule[left] = number
            left = left[found[:, 0] == UNPROVED]
        if left.size:
            raise unproved(node.label or "a head")
        counts = np.array(widths, np.int64)[rule]
        is_child = np.arange(max(widths)) < counts[:, np.newaxis]
        kinds = np.zeros((len(widths), max(widths)), np.int16)
        for number, each in enumerate(node.rules):
            kinds[number, : widths[number]] = each.children
        return counts, kinds[rule][is_child], rows[is_child]

    # -----------------------------------------------------------------------------------------------------
    # The trees

    def _assemble(self) -> ProofTrees:
        child = np.empty(self.references, np.int64)
        for references, nodes in self.targets:
            child[references] = nodes

        def joined(name: str, kind: type[np.generic]) -> Array:
            return np.concatenate([np.zeros(0, kind), *self.parts[name]])

        begin = np.concatenate([[0], np.cumsum(joined("counts", np.int64))])
        stands_for = np.arange(self.nodes)
        for first, last in reversed(self.skipped):
            stands_for[first:last] = stands_for[child[begin[first:last]]]
        root = np.full(self.records.ts.size, -1, np.int64)
        root[self.proved] = stands_for[np.arange(self.proved.size)]
        return ProofTrees(
            root=root,
            kind=joined("kind", np.int16),
            rule=joined("rule", np.int16),
            row=joined("row", np.int64),
            column=np.concatenate([[0], np.cumsum(joined("widths", np.int64))]),
            columns=joined("columns", np.int32),
            begin=begin,
            child=stands_for[child],
            since=joined("since", np.int64),
            until=joined("until", np.int64),
        )


def unproved(label: str) -> StateError:
    return StateError(
        f"an answer has no proof: no rule or path derives a tuple of {label}",
        hint="this is a defect of Meander; please report the query and the edges of the last batch",
    )
