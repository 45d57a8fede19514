"""Queries used as streams by later queries.

A view's rules are spliced into the query that reads it, its heads renamed to `view.head`: so the composed
query is an ordinary regular query, tuples keep the validity that they have in the view, and no window is
needed. All heads of the view can be read, its results and what they build on alike.
"""

from __future__ import annotations

from dataclasses import replace

from meander.syntax.query import (
    Atom,
    Label,
    PathExpr,
    RegularQuery,
    Rule,
    Term,
    Values,
    Variable,
    heads_of,
    map_labels,
)


def splice(view: str, query: RegularQuery) -> tuple[Rule, ...]:
    """The view's rules with heads and path names `view.name`, and without spans, which refer to another text."""
    heads = set(heads_of(query))

    def named(name: str) -> str:
        return name if name.startswith(f"{view}.") else f"{view}.{name}"

    def renamed(label: Label) -> PathExpr:
        of_view = label.stream is None and label.name in heads
        return replace(label, name=named(label.name) if of_view else label.name, span=None)

    def without_span(term: Term) -> Term:
        return replace(term, span=None)

    def values(named: Values) -> Values:
        return tuple((name, Variable(variable.name)) for name, variable in named)

    def paths(rule: Rule) -> Values:
        names = {atom.name for atom in rule.body}
        return tuple(
            (name, Variable(named(variable.name) if variable.name in names else variable.name))
            for name, variable in rule.paths
        )

    return tuple(
        Rule(
            named(rule.head),
            tuple(Variable(variable.name) for variable in rule.args),
            tuple(
                Atom(
                    map_labels(atom.expr, renamed),
                    without_span(atom.src),
                    without_span(atom.trg),
                    None if atom.name is None else named(atom.name),
                    None,
                    values(atom.values),
                    atom.order,
                    values(atom.paths),
                )
                for atom in rule.body
            ),
            None if rule.path is None else named(rule.path),
            None,
            values(rule.values),
            rule.predicate,
            paths(rule),
        )
        for rule in query.rules
    )
