"""A naive twin of time-respecting paths: automata to test with, and the answers of one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

LONG = 1 << 62

Move = tuple[int, int, bool, int]


class Expression(NamedTuple):
    """An automaton over inputs 0 and 1."""

    text: str
    states: int
    accepting: tuple[int, ...]
    moves: tuple[Move, ...]


EXPRESSIONS = (
    Expression("a+", 2, (1,), ((0, 0, False, 1), (1, 0, False, 1))),
    Expression("a*", 1, (0,), ((0, 0, False, 0),)),
    Expression("a/b*", 2, (1,), ((0, 0, False, 1), (1, 1, False, 1))),
    Expression("(a|^b)+", 2, (1,), ((0, 0, False, 1), (0, 1, True, 1), (1, 0, False, 1), (1, 1, True, 1))),
    Expression("(^a)*", 1, (0,), ((0, 0, True, 0),)),
    Expression("(a/^a)+", 3, (2,), ((0, 0, False, 1), (1, 0, True, 2), (2, 0, False, 1))),
    Expression(
        "a?/b?/a?",
        4,
        (0, 1, 2, 3),
        ((0, 0, False, 1), (0, 1, False, 2), (1, 0, False, 3), (1, 1, False, 2), (2, 0, False, 3)),
    ),
    Expression("a{2}|b", 3, (2,), ((0, 0, False, 1), (0, 1, False, 2), (1, 0, False, 2))),
)


class Valid(NamedTuple):
    source: int
    src: int
    trg: int
    time: int
    exp: int


def naive_answers(
    arrivals: Sequence[Valid], expression: Expression, strict: bool, now: int, roots: Sequence[int]
) -> dict[tuple[int, int], int]:
    """The largest least expiry over all ascending walks, by pair: dynamic programming over the times."""
    valid = sorted((arrival for arrival in arrivals if arrival.exp > now), key=lambda arrival: arrival.time)
    best: dict[tuple[int, int], int] = {}
    for root in roots:
        reached = {(root, 0): LONG * 2}
        for _, instant in groupby(valid, key=lambda arrival: arrival.time):
            edges = list(instant)
            while True:
                before = dict(reached)
                for edge in edges:
                    for state, source, inverse, to in expression.moves:
                        tail, head = (edge.trg, edge.src) if inverse else (edge.src, edge.trg)
                        lasts = min(before.get((tail, state), 0), edge.exp)
                        if source != edge.source or lasts == 0:
                            continue
                        reached[head, to] = max(reached.get((head, to), 0), lasts)
                        if to in expression.accepting:
                            best[root, head] = max(best.get((root, head), 0), lasts)
                if strict or before == reached:
                    break
        if 0 in expression.accepting:
            for edge in valid:
                if root in (edge.src, edge.trg):
                    best[root, root] = max(best.get((root, root), 0), edge.exp)
    return best
