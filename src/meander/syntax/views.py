"""Queries used as streams by later queries.

A view's rules are spliced into the query that reads it, its heads renamed to `view.head`: so the composed
query is an ordinary regular query, tuples keep the validity that they have in the view, and no window is
needed. All heads of the view can be read, its results and what they build on alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from meander.errors import QueryError, Span
from meander.syntax.query import (
    Atom,
    Label,
    PathExpr,
    RegularQuery,
    Rule,
    Stream,
    Term,
    Variable,
    heads_of,
    map_labels,
)


def splice(view: str, query: RegularQuery) -> tuple[Rule, ...]:
    """The view's rules with heads and path names `view.name`, and without places: those are of another text."""
    heads = set(heads_of(query))

    def named(name: str) -> str:
        return name if name.startswith(f"{view}.") else f"{view}.{name}"

    def moved(label: Label) -> PathExpr:
        return Label(
            named(label.name) if label.stream is None and label.name in heads else label.name, label.stream
        )

    def placeless(term: Term) -> Term:
        return replace(term, span=None)

    return tuple(
        Rule(
            named(rule.head),
            tuple(Variable(variable.name) for variable in rule.args),
            tuple(
                Atom(
                    map_labels(atom.expr, moved),
                    placeless(atom.src),
                    placeless(atom.trg),
                    None if atom.name is None else named(atom.name),
                )
                for atom in rule.body
            ),
            None if rule.path is None else named(rule.path),
        )
        for rule in query.rules
    )


def merge_streams(
    known: Iterable[Stream], more: Iterable[Stream], text: str, span: Span | None
) -> list[Stream]:
    """The streams of both; one that is in both must have the same window and slide in both."""
    merged = {stream.name: stream for stream in known}
    for stream in more:
        other = merged.setdefault(stream.name, stream)
        if other != stream:
            raise QueryError(
                f"the stream {stream.name} has two windows in this query: {_window(other)} and {_window(stream)}",
                text=text,
                span=span,
                hint="a stream has one window in a query, in its views as well: use the same one",
            )
    return list(merged.values())


def _window(stream: Stream) -> str:
    return f"WINDOW {stream.window} SLIDE {stream.slide}"
