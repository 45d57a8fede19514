"""The rules that every regular query must follow, in either language.

- A head is defined by rules of one arity. That is two, but for `Answer`, and for the only result.
- Every head variable is bound by the body.
- All rules of a head name the same properties; what a body names of a head is one of them. Every variable that is
  compared or returned as a value is bound.
- The steps of a path in order of time are edges with a time: labels, or heads whose rules are single edges; tuples
  (`STREAM … TUPLES`) are not.
- Rules are not recursive, and at most `MAX_NESTING` of them build on one another.
- A path name is used once and differs from every head, but for the head of its definition, a rule that is nothing but
  this path: `AP(x, y) <- a+(x, y) as AP.` Other rules may then name the same path.
- A rule that returns a path (`Rule.path`) names an atom of its body with the head's ends.
- A head `v.label` is a label of the view v, so v is not the name of a stream as well. Apart from that a
  stream's label may be spelled like a head: a bare name is then the head, and the label is written `stream.label`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from meander.errors import QueryError, Span
from meander.syntax.expressions import MAX_NESTING
from meander.syntax.printing import short_list, term_text
from meander.syntax.query import (
    Atom,
    Label,
    PathExpr,
    PathOrder,
    RegularQuery,
    Rule,
    Variable,
    heads_of,
    labels_of,
    single_edge,
)
from meander.syntax.sources import another_window_hint
from meander.syntax.values import TIME_PROPERTY, refs


def check_query(query: RegularQuery, text: str = "") -> RegularQuery:
    """The query itself; raises `QueryError`, with the position marked in `text`, if it is not well formed."""
    for check in (
        _check_streams,
        _check_results,
        _check_arities,
        _check_values,
        _check_bindings,
        _check_paths,
        _check_recursion,
        _check_orders,
        _check_wildcards,
    ):
        check(query, text)
    return query


def _check_streams(query: RegularQuery, text: str) -> None:
    seen: set[str] = set()
    for stream in query.streams:
        if stream.name in seen:
            raise QueryError(
                f"the stream {stream.name} is declared twice",
                text=text,
                span=stream.span,
                hint=another_window_hint(stream.name),
            )
        seen.add(stream.name)
        for what, size in (("window", stream.window), ("slide", stream.slide)):
            if size < 1:
                raise QueryError(
                    f"the {what} of {stream.name} is {size}",
                    text=text,
                    span=stream.span,
                    hint=f"a {what} is a length of time above zero",
                )
    heads = set(heads_of(query))
    for rule in query.rules:
        view, dot, label = rule.head.partition(".")
        if dot and view in seen:
            raise QueryError(
                f"the head {rule.head} is spelled like a label of the stream {view}",
                text=text,
                span=rule.span,
                hint=f"a head with a dot is a label of a view: choose a name other than {view}, or write {label}",
            )
        for atom in rule.body:
            for used in labels_of(atom.expr):
                if used.name not in heads if used.stream is None else used.stream not in seen:
                    raise QueryError(
                        f"{used} is neither a head nor a label of a stream",
                        text=text,
                        span=used.span,
                        hint=f"heads are {short_list(heads)}; streams are {short_list(seen)}",
                    )


def _check_results(query: RegularQuery, text: str) -> None:
    if not query.rules:
        raise QueryError("the query has no rule", hint="add one, such as: Answer(x, y) <- follows+(x, y).")
    heads = heads_of(query)
    if not query.results or len(set(query.results)) != len(query.results):
        raise QueryError("a query has one result or several, each named once", text=text)
    for result in query.results:
        if result not in heads:
            raise QueryError(f"unknown result {result}", text=text, hint=f"heads are {short_list(heads)}")


def _check_arities(query: RegularQuery, text: str) -> None:
    first: dict[str, Rule] = {}
    for rule in query.rules:
        earlier = first.setdefault(rule.head, rule)
        if len(earlier.args) != len(rule.args):
            raise QueryError(
                f"{rule.head} has {_count(len(rule.args), 'argument')} here and {len(earlier.args)} before",
                text=text,
                span=rule.span,
                hint="all rules of one head have the same number of arguments",
            )
        any_arity = rule.head == "Answer" or query.results == (rule.head,)
        if len(rule.args) != 2 and not any_arity:
            raise QueryError(
                f"{rule.head} has {_count(len(rule.args), 'argument')}; a head has two",
                text=text,
                span=rule.span,
                hint="a head stands for an edge from its first argument to its second; "
                "only Answer, or a last head that is the result, may have fewer or more",
            )
    for rule in query.rules:
        for atom in rule.body:
            for label in labels_of(atom.expr):
                if label.stream is None and len(first[label.name].args) != 2:
                    raise QueryError(
                        f"{label.name} has {_count(len(first[label.name].args), 'argument')}, so it is not an edge",
                        text=text,
                        span=label.span,
                        hint="only heads with two arguments can be used in a body",
                    )


def _check_bindings(query: RegularQuery, text: str) -> None:
    for rule in query.rules:
        vertices = dict.fromkeys(
            term.name for atom in rule.body for term in (atom.src, atom.trg) if isinstance(term, Variable)
        )
        values = {variable.name: name for atom in rule.body for name, variable in atom.values}
        for variable in rule.args:
            span = variable.span or rule.span
            if variable.name in vertices:
                continue
            if variable.name in values:
                raise QueryError(
                    f"{variable.name} is a value, and {rule.head} stands for an edge between vertices",
                    text=text,
                    span=span,
                    hint=f"name the value, after the vertices: {rule.head}(x, y, "
                    f"{values[variable.name]}: {variable.name})",
                )
            raise QueryError(
                f"the variable {variable.name} of {rule.head} is not bound",
                text=text,
                span=span,
                hint=f"bound are {short_list(vertices)}: use one of them, "
                f"or add an edge or path with {variable.name}"
                + (
                    f"; a path has a name: follows+(x, y) as {variable.name}"
                    if variable in rule.args[2:]
                    else ""
                ),
            )
        for name, variable in rule.values:
            if variable.name in vertices:
                raise QueryError(
                    f"{variable.name} is a vertex, and {name} a value",
                    text=text,
                    span=variable.span or rule.span,
                    hint=f"a vertex is an argument: {rule.head}(…, {variable.name}); a value is a property that "
                    "an edge of the body binds",
                )
            if variable.name not in values:
                raise QueryError(
                    f"the value {variable.name} of {rule.head} is not bound",
                    text=text,
                    span=variable.span or rule.span,
                    hint=_bind_hint(variable.name, values),
                )
        for ref in refs(rule.predicate):
            if ref.name not in vertices and ref.name not in values:
                raise QueryError(
                    f"the variable {ref.name} is compared, and not bound",
                    text=text,
                    span=ref.span if rule.span is not None else None,
                    hint=_bind_hint(str(ref.name), values),
                )


def _bind_hint(name: str, values: Mapping[str, str]) -> str:
    """How to bind a variable to a value; `values` are the variables that are, with their properties."""
    bound = next((variable for variable, prop in values.items() if prop == name), None)
    if bound is not None:
        return f"the property {name} is bound to {bound}: compare {bound}"
    return f"bind it in an atom, as the property amount is here: transfer(x, y, amount: {name})" + (
        f"; bound values are {short_list(values)}" if values else ""
    )


def _check_values(query: RegularQuery, text: str) -> None:
    first: dict[str, Rule] = {}
    for rule in query.rules:
        earlier = first.setdefault(rule.head, rule)
        if _value_names(rule) != _value_names(earlier):
            raise QueryError(
                f"{rule.head} has {_properties(rule)} here and {_properties(earlier)} before",
                text=text,
                span=rule.span,
                hint="all rules of one head name the same properties",
            )
    for rule in query.rules:
        for atom in rule.body:
            for label in labels_of(atom.expr):
                if label.stream is not None:
                    continue
                if label.vertex:
                    raise QueryError(
                        f"{label.name} is an edge, and has two ends",
                        text=text,
                        span=atom.span,
                        hint=f"only a label of vertices stands before a single argument: {label.name}(x, y)",
                    )
                known = _value_names(first[label.name])
                used = [(str(ref.name), ref.span) for ref in refs(label.predicate)]
                used += [(name, variable.span) for name, variable in atom.values]
                for name, span in used:
                    if name not in known:
                        raise _no_property(label.name, name, known, text, span if rule.span else None)


def _no_property(head: str, name: str, known: list[str], text: str, span: Span | None) -> QueryError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"its properties are {short_list(known)}" + (f"; did you mean {close[0]}?" if close else "")
    if not known:
        hint = f"name the property in the head of each of its rules: {head}(x, y, {name}: v) <- …"
    if name == TIME_PROPERTY:
        hint = (
            f"a derived edge has no time of its own; its rules can return one: {head}(x, y, at: t) <- … ts: t"
        )
    return QueryError(f"{head} has no property {name}", text=text, span=span, hint=hint)


def _value_names(rule: Rule) -> list[str]:
    """The names of a rule's values, its paths included."""
    return sorted(name for name, _ in (*rule.values, *rule.paths))


