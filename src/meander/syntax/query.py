"""The regular query: what both languages are parsed to.

A regular query is a list of non-recursive rules over binary predicates in which a body atom may be a path
expression (a regular expression over labels and rule heads). Nothing here knows how a query was written;
source spans are carried for error messages alone and do not take part in comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from meander.errors import Span

# ---------------------------------------------------------------------------------------------------------
# Path expressions


@dataclass(frozen=True, slots=True)
class Label:
    """One step along a label of a stream (`stream` set, `name` its label) or along a head (`stream` None)."""

    name: str
    stream: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name if self.stream is None else f"{self.stream}.{self.name}"


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^e`: the expression read backwards."""

    expr: PathExpr


@dataclass(frozen=True, slots=True)
class Then:
    """`e1/e2/…`, two parts or more."""

    parts: tuple[PathExpr, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """`e1|e2|…`, two parts or more."""

    parts: tuple[PathExpr, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`e{low,high}`; `high` None means without bound. `*` is {0,}, `+` is {1,}, `?` is {0,1}."""

    expr: PathExpr
    low: int
    high: int | None


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


@dataclass(frozen=True, slots=True)
class Atom:
    """`expr(src, trg) [as name]`. A plain `Label` is an edge; anything else is a path, with or without name."""

    expr: PathExpr
    src: Term
    trg: Term
    name: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """`head(args) <- body`. Only the head `Answer` (or the only result) may have an arity other than two."""

    head: str
    args: tuple[Variable, ...]
    body: tuple[Atom, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """`STREAM name WINDOW window SLIDE slide`, both in the stream's time unit."""

    name: str
    window: int
    slide: int = 1
    span: Span | None = field(default=None, compare=False, repr=False)


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
