"""Path expressions under substitution.

A law takes an expression apart, substitutes another for a label, and builds the result. The builders here
normalize it (nested sequences flat, inverses at labels only, no `{1,1}`), so that expressions that differ in
parentheses alone are equal. They keep every label: if an expression accepts the empty word, its labels decide
whose end points that word joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from meander.algebra.automata import push_down_inverses
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then, map_labels

# A longer repetition is left to the automaton: its join would be too long.
MOST_COPIES = 4


def then(parts: Sequence[PathExpr]) -> PathExpr:
    """`e1/e2/…`, flat; a single part stands for itself."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Then) else (part,))]
    return flat[0] if len(flat) == 1 else Then(tuple(flat))


def either(parts: Sequence[PathExpr]) -> PathExpr:
    """`e1|e2|…`, flat and without duplicates; a single part stands for itself."""
    flat = tuple(
        dict.fromkeys(
            inner for part in parts for inner in (part.parts if isinstance(part, Either) else (part,))
        )
    )
    return flat[0] if len(flat) == 1 else Either(flat)


def repeat(expr: PathExpr, low: int, high: int | None) -> PathExpr:
    """`e{low,high}`, with nested marks, as in `(e+)?`, written as `e?`, `e+` or `e*`."""
    if (low, high) == (1, 1):
        return expr
    if isinstance(expr, Repeat) and _is_mark(low, high) and _is_mark(expr.low, expr.high):
        return Repeat(expr.expr, min(low, expr.low), 1 if high == expr.high == 1 else None)
    return Repeat(expr, low, high)


def _is_mark(low: int, high: int | None) -> bool:
    return (low, high) in ((0, 1), (0, None), (1, None))


def normalize(expr: PathExpr) -> PathExpr:
    """The same language over the same labels, flat, with inverses at labels only and no `{1,1}`."""
    return _flatten(push_down_inverses(expr))


tidy = normalize  # the former name, until `physical.shares` no longer imports it


def _flatten(expr: PathExpr) -> PathExpr:
    match expr:
        case Then(parts):
            return then([_flatten(part) for part in parts])
        case Either(parts):
            return either([_flatten(part) for part in parts])
        case Repeat(inner, low, high):
            return repeat(_flatten(inner), low, high)
    return expr


def substitute(expr: PathExpr, meaning: Mapping[str, PathExpr]) -> PathExpr:
    """`expr`, normalized, with each label that is a key of `meaning` replaced by its expression."""
    return normalize(map_labels(expr, lambda label: meaning.get(label.name, label)))


def is_step(expr: PathExpr) -> bool:
    """Whether the expression is a single edge, read forwards or backwards."""
    return isinstance(expr, Label) or (isinstance(expr, Inverse) and isinstance(expr.expr, Label))


def sequence(expr: PathExpr) -> tuple[PathExpr, ...]:
    """The parts of a concatenation: `a/b` has two, `a{2,3}` is `a/a/a?`, `a{2,}` is `a/a+`; any other is one part."""
    match expr:
        case Then(parts):
            return parts
        case Repeat(inner, low, None) if 2 <= low <= MOST_COPIES:
            return (inner,) * (low - 1) + (repeat(inner, 1, None),)
        case Repeat(inner, low, int(high)) if low >= 1 and 2 <= high <= MOST_COPIES:
            return (inner,) * low + (repeat(inner, 0, 1),) * (high - low)
    return (expr,)


def alternatives(expr: PathExpr) -> tuple[PathExpr, ...]:
    """The parts of an alternation; any other expression is its only part."""
    return expr.parts if isinstance(expr, Either) else (expr,)


Rebuild = Callable[[PathExpr], PathExpr]


class Subexpression(NamedTuple):
    """A part of an expression, the function that replaces it, and whether it is repeated without bound."""

    part: PathExpr
    rebuild: Rebuild
    looped: bool


def subexpressions(expr: PathExpr) -> Iterator[Subexpression]:
    """Every subexpression of a normalized expression, outermost first.

    Two or more neighbors in a sequence are a subexpression too.
    """
    return _subexpressions(expr, lambda new: new, False)


def _subexpressions(expr: PathExpr, outer: Rebuild, looped: bool) -> Iterator[Subexpression]:
    yield Subexpression(expr, outer, looped)
    match expr:
        case Then(parts) | Either(parts):
            build = then if isinstance(expr, Then) else either

            def between(i: int, j: int) -> Rebuild:
                return lambda new: outer(build([*parts[:i], new, *parts[j:]]))

            for i, j in combinations(range(len(parts) + 1), 2):
                if j - i == 1:
                    yield from _subexpressions(parts[i], between(i, j), looped)
                elif isinstance(expr, Then) and j - i < len(parts):
                    yield Subexpression(Then(parts[i:j]), between(i, j), looped)
        case Repeat(inner, low, high):
            yield from _subexpressions(
                inner, lambda new: outer(repeat(new, low, high)), looped or high is None
            )


def with_first_step(expr: PathExpr, change: Callable[[PathExpr], PathExpr]) -> PathExpr | None:
    """`expr` with each step that can be the first of a path changed.

    None if a repetition comes first: its steps are also taken later, or not at all.
    """
    if is_step(expr):
        return change(expr)
    match expr:
        case Then((first, *rest)):
            changed = with_first_step(first, change)
            return None if changed is None else then([changed, *rest])
        case Either(parts):
            changed_parts = [with_first_step(part, change) for part in parts]
            present = [part for part in changed_parts if part is not None]
            return either(present) if len(present) == len(parts) else None
    return None
