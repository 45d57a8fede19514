"""Values and predicates: one immutable tree from the text of a query to the kernels that decide it.

A predicate compares values of a tuple. What differs from tuple to tuple is a `Ref`: a property of the edge that is
scanned, a variable of a rule, or a column of a plan node, by name or number. `map_refs` is the one way to move a
predicate from one of these to another, so nothing is rebuilt field by field.

Predicates have three truth values, as in SQL: a comparison with a missing value is unknown, `not` of it as well, and
a tuple is selected only if its predicate is true. Arithmetic that has no result (a division by zero, an integer
beyond 64 bits, NaN) is a missing value. `+`, `-` and `*` of INTs are INTs; `/` always gives a FLOAT, and an INT
beside a FLOAT is converted to FLOAT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from meander.errors import Span


class ValueType(StrEnum):
    """The type of a value. A VERTEX compares by `=` and `!=` only, and a PATH not at all; a TIME is an integer in
    the stream's unit."""

    VERTEX = "VERTEX"
    INT = "INT"
    FLOAT = "FLOAT"
    STRING = "STRING"
    BOOL = "BOOL"
    TIME = "TIME"
    PATH = "PATH"


PROPERTY_TYPES = tuple(kind for kind in ValueType if kind not in (ValueType.VERTEX, ValueType.PATH))
NUMBERS = frozenset({ValueType.INT, ValueType.FLOAT, ValueType.TIME})

TIME_PROPERTY = "ts"
"""The property that every edge has: its own time."""

LABEL = "label"
"""The label of an edge, as a column of a scan of any label."""

SRC, TRG = "src", "trg"
"""The end points of a tuple, as a predicate on it names them."""

RESERVED_PROPERTIES = ("src", "label", "trg", "ts", "op", "exp")
"""Columns of a row that are not properties; of these a query can bind `ts` alone."""


class Property(NamedTuple):
    """A property of the edges of a stream; its type is None where neither query nor input has decided it yet."""

    name: str
    type: ValueType | None = None


ALL_PROPERTIES = Property("all properties", ValueType.STRING)
"""What tells tuples apart that agree in all properties that a query names: the properties of a record as one text."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the tuple: a property or end point, a variable, or a column by its number."""

    name: str | int
    type: ValueType | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A value that the query states. A vertex by a number is also the one whose name has these digits."""

    value: str | int | float | bool
    type: ValueType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right`, with `op` one of + - * /."""

    op: str
    left: Scalar
    right: Scalar

    def __post_init__(self) -> None:
        if self.op not in ("+", "-", "*", "/"):
            raise ValueError(f"no arithmetic {self.op}")


Scalar = Ref | Const | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`, with `op` one of = != < <= > >=."""

    op: str
    left: Scalar
    right: Scalar

    def __post_init__(self) -> None:
        if self.op not in ("=", "!=", "<", "<=", ">", ">="):
            raise ValueError(f"no comparison {self.op}")


@dataclass(frozen=True, slots=True)
class Membership:
    """`operand in [values]`: true if it equals one of them."""

    operand: Scalar
    values: tuple[Const, ...]


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ValueError("And has two parts or more")


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ValueError("Or has two parts or more")


@dataclass(frozen=True, slots=True)
class Not:
    part: Predicate


Predicate = Comparison | Membership | And | Or | Not


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The predicates that all have to hold; none for no predicate."""
    if predicate is None:
        return ()
    if isinstance(predicate, And):
        return tuple(part for inner in predicate.parts for part in conjuncts(inner))
    return (predicate,)


def conjunction(predicates: Iterable[Predicate | None]) -> Predicate | None:
    """All of the predicates as one, each of its conjuncts once; None for none."""
    parts = tuple(dict.fromkeys(part for predicate in predicates for part in conjuncts(predicate)))
    return And(parts) if len(parts) > 1 else parts[0] if parts else None


def refs(node: Predicate | Scalar | None) -> Iterator[Ref]:
    """The references of a predicate or a scalar, from left to right, as often as they occur; none for no
    predicate."""
    stack: list[Predicate | Scalar] = [] if node is None else [node]
    while stack:
        match stack.pop():
            case Ref() as ref:
                yield ref
            case Const():
                pass
            case Membership(operand, _):
                stack.append(operand)
            case And(parts) | Or(parts):
                stack.extend(reversed(parts))
            case Not(part):
                stack.append(part)
            case Arithmetic(_, left, right) | Comparison(_, left, right):
                stack += [right, left]


def map_refs(predicate: Predicate, change: Callable[[Ref], Scalar]) -> Predicate:
    """The predicate with every reference replaced by the result of `change`."""
    match predicate:
        case Comparison(op, left, right):
            return Comparison(op, map_scalar(left, change), map_scalar(right, change))
        case Membership(operand, values):
            return Membership(map_scalar(operand, change), values)
        case And(parts):
            return And(tuple(map_refs(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(map_refs(part, change) for part in parts))
        case Not(part):
            return Not(map_refs(part, change))


def map_scalar(scalar: Scalar, change: Callable[[Ref], Scalar]) -> Scalar:
    """The scalar with every reference replaced by the result of `change`."""
    match scalar:
        case Ref():
            return change(scalar)
        case Arithmetic(op, left, right):
            return Arithmetic(op, map_scalar(left, change), map_scalar(right, change))
        case Const():
            return scalar


def rejects_missing(predicate: Predicate | None, name: str | int) -> bool:
    """Whether the predicate is never true of a tuple whose value `name` is missing: so it implies that there is
    one."""
    match predicate:
        case None:
            return False
        case And(parts):
            return any(rejects_missing(part, name) for part in parts)
        case Or(parts):
            return all(rejects_missing(part, name) for part in parts)
        case Not(And(parts)):
            return all(rejects_missing(Not(part), name) for part in parts)
        case Not(Or(parts)):
            return any(rejects_missing(Not(part), name) for part in parts)
        case Not(Not(part)):
            return rejects_missing(part, name)
        case Not(Comparison() | Membership() as part):
            return rejects_missing(part, name)
    return any(ref.name == name for ref in refs(predicate))


def is_present(value: Ref) -> Comparison:
    """The tuple has the value: a missing one does not even equal itself."""
    return Comparison("=", value, value)


def end_point(end: str | int) -> Ref:
    """A vertex of a tuple: `src` or `trg`, or a column or variable by number."""
    return Ref(end, ValueType.VERTEX)


def equals_vertex(end: str | int, vertex: str | int) -> Comparison:
    """The end point of a tuple is a vertex of the query."""
    return Comparison("=", end_point(end), Const(vertex, ValueType.VERTEX))


def bound_vertex(predicate: Predicate) -> tuple[str | int, str | int] | None:
    """The end point and the vertex of a predicate `src = "alice"`; None for any other."""
    match predicate:
        case Comparison("=", Ref(name, ValueType.VERTEX), Const(vertex, ValueType.VERTEX)) | Comparison(
            "=", Const(vertex, ValueType.VERTEX), Ref(name, ValueType.VERTEX)
        ) if isinstance(vertex, str | int):
            return name, vertex
    return None


def equal_refs(predicate: Predicate) -> tuple[Ref, Ref] | None:
    """Both references of a predicate `x = y` over values of one type; None for any other."""
    match predicate:
        case Comparison("=", Ref() as left, Ref() as right) if left.type is right.type and left != right:
            return left, right
    return None


IS_LOOP = Comparison("=", end_point(SRC), end_point(TRG))
"""A tuple leads from a vertex to itself."""
