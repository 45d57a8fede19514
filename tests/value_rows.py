"""Tuples with value columns for tests of single operators, and a predicate's truth by its definition."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Mapping, Sequence

import numpy as np

from meander.dataflow.batch import empty_batch
from meander.dataflow.edges import BOOL, FLOAT, INTEGER, STRING, Text
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import Batch
from meander.syntax.values import (
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

Value = str | int | float | bool

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CALCULATE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def intern_values(vertices: Vertices, values: Sequence[Value]) -> list[int]:
    """The numbers of values of any type."""
    encoded = [encode(value) for value in values]
    data = b"".join(text for text, _ in encoded) or b"\0"
    end = np.cumsum([len(text) for text, _ in encoded], dtype=np.int64)
    start = end - [len(text) for text, _ in encoded]
    kinds = np.array([kind for _, kind in encoded], np.int8)
    buffer = np.frombuffer(data, np.uint8)
    numbers: list[int] = vertices.intern(Text(buffer, start, end, kinds)).tolist()
    return numbers


def encode(value: Value) -> tuple[bytes, int]:
    match value:
        case bool():
            return bytes([value]), BOOL
        case int():
            return struct.pack("<q", value), INTEGER
        case float():
            return struct.pack("<d", value), FLOAT
        case str():
            return value.encode(), STRING


def wide_batch(changes: Sequence[tuple[tuple[int, ...], int, int, int]], arity: int) -> Batch:
    """(key, ts, exp, op) as a batch."""
    batch = empty_batch(len(changes), arity)
    for row, (key, ts, exp, op) in enumerate(changes):
        batch.key[row] = key
        batch.ts[row], batch.exp[row], batch.op[row], batch.source[row] = ts, exp, op, 0
    return batch


def truth(predicate: Predicate, values: Mapping[int, Value]) -> bool | None:
    """Whether a predicate holds; None for unknown."""
    match predicate:
        case Comparison(op, left, right):
            return compare(op, left, right, values)
        case Membership(operand, constants):
            return any_of([compare("=", operand, constant, values) for constant in constants])
        case And(parts):
            return negated(any_of([negated(truth(part, values)) for part in parts]))
        case Or(parts):
            return any_of([truth(part, values) for part in parts])
        case Not(part):
            return negated(truth(part, values))


def any_of(truths: Sequence[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def compare(op: str, left: Scalar, right: Scalar, values: Mapping[int, Value]) -> bool | None:
    a, b = amount(left, values), amount(right, values)
    if a is None or b is None:
        return None
    for constant, other in ((left, b), (right, a)):
        if isinstance(constant, Const) and constant.type is ValueType.VERTEX:
            equal = other == constant.value or other == str(constant.value)
            return equal if op == "=" else not equal
    if isinstance(a, str) and isinstance(b, str):
        return bool(_COMPARE[op](a.encode(), b.encode()))
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    return type(a) is type(b) and bool(_COMPARE[op](a, b)) if op != "!=" else a != b


def amount(scalar: Scalar, values: Mapping[int, Value]) -> Value | None:
    """The value of a scalar; None for a missing one."""
    match scalar:
        case Ref(name):
            return values[int(name)]
        case Const(value, kind):
            return float(value) if kind is ValueType.FLOAT else value
        case Arithmetic(op, left, right):
            a, b = amount(left, values), amount(right, values)
            if a is None or b is None:
                return None
            assert not isinstance(a, str)
            assert not isinstance(b, str)
            if op != "/" and isinstance(a, int) and isinstance(b, int):
                result = int(_CALCULATE[op](a, b))
                return result if -(2**63) <= result < 2**63 else None
            x, y = float(a), float(b)
            real = math.nan if op == "/" and not y else _CALCULATE[op](x, y)
            return None if math.isnan(real) else real
