"""The law of labels: equal work is written equally, so that it is done once."""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union
from meander.rewrite.trees import rename, with_inputs


def share_common_subplans(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(S^d, S^e) = ⋈_Φ(S^d, S^d)`: below PATTERN and UNION, which do not look at their inputs' labels, subplans
    that are equal but for their own label take one label. Equal subplans are one node of the dataflow."""
    shared = _Labels(plan).relabeled(plan, seen=True)
    if shared is not plan and shared != plan:
        yield shared


class _Labels:
    """One label for each subplan, whatever it is called.

    A label is seen at the root, and in a path, which shows the edges that it is made of: these stay, and go first. Of
    several, the first in the alphabet is taken: any choice that does not depend on where one starts will settle.
    """

    def __init__(self, plan: Plan) -> None:
        self.done: dict[tuple[Plan, bool], Plan] = {}
        ranked: dict[Plan, tuple[bool, str]] = {}
        noted: set[tuple[Plan, bool]] = set()
        pending = [(plan, True)]
        while pending:
            node, seen = pending.pop()
            if (node, seen) not in noted:
                noted.add((node, seen))
                pending.extend((inner, _inputs_are_seen(node, seen)) for inner in node.inputs)
                if isinstance(node, Union | Pattern | Path):
                    rank = (not seen, node.label)
                    nameless = rename(node, "")
                    ranked[nameless] = min(rank, ranked.get(nameless, rank))
        self.names = {node: label for node, (_, label) in ranked.items()}

    def relabeled(self, plan: Plan, seen: bool) -> Plan:
        if (plan, seen) not in self.done:
            inputs = tuple(self.relabeled(inner, _inputs_are_seen(plan, seen)) for inner in plan.inputs)
            current = with_inputs(plan, inputs)
            if not seen and isinstance(plan, Union | Pattern | Path):
                current = rename(current, self.names[rename(plan, "")])
            self.done[plan, seen] = current
        return self.done[plan, seen]


def _inputs_are_seen(plan: Plan, seen: bool) -> bool:
    return isinstance(plan, Path) or (isinstance(plan, Filter) and seen)