def _properties(rule: Rule) -> str:
    names = _value_names(rule)
    return f"the properties {short_list(names)}" if names else "no properties"


def _check_orders(query: RegularQuery, text: str) -> None:
    """The steps of a path in order of time have a time: edges of streams, and heads that select such edges."""
    rules: dict[str, list[Rule]] = {}
    for rule in query.rules:
        rules.setdefault(rule.head, []).append(rule)

    def derived(label: Label) -> Rule | None:
        for rule in rules[label.name] if label.stream is None else ():
            edge = single_edge(rule)
            if edge is None:
                return rule
            assert isinstance(edge.expr, Label)
            below = derived(edge.expr)
            if below is not None:
                return below
        return None

    tuples = {stream.name for stream in query.streams if stream.is_tuples}

    def read_from(label: Label) -> str:
        """The stream of tuples that a label with a time reads, or ""."""
        if label.stream is not None:
            return label.stream if label.stream in tuples else ""
        edges = (single_edge(rule) for rule in rules[label.name])
        found = (read_from(edge.expr) for edge in edges if edge and isinstance(edge.expr, Label))
        return next(filter(None, found), "")

    for rule in query.rules:
        for atom in rule.body:
            for label in labels_of(atom.expr) if atom.order else ():
                below = derived(label)
                if below is None and (stream := read_from(label)):
                    raise QueryError(
                        f"{label.name} has no single time, so its paths have no order: {stream} has TUPLES",
                        text=text,
                        span=label.span,
                        hint="one tuple may have several records, and the ts of a record says since when it is known "
                        "to hold until exp; paths in order of time follow the edges of a STREAM with a WINDOW",
                    )
                if below is not None:
                    raise QueryError(
                        f"{label.name} has no single time, so its paths have no order",
                        text=text,
                        span=label.span,
                        hint=f"a step of a path that is {atom.order} is a label, or a head whose rules are each "
                        f"a single edge; {below.head} is not",
                    )


