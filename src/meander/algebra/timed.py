"""Heads as steps of a path in order of time: each rule is a single edge, which the step scans in the head's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from meander.algebra.nodes import PlanError
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


def single_edges(
    rules: Mapping[str, Sequence[Rule]], label: Label, through: tuple[str, ...] = ()
) -> Iterator[tuple[Label, tuple[str, ...]]]:
    """The labels of streams, with predicates, whose edges are those of a head's rules that satisfy the label's
    predicate; with each, the heads between it and the label, after those it was reached `through`."""
    for rule in rules[label.name]:
        atom = single_edge(rule)
        if atom is None:
            raise PlanError(f"{label.name} has edges without a time of their own")
        assert isinstance(atom.expr, Label)
        predicate = conjunction([atom.expr.predicate, *_decided(rule, atom, label.predicate)])
        edge = Label(atom.expr.name, atom.expr.stream, atom.expr.span, predicate)
        if edge.stream is not None:
            yield edge, through
        else:
            yield from single_edges(rules, edge, (*through, edge.name))


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
        # The head's ends are the edge's.
        named = {SRC: SRC, TRG: TRG} | {name: columns[variable.name].name for name, variable in rule.values}
        found.append(map_refs(wanted, lambda ref: Ref(named[str(ref.name)], ref.type)))
    for name, _ in atom.values:
        if not rejects_missing(conjunction(found), name):
            found.append(is_present(Ref(name)))
    return found
