"""Comparisons between the variables of a join, decided while it binds them.

A predicate becomes instructions for a stack machine (`dataflow.conditions`): an operation and an operand each. The
types are known then, so an operation never looks at one. Variables are numbers of names: integers, doubles and truth
values stand in the heads of their spans, strings in the arena. Every place of a join at which something is decided
has its own stretch of the code.

Truth has three values: an element of the stack that is not `known` is a missing value or an unknown truth.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.interning import HEAD, LENGTH, START
from meander.kernels.jit import Array, kernel

# Operations. A comparison's operand is the sum of the outcomes for which it is true.
(
    LOAD_NUMBER,  # push the number that a variable is bound to
    LOAD_WORD,  # push the integer, double or truth value that a variable is bound to
    PUSH,  # push the operand: an integer, the bits of a double, or a name's number
    PUSH_UNKNOWN,
    TO_REAL,  # convert the integer on top to a double
    ADD,
    SUBTRACT,
    MULTIPLY,
    ADD_REAL,
    SUBTRACT_REAL,
    MULTIPLY_REAL,
    DIVIDE_REAL,
    COMPARE,  # as integers
    COMPARE_REAL,
    COMPARE_TEXT,  # the bytes of two names
    AND,
    OR,
    NOT,
    SKIP_IF_FALSE,  # go forward by the operand's number of instructions, and leave the stack as it is
    SKIP_IF_TRUE,
    REQUIRE,  # pop; if it is not true, neither is the whole
) = range(21)
LESS, EQUAL, GREATER = 1, 2, 4

MOST, LEAST = (1 << 63) - 1, -(1 << 63)


class Conditions(NamedTuple):
    code: Array  # int64 by instruction: operation, operand
    begin: Array  # by place: begin in `code`, with one more for the end
    span: Array  # of `interning.Names`
    arena: Array
    word: Array  # the stack: int64
    real: Array  # the same memory as doubles
    known: Array


@kernel
def compare_text(span: Array, arena: Array, left: int, right: int) -> int:
    """LESS, EQUAL or GREATER, by the bytes of two names."""
    if left == right:
        return EQUAL
    a, b = span[left, START], span[right, START]
    length, other = span[left, LENGTH], span[right, LENGTH]
    for i in range(min(length, other)):
        x, y = arena[a + i], arena[b + i]
        if x != y:
            return LESS if x < y else GREATER
    if length == other:
        return EQUAL
    return LESS if length < other else GREATER


@kernel
def product_fits(a: int, b: int) -> bool:
    """Whether the product of two 64-bit integers is one. It is not formed: compiled, one that overflows is whatever
    the compiler likes."""
    if a == 0 or b == 0:
        return True
    if a > 0 and b > 0:
        return a <= MOST // b
    if a > 0:
        return b == -1 or a <= LEAST // b
    if b > 0:
        return a == -1 or b <= LEAST // a
    return a != LEAST and b != LEAST and -a <= MOST // -b


@kernel
def are_true(conditions: Conditions, place: int, values: Array) -> bool:
    """Whether all that is decided at a place is true of the variables' `values`."""
    code, word, real, known = conditions.code, conditions.word, conditions.real, conditions.known
    at, end = conditions.begin[place], conditions.begin[place + 1]
    top = -1
    while at < end:
        operation, operand = code[at, 0], code[at, 1]
        at += 1
        if operation == LOAD_NUMBER:
            top += 1
            word[top] = values[operand]
            known[top] = True
        elif operation == LOAD_WORD:
            top += 1
            word[top] = conditions.span[values[operand], HEAD]
            known[top] = True
        elif operation == PUSH:
            top += 1
            word[top] = operand
            known[top] = True
        elif operation == PUSH_UNKNOWN:
            top += 1
            word[top] = 0
            known[top] = False
        elif operation == TO_REAL:
            real[top] = float(word[top])
        elif operation == NOT:
            word[top] = 1 - word[top]
        elif operation == SKIP_IF_FALSE:
            if known[top] and word[top] == 0:
                at += operand
        elif operation == SKIP_IF_TRUE:
            if known[top] and word[top] != 0:
                at += operand
        elif operation == REQUIRE:
            if not known[top] or word[top] == 0:
                return False
            top -= 1
        else:
            top -= 1
            apply_operation(conditions, operation, operand, top)
    return True


@kernel
def apply_operation(conditions: Conditions, operation: int, operand: int, top: int) -> None:
    """Combine the element at `top` with the one above it."""
    word, real, known = conditions.word, conditions.real, conditions.known
    a, b = word[top], word[top + 1]
    if operation == AND:
        is_false = (known[top] and a == 0) or (known[top + 1] and b == 0)
        word[top] = 0 if is_false else 1
        known[top] = is_false or (known[top] and known[top + 1])
        return
    if operation == OR:
        is_true = (known[top] and a != 0) or (known[top + 1] and b != 0)
        word[top] = 1 if is_true else 0
        known[top] = is_true or (known[top] and known[top + 1])
        return
    known[top] = known[top] and known[top + 1]
    if not known[top]:
        # The words of missing values are arbitrary.
        return
    if operation == COMPARE:
        outcome = EQUAL if a == b else LESS if a < b else GREATER
        word[top] = (operand & outcome) != 0
    elif operation == COMPARE_TEXT:
        outcome = compare_text(conditions.span, conditions.arena, a, b)
        word[top] = (operand & outcome) != 0
    elif operation == ADD:
        known[top] = a <= MOST - b if b >= 0 else a >= LEAST - b
        if known[top]:
            word[top] = a + b
    elif operation == SUBTRACT:
        known[top] = a >= LEAST + b if b >= 0 else a <= MOST + b
        if known[top]:
            word[top] = a - b
    elif operation == MULTIPLY:
        known[top] = product_fits(a, b)
        if known[top]:
            word[top] = a * b
    else:
        # As Python's own numbers these never warn where the kernel runs uncompiled.
        x, y = float(real[top]), float(real[top + 1])
        if operation == COMPARE_REAL:
            outcome = EQUAL if x == y else LESS if x < y else GREATER
            word[top] = (operand & outcome) != 0
            return
        if operation == ADD_REAL:
            x += y
        elif operation == SUBTRACT_REAL:
            x -= y
        elif operation == MULTIPLY_REAL:
            x *= y
        elif y == 0.0:
            known[top] = False
            return
        else:
            x /= y
        known[top] = x == x
        real[top] = x
