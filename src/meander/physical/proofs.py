"""What a proof of an answer consists of, as plain data over the operators: a node per kind of tuple.

A `ProofPlan` has its nodes in topological order, the root first, so that each comes after all that refer to it; nodes
refer to each other by number. A running dataflow proves one tuple after the other by the node of its kind: it finds
tuples of the node's children from which the operator derived it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Protocol

from meander.algebra.derivations import Derivation, Forward, Head, Join, Leaf, Steps
from meander.algebra.nodes import Path, Pattern, Plan
from meander.syntax.values import Property

if TYPE_CHECKING:
    from meander.physical.plan import PathOp, PatternOp


@dataclass(frozen=True, slots=True)
class LeafNode:
    """An edge or `vertex` tuple of a stream; without a `label` it is scanned whatever its label, which is a value."""

    operator: int
    label: str | None
    values: tuple[Property, ...]
    vertex: bool = False

    @property
    def children(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class StepsNode:
    """A path; `steps` has for each move of its automaton the node of the edge that the move follows."""

    operator: int
    label: str
    path: PathOp
    labels: tuple[str, ...]  # by move
    steps: tuple[int, ...]

    @property
    def values(self) -> tuple[Property, ...]:
        return ()

    @property
    def children(self) -> tuple[int, ...]:
        return self.steps


@dataclass(frozen=True, slots=True)
class JoinRule:
    """A rule: the nodes of its atoms, in the order of the text, and which input of the pattern each is."""

    pattern: PatternOp
    inputs: tuple[int, ...]
    atoms: tuple[int, ...]

    @property
    def children(self) -> tuple[int, ...]:
        return self.atoms


@dataclass(frozen=True, slots=True)
class ForwardRule:
    """A rule that forwards the tuples of one atom: those that are in the relation of `operator`."""

    operator: int
    atom: int

    @property
    def children(self) -> tuple[int, ...]:
        return (self.atom,)


@dataclass(frozen=True, slots=True)
class HeadNode:
    """A tuple of a rule head, which one of its `rules` derives; its columns are `arity` vertices, then `values`.

    Without a `label` it stands for its only atom, of which it drops some values.
    """

    operator: int
    label: str | None
    arity: int
    values: tuple[Property, ...]
    rules: tuple[JoinRule | ForwardRule, ...]

    @property
    def children(self) -> tuple[int, ...]:
        return tuple(child for rule in self.rules for child in rule.children)


ProofNode = LeafNode | StepsNode | HeadNode


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """The nodes that prove the answers of a result: the root first, each after those that refer to it.

    The tuples of the first `chain` nodes are not looked up: each node but the last forwards an answer to the next.
    """

    nodes: tuple[ProofNode, ...]
    chain: int


class Operators(Protocol):
    """What builds the operators that a derivation names."""

    def build(self, plan: Plan) -> int:
        """The operator of a plan."""

    def source(self, plan: Plan) -> int:
        """The operator below the filters of a plan."""

    def pattern(self, plan: Pattern) -> PatternOp:
        """The operator of a pattern."""

    def path(self, plan: Path, root: str | int | None) -> tuple[PathOp, tuple[int, ...]]:
        """The operator of a path from a root, and for each of its moves the input that it reads."""

    def index(self, number: int) -> None:
        """Keep the tuples of an operator in the graph."""


def proof_plan(root: Head, operators: Operators) -> ProofPlan:
    """The nodes of a derivation, with the operators that they need built and indexed."""
    collected = _Collector(operators)
    top = collected.add(root)
    nodes = collected.nodes
    needs = {number: node.children for number, node in enumerate(nodes)}
    order = list(TopologicalSorter(needs).static_order())[::-1]
    assert order[0] == top
    position = {at: number for number, at in enumerate(order)}
    ordered = tuple(_renumbered(nodes[at], position) for at in order)
    # In a chain each node but the last has one child, which nothing else refers to: it comes next.
    chain = 1
    while _is_link(ordered[chain - 1]):
        chain += 1
    for node in ordered[chain:]:
        operators.index(node.operator)
    for node in ordered:
        for rule in node.rules if isinstance(node, HeadNode) else ():
            if isinstance(rule, ForwardRule) and not _is_link(node):
                operators.index(rule.operator)
    if isinstance(last := ordered[chain - 1], LeafNode):
        operators.index(last.operator)
    return ProofPlan(ordered, chain)


def _is_link(node: ProofNode) -> bool:
    """Whether a node only forwards the tuples of one other."""
    return isinstance(node, HeadNode) and len(node.rules) == 1 and isinstance(node.rules[0], ForwardRule)


def _renumbered(node: ProofNode, position: dict[int, int]) -> ProofNode:
    match node:
        case StepsNode():
            return replace(node, steps=tuple(position[at] for at in node.steps))
        case HeadNode():
            rules: list[JoinRule | ForwardRule] = []
            for rule in node.rules:
                if isinstance(rule, JoinRule):
                    rules.append(replace(rule, atoms=tuple(position[at] for at in rule.atoms)))
                else:
                    rules.append(replace(rule, atom=position[rule.atom]))
            return replace(node, rules=tuple(rules))
    return node


class _Collector:
    """The nodes of a derivation, equal ones once, each after its children."""

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self.nodes: list[ProofNode] = []
        self.known: dict[ProofNode, int] = {}
        self.added: dict[Derivation, int] = {}  # by identity

    def add(self, derivation: Derivation) -> int:
        if derivation not in self.added:
            node = self._node(derivation)
            if node not in self.known:
                self.known[node] = len(self.nodes)
                self.nodes.append(node)
            self.added[derivation] = self.known[node]
        return self.added[derivation]

    def _node(self, derivation: Derivation) -> ProofNode:
        operators = self.operators
        match derivation:
            case Leaf(plan):
                label = plan.labels[0] if plan.labels else None
                return LeafNode(operators.build(plan), label, plan.values, plan.vertex)
            case Steps(plan, path, label, steps):
                children = [self.add(step) for step in steps]
                operator, read = operators.path(path, None)
                labels = tuple(path.inputs[source].label for source in read)
                by_move = tuple(children[source] for source in read)
                return StepsNode(operators.source(plan), label, operator, labels, by_move)
            case Head(plan, label, rules):
                return HeadNode(
                    operators.build(plan),
                    label,
                    plan.arity,
                    plan.values,
                    tuple(self._rule(rule) for rule in rules),
                )

    def _rule(self, rule: Join | Forward) -> JoinRule | ForwardRule:
        match rule:
            case Join(plan, inputs, atoms):
                children = tuple(self.add(atom) for atom in atoms)
                return JoinRule(self.operators.pattern(plan), inputs, children)
            case Forward(plan, atom):
                return ForwardRule(self.operators.build(plan), self.add(atom))
