"""Predicates of a join as instructions for `kernels.conditions`.

Types are settled here: an INT beside a FLOAT is converted, and two strings are equal if they have one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from meander.dataflow.state import Array
from meander.kernels import conditions as kernels
from meander.kernels.conditions import EQUAL, GREATER, LESS, Conditions
from meander.kernels.interning import Names
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

INTEGERS = frozenset({ValueType.INT, ValueType.TIME})
NUMBERS = INTEGERS | {ValueType.FLOAT}

_OUTCOMES = {
    "=": EQUAL,
    "!=": LESS | GREATER,
    "<": LESS,
    "<=": LESS | EQUAL,
    ">": GREATER,
    ">=": GREATER | EQUAL,
}
_INTEGER_OPERATIONS = {"+": kernels.ADD, "-": kernels.SUBTRACT, "*": kernels.MULTIPLY}
_REAL_OPERATIONS = {
    "+": kernels.ADD_REAL,
    "-": kernels.SUBTRACT_REAL,
    "*": kernels.MULTIPLY_REAL,
    "/": kernels.DIVIDE_REAL,
}


class Instruction(NamedTuple):
    operation: int
    operand: int = 0


class CompiledConditions:
    """What is decided at each place of a join: a list of predicates each, all of which have to hold.

    References are variables by number, `types` has their types (without any, all are vertices), and `pin` gives the
    numbers that a name in the query stands for.
    """

    def __init__(
        self,
        places: Sequence[Sequence[Predicate]],
        types: Sequence[ValueType],
        pin: Callable[[str | int], Sequence[int]],
    ) -> None:
        self.types, self.pin = types, pin
        code: list[Instruction] = []
        begin = [0]
        for predicates in places:
            for predicate in predicates:
                code += [*self._predicate(predicate), Instruction(kernels.REQUIRE)]
            begin.append(len(code))
        self.code = np.array(code, np.int64).reshape(-1, 2)
        self.begin = np.array(begin, np.int32)
        # Nothing leaves more on the stack than there are instructions.
        self.word = np.zeros(len(code) + 1, np.int64)
        self.known = np.zeros(self.word.size, np.bool_)

    def arrays(self, names: Names) -> Conditions:
        """For the kernels, with the names as they are stored now."""
        real: Array = self.word.view(np.float64)
        return Conditions(self.code, self.begin, names.span, names.arena, self.word, real, self.known)

    def _predicate(self, predicate: Predicate) -> list[Instruction]:
        match predicate:
            case Comparison(op, left, right):
                return self._comparison(op, left, right)
            case Membership(operand, values):
                return self._any([self._comparison("=", operand, value) for value in values])
            case And(parts):
                return _joined([self._predicate(part) for part in parts], kernels.AND, kernels.SKIP_IF_FALSE)
            case Or(parts):
                return self._any([self._predicate(part) for part in parts])
            case Not(part):
                return [*self._predicate(part), Instruction(kernels.NOT)]

    def _any(self, parts: list[list[Instruction]]) -> list[Instruction]:
        return _joined(parts, kernels.OR, kernels.SKIP_IF_TRUE)

    def _comparison(self, op: str, left: Scalar, right: Scalar) -> list[Instruction]:
        kinds = {self._type(left), self._type(right)}
        if kinds == {ValueType.VERTEX}:
            return self._vertex_comparison(op, left, right)
        if kinds <= NUMBERS:
            if kinds <= INTEGERS:
                compare, real = kernels.COMPARE, False
            else:
                compare, real = kernels.COMPARE_REAL, True
            operands = [*self._number(left, real), *self._number(right, real)]
        elif kinds == {ValueType.BOOL}:
            compare, operands = kernels.COMPARE, [*self._word(left), *self._word(right)]
        elif kinds == {ValueType.STRING}:
            compare = kernels.COMPARE if op in ("=", "!=") else kernels.COMPARE_TEXT
            operands = [*self._name(left), *self._name(right)]
        else:
            raise TypeError(f"{' and '.join(sorted(kinds))} do not compare")
        return [*operands, Instruction(compare, _OUTCOMES[op])]

    def _vertex_comparison(self, op: str, left: Scalar, right: Scalar) -> list[Instruction]:
        """A vertex by a number is also the one whose name has its digits."""
        if op not in ("=", "!="):
            raise TypeError(f"vertices do not compare by {op}")
        equal = self._any(
            [
                [a, b, Instruction(kernels.COMPARE, EQUAL)]
                for a in self._vertices(left)
                for b in self._vertices(right)
            ]
        )
        return equal if op == "=" else [*equal, Instruction(kernels.NOT)]

    def _vertices(self, scalar: Scalar) -> list[Instruction]:
        match scalar:
            case Ref(name):
                return [Instruction(kernels.LOAD_NUMBER, int(name))]
            case Const(str() | int() as value):
                return [Instruction(kernels.PUSH, number) for number in self.pin(value)]
            case _:
                raise TypeError("there is no arithmetic of vertices")

    def _type(self, scalar: Scalar) -> ValueType:
        match scalar:
            case Ref(name):
                return self.types[int(name)] if self.types else scalar.type or ValueType.VERTEX
            case Const():
                return scalar.type
            case Arithmetic(op, left, right):
                both = {self._type(left), self._type(right)}
                if not both <= NUMBERS:
                    raise TypeError(f"no arithmetic of {' and '.join(sorted(both))}")
                return ValueType.INT if both <= INTEGERS and op != "/" else ValueType.FLOAT

    def _name(self, scalar: Scalar) -> list[Instruction]:
        match scalar:
            case Const(str() as value):
                return [Instruction(kernels.PUSH, self.pin(value)[0])]
            case Ref(name):
                return [Instruction(kernels.LOAD_NUMBER, int(name))]
            case _:
                raise TypeError("there is no arithmetic of strings")

    def _number(self, scalar: Scalar, real: bool) -> list[Instruction]:
        """An integer, or with `real` a double."""
        if isinstance(scalar, Arithmetic):
            is_real = self._type(scalar) is ValueType.FLOAT
            operations = _REAL_OPERATIONS if is_real else _INTEGER_OPERATIONS
            operands = [*self._number(scalar.left, is_real), *self._number(scalar.right, is_real)]
            code = [*operands, Instruction(operations[scalar.op])]
        else:
            is_real = self._type(scalar) is ValueType.FLOAT
            code = self._word(scalar)
        return [*code, Instruction(kernels.TO_REAL)] if real and not is_real else code

    def _word(self, scalar: Scalar) -> list[Instruction]:
        match scalar:
            case Ref(name):
                return [Instruction(kernels.LOAD_WORD, int(name))]
            case Const(value, ValueType.FLOAT):
                number = float(value)
                if math.isnan(number):
                    return [Instruction(kernels.PUSH_UNKNOWN)]
                return [Instruction(kernels.PUSH, int(np.float64(number).view(np.int64)))]
            case Const(value):
                number = int(value)
                if not kernels.LEAST <= number <= kernels.MOST:
                    return [Instruction(kernels.PUSH_UNKNOWN)]
                return [Instruction(kernels.PUSH, number)]
            case Arithmetic():
                raise TypeError("there is no arithmetic of truth values")


def _joined(parts: list[list[Instruction]], operation: int, skip: int) -> list[Instruction]:
    """The parts one after the other, combined by AND or OR; once that is settled the rest is skipped."""
    if not parts:
        # `in []`: nothing is in there.
        return [Instruction(kernels.PUSH, 0)]
    code = parts[-1]
    for part in reversed(parts[:-1]):
        rest = [*code, Instruction(operation)]
        code = [*part, Instruction(skip, len(rest)), *rest]
    return code
