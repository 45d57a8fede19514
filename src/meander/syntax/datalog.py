"""Datalog: text to syntax tree to regular query.

The tree gives statements in which a label is as written, `Label(name, qualifier)`. Resolution then decides
what each one means: `v.label` is a head if there is one of that name (a label of a view), else a label of the
stream v; a bare name is a head if there is one, else a path if one has this name, else a label of the only stream.

A path whose name is used as a predicate, `a+(x, y) as AP` in one rule and `AP(x, y)` in another, has a rule of its
own: all paths of its expression, as the paper's SGQParser has it, wherever it is joined with in its own rule.

    AP(x, y) <- a+(x, y) as AP.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, pairwise

from lark import Token, v_args
from lark.tree import Meta

from meander.errors import QueryError, Span
from meander.syntax.checks import check_query
from meander.syntax.conditions import TRUTHS, Condition, ConditionBuilder, Declared, Part, Tuples
from meander.syntax.expressions import DURATION_HINT, Expression, Name
from meander.syntax.foreign import IN_DATALOG
from meander.syntax.parsing import Language, TextErrors, read, span_of
from meander.syntax.path_values import resolve_paths
from meander.syntax.printing import short_list
from meander.syntax.query import (
    Atom,
    Constant,
    Label,
    PathOrder,
    RegularQuery,
    Rule,
    Term,
    Variable,
    implied_result,
    map_labels,
)
from meander.syntax.sources import SourceClause, Sources, another_window_hint
from meander.syntax.types import KnownTypes, infer_types
from meander.syntax.values import (
    TIME_PROPERTY,
    Comparison,
    Const,
    Predicate,
    Ref,
    ValueType,
    conjunction,
    refs,
)

_QUOTATIONS = r""""(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'|`(?:[^`\r\n]|``)*`"""
_BRACKETS = rf"""\[(?:[^\[\]"'`]|{_QUOTATIONS}|\[[^\[\]]*\])*\]"""
_SKIPPED = rf"""[^\[\],.%#"'`<>=!]|(?<=\w)\.(?=\w)|[%#][^\n]*|{_QUOTATIONS}|{_BRACKETS}"""
_OPERATOR = r"""[>=!]|<(?!-(?!\d))|(?<=[\s)"'])in\s*\[|(?<=[\s)])(?:and|or)\s+[^\W\d]"""
_NAME = r"(?:[^\W\d]\w*|`(?:[^`\r\n]|``)+`)"
_ALONE = rf"(?:not\s+)?(?:\(\s*)*{_NAME}(?:\s*\))*\s*(?:,|\.(?![\w*`]))|not\s+{_NAME}"
_COMPARES = rf"(?=\s*+(?:(?:{_SKIPPED})+(?:{_OPERATOR})|{_ALONE}))"
"""What follows is a comparison: there is an operator before the next comma or full stop, or a name alone, which is
that of a BOOL, or `not` before a name.

A label and a variable look alike, and `a*(x, y)` is a path where `a*(x) > 5` compares, so that a parser with one
token of lookahead cannot tell them apart. The brackets of step predicates, quotations and comments are skipped, and
so is a dot within a name or a number.
"""