def _check_wildcards(query: RegularQuery, text: str) -> None:
    for rule in query.rules:
        for atom in rule.body:
            is_edge = isinstance(atom.expr, Label) and atom.name is None and not atom.order
            for label in () if is_edge else labels_of(atom.expr):
                if label.is_any:
                    raise QueryError(
                        "a path follows edges of named labels",
                        text=text,
                        span=label.span or atom.span,
                        hint="write the labels as alternatives, (a|b|c)+(x, y), or give the edges a head: "
                        f"Any(u, v) <- {label.stream}.*(u, v). … Any+(x, y)",
                    )


def _check_paths(query: RegularQuery, text: str) -> None:
    defined = _defined_paths(query)
    heads = set(heads_of(query))
    seen: set[str] = set()
    for rule in query.rules:
        for atom in rule.body:
            if atom.name is None or (atom.expr, atom.order) == defined.get(atom.name):
                continue
            if atom.name in seen or atom.name in defined:
                raise QueryError(
                    f"the path name {atom.name} is used twice",
                    text=text,
                    span=_name_span(atom),
                    hint="each path has a name of its own, or none",
                )
            if atom.name in heads:
                raise QueryError(
                    f"the path name {atom.name} is the name of a head as well",
                    text=text,
                    span=_name_span(atom),
                    hint="choose another name for the path",
                )
            seen.add(atom.name)
        if rule.path is not None:
            named = {atom.name: atom for atom in rule.body if atom.name is not None}
            if rule.path not in named:
                raise QueryError(
                    f"the body of {rule.head} has no path named {rule.path}",
                    text=text,
                    span=rule.span,
                    hint=f"it names {short_list(named)}"
                    if named
                    else f"name one of its paths: … as {rule.path}",
                )
            atom = named[rule.path]
            if (atom.src, atom.trg) != rule.args:
                src, trg = term_text(atom.src), term_text(atom.trg)
                raise QueryError(
                    f"{rule.head} does not have the ends of its path {rule.path}",
                    text=text,
                    span=rule.span,
                    hint=f"{rule.head} must lead as its path does, from {src} to {trg}",
                )


