"""Paths as values: which values of heads and atoms are paths.

A head returns a path of its body by the path's name; the first rule is short for the second. A later rule reads it
like any value, in either way.

    Notify(u, m, P)    <- follows+(u, v) as P, posts(v, m).
    Notify(u, m, P: P) <- follows+(u, v) as P, posts(v, m).
    Answer(x, y, why: P) <- Notify(x, y, P), knows(x, y).

A name stands for a path where its rule names one so, or binds it to a value that is a path in the rules of a head, or
that a stream of TUPLES declares as a PATH.
Such values are moved to `Rule.paths` and `Atom.paths` here; nothing after this compares, joins or types them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from meander.errors import QueryError, Span
from meander.syntax.printing import short_list
from meander.syntax.query import Atom, Label, PathExpr, RegularQuery, Rule, Values, Variable, labels_of
from meander.syntax.values import ValueType, refs


def resolve_paths(query: RegularQuery, text: str = "") -> RegularQuery:
    """The query with its path values apart from its arguments and other values. An argument of an atom after its ends
    stands in `Atom.paths` before, whatever it is. Raises `QueryError`, with the position marked in `text`."""
    return _Resolver(query, text).resolve()


class _Resolver:
    def __init__(self, query: RegularQuery, text: str) -> None:
        self.query = query
        self.text = text
        self.declared = {
            stream.name: {name for name, kind in stream.properties if kind is ValueType.PATH}
            for stream in query.streams
        }
        self.returned = self._returned()

    def _returned(self) -> dict[str, set[str]]:
        """By head: the names of the values that are paths in some rule."""
        returned: dict[str, set[str]] = {rule.head: set() for rule in self.query.rules}
        changed = True
        while changed:
            changed = False
            for rule in self.query.rules:
                paths = _paths_of(rule, returned, self.declared)
                found = {name for name, variable in (*rule.values, *rule.paths) if variable.name in paths}
                found |= {variable.name for variable in rule.args if variable.name in paths}
                changed |= not found <= returned[rule.head]
                returned[rule.head] |= found
        return returned

    def resolve(self) -> RegularQuery:
        return replace(self.query, rules=tuple(map(self.rule, self.query.rules)))

    def rule(self, rule: Rule) -> Rule:
        paths = _paths_of(rule, self.returned, self.declared)
        self.check_uses(rule, paths)
        body = tuple(self.atom(atom, rule.span is not None) for atom in rule.body)
        vertices = _vertices(rule)
        named = (self.returned[rule.head] | paths.keys()) - vertices.keys()
        args = tuple(variable for variable in rule.args if variable.name not in named)
        implied = tuple((variable.name, variable) for variable in rule.args if variable.name in named)
        values = (*rule.values, *implied, *rule.paths)
        for name, variable in values:
            if name in self.returned[rule.head] and variable.name not in paths:
                raise self.no_path(rule, name, variable, vertices)
        names = [name for name, _ in values]
        for name, variable in implied:
            if names.count(name) > 1:
                raise self.error(
                    f"the property {name} is named twice",
                    variable.span or rule.span,
                    f"{name} alone is short for {name}: {name}",
                )
        returned = _sorted((name, variable) for name, variable in values if variable.name in paths)
        kept = tuple((name, variable) for name, variable in rule.values if variable.name not in paths)
        return replace(rule, args=args, body=body, values=kept, paths=returned)

    def atom(self, atom: Atom, located: bool) -> Atom:
        label = atom.expr
        known = self.known(label)
        self.check_predicates(label, located)
        for name, variable in atom.paths:
            if name not in known:
                raise self.error(
                    f"an atom has two arguments, this one has {2 + len(atom.paths)}",
                    atom.span,
                    "an edge or a path leads from one vertex to another: follows(x, y); a value is named: "
                    "follows(x, y, since: t)"
                    + (f"; paths of {label} are {short_list(sorted(known))}" if known else ""),
                )
            if any(name == other for other, _ in atom.values):
                raise self.error(
                    f"the property {name} is named twice", variable.span or atom.span, "name it once"
                )
        read = _sorted((name, variable) for name, variable in (*atom.values, *atom.paths) if name in known)
        kept = tuple((name, variable) for name, variable in atom.values if name not in known)
        return replace(atom, values=kept, paths=read)

    def known(self, expr: PathExpr) -> Collection[str]:
        """The values of an edge that are paths."""
        return _paths_of_edge(expr, self.returned, self.declared)

    # -- errors

    def check_uses(self, rule: Rule, paths: Mapping[str, Span | None]) -> None:
        """Refuse a path that is used as a vertex, bound twice, or compared."""
        vertices = _vertices(rule)
        for name in paths:
            if name in vertices:
                raise self.error(
                    f"{name} is a path here, and a vertex as well",
                    vertices[name].span or rule.span,
                    "a path is returned, and joins nothing: give the vertex, or the path, another name",
                )
        bound = {atom.name for atom in rule.body}
        for variable in (variable for atom in rule.body for _, variable in (*atom.values, *atom.paths)):
            if variable.name in paths and variable.name in bound:
                raise self.error(
                    f"the path {variable.name} is bound twice",
                    variable.span or rule.span,
                    "paths are not compared with each other: give each a name of its own",
                )
            bound.add(variable.name)
        for ref in refs(rule.predicate):
            if ref.name in paths:
                raise self.compared(str(ref.name), ref.span if rule.span is not None else None)

    def check_predicates(self, expr: PathExpr, located: bool) -> None:
        for label in labels_of(expr):
            for ref in refs(label.predicate):
                if ref.name in self.known(label):
                    raise self.compared(str(ref.name), ref.span if located else None)

    def compared(self, name: str, span: Span | None) -> QueryError:
        # `e.why` is a variable of another name by now.
        written = self.text[span.start : span.end] if span is not None and self.text else name
        return self.error(
            f"{written} is a path, and paths are not compared",
            span,
            "compare the vertices at its ends, or the properties of its steps in the path's expression: "
            "(a[amount > 5])+(x, y)",
        )

    def no_path(
        self, rule: Rule, name: str, variable: Variable, vertices: Mapping[str, Variable]
    ) -> QueryError:
        span = variable.span or rule.span
        values = {bound.name for atom in rule.body for _, bound in atom.values}
        if variable.name in vertices or variable.name in values:
            kind = "a vertex" if variable.name in vertices else "a value"
            return self.error(
                f"{name} of {rule.head} is {kind} here, and a path in another rule",
                span,
                "all rules of one head return a path under the same name",
            )
        paths = _paths_of(rule, self.returned, self.declared)
        return self.error(
            f"the body of {rule.head} has no path named {variable.name}",
            span,
            f"it names {short_list(paths)}: write {name}: {next(iter(paths))}"
            if paths
            else f"name one of its paths: follows+(x, y) as {variable.name}",
        )

    def error(self, message: str, span: Span | None, hint: str) -> QueryError:
        return QueryError(message, text=self.text, span=span, hint=hint)


def _paths_of_edge(
    expr: PathExpr, returned: Mapping[str, Collection[str]], declared: Mapping[str, Collection[str]]
) -> Collection[str]:
    """The values of an edge that are paths."""
    if not isinstance(expr, Label):
        return ()
    return returned.get(expr.name, ()) if expr.stream is None else declared.get(expr.stream, ())


def _paths_of(
    rule: Rule, returned: Mapping[str, Collection[str]], declared: Mapping[str, Collection[str]]
) -> dict[str, Span | None]:
    """The names that stand for paths in a rule."""
    paths: dict[str, Span | None] = {}
    for atom in rule.body:
        if atom.name is not None:
            paths[atom.name] = atom.span
        known = _paths_of_edge(atom.expr, returned, declared)
        for name, variable in (*atom.values, *atom.paths):
            if name in known:
                paths[variable.name] = variable.span
    return paths


def _vertices(rule: Rule) -> dict[str, Variable]:
    """The variables that stand for vertices in a rule."""
    terms = [term for atom in rule.body for term in (atom.src, atom.trg)]
    return {term.name: term for term in terms if isinstance(term, Variable)}


def _sorted(values: Iterable[tuple[str, Variable]]) -> Values:
    return tuple(sorted(values, key=lambda pair: pair[0]))
