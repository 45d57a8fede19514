"""The law of labels: subplans that differ in their labels alone get the same label, and so become one node."""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union
from meander.rewrite.trees import rename, with_inputs


def share_common_subplans(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(S^d, S^e) = ⋈_Φ(S^d, S^d)`: below PATTERN and UNION, which ignore their inputs' labels, subplans that
    are equal except for their label get the same label (common subexpression elimination)."""
    shared = _Labels(plan).relabeled(plan, visible=True)
    if shared is not plan and shared != plan:
        yield shared


class _Labels:
    """The label that each subplan gets, regardless of its own.

    A label is visible at the root, and in a path, which returns its edges: visible labels stay, and take precedence.
    Of several, the first in the alphabet is taken: any choice that is independent of traversal order will settle.
    """

    def __init__(self, plan: Plan) -> None:
        self.done: dict[tuple[Plan, bool], Plan] = {}
        ranked: dict[Plan, tuple[bool, str]] = {}
        visited: set[tuple[Plan, bool]] = set()
        pending = [(plan, True)]
        while pending:
            node, visible = pending.pop()
            if (node, visible) not in visited:
                visited.add((node, visible))
                pending.extend((inner, _inputs_are_visible(node, visible)) for inner in node.inputs)
                if isinstance(node, Union | Pattern | Path):
                    rank = (not visible, node.label)
                    nameless = rename(node, "")
                    ranked[nameless] = min(rank, ranked.get(nameless, rank))
        self.names = {node: label for node, (_, label) in ranked.items()}

    def relabeled(self, plan: Plan, visible: bool) -> Plan:
        if (plan, visible) not in self.done:
            inputs = tuple(self.relabeled(inner, _inputs_are_visible(plan, visible)) for inner in plan.inputs)
            current = with_inputs(plan, inputs)
            if not visible and isinstance(plan, Union | Pattern | Path):
                current = rename(current, self.names[rename(plan, "")])
            self.done[plan, visible] = current
        return self.done[plan, visible]


def _inputs_are_visible(plan: Plan, visible: bool) -> bool:
    return isinstance(plan, Path) or (isinstance(plan, Filter) and visible)