def _defined_paths(query: RegularQuery) -> dict[str, tuple[PathExpr, PathOrder]]:
    """By name, the paths whose definitions are rules of the query."""
    rules: dict[str, list[Rule]] = {}
    for rule in query.rules:
        rules.setdefault(rule.head, []).append(rule)
    defined = {}
    for head, [rule, *others] in rules.items():
        atom = rule.body[0]
        alone = not others and len(rule.body) == 1 and rule.predicate is None and rule.path is None
        if alone and atom.name == head and rule.args == (atom.src, atom.trg) and atom.src != atom.trg:
            defined[head] = atom.expr, atom.order
    return defined


def _name_span(atom: Atom) -> Span | None:
    """The end of the atom, where its path name stands."""
    if atom.span is None or atom.name is None:
        return atom.span
    return Span(max(atom.span.start, atom.span.end - len(atom.name)), atom.span.end)


def _check_recursion(query: RegularQuery, text: str) -> None:
    uses: dict[str, dict[str, Label]] = {head: {} for head in heads_of(query)}
    for rule in query.rules:
        for atom in rule.body:
            for label in labels_of(atom.expr):
                if label.stream is None:
                    uses[rule.head].setdefault(label.name, label)

    def hint(cycle: list[str]) -> str:
        if len(cycle) > 2 or not query.streams:
            return "a repetition is written as a path expression: a+(x, y) for one step of a or more"
        head, stream = cycle[0], query.streams[0].name
        return f"a repetition is written as a path expression; a label {head} of a stream is written {stream}.{head}"

    check_acyclic(uses, "rules", hint, text)


def check_acyclic(
    uses: Mapping[str, Mapping[str, Label]], what: str, hint: Callable[[list[str]], str], text: str
) -> None:
    """Refuse names that use one another in a cycle, or in a chain of more than `MAX_NESTING`.

    `uses` maps every name to the names that it uses, each with its label in the text.
    The search is depth first, without recursion.
    """
    depth: dict[str, int] = {}
    for start in uses:
        if start in depth:
            continue
        trail = {start: iter(uses[start].values())}
        while trail:
            name = next(reversed(trail))
            label = next(trail[name], None)
            if label is None:
                del trail[name]
                depth[name] = 1 + max((depth[used] for used in uses[name]), default=0)
                if depth[name] > MAX_NESTING:
                    raise QueryError(
                        f"more than {MAX_NESTING} {what} build on one another, up to {name}",
                        text=text,
                        span=next(iter(uses[name].values())).span,
                        hint="write some of them as one path expression, or one longer pattern",
                    )
            elif label.name in trail:
                names = list(trail)
                cycle = [*names[names.index(label.name) :], label.name]
                raise QueryError(
                    f"the {what} are recursive: {_shortened_cycle(cycle)}",
                    text=text,
                    span=label.span,
                    hint=hint(cycle),
                )
            elif label.name not in depth:
                trail[label.name] = iter(uses[label.name].values())


def _shortened_cycle(cycle: list[str]) -> str:
    shown = cycle if len(cycle) <= 12 else [*cycle[:6], "…", *cycle[-5:]]
    return " → ".join(shown)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
