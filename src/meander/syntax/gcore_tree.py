"""G-CORE, first half: text to abstract syntax tree. What it means is left to `gcore_rules`.

In the expressions of this tree a `Label` has no stream yet: `stream` is None for `:a`, whose stream is the one
that its MATCH is ON, and `REFERENCE` for `~Name`, a PATH clause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lark import Token, v_args
from lark.tree import Meta

from meander.errors import Span
from meander.syntax.expressions import DURATION_HINT, Expression, Name, TreeBuilder
from meander.syntax.parsing import Language, read, span_of
from meander.syntax.query import Constant, Label, Term, Variable
from meander.syntax.sources import SourceClause

REFERENCE = "~"

GCORE = Language(
    name="G-CORE",
    form="CONSTRUCT (u)-[:x]->(v) MATCH (u)-[:a]->(v) ON s WINDOW(24h)",
    grammars=("lexical.lark", "gcore.lark"),
    keywords=(
        *("GRAPH", "VIEW", "AS", "PATH", "CONSTRUCT", "MATCH"),
        *("OPTIONAL", "ON", "WINDOW", "SLIDE", "WHERE", "AND"),
    ),
    hints=(
        ("EQUAL", "COLON", "vertices have no labels: write (u), and describe u by its edges"),
        ("TILDE", "NAME", "a label begins with a colon, a PATH clause with a tilde: :follows, ~RL"),
        ("TILDE", "MINUS", "an expression ends with >: -/p<:follows*>/->"),
        ("COLON", "NAME", "an edge has a label and no variable: -[:likes]->"),
        ("COLON", "", "an edge has a label: -[:likes]->"),
        ("AT", "", "a constructed path is one of MATCH's paths: -/@p:label/->, if MATCH has -/p<…>/->"),
        ("LESSTHAN", "COLON", "the expression of a path stands in angle brackets: -/<:follows*>/->"),
        ("LESSTHAN", "AT", "only CONSTRUCT has -/@p:label/->; in MATCH, a path is -/p<:follows*>/->"),
        ("ON", "", "a MATCH ends with its stream: ON social WINDOW(24h) SLIDE(1h)"),
        ("AND", "NAME", "conditions are joined by AND; alternatives are patterns, each with OPTIONAL"),
        ("DURATION", "", DURATION_HINT),
    ),
)


@dataclass(frozen=True, slots=True)
class VertexPattern:
    """`(u)`, `("alice")`, `(u = "alice")` or `()`."""

    variable: Variable | None
    constant: Constant | None
    span: Span


@dataclass(frozen=True, slots=True)
class StepPattern:
    """`-[:label]->` or `-/p<expression>/->`; `backwards` if the arrow points to the left."""

    expression: Expression
    variable: Variable | None
    backwards: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ConstructedPath:
    """In CONSTRUCT: `-/@p:label/->`, with p as `variable`."""

    label: Label
    variable: Variable
    backwards: bool
    span: Span


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """`(a)-[:x]->(b)<-[:y]-(c)`: a node more than steps."""

    nodes: tuple[VertexPattern, ...]
    steps: tuple[StepPattern, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One edge or path that CONSTRUCT makes, in the direction of its arrow."""

    src: VertexPattern
    trg: VertexPattern
    label: str
    path: Variable | None
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    """`MATCH mandatory OPTIONAL alternative … ON source`."""

    mandatory: tuple[GraphPattern, ...]
    alternatives: tuple[tuple[GraphPattern, ...], ...]
    source: SourceClause


@dataclass(frozen=True, slots=True)
class PathClause:
    """`PATH name = patterns`: the path leads from the first node of the first pattern to its last."""

    name: Name
    patterns: tuple[GraphPattern, ...]


@dataclass(frozen=True, slots=True)
class Equality:
    """`(u) = (v)` or `(u) = "alice"`."""

    left: Term
    right: Term
    span: Span


@dataclass(frozen=True, slots=True)
class GcoreQuery:
    """PATH clauses, CONSTRUCT, MATCHes and WHERE; `view` is the name of a GRAPH VIEW, None for a query."""

    paths: tuple[PathClause, ...]
    elements: tuple[Element, ...]
    matches: tuple[Match, ...]
    equalities: tuple[Equality, ...]
    span: Span
    view: Name | None = None


def parse_tree(text: str, unit: str) -> list[GcoreQuery]:
    """The queries of a G-CORE text, in order."""
    return _GcoreBuilder(text, unit).build(read(GCORE, text))


