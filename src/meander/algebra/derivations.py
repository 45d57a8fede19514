"""How the rules of a query derive its answers: what a proof of an answer is made of.

A derivation follows the text of the query, rule by rule, beside the canonical plan, whose nodes it names. The plan
alone would not do: it leaves out rules that only forward an atom, and it orders the atoms of a rule for the join.
"""

from __future__ import annotations

from dataclasses import dataclass

from meander.algebra import automata
from meander.algebra.nodes import EDGE_TIME, Filter, Path, Pattern, Plan, WScan
from meander.algebra.timed import selected, single_edges
from meander.algebra.translate import Translation, edge_label, is_path, pattern_order, result_labels
from meander.syntax.query import Atom, Label, PathOrder, RegularQuery, Rule


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An edge or vertex tuple of a stream."""

    plan: WScan


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A path: its steps are those of the `Path`'s inputs that `steps` derive, by input.

    `plan` is the `Path`, or a `Filter` over it that may keep to the paths from one vertex.
    """

    plan: Plan
    path: Path
    label: str
    steps: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """A rule: what derives each of its atoms, in the order of the text, and which of the `Pattern`'s inputs it is."""

    plan: Pattern
    inputs: tuple[int, ...]
    atoms: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """A rule that only forwards its single atom: the tuples of `plan` are those of the atom that satisfy its
    predicate."""

    plan: Plan
    atom: Derivation


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The tuples of a rule head, by its rules. Without a `label` it drops values of its only atom."""

    plan: Plan
    label: str | None
    rules: tuple[Join | Forward, ...]


Derivation = Leaf | Steps | Head


def derivations(query: RegularQuery) -> dict[str, Head]:
    """How each result is derived by the rules, over the nodes of its canonical plan.

    An `Answer` that only forwards another head selects it as the result: it is derived as that head.
    """
    derived = _Derivations(query).heads
    found = {}
    for head, label in result_labels(query).items():
        derivation = derived[head]
        if label != derivation.label:
            (rule,) = derivation.rules
            assert isinstance(rule, Forward)
            # The head itself, unless the answer drops some of its values, or names the edge as a path.
            if isinstance(rule.atom, Head) and rule.atom.label is not None:
                derivation = rule.atom
            else:
                derivation = Head(derivation.plan, label, derivation.rules)
        found[head] = derivation
    return found


class _Derivations:
    """How all heads of a query are derived: `heads`, each after those that it needs."""

    def __init__(self, query: RegularQuery) -> None:
        self.translation = translation = Translation(query)
        self.heads: dict[str, Head] = {}
        for head in translation.order:
            # Rules of equal plans derive the same tuples from the same edges.
            rules: dict[Plan, Join | Forward] = {}
            for rule in translation.rules[head]:
                derived = self._rule(translation.numbers[id(rule)], rule)
                rules.setdefault(derived.plan, derived)
            self.heads[head] = Head(translation.plans[head], edge_label(head), tuple(rules.values()))

    def _rule(self, number: int, rule: Rule) -> Join | Forward:
        atoms = tuple(self._atom(number, atom) for atom in rule.body)
        if (forwarded := self.translation.forwarded(number, rule)) is not None:
            return Forward(forwarded, atoms[0])
        plan = self.translation.rule(number, rule)
        assert isinstance(plan, Pattern)
        positions = pattern_order(rule.body)
        return Join(plan, tuple(map(positions.index, range(len(atoms)))), atoms)

    def _atom(self, number: int, atom: Atom) -> Derivation:
        plan = self.translation.atom(number, atom)
        if is_path(atom):
            path = self.translation.path(atom)
            steps: dict[Plan, Derivation] = {}
            for label in automata.labels(atom.expr):
                derived = self._step(label, atom.order)
                steps.setdefault(self.translation.input(label, atom.order), derived)
            return Steps(plan, path, path.label, tuple(steps[source] for source in path.inputs))
        label = automata.labels(atom.expr)[0]
        if label.stream is None:
            return self._head(label, tuple(name for name, _ in atom.values))
        while isinstance(plan, Filter):
            plan = plan.input
        assert isinstance(plan, WScan)
        return Leaf(plan)

    def _step(self, label: Label, order: PathOrder) -> Derivation:
        """An edge of a path."""
        if label.stream is None:
            return self._head(label, ()) if order is PathOrder.ANY else self._timed(label)
        plan = self.translation.step(label, order)
        assert isinstance(plan, WScan)
        return Leaf(plan)

    def _head(self, label: Label, bound: tuple[str, ...]) -> Head:
        """A tuple of a head, of which an atom binds some of the values."""
        head = self.heads[label.name]
        plan = self.translation.head(label, bound)
        if plan.width == head.plan.width:
            return head
        assert isinstance(plan, Pattern)
        return Head(plan, None, (Join(plan, (0,), (head,)),))

    def _timed(self, label: Label) -> Head:
        """An edge of a path in order of time, read in place of a head: each head in between derives it."""
        translation = self.translation
        rules: dict[Plan, Join | Forward] = {}
        for edge, through in single_edges(translation.rules, label):
            scan = translation.scan(edge, (EDGE_TIME,))
            plan: Plan = scan
            derived: Derivation = Leaf(scan)
            for at, rule in reversed(list(enumerate(through))):
                before, plan = plan, selected(plan, rule.turns, edge_label(rule.head))
                by = Forward(plan, derived) if plan is before else _selection(plan, derived)
                if at == 0:
                    rules.setdefault(plan, by)
                else:
                    derived = Head(plan, edge_label(rule.head), (by,))
        step = translation.step(label, PathOrder.STRICTLY_ASCENDING)
        return Head(step, edge_label(label.name), tuple(rules.values()))


def _selection(plan: Plan, derived: Derivation) -> Join:
    assert isinstance(plan, Pattern)
    return Join(plan, (0,), (derived,))
