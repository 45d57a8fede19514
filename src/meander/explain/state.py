"""The state that a physical plan holds in memory: edges, paths, matches."""

from __future__ import annotations

from collections.abc import Iterator

from meander.algebra.nodes import ANY_LABEL
from meander.algebra.printing import conditions
from meander.explain.sections import counted
from meander.physical.plan import (
    FilterOp,
    PathOp,
    PatternOp,
    PhysicalPlan,
    ReceiveOp,
    ScanOp,
    UnionOp,
    branches_of,
)
from meander.physical.printing import title
from meander.syntax.durations import format_duration
from meander.syntax.printing import and_list, name_text, term_text
from meander.syntax.query import Constant
from meander.syntax.values import ALL_PROPERTIES


def state_held(plan: PhysicalPlan, unit: str = "s") -> list[str]:
    """One line per item of state: edges by stream, then the operators from the scans up.

    In the physical plan, operators that would do the same work are one operator.
    """
    return [*_edges(plan, unit), *_operators(plan), *_proofs(plan)]


def _edges(plan: PhysicalPlan, unit: str) -> Iterator[str]:
    """A scan stores its edges if another operator looks them up."""
    windows: dict[tuple[str, int, int], set[str]] = {}
    tables: dict[str, set[str]] = {}
    tuples: dict[str, set[str]] = {}
    for number in plan.indexed:
        operator = plan.operators[number]
        if isinstance(operator, ScanOp):
            scanned = (operator.source.name, operator.window, operator.slide)
            if operator.table or operator.tuples:
                stored = (tables if operator.table else tuples).setdefault(operator.source.name, set())
            else:
                stored = windows.setdefault(scanned, set())
            stored.add((operator.label or ANY_LABEL) + _where(operator))
    for (stream, window, slide), labels in sorted(windows.items()):
        longest, shortest = format_duration(window, unit), format_duration(max(0, window - slide), unit)
        span = longest if slide == 1 else f"{shortest} to {longest}"
        yield f"edges of {stream} ({', '.join(sorted(labels))}), each for {span}, until it leaves the window"
    for stream, labels in sorted(tables.items()):
        yield f"rows of {stream} ({', '.join(sorted(labels))}), each until a later one replaces it"
    for stream, labels in sorted(tuples.items()):
        yield f"tuples of {stream} ({', '.join(sorted(labels))}), each until its exp or its retraction"
    yield from _properties(plan)


def _properties(plan: PhysicalPlan) -> Iterator[str]:
    """What values cost: columns of stored edges, and what deletions are matched by."""
    scans = [operator for operator in plan.operators if isinstance(operator, ScanOp)]
    columns = {value.name for scan in scans for value in scan.values}
    if columns:
        number = counted(len(columns), "value")
        yield f"{number} ({', '.join(sorted(columns))}), 4 bytes per edge and value, each distinct value once"
    for stream in dict.fromkeys(scan.source.name for scan in scans):
        named = {value.name for scan in scans if scan.source.name == stream for value in scan.named}
        if named and not any(scan.table for scan in scans if scan.source.name == stream):
            if ALL_PROPERTIES.name in named:
                yield f"for retractions from {stream}, its tuples by all of their properties"
            else:
                yield f"for deletions from {stream}, its edges by {and_list(sorted(named))} once it has any"


def _operators(plan: PhysicalPlan) -> Iterator[str]:
    for number, operator in enumerate(plan.operators):
        kind, _, name = plan.names[number].partition(" ")
        match operator:
            case PathOp():
                label, _, expression = name.rpartition(": ")
                yield f"#{number} {kind} {label}: {_reached(operator, expression)}"
            case PatternOp(inputs=inputs):
                joined = "; no intermediate join results" if len(inputs) > 2 else ""
                yield f"#{number} {kind} {name}: its distinct matches{joined}"
            case UnionOp():
                yield f"#{number} {kind} {name}: its distinct tuples"
            case FilterOp() | ReceiveOp() if number in plan.indexed:
                yield f"#{number} {title(plan, number)}: its tuples, each for as long as it is valid"


def _proofs(plan: PhysicalPlan) -> Iterator[str]:
    """What proofs and path values cost."""
    traces = [result.trace for result in plan.results if result.trace is not None]
    branches = sorted({operator for trace in traces for operator in branches_of(trace)})
    if traces:
        tuples = f"the tuples of {and_list(f'#{number}' for number in branches)}; " if branches else ""
        yield f"for paths as values, {tuples}of each answer, the edges and tuples that prove it"
    proofs = [result.proof for result in plan.results if result.proof is not None]
    looked_up = {node.operator for proof in proofs for node in proof.nodes} & plan.indexed.keys()
    derived = [number for number in looked_up if not isinstance(plan.operators[number], ScanOp)]
    if proofs:
        tuples = f"the tuples of {and_list(f'#{number}' for number in sorted(derived))}; " if derived else ""
        yield f"for proofs, {tuples}since when each edge is valid; of each answer, the edges that prove it"


def _reached(path: PathOp, expression: str) -> str:
    states = counted(path.states, "automaton state")
    if path.root is not None:
        return f"the vertices that {term_text(Constant(path.root))} reaches by {expression} ({states})"
    roots = "each source vertex" if path.demand is None else f"each source vertex in #{path.demand}"
    return f"for {roots}, the vertices that it reaches by {expression} ({states})"


def _where(scan: ScanOp) -> str:
    terms = conditions(scan.predicate)
    read = f" with {and_list(name_text(value.name) for value in scan.values)}" if scan.values else ""
    return read + (f" where {' and '.join(terms)}" if terms else "")
