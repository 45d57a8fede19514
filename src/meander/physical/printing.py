"""A physical plan in words: each operator, what it reads, what it keeps, who reads it, and what queries share."""

from __future__ import annotations

from collections.abc import Iterable

from meander.algebra.nodes import Condition
from meander.algebra.printing import conditions
from meander.physical.plan import FilterOp, Links, PathOp, PhysicalPlan, ScanOp
from meander.physical.stages import Delivery, StagedPlan
from meander.syntax.durations import format_duration

AUTO_PATH_OPERATOR = "s-path or closure, as it finds while running"
"""What `--path-operator auto` comes to."""


def describe(plan: PhysicalPlan, unit: str = "s") -> str:
    """A line for each operator, in the order in which a batch passes through them; then what queries share."""
    lines = []
    for number, operator in enumerate(plan.operators):
        name = f"#{number} {plan.names[number]}"
        read = operator.edges if isinstance(operator, PathOp) else operator.inputs
        reads = f" from {_numbers(read)}" if read else ""
        lines.append("; ".join([name + reads, *details(plan, number, unit), _readers(plan, number)]))
    for queries, operators in shared_by_queries(plan).items():
        lines.append(f"{_listed(queries)} share {_numbers(operators)}")
    return "\n".join(lines)


def describe_stages(staged: StagedPlan, cells: int, unit: str = "s") -> str:
    """Stage by stage: what is sent to whom, and the operators of each of its cells."""
    lines = []
    for number, stage in enumerate(staged.stages):
        if number == 0:
            lines.append("stage 0: one cell puts edges in order, and sends them to those who read them")
            continue
        lines.append(f"stage {number}: {cells} cells, each with the operators")
        lines += [f"  {line}" for line in describe(stage.plan, unit).split("\n")]
        lines.append("  each cell is sent")
        for one in staged.deliveries:
            if one.stage == number:
                lines.append(f"    {_sent(one, staged)}")
    return "\n".join(lines)


def _sent(one: Delivery, staged: StagedPlan) -> str:
    """What the cells of a stage are sent of a label, or of what an earlier stage derives."""
    label = one.label or next(
        f"({result.label}, from stage {number})"
        for number, stage in enumerate(staged.stages)
        for result in stage.plan.results
        if result.raw and result.head == one.stream
    )
    if one.to_all:
        return f"{one.stream} {label}: all"
    ends = {"src": "source", "trg": "target"}
    return f"{one.stream} {label}: those whose {' or '.join(ends[side] for side in one.sides)} it owns"


def details(plan: PhysicalPlan, number: int, unit: str = "s") -> list[str]:
    """What there is to say of an operator besides its name: windows, conditions, how paths are found, indexes."""
    said = []
    match plan.operators[number]:
        case ScanOp(window=window, slide=slide, condition=condition):
            said.append(f"window {format_duration(window, unit)}, slide {format_duration(slide, unit)}")
            said += _where(condition)
        case FilterOp(condition=condition):
            said += _where(condition)
        case PathOp(operator=how, root=root, demand=demand):
            said.append(f"by {AUTO_PATH_OPERATOR if how == 'auto' else how}")
            if demand is not None:
                said.append(f"asked only for the pairs of #{demand}")
            if root is not None:
                said.append(f"from {root} alone")
    if number in plan.indexed:
        said.append(_index(plan.indexed[number]))
    return said


def shared_by_queries(plan: PhysicalPlan) -> dict[tuple[str, ...], tuple[int, ...]]:
    """For each set of queries, the operators that work for all of them and for no other; of one query, nothing."""
    users: list[dict[str, None]] = [{} for _ in plan.operators]
    for result in plan.results:
        pending = [result.input, *(source for proof in result.proofs for source in proof.path.edges)]
        while pending:
            number = pending.pop()
            if result.query not in users[number]:
                users[number][result.query] = None
                pending += plan.operators[number].inputs
    shared: dict[tuple[str, ...], tuple[int, ...]] = {}
    for number, queries in enumerate(users):
        if len(queries) > 1:
            shared[tuple(queries)] = (*shared.get(tuple(queries), ()), number)
    return shared


def _where(condition: Condition) -> list[str]:
    return [f"where {_listed(conditions(condition))}"] if condition != Condition() else []


def _index(links: Links) -> str:
    ways = [way for way, kept in (("source", links.out), ("target", links.into)) if kept]
    return f"kept, with lists by {_listed(ways)}" if ways else "kept, each pair once"


def _readers(plan: PhysicalPlan, number: int) -> str:
    readers = plan.readers.get(number, ())
    return f"{'shared by' if len(readers) > 1 else 'to'} {_listed(readers or ['paths alone'])}"


def _numbers(operators: Iterable[int]) -> str:
    return ", ".join(f"#{number}" for number in operators)


def _listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    shown = list(names)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
