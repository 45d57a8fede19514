"""Syntax trees to predicates: the part of both grammars that compares values.

A reference has the name as written, `amount` or `e.amount`, and no type yet: what names mean and which types they
have is decided once the whole query is known (`types`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from lark import Token, v_args
from lark.tree import Meta

from meander.errors import ArgumentError, Span
from meander.syntax.durations import parse_duration
from meander.syntax.expressions import MAX_NESTING, Name, T, TreeBuilder
from meander.syntax.parsing import parse_int, span_of
from meander.syntax.sources import DeclaredProperty, SourceClause
from meander.syntax.values import (
    PROPERTY_TYPES,
    RESERVED_PROPERTIES,
    TIME_PROPERTY,
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    ValueType,
)

TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate as written."""

    predicate: Predicate
    span: Span


Declared = tuple[DeclaredProperty, ...]
"""The properties that a stream declares."""

Bounds = tuple[int | None, int | None]
"""The window and the slide of a stream, as far as they are given."""


@dataclass(frozen=True, slots=True)
class Tuples:
    """`TUPLES [(properties)]`."""

    properties: Declared | None


@dataclass(frozen=True, slots=True)
class Part:
    """A predicate or scalar under construction."""

    node: Predicate | Scalar
    nesting: int


class ConditionBuilder(TreeBuilder[T]):
    """The rules of `predicates.lark`."""

    @v_args(meta=True, inline=True)
    def condition(self, meta: Meta, part: Part) -> Condition:
        return Condition(part.node, span_of(meta))  # type: ignore[arg-type]

    @v_args(meta=True)
    def either_holds(self, meta: Meta, parts: list[Part]) -> Part:
        return self._grow(Or(tuple(part.node for part in parts)), parts, meta)  # type: ignore[misc]

    @v_args(meta=True)
    def both_hold(self, meta: Meta, parts: list[Part]) -> Part:
        return self._grow(And(tuple(part.node for part in parts)), parts, meta)  # type: ignore[misc]

    @v_args(meta=True)
    def fails(self, meta: Meta, parts: list[Part]) -> Part:
        return self._grow(Not(parts[0].node), parts, meta)  # type: ignore[arg-type]

    @v_args(inline=True)
    def enclosed(self, part: Part) -> Part:
        return part

    @v_args(meta=True, inline=True)
    def comparison(self, meta: Meta, left: Part, sign: Token, right: Part) -> Part:
        op = "!=" if sign == "<>" else str(sign)
        return self._grow(Comparison(op, left.node, right.node), [left, right], meta)  # type: ignore[arg-type]

    @v_args(meta=True, inline=True)
    def holds(self, meta: Meta, part: Part) -> Part:
        if not isinstance(part.node, Ref):
            written = self.text[span_of(meta).start : span_of(meta).end]
            raise self.error(
                f"{written} is a value, and not a comparison",
                span_of(meta),
                f"compare it: {written} > 5; only a BOOL stands by itself",
            )
        return self._grow(Comparison("=", part.node, Const(True, ValueType.BOOL)), [part], meta)

    @v_args(meta=True)
    def membership(self, meta: Meta, parts: list[Part | None]) -> Part:
        return self._membership(meta, parts)

    def _membership(self, meta: Meta, parts: list[Part | None]) -> Part:
        operand, *items = (part for part in parts if part is not None)
        values = tuple(item.node for item in items if isinstance(item.node, Const))
        if not values:
            raise self.error(
                "nothing is in an empty list", span_of(meta), 'name at least one value: in ["EUR", "USD"]'
            )
        return self._grow(Membership(operand.node, values), [operand], meta)  # type: ignore[arg-type]

    @v_args(meta=True)
    def no_membership(self, meta: Meta, parts: list[Part | None]) -> Part:
        within = self._membership(meta, parts)
        return self._grow(Not(within.node), [within], meta)  # type: ignore[arg-type]

    @v_args(meta=True, inline=True)
    def sum(self, meta: Meta, left: Part, sign: Token, right: Part) -> Part:
        return self._grow(Arithmetic(str(sign), left.node, right.node), [left, right], meta)  # type: ignore[arg-type]

    product = sum

    @v_args(meta=True, inline=True)
    def negative(self, meta: Meta, sign: Token, part: Part) -> Part:
        """`-amount` is `0 - amount`."""
        if sign == "+":
            return part
        return self._grow(Arithmetic("-", Const(0, ValueType.INT), part.node), [part], meta)  # type: ignore[arg-type]

    @v_args(inline=True)
    def reference(self, token: Token) -> Part:
        if token in TRUTHS:
            return self._truth(token)
        name = self.unquoted(token)
        return Part(Ref(name.value, None, name.span), 1)

    @v_args(inline=True)
    def literal(self, token: Token) -> Part:
        return Part(self.value(token), 1)

    @v_args(inline=True)
    def truth(self, token: Token) -> Part:
        return self._truth(token)

    def _truth(self, token: Token) -> Part:
        if token not in TRUTHS:
            raise self.error(
                f"{token} cannot stand in a list",
                span_of(token),
                f'a list has values: numbers, true, false, or text in quotes: "{token}"',
            )
        return Part(Const(TRUTHS[token], ValueType.BOOL, span_of(token)), 1)

    def value(self, token: Token) -> Const:
        """A literal; a duration is an integer in the stream's unit."""
        span = span_of(token)
        match token.type:
            case "STRING":
                return Const(self._unescape(token), ValueType.STRING, span)
            case "INTEGER":
                hint = "an INT has 64 bits; a larger number is written as a FLOAT: 1e20"
                return Const(parse_int(token, self.text, "this number", 2**63 - 1, hint), ValueType.INT, span)
            case "AMOUNT":
                try:
                    return Const(parse_duration(token, self.unit), ValueType.INT, span)
                except ArgumentError as error:
                    raise self.error(f"bad duration: {error.message}", span, error.hint) from None
        number = float(token[:400])
        if number in (float("inf"), float("-inf")):
            raise self.error("this number is too large", span, "a FLOAT is at most about 1.8e308")
        return Const(number, ValueType.FLOAT, span)

    # -- declared properties

    def properties(self, properties: list[DeclaredProperty]) -> Declared:
        self.check_distinct(declared.name for declared in properties)
        return tuple(properties)

    def check_distinct(self, names: Iterable[Name]) -> None:
        """Refuse a property that is named twice."""
        seen: set[str] = set()
        for name in names:
            if name.value in seen:
                raise self.error(
                    f"the property {name.value} is named twice",
                    name.span,
                    "name each property once; the variables of two are compared with each other: m1 = m2",
                )
            seen.add(name.value)

    def check_window(self, is_table: bool, name: Name, window: int | None, span: Span) -> None:
        """Refuse a table with a window."""
        if is_table and window is not None:
            raise self.error(
                f"the table {name.value} has a window",
                span,
                "rows of a TABLE hold until they are replaced; rows that expire belong to a STREAM",
            )

    @v_args(inline=True)
    def tuples(self, keyword: Token, properties: Declared | None) -> Tuples:
        return Tuples(properties)

    def stream_clause(
        self,
        name: Name,
        given: Declared | None,
        tuples: Tuples | None,
        bounds: Bounds,
        span: Span,
        source: Name | None = None,
    ) -> SourceClause:
        """A stream with a window, perhaps another one of a `source`; or one of TUPLES, which have none."""
        window, slide = bounds
        if tuples is None:
            return SourceClause(name, window, slide, span, given, source=source)
        if source is not None:
            raise self.error(
                f"the tuples of {name.value} are those of another stream",
                source.span,
                "FROM is for another window of the same edges, and TUPLES have none: read the stream under one name",
            )
        if window is not None or slide is not None:
            raise self.error(
                f"the tuples of {name.value} have a window",
                span,
                "TUPLES are valid from ts to exp, as they say themselves; edges that expire by a window belong to a "
                "STREAM without TUPLES",
            )
        if given is not None and tuples.properties is not None:
            raise self.error(f"the properties of {name.value} are declared twice", span, "list them once")
        properties = given if tuples.properties is None else tuples.properties
        return SourceClause(name, None, None, span, properties, is_tuples=True)

    @v_args(inline=True)
    def property(self, name: Name, kind: Token | None) -> DeclaredProperty:
        self.check_property(name)
        if name.value == TIME_PROPERTY:
            raise self.error(
                "ts needs no declaration", name.span, "every edge has its time, ts, of type TIME"
            )
        if kind is None:
            return DeclaredProperty(name, None)
        if kind.upper() not in (*PROPERTY_TYPES, ValueType.PATH):
            close = difflib.get_close_matches(kind.upper(), PROPERTY_TYPES, n=1)
            raise self.error(
                f"unknown type {kind}",
                span_of(kind),
                f"types are {', '.join(PROPERTY_TYPES)}" + (f"; did you mean {close[0]}?" if close else ""),
            )
        return DeclaredProperty(name, ValueType(kind.upper()))

    def check_property(self, name: Name) -> None:
        """Columns of every row are not properties, but for `ts`."""
        if name.value in RESERVED_PROPERTIES and name.value != TIME_PROPERTY:
            raise self.error(
                f"{name.value} is not a property",
                name.span,
                f"{', '.join(RESERVED_PROPERTIES)} are columns of every row; of these only ts can be read, "
                "like a property",
            )

    def _grow(self, node: Predicate | Scalar, parts: list[Part], meta: Meta) -> Part:
        nesting = 1 + max(part.nesting for part in parts)
        if nesting > MAX_NESTING:
            raise self.error(
                f"this comparison is nested more than {MAX_NESTING} deep",
                span_of(meta),
                "write parts of it as comparisons of their own, separated by commas",
            )
        return Part(node, nesting)
