"""Datalog: text to syntax tree to regular query.

The tree gives statements in which a label is as written, `Label(name, qualifier)`. Resolution then decides
what each one means: `v.label` is a head if there is one of that name (a label of a view), else a label of the
stream v; a bare name is a head if there is one, else a label of the only stream.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from lark import Token, v_args
from lark.tree import Meta

from meander.errors import QueryError, Span
from meander.syntax.checks import check_query
from meander.syntax.expressions import DURATION_HINT, Expression, Name, TreeBuilder
from meander.syntax.parsing import Language, TextErrors, read, span_of
from meander.syntax.printing import short_list
from meander.syntax.query import (
    Atom,
    Constant,
    Label,
    RegularQuery,
    Rule,
    Term,
    Variable,
    implied_result,
    map_labels,
)
from meander.syntax.sources import SourceClause, Sources

DATALOG = Language(
    name="Datalog",
    form="STREAM s WINDOW 24h  Answer(x, y) <- likes(x, z), follows+(z, y) as P.",
    grammar="datalog.lark",
    keywords=("STREAM", "WINDOW", "SLIDE", "RESULT", "as"),
    hints=(
        ("DOT", "COLON", "a head and its body are separated by <-"),
        ("DOT", "", "a rule ends with a full stop, and its atoms are separated by commas"),
        ("DURATION", "", DURATION_HINT),
    ),
)


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """`name` or `qualifier.name`."""

    name: str
    qualifier: str | None
    span: Span

    def __str__(self) -> str:
        return self.name if self.qualifier is None else f"{self.qualifier}.{self.name}"


@dataclass(frozen=True, slots=True)
class Results:
    """`RESULT a, b`."""

    symbols: tuple[QualifiedName, ...]
    span: Span


Statement = SourceClause | Results | Rule
"""A rule at this stage has labels as written: `stream` holds the qualifier."""


def parse_datalog(
    text: str, *, unit: str = "s", views: Mapping[str, RegularQuery] | None = None
) -> RegularQuery:
    """The regular query of a Datalog text; raises `QueryError`, with the position marked, if it is not one."""
    statements = _DatalogBuilder(text, unit).build(read(DATALOG, text))
    return _Resolver(text, views or {}).resolve(statements)


class _DatalogBuilder(TreeBuilder[list[Statement]]):
    """Syntax tree to statements."""

    def start(self, statements: list[Statement]) -> list[Statement]:
        return statements

    @v_args(meta=True, inline=True)
    def stream(
        self, meta: Meta, keyword: Token, name: Name, window: int | None, slide: int | None
    ) -> SourceClause:
        self.check_dotless("stream", name)
        return SourceClause(name, window, slide, span_of(meta))

    @v_args(meta=True)
    def result(self, meta: Meta, parts: list[QualifiedName]) -> Results:
        return Results(tuple(parts[1:]), span_of(meta))

    @v_args(meta=True, inline=True)
    def symbol(self, meta: Meta, first: Name, second: Name | None) -> QualifiedName:
        if second is None:
            return QualifiedName(first.value, None, span_of(meta))
        return QualifiedName(second.value, first.value, span_of(meta))

    @v_args(inline=True)
    def label(self, symbol: QualifiedName) -> Expression:
        return Expression(Label(symbol.name, symbol.qualifier, symbol.span), symbol.span)

    def terms(self, terms: list[Term | None]) -> tuple[Term, ...]:
        return tuple(term for term in terms if term is not None)

    @v_args(inline=True)
    def path_name(self, keyword: Token, name: Name) -> Name:
        return name

    @v_args(meta=True, inline=True)
    def head(self, meta: Meta, symbol: QualifiedName, terms: tuple[Term, ...], path: Name | None) -> Rule:
        args = []
        for term in terms:
            if isinstance(term, Constant):
                raise self.error(
                    "a head takes variables, not vertices",
                    term.span,
                    "let the body bind a variable to it, as a{0} does (the path without a step): "
                    f"{symbol}(v, y) <- a(v, y), a{{0}}({self.text[_slice_of(term.span)]}, v).",
                )
            if term.name == "_":
                raise self.error(
                    "_ stands for a variable that is not used, so a head cannot have it",
                    term.span,
                    "give the variable a name, in the body as well",
                )
            args.append(term)
        return Rule(str(symbol), tuple(args), (), None if path is None else path.value, span_of(meta))

    @v_args(meta=True, inline=True)
    def atom(self, meta: Meta, expression: Expression, terms: tuple[Term, ...], path: Name | None) -> Atom:
        if len(terms) != 2:
            raise self.error(
                f"an atom has two arguments, this one has {len(terms)}",
                span_of(meta),
                "an edge or a path leads from one vertex to another: follows(x, y)",
            )
        return Atom(expression.expr, terms[0], terms[1], None if path is None else path.value, span_of(meta))

    def rule(self, parts: list[Rule | Atom]) -> Rule:
        head = parts[0]
        assert isinstance(head, Rule)
        body = [part for part in parts[1:] if isinstance(part, Atom)]
        return replace(head, body=_name_anonymous(head, body))


def _slice_of(span: Span | None) -> slice:
    return slice(0, 0) if span is None else slice(span.start, span.end)


def _name_anonymous(head: Rule, body: list[Atom]) -> tuple[Atom, ...]:
    """The body with each `_` replaced by a variable that occurs nowhere else in the rule."""
    terms = [*head.args, *(term for atom in body for term in (atom.src, atom.trg))]
    taken = {term.name for term in terms if isinstance(term, Variable)}
    names = (name for number in count(1) if (name := f"_{number}") not in taken)

    def named(term: Term) -> Term:
        return replace(term, name=next(names)) if isinstance(term, Variable) and term.name == "_" else term

    return tuple(replace(atom, src=named(atom.src), trg=named(atom.trg)) for atom in body)


class _Resolver(TextErrors):
    """Statements to regular query: what each name means."""

    def __init__(self, text: str, views: Mapping[str, RegularQuery]) -> None:
        self.text = text
        self.sources = Sources(text, views, keyword="STREAM", window="WINDOW 24h", slide="SLIDE 1h")
        self.declared: dict[str, None] = {}
        self.heads: set[str] = set()
        self.paths: set[str] = set()

    def resolve(self, statements: list[Statement]) -> RegularQuery:
        spliced: list[Rule] = []
        for statement in statements:
            if isinstance(statement, SourceClause):
                spliced += self.declare(statement)
        written = [statement for statement in statements if isinstance(statement, Rule)]
        if not written:
            raise QueryError(
                "the query has no rule",
                text=self.text,
                span=Span(len(self.text.rstrip()), len(self.text.rstrip())),
                hint="add one, such as: Answer(x, y) <- follows+(x, y).",
            )
        self.heads = {rule.head for rule in (*spliced, *written)}
        self.paths = {atom.name for rule in written for atom in rule.body if atom.name is not None}
        rules = (*spliced, *(self.resolve_rule(rule) for rule in written))
        results = self.results([s for s in statements if isinstance(s, Results)], written)
        return check_query(RegularQuery(tuple(self.sources.streams.values()), rules, results), self.text)

    def declare(self, clause: SourceClause) -> tuple[Rule, ...]:
        name = clause.name.value
        if name in self.declared:
            raise self.error(
                f"{name} is declared twice", clause.name.span, "a stream has one window in a query"
            )
        self.declared[name] = None
        return self.sources.declare(clause)

    def resolve_rule(self, rule: Rule) -> Rule:
        view = rule.head.partition(".")[0]
        if view != rule.head and view in self.declared:
            raise self.error(
                f"the labels of {view} are not defined here",
                rule.span,
                f"{view} is read by this query, so its labels stand in bodies alone; choose another head",
            )
        body = tuple(replace(atom, expr=map_labels(atom.expr, self.resolve_label)) for atom in rule.body)
        return replace(rule, body=body)

    def resolve_label(self, label: Label) -> Label:
        symbol = str(label)
        if symbol in self.heads:
            return Label(symbol, None, label.span)
        if label.stream is not None:
            return self.label_of(label.stream, label)
        if label.name in self.paths:
            raise self.error(
                f"{label.name} names a path, not a predicate",
                label.span,
                f"give the path a rule of its own, {label.name}(x, y) <- …, and leave out the name",
            )
        if len(self.declared) == 1:
            return self.label_of(next(iter(self.declared)), label)
        if not self.declared:
            raise self.error(
                f"{label.name} belongs to no stream, since none is declared",
                label.span,
                "begin with a stream and its window, such as: STREAM social WINDOW 24h SLIDE 1h",
            )
        written = ", ".join(f"{source}.{label.name}" for source in list(self.declared)[:10])
        raise self.error(
            f"{label.name} could be of any of the streams {short_list(self.declared)}",
            label.span,
            f"name its stream: {written}" + (self.nearest(label.name, self.heads) or ""),
        )

    def label_of(self, source: str, label: Label) -> Label:
        if source in self.declared:
            return self.sources.label(label, source)
        raise self.error(
            f"unknown stream {source}",
            label.span,
            f"streams are {short_list(self.declared)}{self.nearest(source, self.declared)}",
        )

    def nearest(self, name: str, known: Iterable[str]) -> str:
        close = difflib.get_close_matches(name, list(known), n=1)
        return f"; did you mean {close[0]}?" if close else ""

    def results(self, clauses: list[Results], rules: list[Rule]) -> tuple[str, ...]:
        if not clauses:
            return (implied_result(rules),)
        if len(clauses) > 1:
            raise self.error("RESULT is given twice", clauses[1].span, "name all results in one: RESULT a, b")
        names = []
        for symbol in clauses[0].symbols:
            name = str(symbol)
            if name not in self.heads:
                raise self.error(
                    f"unknown result {name}",
                    symbol.span,
                    f"heads are {short_list(sorted(self.heads))}{self.nearest(name, self.heads)}",
                )
            if name in names:
                raise self.error(f"the result {name} is named twice", symbol.span, "name each result once")
            names.append(name)
        return tuple(names)
