"""Heads as steps of a path in order of time: each rule is a single edge, which the step reads in the head's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from meander.algebra.nodes import EDGE_TIME, Pattern, Plan, PlanError
from meander.syntax.query import Atom, Constant, Label, Rule, Term, single_edge
from meander.syntax.values import (
    IS_LOOP,
    SRC,
    TRG,
    Comparison,
    Predicate,
    Ref,
    ValueType,
    conjunction,
    equals_vertex,
    is_present,
    map_refs,
    rejects_missing,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A rule that selects single edges: its head, and whether it turns them."""

    head: str
    turns: bool


def single_edges(
    rules: Mapping[str, Sequence[Rule]], label: Label, through: tuple[Turn, ...] = ()
) -> Iterator[tuple[Label, tuple[Turn, ...]]]:
    """The labels of streams, with predicates, whose edges are those of a head's rules that satisfy the label's
    predicate; with each, the rules that select it, from the label's down, after those it was reached `through`."""
    for rule in rules[label.name]:
        atom = single_edge(rule)
        if atom is None:
            raise PlanError(f"{label.name} has edges without a time of their own")
        assert isinstance(atom.expr, Label)
        predicate = conjunction([atom.expr.predicate, *_decided(rule, atom, label.predicate)])
        edge = Label(atom.expr.name, atom.expr.stream, atom.expr.span, predicate)
        selected = (*through, Turn(label.name, rule.args != (atom.src, atom.trg)))
        if edge.stream is not None:
            yield edge, selected
        else:
            yield from single_edges(rules, edge, selected)


def selected(plan: Plan, turns: bool, label: str) -> Plan:
    """The edges of a plan, perhaps turned, with their times alone; with a label, if that makes others of them."""
    if not turns and plan.values == (EDGE_TIME,):
        return plan
    time = plan.arity + plan.values.index(EDGE_TIME)
    ends = (1, 0) if turns else (0, 1)
    return Pattern((plan,), (tuple(range(plan.width)),), (*ends, time), label, None, (EDGE_TIME,))


def _decided(rule: Rule, atom: Atom, wanted: Predicate | None) -> list[Predicate]:
    """What the rule and `wanted`, over the head's values, ask of the edge."""
    columns: dict[str | int, Ref] = {}
    found: list[Predicate] = []

    def bind(term: Term, ref: Ref) -> None:
        if isinstance(term, Constant):
            found.append(equals_vertex(ref.name, term.value))
        elif term.name in columns:
            other = columns[term.name]
            found.append(IS_LOOP if ref.name == TRG else Comparison("=", other, ref))
        else:
            columns[term.name] = ref

    bind(atom.src, Ref(SRC, ValueType.VERTEX))
    bind(atom.trg, Ref(TRG, ValueType.VERTEX))
    for name, variable in atom.values:
        bind(variable, Ref(name))
    if rule.predicate is not None:
        found.append(map_refs(rule.predicate, lambda ref: Ref(columns[ref.name].name, ref.type)))
    if wanted is not None:
        # The head's ends are the edge's, in one direction or the other.
        ends = (SRC, TRG) if rule.args == (atom.src, atom.trg) else (TRG, SRC)
        named: dict[str, str | int] = dict(zip((SRC, TRG), ends, strict=True))
        named |= {name: columns[variable.name].name for name, variable in rule.values}
        found.append(map_refs(wanted, lambda ref: Ref(named[str(ref.name)], ref.type)))
    for name, _ in atom.values:
        if not rejects_missing(conjunction(found), name):
            found.append(is_present(Ref(name)))
    return found