DATALOG = Language(
    name="Datalog",
    form="STREAM s WINDOW 24h  Answer(x, y) <- likes(x, z), follows+(z, y) as P.",
    grammars=("lexical.lark", "predicates.lark", "datalog.lark"),
    starts=("start", "condition"),
    keywords=(
        "STREAM",
        "TABLE",
        "TUPLES",
        "FROM",
        "WINDOW",
        "SLIDE",
        "RESULT",
        "as",
        "strictly",
        "ascending",
    ),
    hints=(
        ("_ARROW", "COLON", "a rule is written head <- body"),
        ("VBAR", "LSQB", "only a label has a predicate: write (a[w > 5]/b[w > 5])(x, y), each with its own"),
        ("DOT", "", "a rule ends with a full stop, and its atoms are separated by commas"),
        ("DURATION", "", DURATION_HINT),
    ),
    foreign=IN_DATALOG,
    terminals=f"_COMPARISON_ARROW.3: /(?:<-|:-|←){_COMPARES}/i\n_COMPARISON_COMMA.3: /,{_COMPARES}/i\n",
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
class NamedTerm:
    """`property: variable`, or with a literal."""

    name: Name
    value: Variable | Const
    span: Span


@dataclass(frozen=True, slots=True)
class Results:
    """`RESULT a, b`."""

    symbols: tuple[QualifiedName, ...]
    span: Span


Statement = SourceClause | Results | Rule
"""A rule at this stage has labels as written: `stream` holds the qualifier."""


def parse_datalog(
    text: str,
    *,
    unit: str = "s",
    views: Mapping[str, RegularQuery] | None = None,
    types: KnownTypes | None = None,
) -> RegularQuery:
    """The regular query of a Datalog text; raises `QueryError`, with the position marked, if it is not one."""
    statements = _DatalogBuilder(text, unit).build(read(DATALOG, text))
    return _Resolver(text, views or {}, unit, types).resolve(statements)


def parse_condition(text: str, *, unit: str = "s") -> Predicate:
    """A predicate alone: `amount > 1000 and not currency = "EUR"`. Its names have no types yet."""
    tree = read(DATALOG, text, start="condition")
    return _PredicateBuilder(text, unit).build(tree).predicate


class _PredicateBuilder(ConditionBuilder[Condition]):
    """The tree of a predicate alone."""


class _DatalogBuilder(ConditionBuilder[list[Statement]]):
    """Syntax tree to statements."""

    def start(self, statements: list[Statement]) -> list[Statement]:
        return statements

    # -- streams and tables

    @v_args(meta=True, inline=True)
    def stream(
        self,
        meta: Meta,
        keyword: Token,
        name: Name,
        properties: Declared | None,
        tuples: Tuples | None,
        origin: Name | None,
        window: int | None,
        slide: int | None,
    ) -> SourceClause:
        self.check_dotless("stream", name)
        return self.stream_clause(name, properties, tuples, (window, slide), span_of(meta), origin)

    @v_args(inline=True)
    def origin(self, keyword: Token, name: Name) -> Name:
        return name

    @v_args(meta=True, inline=True)
    def table(
        self,
        meta: Meta,
        keyword: Token,
        name: Name,
        properties: Declared | None,
        window: int | None,
        slide: int | None,
    ) -> SourceClause:
        self.check_dotless("table", name)
        self.check_window(True, name, window or slide, span_of(meta))
        return SourceClause(name, None, None, span_of(meta), properties, is_table=True)

    # -- rules

    @v_args(meta=True)
    def result(self, meta: Meta, parts: list[QualifiedName]) -> Results:
        return Results(tuple(parts[1:]), span_of(meta))

    @v_args(meta=True, inline=True)
    def symbol(self, meta: Meta, first: Name, second: Name | None) -> QualifiedName:
        if second is None:
            return QualifiedName(first.value, None, span_of(meta))
        return QualifiedName(second.value, first.value, span_of(meta))

    @v_args(meta=True, inline=True)
    def any_label(self, meta: Meta, stream: Name, star: Token) -> QualifiedName:
        return QualifiedName("", stream.value, span_of(meta))

    @v_args(inline=True)
    def label(self, symbol: QualifiedName, condition: Condition | None) -> Expression:
        predicate = None if condition is None else condition.predicate
        for ref in refs(predicate):
            assert ref.span is not None
            self.check_property(Name(str(ref.name), ref.span))
        return Expression(Label(symbol.name, symbol.qualifier, symbol.span, predicate), symbol.span)

    def terms(self, terms: list[Term | NamedTerm | None]) -> tuple[Term | NamedTerm, ...]:
        present = tuple(term for term in terms if term is not None)
        for before, term in pairwise(present):
            if isinstance(before, NamedTerm) and not isinstance(term, NamedTerm):
                raise self.error(
                    "a vertex stands before the properties", term.span, "write a(x, y, amount: m)"
                )
        self.check_distinct(term.name for term in present if isinstance(term, NamedTerm))
        return present

    @v_args(inline=True)
    def quoted_variable(self, token: Token) -> Variable:
        """A path may have any name, that of a view's path has a dot."""
        return Variable(self.unquoted(token).value, span_of(token))

    @v_args(meta=True, inline=True)
    def named(self, meta: Meta, name: Name, given: Variable | Part) -> NamedTerm:
        self.check_property(name)
        value = given if isinstance(given, Variable) else given.node
        assert isinstance(value, Variable | Const)
        if isinstance(value, Variable) and value.name in TRUTHS:
            value = Const(TRUTHS[value.name], ValueType.BOOL, value.span)
        return NamedTerm(name, value, span_of(meta))

    @v_args(inline=True)
    def path_name(self, keyword: Token, name: Name) -> Name:
        return name

    @v_args(inline=True)
    def order(self, strictly: Token | None, ascending: Token) -> PathOrder:
        return PathOrder.ASCENDING if strictly is None else PathOrder.STRICTLY_ASCENDING

    @v_args(meta=True, inline=True)
    def head(
        self, meta: Meta, symbol: QualifiedName, terms: tuple[Term | NamedTerm, ...], path: Name | None
    ) -> Rule:
        args, values = [], []
        for term in terms:
            value = term.value if isinstance(term, NamedTerm) else term
            if isinstance(value, Variable) and value.name == "_":
                raise self.error(
                    "_ stands for a variable that is not used, so a head cannot have it",
                    term.span,
                    "give the variable a name, in the body as well",
                )
            if isinstance(value, Constant):
                raise self.error(
                    "a head takes variables, not vertices",
                    term.span,
                    f"compare a variable with it: {symbol}(v, y) <- a(v, y), v = {self.text[_slice_of(term.span)]}.",
                )
            if isinstance(value, Const):
                raise self.error(
                    "a head takes variables, not values",
                    term.span,
                    "name a variable that the body binds to a property: a(x, y, amount: m)",
                )
            if isinstance(term, NamedTerm):
                if term.name.value == TIME_PROPERTY:
                    raise self.error(
                        "a derived edge has no ts of its own",
                        term.span,
                        f"return the time under another name: at: {value.name}",
                    )
                values.append((term.name.value, value))
            else:
                args.append(value)
        name = None if path is None else path.value
        values.sort(key=lambda pair: pair[0])
        return Rule(str(symbol), tuple(args), (), name, span_of(meta), tuple(values))

    @v_args(meta=True, inline=True)
    def atom(
        self,
        meta: Meta,
        expression: Expression,
        terms: tuple[Term | NamedTerm, ...],
        path: Name | None,
        order: PathOrder | None,
    ) -> Atom:
        ends = [term for term in terms if not isinstance(term, NamedTerm)]
        named = [term for term in terms if isinstance(term, NamedTerm)]
        expr = expression.expr
        is_path = path is not None or order is not None or not isinstance(expr, Label)
        if len(ends) == 1 and is_path:
            raise self.error(
                "a path has two ends",
                span_of(meta),
                "an atom of one argument is a vertex with its label: account(x); a path leads from one vertex "
                "to another: follows+(x, y)",
            )
        # What stands after the ends may be paths of a head, each under its own name.
        ends, paths = ends[:2], ends[2:]
        named_paths = [term for term in paths if isinstance(term, Variable) and term.name != "_"]
        if not ends or len(named_paths) < len(paths) or (paths and is_path):
            raise self.error(
                f"an atom has two arguments, this one has {len(ends) + len(paths)}",
                span_of(meta),
                "an edge or a path leads from one vertex to another: follows(x, y)"
                + ("; a value is named: follows(x, y, since: t)" if paths else ""),
            )
        if named and is_path:
            raise self.error(
                "a path has no properties",
                named[0].span,
                "only an edge has: compare those of the path's edges in the expression, (a[amount > 5])+(x, y)",
            )
        if isinstance(expr, Label):
            literals = [
                Comparison("=", Ref(term.name.value, None, term.name.span), term.value)
                for term in named
                if isinstance(term.value, Const)
            ]
            expr = replace(expr, predicate=conjunction([expr.predicate, *literals]), vertex=len(ends) == 1)
        values = sorted(
            ((term.name.value, term.value) for term in named if isinstance(term.value, Variable)),
            key=lambda pair: pair[0],
        )
        return Atom(
            expr,
            ends[0],
            ends[-1],
            None if path is None else path.value,
            span_of(meta),
            tuple(values),
            order or PathOrder.ANY,
            tuple((term.name, term) for term in named_paths),
        )

    def rule(self, parts: list[Rule | Atom | Condition]) -> Rule:
        head = parts[0]
        assert isinstance(head, Rule)
        body = [part for part in parts[1:] if isinstance(part, Atom)]
        conditions = [part for part in parts[1:] if isinstance(part, Condition)]
        if not body:
            raise self.error(
                f"the body of {head.head} compares, and binds nothing",
                conditions[0].span,
                "add an edge or a path whose vertices and values are compared",
            )
        predicate = conjunction(part.predicate for part in conditions)
        return replace(head, body=_name_anonymous(head, body), predicate=predicate)


def _slice_of(span: Span | None) -> slice:
    return slice(0, 0) if span is None else slice(span.start, span.end)


def _name_anonymous(head: Rule, body: list[Atom]) -> tuple[Atom, ...]:
    """The body with each `_` replaced by a variable that occurs nowhere else in the rule."""
    terms = [*head.args, *(term for atom in body for term in (atom.src, atom.trg))]
    named_values = [*head.values, *(value for atom in body for value in (*atom.values, *atom.paths))]
    terms += [variable for _, variable in named_values]
    taken = {term.name for term in terms if isinstance(term, Variable)}
    names = (name for number in count(1) if (name := f"_{number}") not in taken)

    def named(term: Term) -> Term:
        return variable(term) if isinstance(term, Variable) else term

    def variable(term: Variable) -> Variable:
        return replace(term, name=next(names)) if term.name == "_" else term

    def changed(atom: Atom) -> Atom:
        src = named(atom.src)
        trg = src if atom.src is atom.trg else named(atom.trg)
        values = tuple((name, variable(term)) for name, term in atom.values)
        return replace(atom, src=src, trg=trg, values=values)

    return tuple(changed(atom) for atom in body)


def definition_of(path: Atom) -> Rule:
    """The rule of a path whose name is used as a predicate."""
    assert path.name is not None
    ends = Variable("x"), Variable("y")
    return Rule(path.name, ends, (replace(path, src=ends[0], trg=ends[1]),), None, path.span)


class _Resolver(TextErrors):
    """Statements to regular query: what each name means."""

    def __init__(
        self, text: str, views: Mapping[str, RegularQuery], unit: str, types: KnownTypes | None
    ) -> None:
        self.text = text
        self.unit = unit
        self.types = types
        self.sources = Sources(text, views, keyword="STREAM", window="WINDOW 24h", slide="SLIDE 1h")
        self.declared: dict[str, None] = {}
        self.heads: set[str] = set()
        self.paths: dict[str, Atom] = {}
        self.used_paths: dict[str, None] = {}

    def resolve(self, statements: list[Statement]) -> RegularQuery:
        spliced: list[Rule] = []
        for statement in statements:
            if isinstance(statement, SourceClause):
                spliced += self.declare(statement)
        self.sources.check_inputs()
        written = [statement for statement in statements if isinstance(statement, Rule)]
        if not written:
            raise QueryError(
                "the query has no rule",
                text=self.text,
                span=Span(len(self.text.rstrip()), len(self.text.rstrip())),
                hint="add one, such as: Answer(x, y) <- follows+(x, y).",
            )
        self.heads = {rule.head for rule in (*spliced, *written)}
        for atom in (atom for rule in written for atom in rule.body if atom.name is not None):
            self.paths.setdefault(str(atom.name), atom)
        resolved = [self.resolve_rule(rule) for rule in written]
        results = self.results([s for s in statements if isinstance(s, Results)], written)
        definitions: dict[str, Rule] = {}
        while unread := [name for name in self.used_paths if name not in definitions]:
            definitions |= {name: self.resolve_rule(definition_of(self.paths[name])) for name in unread}
        rules = (*spliced, *definitions.values(), *resolved)
        query = RegularQuery(tuple(self.sources.streams.values()), rules, results)
        query = check_query(resolve_paths(query, self.text), self.text)
        return infer_types(query, self.unit, self.text, self.types)

    def declare(self, clause: SourceClause) -> tuple[Rule, ...]:
        name = clause.name.value
        if name in self.declared:
            known = self.sources.streams.get(name)
            have_windows = clause.window is not None and known is not None and known.has_window
            hint = another_window_hint(name) if have_windows else "a name is declared once"
            raise self.error(f"{name} is declared twice", clause.name.span, hint)
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
        for atom in body:
            for name, variable in atom.values:
                if isinstance(atom.expr, Label) and atom.expr.stream is not None:
                    self.sources.check_property(atom.expr.stream, name, variable.span)
        return replace(rule, body=body)

    def resolve_label(self, label: Label) -> Label:
        symbol = str(label)
        if symbol in self.heads:
            return replace(label, name=symbol, stream=None)
        if label.stream is not None:
            return self.label_of(label.stream, label)
        if label.name in self.paths:
            self.used_paths[label.name] = None
            return replace(label, name=symbol, stream=None)
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
            if name not in self.heads and name in self.paths:
                self.used_paths[name] = None
            elif name not in self.heads:
                raise self.error(
                    f"unknown result {name}",
                    symbol.span,
                    f"heads are {short_list(sorted(self.heads))}{self.nearest(name, self.heads)}",
                )
            if name in names:
                raise self.error(f"the result {name} is named twice", symbol.span, "name each result once")
            names.append(name)
        return tuple(names)