class _GcoreBuilder(TreeBuilder[list[GcoreQuery]]):
    def start(self, queries: list[GcoreQuery]) -> list[GcoreQuery]:
        return queries

    @v_args(inline=True)
    def view(self, graph: Token, view: Token, name: Name, as_: Token, query: GcoreQuery) -> GcoreQuery:
        self.check_dotless("view", name)
        return replace(query, view=name)

    @v_args(meta=True)
    def query(self, meta: Meta, parts: list[object]) -> GcoreQuery:
        constructed = next(part for part in parts if isinstance(part, tuple))
        return GcoreQuery(
            paths=tuple(part for part in parts if isinstance(part, PathClause)),
            elements=constructed,
            matches=tuple(part for part in parts if isinstance(part, Match)),
            equalities=tuple(parts[-1]) if isinstance(parts[-1], list) else (),
            span=span_of(meta),
        )

    @v_args(inline=True)
    def path_clause(self, keyword: Token, name: Name, *patterns: GraphPattern) -> PathClause:
        self.check_dotless("PATH clause", name)
        return PathClause(name, patterns)

    @v_args(meta=True)
    def construct(self, meta: Meta, parts: list[list[Element]]) -> tuple[Element, ...]:
        elements = tuple(element for chain in parts[1:] for element in chain)
        if not elements:
            raise self.error(
                "CONSTRUCT makes neither an edge nor a path",
                span_of(meta),
                "give the edge a label: CONSTRUCT (u)-[:notify]->(m)",
            )
        return elements

    def match(self, parts: list[object]) -> Match:
        source = parts[-1]
        assert isinstance(source, SourceClause)
        mandatory = parts[1] if isinstance(parts[1], tuple) else ()
        return Match(mandatory, tuple(tuple(part) for part in parts[2:-1] if isinstance(part, list)), source)

    def mandatory(self, patterns: list[GraphPattern]) -> tuple[GraphPattern, ...]:
        return tuple(patterns)

    def alternative(self, parts: list[GraphPattern]) -> list[GraphPattern]:
        return parts[1:]

    @v_args(meta=True, inline=True)
    def source(
        self, meta: Meta, keyword: Token, name: Name, window: int | None, slide: int | None
    ) -> SourceClause:
        self.check_dotless("stream", name)
        return SourceClause(name, window, slide, span_of(meta))

    def where(self, parts: list[Token | Equality]) -> list[Equality]:
        return [part for part in parts if isinstance(part, Equality)]

    @v_args(meta=True, inline=True)
    def equality(self, meta: Meta, left: Term, right: Term) -> Equality:
        return Equality(left, right, span_of(meta))

    # -- patterns

    def pattern(self, parts: list[VertexPattern | StepPattern]) -> GraphPattern:
        return GraphPattern(
            tuple(part for part in parts if isinstance(part, VertexPattern)),
            tuple(part for part in parts if isinstance(part, StepPattern)),
        )

    @v_args(meta=True, inline=True)
    def node(self, meta: Meta, variable: Variable | None, constant: Constant | None) -> VertexPattern:
        anonymous = variable is None or variable.name == "_"
        return VertexPattern(None if anonymous else variable, constant, span_of(meta))

    @v_args(meta=True, inline=True)
    def constant_node(self, meta: Meta, constant: Constant) -> VertexPattern:
        return VertexPattern(None, constant, span_of(meta))

    @v_args(meta=True, inline=True)
    def edge(self, meta: Meta, label: Name) -> StepPattern:
        return StepPattern(self.label_expression(label), None, False, span_of(meta))

    @v_args(meta=True, inline=True)
    def edge_back(self, meta: Meta, label: Name) -> StepPattern:
        return StepPattern(self.label_expression(label), None, True, span_of(meta))

    @v_args(meta=True, inline=True)
    def path(self, meta: Meta, variable: Variable | None, expression: Expression) -> StepPattern:
        return StepPattern(expression, variable, False, span_of(meta))

    @v_args(meta=True, inline=True)
    def path_back(self, meta: Meta, variable: Variable | None, expression: Expression) -> StepPattern:
        return StepPattern(expression, variable, True, span_of(meta))

    @v_args(meta=True, inline=True)
    def constructed_path(self, meta: Meta, variable: Variable, label: Name) -> ConstructedPath:
        return ConstructedPath(Label(label.value, None, label.span), variable, False, span_of(meta))

    @v_args(meta=True, inline=True)
    def constructed_path_back(self, meta: Meta, variable: Variable, label: Name) -> ConstructedPath:
        return ConstructedPath(Label(label.value, None, label.span), variable, True, span_of(meta))

    def constructed(self, parts: list[VertexPattern | StepPattern | ConstructedPath]) -> list[Element]:
        elements = []
        for left, step, right in zip(parts[:-2:2], parts[1:-1:2], parts[2::2], strict=True):
            assert isinstance(left, VertexPattern)
            assert isinstance(right, VertexPattern)
            assert isinstance(step, StepPattern | ConstructedPath)
            label = step.label if isinstance(step, ConstructedPath) else step.expression.expr
            assert isinstance(label, Label)
            src, trg = (right, left) if step.backwards else (left, right)
            span = Span(left.span.start, right.span.end)
            elements.append(Element(src, trg, label.name, step.variable, span))
        return elements

    # -- expressions

    @v_args(inline=True)
    def label(self, name: Name) -> Expression:
        return self.label_expression(name)

    @v_args(inline=True)
    def reference(self, name: Name) -> Expression:
        return Expression(Label(name.value, REFERENCE, name.span), name.span)

    @staticmethod
    def label_expression(name: Name) -> Expression:
        return Expression(Label(name.value, None, name.span), name.span)
