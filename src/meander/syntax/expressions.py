"""Syntax trees to path expressions, terms and names: the part that the two languages share.

Expressions are built from the leaves up, without recursion, each with its nesting and the number of steps
that it stands for once its repetitions are written out. Both have a bound, checked as they grow: the stages
that follow can then safely recurse over an expression and build its automaton.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeVar

from lark import Token, Tree, v_args
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from meander.errors import ArgumentError, Span
from meander.syntax.durations import parse_duration
from meander.syntax.parsing import TextErrors, parse_int, span_of
from meander.syntax.query import Constant, Either, Inverse, PathExpr, Repeat, Then, Variable

MAX_NESTING = 50
"""How deep an expression may nest, and how many rules may build on one another."""

MAX_STEPS = 1_000
"""How many steps an expression may stand for, `a{2,4}` counting as four."""

DURATION_HINT = "a duration is a number with or without a unit: 24h, 15 minutes, 3600"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, out of its backquotes."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Expression:
    """A path expression under construction."""

    expr: PathExpr
    span: Span
    nesting: int = 1
    steps: int = 1


class TreeBuilder(Transformer_NonRecursive[Token, T], TextErrors):
    """Rules of both grammars; a language adds its own, and defines what `build` returns for a whole tree."""

    def __init__(self, text: str, unit: str) -> None:
        super().__init__()
        self.text = text
        self.unit = unit

    def build(self, tree: Tree[Token]) -> T:
        try:
            return self.transform(tree)
        except VisitError as error:
            raise error.orig_exc from None

    # -- names and terms

    def check_dotless(self, what: str, name: Name) -> None:
        """A dot would be taken for the one between a stream or view and its label."""
        if "." in name.value:
            raise self.error(
                f"a {what} cannot be named {name.value}",
                name.span,
                "choose a name without a dot, which separates a stream from its label",
            )

    @v_args(inline=True)
    def name(self, token: Token) -> Name:
        return self.unquoted(token)

    def unquoted(self, token: Token) -> Name:
        """A name out of its backquotes."""
        value = token[1:-1].replace("``", "`") if token.type == "QUOTED" else str(token)
        return Name(value, span_of(token))

    @v_args(inline=True)
    def variable(self, token: Token) -> Variable:
        return Variable(str(token), span_of(token))

    @v_args(inline=True)
    def constant(self, token: Token) -> Constant:
        if token.type == "INTEGER":
            hint = "a vertex that is a number has 64 bits; write a longer one in quotes"
            return Constant(parse_int(token, self.text, "this vertex", 2**63 - 1, hint), span_of(token))
        return Constant(self._unescape(token), span_of(token))

    def _unescape(self, token: Token) -> str:
        def replacement(match: re.Match[str]) -> str:
            simple = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
            if match["hex"] and not 0xD800 <= int(match["hex"], 16) < 0xE000:
                return chr(int(match["hex"], 16))
            if match["other"] in simple:
                return simple[match["other"]]
            start = token.start_pos or 0
            raise self.error(
                f"invalid escape: {match[0]}",
                Span(start + 1 + match.start(), start + 1 + match.end()),
                "escapes are \\\\ \\\" \\' \\n \\r \\t and \\uXXXX; a backslash itself is doubled",
            )

        return re.sub(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<other>.))", replacement, token[1:-1])

    # -- windows

    @v_args(inline=True)
    def window(self, keyword: Token, duration: Token) -> int:
        return self._duration("window", duration)

    @v_args(inline=True)
    def slide(self, keyword: Token, duration: Token) -> int:
        return self._duration("slide", duration)

    def _duration(self, what: str, token: Token) -> int:
        try:
            size = parse_duration(token, self.unit)
        except ArgumentError as error:
            raise self.error(f"bad {what}: {error.message}", span_of(token), error.hint) from None
        if size == 0:
            raise self.error(f"a {what} of zero", span_of(token), f"a {what} is a length of time above zero")
        return size

    # -- expressions

    def _grown(self, expr: PathExpr, meta: Meta, nesting: int, steps: int) -> Expression:
        if nesting > MAX_NESTING:
            raise self.error(
                f"this expression is nested more than {MAX_NESTING} deep",
                span_of(meta),
                "give a part of it a rule of its own and use that rule's head",
            )
        if steps > MAX_STEPS:
            raise self.error(
                f"this expression makes too large an automaton: {steps:,} steps, the most is {MAX_STEPS:,}",
                span_of(meta),
                "lower the bounds of its repetitions, or leave the upper one out: {2,}",
            )
        return Expression(expr, span_of(meta), nesting, steps)

    @v_args(meta=True)
    def either(self, meta: Meta, parts: list[Expression]) -> Expression:
        expr = Either(tuple(part.expr for part in parts))
        return self._grown(expr, meta, 1 + max(p.nesting for p in parts), sum(p.steps for p in parts))

    @v_args(meta=True)
    def then(self, meta: Meta, parts: list[Expression]) -> Expression:
        expr = Then(tuple(part.expr for part in parts))
        return self._grown(expr, meta, 1 + max(p.nesting for p in parts), sum(p.steps for p in parts))

    @v_args(meta=True)
    def inverse(self, meta: Meta, parts: list[Expression]) -> Expression:
        return self._grown(Inverse(parts[0].expr), meta, 1 + parts[0].nesting, parts[0].steps)

    @v_args(meta=True)
    def group(self, meta: Meta, parts: list[Expression]) -> Expression:
        return replace(parts[0], span=span_of(meta))

    def _repeated(self, meta: Meta, part: Expression, low: int, high: int | None) -> Expression:
        times = max(low, high or 1)
        return self._grown(Repeat(part.expr, low, high), meta, 1 + part.nesting, part.steps * times)

    @v_args(meta=True, inline=True)
    def star(self, meta: Meta, part: Expression, star: Token) -> Expression:
        return self._repeated(meta, part, 0, None)

    @v_args(meta=True, inline=True)
    def plus(self, meta: Meta, part: Expression, plus: Token) -> Expression:
        return self._repeated(meta, part, 1, None)

    @v_args(meta=True, inline=True)
    def optional(self, meta: Meta, part: Expression, mark: Token) -> Expression:
        return self._repeated(meta, part, 0, 1)

    @v_args(meta=True, inline=True)
    def exactly(self, meta: Meta, part: Expression, brace: Token, times: Token) -> Expression:
        return self._repeated(meta, part, self._bound(times), self._bound(times))

    @v_args(meta=True, inline=True)
    def at_least(self, meta: Meta, part: Expression, brace: Token, low: Token) -> Expression:
        return self._repeated(meta, part, self._bound(low), None)

    @v_args(meta=True, inline=True)
    def between(self, meta: Meta, part: Expression, brace: Token, low: Token, high: Token) -> Expression:
        if self._bound(high) < self._bound(low):
            raise self.error(
                f"a repetition from {low} to {high} times is none",
                Span(span_of(low).start, span_of(high).end),
                f"the lower bound comes first: {{{high},{low}}}",
            )
        return self._repeated(meta, part, self._bound(low), self._bound(high))

    def _bound(self, token: Token) -> int:
        if token.startswith("-"):
            raise self.error("a repetition is never negative", span_of(token), "write {0,2} or {1,}")
        hint = (
            f"an expression makes up to {MAX_STEPS:,} steps; a repetition without a bound is written {{1,}}"
        )
        return parse_int(token, self.text, "the automaton of this repetition", MAX_STEPS, hint)
