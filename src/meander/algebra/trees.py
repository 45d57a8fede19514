"""Traversal of plans: a plan is a tree to read and a graph in memory, so every distinct node is visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from meander.algebra.nodes import Plan

T = TypeVar("T")


def walk(plan: Plan) -> Iterator[Plan]:
    """Every distinct node of a plan, in the order of its first occurrence in the tree, root first."""
    seen: set[Plan] = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(reversed(node.inputs))


def fold(plan: Plan, combine: Callable[[Plan, tuple[T, ...]], T]) -> T:
    """Bottom up, the result of `combine(node, results of its inputs)`; called once for each distinct node."""
    results: dict[Plan, T] = {}

    def result(node: Plan) -> T:
        if node not in results:
            results[node] = combine(node, tuple(map(result, node.inputs)))
        return results[node]

    return result(plan)
