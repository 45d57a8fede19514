"""G-CORE, first half: text to abstract syntax tree. What it means is left to `gcore_rules`.

In the expressions of this tree a `Label` has no stream yet: `stream` is None for `:a`, whose stream is the one
that its MATCH is ON, and `REFERENCE` for `~Name`, a PATH clause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from meander.errors import Span
from meander.syntax.conditions import Condition, ConditionBuilder, Declared, Part, Tuples
from meander.syntax.expressions import DURATION_HINT, Expression, Name
from meander.syntax.foreign import IN_GCORE
from meander.syntax.parsing import Language, read, span_of
from meander.syntax.query import Constant, Label, PathOrder, Variable
from meander.syntax.sources import SourceClause
from meander.syntax.values import Const, Ref

REFERENCE = "~"

GCORE = Language(
    name="G-CORE",
    form="CONSTRUCT (u)-[:x]->(v) MATCH (u)-[:a]->(v) ON s WINDOW(24h)",
    grammars=("lexical.lark", "predicates.lark", "gcore.lark"),
    keywords=(
        *("GRAPH", "VIEW", "AS", "PATH", "CONSTRUCT", "MATCH"),
        *("OPTIONAL", "ON", "TABLE", "TUPLES", "WINDOW", "SLIDE", "WHERE", "STRICTLY", "ASCENDING"),
    ),
    hints=(
        ("TILDE", "NAME", "a label begins with a colon, a PATH clause with a tilde: :follows, ~RL"),
        ("TILDE", "MINUS", "an expression ends with >: -/p<:follows*>/->"),
        ("COLON", "NAME", "the label of an edge begins with a colon: -[:likes]->, -[e:likes]->"),
        ("COLON", "", "an edge has a label: -[:likes]->"),
        ("AT", "", "a constructed path is one of MATCH's paths: -/@p:label/->, if MATCH has -/p<…>/->"),
        ("LESSTHAN", "COLON", "the expression of a path stands in angle brackets: -/<:follows*>/->"),
        ("LESSTHAN", "AT", "only CONSTRUCT has -/@p:label/->; in MATCH, a path is -/p<:follows*>/->"),
        ("ON", "", "a MATCH ends with its stream: ON social WINDOW(24h) SLIDE(1h)"),
        ("_AND", "NAME", "conditions are joined by AND and OR"),
        ("DURATION", "", DURATION_HINT),
    ),
    foreign=IN_GCORE,
)


Properties = tuple[tuple[Name, Ref | Const], ...]
"""`{amount: 5, currency: e.currency}`"""


@dataclass(frozen=True, slots=True)
class VertexPattern:
    """`(u)`, `("alice")`, `(u = "alice")`, `()`, `(u:account)` or `(u:account {risk: 3})`."""

    variable: Variable | None
    constant: Constant | None
    span: Span
    label: Name | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class StepPattern:
    """`-/p<expression>/->`; `backwards` if the arrow points to the left."""

    expression: Expression
    variable: Variable | None
    backwards: bool
    span: Span
    order: PathOrder = PathOrder.ANY


@dataclass(frozen=True, slots=True)
class EdgePattern:
    """`-[e:a|b {amount: 5}]->`, of any label without labels, and in either direction if `both`."""

    labels: tuple[Label, ...]
    variable: Variable | None
    properties: Properties
    backwards: bool
    both: bool
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
    steps: tuple[StepPattern | EdgePattern, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One edge or path that CONSTRUCT makes, in the direction of its arrow."""

    src: VertexPattern
    trg: VertexPattern
    label: str
    path: Variable | None
    span: Span
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Located:
    """Patterns, and the stream that they are on."""

    patterns: tuple[GraphPattern, ...]
    source: SourceClause
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    """`MATCH mandatory OPTIONAL alternative … ON source, mandatory ON source`."""

    mandatory: tuple[Located, ...]
    alternatives: tuple[Located, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PathClause:
    """`PATH name = patterns [WHERE …]`: the path leads from the first node of the first pattern to its last."""

    name: Name
    patterns: tuple[GraphPattern, ...]
    where: Condition | None = None


@dataclass(frozen=True, slots=True)
class GcoreQuery:
    """PATH clauses, CONSTRUCT, MATCHes and WHERE; `view` is the name of a GRAPH VIEW, None for a query."""

    paths: tuple[PathClause, ...]
    elements: tuple[Element, ...]
    matches: tuple[Match, ...]
    where: Condition | None
    span: Span
    view: Name | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns whose ON has not been read yet."""

    patterns: tuple[GraphPattern, ...]
    optional: bool
    span: Span


def parse_tree(text: str, unit: str) -> list[GcoreQuery]:
    """The queries of a G-CORE text, in order."""
    return _GcoreBuilder(text, unit).build(read(GCORE, text))


class _GcoreBuilder(ConditionBuilder[list[GcoreQuery]]):
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
            where=next((part for part in parts if isinstance(part, Condition)), None),
            span=span_of(meta),
        )

    @v_args(inline=True)
    def path_clause(self, keyword: Token, name: Name, *parts: GraphPattern | Condition | None) -> PathClause:
        self.check_dotless("PATH clause", name)
        patterns = tuple(part for part in parts if isinstance(part, GraphPattern))
        return PathClause(name, patterns, next((part for part in parts if isinstance(part, Condition)), None))

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

    @v_args(meta=True)
    def match(self, meta: Meta, parts: list[object]) -> Match:
        located: dict[bool, list[Located]] = {False: [], True: []}
        waiting: list[_Group] = []
        for part in parts:
            if isinstance(part, _Group):
                waiting.append(part)
            elif isinstance(part, SourceClause):
                for group in waiting:
                    located[group.optional].append(Located(group.patterns, part, group.span))
                waiting = []
        if len(located[True]) == 1:
            raise self.error(
                "an OPTIONAL by itself is no alternative: every match would need it",
                located[True][0].span,
                "OPTIONAL blocks are alternatives, of which a match needs one: leave out the word OPTIONAL, or "
                "leave out the block. What SQL calls a left outer join has matches with empty variables, and an "
                "edge has two ends",
            )
        return Match(tuple(located[False]), tuple(located[True]), span_of(meta))

    @v_args(meta=True)
    def mandatory(self, meta: Meta, patterns: list[GraphPattern]) -> _Group:
        return _Group(tuple(patterns), False, span_of(meta))

    @v_args(meta=True)
    def alternative(self, meta: Meta, parts: list[GraphPattern]) -> _Group:
        return _Group(tuple(parts[1:]), True, span_of(meta))

    @v_args(meta=True, inline=True)
    def source(
        self,
        meta: Meta,
        keyword: Token,
        table: Token | None,
        name: Name,
        properties: Declared | None,
        tuples: Tuples | None,
        window: int | None,
        slide: int | None,
    ) -> SourceClause:
        self.check_dotless("stream", name)
        span = span_of(meta)
        if table is None:
            return self.stream_clause(name, properties, tuples, (window, slide), span)
        self.check_window(True, name, window or slide, span)
        if tuples is not None:
            raise self.error(
                f"{name.value} cannot be both a table and tuples",
                span,
                "rows of a TABLE hold until they are replaced, TUPLES until they say: name one of them",
            )
        return SourceClause(name, window, slide, span, properties, is_table=True)

    @v_args(inline=True)
    def where(self, keyword: Token, condition: Condition) -> Condition:
        return condition

    @v_args(meta=True, inline=True)
    def member(self, meta: Meta, variable: Token, name: Token) -> Part:
        prop = self.unquoted(name)
        self.check_property(prop)
        return Part(Ref(f"{self.unquoted(variable).value}.{prop.value}", None, span_of(meta)), 1)

    @v_args(inline=True)
    def entry(self, name: Name, part: Part) -> tuple[Name, Ref | Const]:
        self.check_property(name)
        assert isinstance(part.node, Ref | Const)
        return name, part.node

    def map(self, parts: list[object]) -> Properties:
        entries = tuple(part for part in parts if isinstance(part, tuple))
        self.check_distinct(name for name, _ in entries)
        return entries

    def labels(self, names: list[Name | None]) -> tuple[Label, ...]:
        return tuple(Label(name.value, None, name.span) for name in names if name is not None)

    # -- patterns

    def pattern(self, parts: list[VertexPattern | StepPattern]) -> GraphPattern:
        return GraphPattern(
            tuple(part for part in parts if isinstance(part, VertexPattern)),
            tuple(part for part in parts if isinstance(part, StepPattern | EdgePattern)),
        )

    @v_args(meta=True, inline=True)
    def node(
        self,
        meta: Meta,
        variable: Variable | None,
        label: Name | None,
        constant: Constant | None,
        properties: Properties | None,
    ) -> VertexPattern:
        anonymous = variable is None or variable.name == "_"
        if properties and label is None:
            raise self.error(
                "the properties of a vertex belong to one of its labels",
                span_of(meta),
                "name it: (x:account {risk: 3})",
            )
        return VertexPattern(
            None if anonymous else variable, constant, span_of(meta), label, properties or ()
        )

    @v_args(meta=True, inline=True)
    def constant_node(self, meta: Meta, constant: Constant) -> VertexPattern:
        return VertexPattern(None, constant, span_of(meta))

    @v_args(meta=True)
    def edge(self, meta: Meta, parts: list[Any]) -> EdgePattern:
        return self._edge(meta, parts, backwards=False, both=False)

    @v_args(meta=True)
    def edge_back(self, meta: Meta, parts: list[Any]) -> EdgePattern:
        return self._edge(meta, parts, backwards=True, both=False)

    @v_args(meta=True)
    def edge_both(self, meta: Meta, parts: list[Any]) -> EdgePattern:
        return self._edge(meta, parts, backwards=False, both=True)

    @staticmethod
    def _edge(meta: Meta, parts: list[Any], *, backwards: bool, both: bool) -> EdgePattern:
        _, variable, labels, properties, _ = parts
        if variable is not None and variable.name == "_":
            variable = None
        return EdgePattern(labels or (), variable, properties or (), backwards, both, span_of(meta))

    @v_args(inline=True)
    def order(self, strictly: Token | None, ascending: Token) -> PathOrder:
        return PathOrder.ASCENDING if strictly is None else PathOrder.STRICTLY_ASCENDING

    @v_args(meta=True, inline=True)
    def path(
        self, meta: Meta, variable: Variable | None, expression: Expression, order: PathOrder | None
    ) -> StepPattern:
        return StepPattern(expression, variable, False, span_of(meta), order or PathOrder.ANY)

    @v_args(meta=True, inline=True)
    def path_back(
        self, meta: Meta, variable: Variable | None, expression: Expression, order: PathOrder | None
    ) -> StepPattern:
        return StepPattern(expression, variable, True, span_of(meta), order or PathOrder.ANY)

    @v_args(meta=True, inline=True)
    def constructed_path(self, meta: Meta, variable: Variable, label: Name) -> ConstructedPath:
        return ConstructedPath(Label(label.value, None, label.span), variable, False, span_of(meta))

    @v_args(meta=True, inline=True)
    def constructed_path_back(self, meta: Meta, variable: Variable, label: Name) -> ConstructedPath:
        return ConstructedPath(Label(label.value, None, label.span), variable, True, span_of(meta))

    def constructed(self, parts: list[VertexPattern | EdgePattern | ConstructedPath]) -> list[Element]:
        elements = []
        for left, step, right in zip(parts[:-2:2], parts[1:-1:2], parts[2::2], strict=True):
            assert isinstance(left, VertexPattern)
            assert isinstance(right, VertexPattern)
            for node in (left, right):
                if node.label is not None:
                    raise self.error(
                        "CONSTRUCT makes edges and paths",
                        node.span,
                        "the labels of its vertices belong into MATCH, and their properties to its edges",
                    )
            src, trg = (right, left) if step.backwards else (left, right)  # type: ignore[union-attr]
            span = Span(left.span.start, right.span.end)
            if isinstance(step, ConstructedPath):
                elements.append(Element(src, trg, step.label.name, step.variable, span))
                continue
            assert isinstance(step, EdgePattern)
            if len(step.labels) != 1 or step.both or step.variable is not None:
                raise self.error(
                    "a constructed edge has one label, one direction, and no variable",
                    step.span,
                    "write -[:alert]-> or -[:alert {amount: e.amount}]->",
                )
            elements.append(Element(src, trg, step.labels[0].name, None, span, step.properties))
        return elements

    # -- expressions

    @v_args(inline=True)
    def label(self, name: Name) -> Expression:
        return self.label_expression(name)

    @v_args(inline=True)
    def clause(self, name: Name) -> Expression:
        return Expression(Label(name.value, REFERENCE, name.span), name.span)

    @staticmethod
    def label_expression(name: Name) -> Expression:
        return Expression(Label(name.value, None, name.span), name.span)
