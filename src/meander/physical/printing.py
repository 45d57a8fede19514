"""A physical plan as text: a tree from the results down to the scans, or one line per operator in the order in
which a batch passes through them, with its indexes and its readers."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from meander.algebra.nodes import Share
from meander.algebra.printing import conditions, equalities, positions
from meander.algebra.trees import tree_lines
from meander.physical.layouts import Layout
from meander.physical.path_operators import PATH_OPERATORS
from meander.physical.plan import FilterOp, Links, PathOp, PatternOp, PhysicalPlan, ReceiveOp, ScanOp
from meander.physical.stages import Delivery, StagedPlan
from meander.physical.streams import StreamRef
from meander.syntax.durations import format_duration
from meander.syntax.printing import and_list, name_text, term_text
from meander.syntax.query import Constant
from meander.syntax.values import SRC, TRG

KINDS = {
    "WSCAN": "reads the edges of one label; an edge expires when it leaves the window",
    "RECEIVE": "reads the tuples that an earlier stage derived",
    "FILTER": "selects pairs",
    "UNION": "merges its inputs",
    "PATTERN": "joins its inputs; src2 and trg2 are the source and the target of its second input",
    "PATH": "finds the pairs of vertices that a path connects whose labels match the expression",
}
"""What each kind of operator does."""

_ENDS = {"src": "source", "trg": "target"}


# ---------------------------------------------------------------------------------------------------------
# The parts of an operator


def title(plan: PhysicalPlan, number: int) -> str:
    """The kind and the name of an operator: `PATH FP: follows+`, `PATTERN RL`, `WSCAN social: likes`."""
    name = plan.names[number]
    match plan.operators[number]:
        case PathOp():
            kind, _, rest = name.partition(" ")
            label, _, expression = rest.partition(": ")
            return f"{kind} {label}" if label == expression else name
    return name


def logic(plan: PhysicalPlan, number: int, unit: str = "s") -> list[str]:
    """What an operator computes, besides its name: windows, conditions, joins, roots and demand of paths."""
    node = plan.operators[number]
    match node:
        case ScanOp(source, _, window, slide, predicate, values):
            slides = f", slide {format_duration(slide, unit)}" if slide != 1 else ""
            windowed = f"window {format_duration(window, unit)}{slides}"
            bounds = "table" if node.table else "tuples" if node.tuples else windowed
            read = [f"reads {and_list(name_text(value.name) for value in values)}"] if values else []
            vertices = ["vertices"] if node.vertex else []
            return [*vertices, bounds, *read, *_where(conditions(predicate)), *_share(source)]
        case ReceiveOp(source):
            return _share(source)
        case FilterOp((source,), predicate):
            return _where(conditions(predicate, (SRC, TRG, *_columns(plan, source))))
        case PatternOp(inputs=inputs, ends=ends, output=output):
            names = [_columns(plan, source) for source in inputs]
            first = positions(ends, names)
            joined = " and ".join([*equalities(ends, names), *conditions(node.predicate, first)])
            columns = f"({', '.join(first[variable] for variable in output)})"
            return [f"{columns} where {joined}" if joined else columns]
        case PathOp(root=root, demand=demand):
            starts = [f"from {term_text(Constant(root))} only"] if root is not None else []
            return starts + ([f"demand: only the pairs in #{demand}"] if demand is not None else [])
    return []


def details(plan: PhysicalPlan, number: int, unit: str = "s") -> list[str]:
    """What an operator computes, how it finds paths, and the index on its output."""
    operator = plan.operators[number]
    parts = logic(plan, number, unit)
    if isinstance(operator, PathOp) and not operator.order:
        parts.append(PATH_OPERATORS["auto"].description if operator.operator == "auto" else operator.operator)
    if number in plan.indexed:
        parts.append(_index(plan.indexed[number]))
    return parts


# ---------------------------------------------------------------------------------------------------------
# Whole plans


def describe(plan: PhysicalPlan, unit: str = "s") -> str:
    """One line per operator, in the order in which a batch passes through them; then what queries share."""
    lines = []
    for number, operator in enumerate(plan.operators):
        name = f"#{number} {title(plan, number)}"
        read = operator.edges if isinstance(operator, PathOp) else operator.inputs
        reads = f" from {_numbers(read)}" if read else ""
        lines.append("; ".join([name + reads, *details(plan, number, unit), _readers(plan, number)]))
    for queries, operators in shared_by_queries(plan).items():
        lines.append(f"{and_list(queries)} share {_numbers(operators)}")
    return "\n".join(lines)


def tree(plan: PhysicalPlan, unit: str = "s") -> str:
    """The plan from its results down to its scans; an operator with several readers is printed once."""
    lines: list[str] = []
    printed: set[int] = set()

    def line(number: int) -> tuple[str, tuple[int, ...]]:
        name = f"#{number} {title(plan, number)}"
        if number in printed:
            return f"{name}, shown above", ()
        printed.add(number)
        details = ", ".join(logic(plan, number, unit))
        return f"{name}  {details}" if details else name, plan.operators[number].inputs

    for result in plan.results:
        head = f"{result.head} ({result.label}, for a later stage)" if result.raw else result.head
        lines.append(f"{result.query}.{head}" if result.query else head)
        lines += tree_lines(result.input, line, "└─ ", "   ")
    return "\n".join(lines)


def describe_stages(staged: StagedPlan, cells: int, unit: str = "s", *, as_tree: bool = False) -> str:
    """Stage by stage: which edges and tuples its cells receive, and the operators that each of them runs."""
    lines = []
    for number, stage in enumerate(staged.stages):
        if number == 0:
            lines.append(
                "stage 0: tasks read the edges and send each to the cells that need it, and a summary to all"
            )
            continue
        lines.append(f"stage {number}: {cells} cells, each with the operators")
        text = tree(stage.plan, unit) if as_tree else describe(stage.plan, unit)
        lines += [f"  {line}" for line in text.split("\n")]
        lines.append("  answers of the cells")
        for result in stage.plan.results:
            layout = stage.layouts.get((result.query, result.head))
            text = f"{result.head}: in full" if layout is None else _layout(result.head, layout, result.arity)
            lines.append(f"    {text}")
        lines.append("  input of the cells")
        for delivery in staged.deliveries:
            if delivery.stage == number:
                lines.append(f"    {_sent(delivery, staged, cells)}")
    return "\n".join(lines)


def _sent(delivery: Delivery, staged: StagedPlan, cells: int) -> str:
    """How a label, or the output of an earlier stage, is distributed over the cells of a stage."""
    label = delivery.label or next(
        f"({result.label}, from stage {number})"
        for number, stage in enumerate(staged.stages)
        for result in stage.plan.results
        if result.raw and result.head == delivery.stream
    )
    if delivery.broadcast:
        return f"{delivery.stream} {label}: broadcast"
    return f"{delivery.stream} {label}: {' and '.join(_receivers(share, cells) for share in delivery.shares)}"


def _receivers(share: Share, cells: int) -> str:
    """The cells that a share gives an edge to."""
    copies = share.cells // prod(part.size for part in share.slices)
    if not share.slices:
        return f"to the {share.cells} cells of the grid"
    to = "" if copies == 1 else f", to {copies} of {cells} cells each"
    return f"hash-partitioned by {_ends(share)}{to}"


def _ends(share: Share) -> str:
    """The ends of edges by which a share has them."""
    spread = {"hash": "", "spread": " (heavy ones by the other end)", "copy": " (heavy ones broadcast)"}
    return and_list(f"{_ENDS[part.side]}{spread[part.heavy]}" for part in share.slices)


def _layout(head: str, layout: Layout, arity: int) -> str:
    """Which cell computes which answers."""
    names = ("source", "target") if arity == 2 else tuple(f"column {at + 1}" for at in range(arity))
    columns = and_list(names[axis.position] for axis in layout.axes)
    if len(layout.axes) == 1 and layout.cells == layout.of:
        return f"{head}: each in the cell of its {columns}"
    sizes = "×".join(str(axis.size) for axis in layout.axes)
    used = "" if layout.cells == layout.of else f" ({layout.cells} of {layout.of})"
    return f"{head}: a grid of {sizes} cells{used} by {columns}"


def shared_by_queries(plan: PhysicalPlan) -> dict[tuple[str, ...], tuple[int, ...]]:
    """For each set of two or more queries, the operators that these and no others share."""
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


def _where(terms: list[str]) -> list[str]:
    return [f"where {' and '.join(terms)}"] if terms else []


def _columns(plan: PhysicalPlan, number: int) -> tuple[str, ...]:
    """The names of an operator's values."""
    return plan.columns[number] if plan.columns else ()


def _share(source: StreamRef) -> list[str]:
    if source.share is None:
        return []
    if not source.share.slices:
        return [f"for the {source.share.cells} cells of the grid"]
    return [f"this cell's share by {_ends(source.share)}"]


def _index(links: Links) -> str:
    sides = [side for side, walked in (("source", links.out), ("target", links.into)) if walked]
    return f"indexed by {and_list(sides or ['pair'])}"


def _readers(plan: PhysicalPlan, number: int) -> str:
    readers = plan.readers.get(number, ())
    return f"read by {and_list(readers or ['paths only'])}"


def _numbers(operators: Iterable[int]) -> str:
    return ", ".join(f"#{number}" for number in operators)
