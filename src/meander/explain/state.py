"""What a plan will hold in memory, and for how long: edges, closures, matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from meander.algebra import automata
from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Union, WScan
from meander.algebra.printing import conditions, path_expression
from meander.explain.sections import counted, listed
from meander.rewrite.choice import is_unbounded
from meander.syntax.durations import format_duration


def state_held(plans: Iterable[Plan], unit: str = "s") -> list[str]:
    """One line for each thing that the plans hold: edges by stream, then operators from the scans up."""
    nodes = _inputs_first(plans)
    roots = {
        node.input: node.condition.src
        for node in nodes
        if isinstance(node, Filter) and isinstance(node.input, Path) and node.condition.src is not None
    }
    lines = list(_streams(nodes, unit))
    for node in nodes:
        match node:
            case Path():
                lines.append(_closure(node, roots.get(node)))
            case Pattern():
                lines.append(_matches(node))
            case Union(inputs) if len(inputs) > 1:
                lines.append(f"{node.label}: its tuples, each once, of {_inputs(node)}")
    return lines


def _inputs_first(plans: Iterable[Plan]) -> list[Plan]:
    """Every distinct node once, after those that it reads."""
    ordered: dict[Plan, None] = {}

    def visit(node: Plan) -> None:
        if node not in ordered:
            for inner in node.inputs:
                visit(inner)
            ordered[node] = None

    for plan in plans:
        visit(plan)
    return list(ordered)


def _streams(nodes: list[Plan], unit: str) -> Iterator[str]:
    windows: dict[tuple[str, int, int], list[str]] = {}
    for node in nodes:
        if isinstance(node, WScan):
            asked = (
                f" where {' and '.join(conditions(node.condition))}" if node.condition != Condition() else ""
            )
            labels = windows.setdefault((node.stream, node.window, node.slide), [])
            labels += [label + asked for label in node.labels]
    for (stream, window, slide), labels in sorted(windows.items()):
        longest, shortest = format_duration(window, unit), format_duration(max(0, window - slide), unit)
        kept = longest if slide == 1 else f"more than {shortest} and at most {longest}"
        yield f"{stream}: edges {listed(sorted(set(labels)))}, each for {kept} from its time on"


def _closure(path: Path, root: str | int | None) -> str:
    states = automata.compile(path.expr).states
    kind = "closure" if is_unbounded(path.expr) else "paths"
    start = f"the vertex {root}" if root is not None else "every vertex where one begins"
    return (
        f"{path.label}: {kind} {path_expression(path)} over {_inputs(path)}, a tree from {start} to all that it "
        f"reaches ({counted(states, 'state')} of the automaton)"
    )


def _matches(pattern: Pattern) -> str:
    if len(pattern.inputs) == 1:
        return f"{pattern.label}: its answers, each once, from {_inputs(pattern)}"
    return f"{pattern.label}: its answers, each once, found by joining {_inputs(pattern)}; nothing in between"


def _inputs(plan: Plan) -> str:
    return listed(dict.fromkeys(inner.label for inner in plan.inputs))
