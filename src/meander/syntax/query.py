"""The regular query: what both languages are parsed to.

A regular query is a list of non-recursive rules over binary predicates in which a body atom may be a path
expression (a regular expression over labels and rule heads). Nothing here knows how a query was written;
source spans are carried for error messages alone and do not take part in comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from meander.errors import Span
from meander.syntax.values import Predicate, Property

# ---------------------------------------------------------------------------------------------------------
# Path expressions


@dataclass(frozen=True, slots=True)
class Label:
    """One step along a label of a stream (`stream` set, `name` its label) or along a head (`stream` None).

    An empty name stands for any label of the stream. With a `predicate` on its own properties it is the label of the
    edges that satisfy it. A `vertex` label is one of vertex tuples; it stands in atoms alone, whose ends are then
    the same term.
    """

    name: str
    stream: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    predicate: Predicate | None = None
    vertex: bool = False

    @property
    def is_any(self) -> bool:
        """Whether it stands for edges of any label."""
        return not self.name

    def __str__(self) -> str:
        name = self.name or "*"
        return name if self.stream is None else f"{self.stream}.{name}"


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^e`: the expression read backwards."""

    expr: PathExpr


@dataclass(frozen=True, slots=True)
class Then:
    """`e1/e2/…`, two parts or more."""

    parts: tuple[PathExpr, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ValueError("Then has two parts or more")


@dataclass(frozen=True, slots=True)
class Either:
    """`e1|e2|…`, two parts or more."""

    parts: tuple[PathExpr, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ValueError("Either has two parts or more")


@dataclass(frozen=True, slots=True)
class Repeat:
    """`e{low,high}`; `high` is None if there is no bound. `*` is {0,}, `+` is {1,}, `?` is {0,1}."""

    expr: PathExpr
    low: int
    high: int | None

    def __post_init__(self) -> None:
        if self.low < 0 or (self.high is not None and self.high < self.low):
            raise ValueError(f"Repeat from {self.low} to {self.high}")


PathExpr = Label | Inverse | Then | Either | Repeat

# ---------------------------------------------------------------------------------------------------------
# Rules


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A vertex by name."""

    value: str | int
    span: Span | None = field(default=None, compare=False, repr=False)


Term = Variable | Constant


Values = tuple[tuple[str, Variable], ...]
"""Named values, in the order of their names: the properties that an atom binds, or that a head gives its edges, and
apart from these the paths."""


class PathOrder(StrEnum):
    """The order of the times along a path: any, none older than the one before, or each newer than it."""

    ANY = ""
    ASCENDING = "ascending"
    STRICTLY_ASCENDING = "strictly ascending"


@dataclass(frozen=True, slots=True)
class Atom:
    """`expr(src, trg, property: variable, …) [as name] [order]`.

    A plain `Label` is an edge; anything else is a path, with or without name. Only an edge has values; `paths` are
    those that it has of a head.
    """

    expr: PathExpr
    src: Term
    trg: Term
    name: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    values: Values = ()
    order: PathOrder = PathOrder.ANY
    paths: Values = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """`head(args) <- body`. Only the head `Answer` (or the only result) may have an arity other than two.

    `path` names the atom of the body whose path is the path of the rule's answers: G-CORE's constructed
    path, `because(u, v) as p <- RL*(u, v) as p, posts(v, m).` in Datalog. The head's arguments are then
    the ends of that atom. A rule that is nothing but a path with the head's own arguments needs no `path`.

    `values` are the properties of the derived edge. `predicate` compares variables of the body, each a `Ref` by name.
    `paths` are properties that are paths, by the name of a path of the body or the variable that an atom binds to
    one. They are no part of the derived edge's identity: they prove it.
    """

    head: str
    args: tuple[Variable, ...]
    body: tuple[Atom, ...]
    path: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    values: Values = ()
    predicate: Predicate | None = None
    paths: Values = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """`STREAM name [FROM source] WINDOW window SLIDE slide`, both in the stream's time unit; or `TABLE name`, or
    `STREAM name TUPLES`, whose window is the longest.

    Several streams of a query may be the same input through other windows: `input` is its name. `properties` are
    those that the query names of the input, sorted by name.
    """

    name: str
    window: int
    slide: int = 1
    span: Span | None = field(default=None, compare=False, repr=False)
    properties: tuple[Property, ...] = ()
    is_table: bool = False
    is_tuples: bool = False
    source: str | None = None

    @property
    def input(self) -> str:
        """The name under which a run is given the edges."""
        return self.name if self.source is None else self.source

    @property
    def has_window(self) -> bool:
        """Whether its edges expire when they leave a window, and not by what the rows say."""
        return not self.is_table and not self.is_tuples


@dataclass(frozen=True, slots=True)
class RegularQuery:
    """Streams, rules in the order written, and the heads that are its results (one, but for G-CORE's
    `CONSTRUCT` of several elements).

    A `Label` with `stream` None names a head of `rules`; every other label names a label of one of `streams`.
    A head with a dot in its name (`rec_stream.recommendation`) is a label of a view.
    """

    streams: tuple[Stream, ...]
    rules: tuple[Rule, ...]
    results: tuple[str, ...] = ("Answer",)


def labels_of(expr: PathExpr) -> Iterator[Label]:
    """The labels of an expression, from left to right, as often as they occur."""
    stack = [expr]
    while stack:
        part = stack.pop()
        if isinstance(part, Label):
            yield part
        elif isinstance(part, Inverse | Repeat):
            stack.append(part.expr)
        else:
            stack.extend(reversed(part.parts))


def map_parts(expr: PathExpr, change: Callable[[PathExpr], PathExpr]) -> PathExpr:
    """The same kind of expression over changed parts; a label has none."""
    match expr:
        case Label():
            return expr
        case Inverse(part):
            return Inverse(change(part))
        case Repeat(part, low, high):
            return Repeat(change(part), low, high)
        case Then(parts):
            return Then(tuple(map(change, parts)))
        case Either(parts):
            return Either(tuple(map(change, parts)))


def map_labels(expr: PathExpr, change: Callable[[Label], PathExpr]) -> PathExpr:
    """The expression with every label replaced by the result of `change`."""
    return change(expr) if isinstance(expr, Label) else map_parts(expr, lambda part: map_labels(part, change))


def heads_of(query: RegularQuery) -> tuple[str, ...]:
    """The heads, in the order of their first rules."""
    return tuple(dict.fromkeys(rule.head for rule in query.rules))


def implied_result(rules: Sequence[Rule]) -> str:
    """The result of rules that name none: `Answer`, or the head of the last rule if no head is `Answer`."""
    return "Answer" if any(rule.head == "Answer" for rule in rules) else rules[-1].head


def single_edge(rule: Rule) -> Atom | None:
    """The edge of a rule that selects edges of one label, perhaps turned; None for any other rule."""
    atom = rule.body[0]
    is_edge = isinstance(atom.expr, Label) and atom.name is None and not atom.expr.vertex
    has_its_ends = rule.args in ((atom.src, atom.trg), (atom.trg, atom.src))
    return atom if is_edge and has_its_ends and len(rule.body) == 1 else None
