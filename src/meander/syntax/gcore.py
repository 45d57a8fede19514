"""G-CORE, second half: abstract syntax tree to regular query.

    PATH RL = (u1)-/ <:follows^*> /->(u2), (u1)-[:likes]->(m1)<-[:posts]-(u2)
    CONSTRUCT (u)-[:notify]->(m)
    MATCH (u)-/ p<~RL*> /->(v), (v)-[:posts]->(m) ON social_stream WINDOW(24h)

becomes

    RL(u1, u2) <- follows*(u1, u2), likes(u1, m1), posts(u2, m1).
    notify(u, m) <- RL*(u, v) as p, posts(v, m).
    Answer(u, m) <- notify(u, m).

- A CONSTRUCT of one kind of edge becomes its head and an `Answer` over it. One of several kinds, or of
  paths, has them all as results: a rule for each element, elements of one label in union.
- A constructed path `(u)-/@p:because/->(v)` is a rule over the whole MATCH that names the atom of its path.
- A PATH clause is a rule for each stream or view that it is used on, as its labels are those of the MATCH.
- WHERE unifies variables; the one that comes first in the text stays. A variable that equals a vertex is
  replaced by it. If it is the end of an element it stays, and is compared: `u = "alice"`. All other terms compare
  in each rule, and `e.amount` is a variable that e's atom binds to its property.
- An edge of several labels, or in either direction, is a path of one step, or a head of its own if its values are
read.
- A stream that is read ON two windows becomes two streams of one input: social, and social_2 FROM social.
- OPTIONAL blocks are alternatives, each together with the mandatory part of its MATCH. If two variables
  connect a MATCH with the rest they become the rules of one head over these two; otherwise each element has a rule
  for each choice of alternatives.
- A view's labels are heads `view.label`. A text that ends with a view has that view's labels as results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from meander.syntax.checks import check_query
from meander.syntax.gcore_rules import QueryTranslator
from meander.syntax.gcore_scope import Scope
from meander.syntax.gcore_tree import GcoreQuery, parse_tree
from meander.syntax.path_values import resolve_paths
from meander.syntax.query import Atom, Label, RegularQuery, Rule
from meander.syntax.types import KnownTypes, infer_types


def parse_gcore(
    text: str,
    *,
    unit: str = "s",
    views: Mapping[str, RegularQuery] | None = None,
    types: KnownTypes | None = None,
) -> RegularQuery:
    """The regular query of a G-CORE text; raises `QueryError`, with the position marked, if it is not one."""
    queries = parse_tree(text, unit)
    scope = Scope(text, views or {})
    _check_order(queries, scope)
    for query in queries:
        heads = _heads(query, scope)
        QueryTranslator(scope, query, heads).translate()
        if query.view is not None:
            scope.undefined_views.discard(query.view.value)
            scope.sources.view_labels[query.view.value] = tuple(heads)
    results = _results(queries[-1], heads, scope)
    scope.sources.check_inputs()
    regular = RegularQuery(tuple(scope.sources.streams.values()), tuple(scope.rules), results)
    return infer_types(check_query(resolve_paths(regular, text), text), unit, text, types)


def _check_order(queries: Sequence[GcoreQuery], scope: Scope) -> None:
    """Views, then one query or none. The names of all streams, views and constructed labels are reserved from the
    start."""
    for query, following in zip(queries, [*queries[1:], None], strict=True):
        if query.view is None and following is not None:
            raise scope.error(
                "the text continues after its query",
                following.span,
                "one text is one query; what comes before it is GRAPH VIEW name AS (…)",
            )
        scope.names.update(element.label for element in query.elements)
        scope.sources.reserved.update(
            located.source.name.value
            for match in query.matches
            for located in (*match.mandatory, *match.alternatives)
        )
        if query.view is not None:
            scope.undefined_views.add(query.view.value)


def _heads(query: GcoreQuery, scope: Scope) -> dict[str, str]:
    """The head of each label that the query constructs."""
    view = query.view
    if view is not None and view.value in scope.sources.view_labels:
        raise scope.error(f"there is a view {view.value} already", view.span, "give each view its own name")
    for element in query.elements:
        if view is None and "." in element.label:
            raise scope.error(
                f"{element.label} would be a label of a view",
                element.span,
                "a constructed label has no dot in its name",
            )
    labels = dict.fromkeys(element.label for element in query.elements)
    return {label: label if view is None else f"{view.value}.{label}" for label in labels}


def _results(query: GcoreQuery, heads: Mapping[str, str], scope: Scope) -> tuple[str, ...]:
    """The results of the last query: `Answer` over the only label, or the labels themselves."""
    results = tuple(heads.values())
    if len(results) > 1 or results == ("Answer",) or any(element.path for element in query.elements):
        return results
    rule = next(rule for rule in scope.rules if rule.head == results[0])
    src, trg = rule.args
    edge = Atom(Label(results[0]), src, trg, values=rule.values)
    scope.rules.append(Rule("Answer", rule.args, (edge,), values=rule.values))
    return ("Answer",)
