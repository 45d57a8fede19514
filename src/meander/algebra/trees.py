"""Traversal and drawing of trees. A plan reads as a tree and is a graph in memory: each node is visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def tree_lines(
    root: T, line: Callable[[T], tuple[str, Sequence[T]]], first: str = "", indent: str = ""
) -> Iterator[str]:
    """An indented tree for the terminal, root first; `line` returns the text of a node and the nodes below it."""
    text, below = line(root)
    yield first + text
    for number, node in enumerate(below, start=1):
        branch, rest = ("└─ ", "   ") if number == len(below) else ("├─ ", "│  ")
        yield from tree_lines(node, line, indent + branch, indent + rest)
