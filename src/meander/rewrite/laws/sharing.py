"""The law of labels: equal work is written equally, so that it is done once."""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.rewrite.trees import rename, with_inputs


def share_subplans(plan: Plan) -> Iterator[Plan]:
    """`⋈_Φ(S^d, S^e) = ⋈_Φ(S^d, S^d)`: below PATTERN and UNION, which do not look at their inputs' labels, subplans
    that are equal but for their own label take one label. Equal subplans are one node of the dataflow."""
    shared = _Labels(plan).relabelled(plan, seen=True)
    if shared is not plan and shared != plan:
        yield shared


class _Labels:
    """One label for each subplan, whatever it is called; a label that the answers show goes first.

    A label is seen at the root, and in a path, which shows the edges that it is made of.
    """

    def __init__(self, plan: Plan) -> None:
        self.names: dict[Plan, str] = {}
        self.done: dict[tuple[Plan, bool], Plan] = {}
        pending, noted = [(plan, True)], set()
        while pending:
            node, seen = pending.pop()
            if (node, seen) not in noted:
                noted.add((node, seen))
                if seen and not isinstance(node, WScan):
                    self.names.setdefault(rename(node, ""), node.label)
                pending.extend((inner, _inputs_are_seen(node, seen)) for inner in reversed(node.inputs))

    def relabelled(self, plan: Plan, seen: bool) -> Plan:
        if (plan, seen) not in self.done:
            inputs = tuple(self.relabelled(inner, _inputs_are_seen(plan, seen)) for inner in plan.inputs)
            current = with_inputs(plan, inputs)
            if not seen and isinstance(current, Union | Pattern | Path):
                current = rename(current, self.names.setdefault(rename(current, ""), current.label))
            self.done[plan, seen] = current
        return self.done[plan, seen]


def _inputs_are_seen(plan: Plan, seen: bool) -> bool:
    return isinstance(plan, Path) or (isinstance(plan, Filter) and seen)
