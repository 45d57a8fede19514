"""Plans by shares: what one of N cells computes of a query, and what cells compute for each other.

A layout gives every tuple of a plan one cell, by the hashes of the vertices at some of its columns (see `layouts`).
So the answers of the cells are disjoint, and together they are all answers. A share of a plan is a plan:

- A share of a WSCAN by its source (target) reads the edges whose source (target) hashes to the cell (`WScan.share`).
- A share of a PATH by its root: `e` is the union of `s/r` over the steps `s` that a path can begin with, and each
  first step reads the share of its input. Later steps read all of it. If `e` accepts the empty word, it is `o/e`
  instead, where `o` joins the owned vertices of all inputs to themselves.
- A share of a PATTERN by variables: the inputs that have some of them read their shares, the others everything.

A derived input that a share needs in full, or by a position that it has no share by (a PATH by its target), is
*cut out*: an earlier stage computes it once, by shares of its own, and the cells that read it *receive* its tuples.
A plan that is cheap to derive, such as edges read backwards, is derived where it is read. Only joins of edges have
layouts of several dimensions, and joins that probe a closure of few edges: what is derived is derived by every cell
of a row of the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from meander.algebra.automata import labels, nullable
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.trees import fold, walk
from meander.physical.layouts import Layout
from meander.rewrite import trees
from meander.rewrite.expressions import either, is_step, repeat, then, tidy
from meander.syntax.query import Either, Inverse, Label, PathExpr, PathOrder, Repeat, Then


class Shares:
    """Makes shares of plans. `cuts` are the plans that have been cut out, by the name of their derived stream."""

    def __init__(self) -> None:
        self.cuts: dict[str, Plan] = {}
        self._streams: dict[Plan, str] = {}

    def is_cut(self, plan: Plan) -> bool:
        return nameless(plan) in self._streams

    def of(self, plan: Plan, layout: Layout | None) -> Plan | None:
        """The tuples of a plan that a layout gives the cell (without a layout: all of them), computed here; None if
        it cannot compute less than all of them."""
        return self.native(plan, layout) if layout is not None else self.inlined(plan)

    def by(self, plan: Plan, layout: Layout) -> Plan | None:
        """As `of`, for an input: computed here or received."""
        if not self.is_cut(plan):
            share = self.native(plan, layout)
            if share is not None or not is_derived(plan) or plan.arity != 2:
                return share
        return _partitioned(self.received(plan), layout)

    def full(self, plan: Plan) -> Plan:
        """All tuples of an input, received unless they are cheap to derive."""
        if self.is_cut(plan):
            return self.received(plan)
        if not is_derived(plan):
            return plan
        return self.inlined(plan) if isinstance(plan, Union) or plan.arity != 2 else self.received(plan)

    def inlined(self, plan: Plan) -> Plan:
        """All tuples of a plan, computed here from inputs in full."""
        return trees.with_inputs(plan, tuple(map(self.full, plan.inputs)))

    def proof(self, path: Path) -> Path:
        """A path that proves answers, over inputs in full."""
        proof = self.inlined(path)
        assert isinstance(proof, Path)
        return proof

    def received(self, plan: Plan) -> Receive:
        key = nameless(plan)
        if key not in self._streams:
            self._streams[key] = f"@{len(self.cuts) + 1}"
            self.cuts[self._streams[key]] = plan
        return Receive(self._streams[key], plan.label, values=plan.values)

    def native(self, plan: Plan, layout: Layout) -> Plan | None:
        match plan:
            case WScan() | Receive():
                return _partitioned(plan, layout)
            case Filter():
                cut = self.is_cut(plan.input)
                inner = self.by(plan.input, layout) if cut else self.native(plan.input, layout)
                return None if inner is None else Filter(inner, plan.predicate)
            case Union():
                parts = [self.by(part, layout) for part in plan.inputs]
                shares = tuple(dict.fromkeys(part for part in parts if part is not None))
                return Union(shares, plan.label) if None not in parts else None
            case Pattern():
                return self._pattern(plan, layout)
            case Path():
                is_by_root = [(axis.position, axis.spreads) for axis in layout.axes] == [(0, False)]
                return self._path(plan, layout) if is_by_root else None

    def _pattern(self, plan: Pattern, layout: Layout) -> Plan | None:
        inputs: list[Plan] = []
        exact: set[int] = set()  # the strides of the dimensions in which some input has one coordinate
        for source, ends in zip(plan.inputs, plan.ends, strict=True):
            of_input = layout.of_input(plan.output, ends)
            repeats = layout.repeats_searches and isinstance(source, Path) and not self.is_cut(source)
            if repeats:
                of_input = of_input.by_root()
            share = self.by(source, of_input) if of_input.axes else None
            if share is None:
                share = _limited(self.inlined(source) if repeats else self.full(source), layout)
            else:
                exact |= {axis.stride for axis in of_input.axes if axis.is_exact}
            inputs.append(share)
        needed = {axis.stride for axis in layout.axes if axis.is_exact}
        return replace(plan, inputs=tuple(inputs)) if needed <= exact else None

    def _path(self, plan: Path, layout: Layout) -> Plan | None:
        expr = tidy(plan.expr)
        if nullable(expr) and plan.order is PathOrder.ANY:
            owned = self._owned_vertices(plan, layout)
            if owned is None:
                return None
            words: PathExpr = then([Label(str(len(plan.inputs))), expr])
            inputs = [_limited(self.full(source), layout) for source in plan.inputs]
            return trees.path([*inputs, owned], words, plan.label)
        rest = self._after_first_steps(plan, expr, layout)
        if rest is None or not nullable(expr):
            return rest
        owned = self._owned_vertices(plan, layout)
        return None if owned is None else Union((rest, owned), plan.label)

    def _after_first_steps(self, plan: Path, expr: PathExpr, layout: Layout) -> Path | None:
        """The paths of at least one edge from owned roots."""
        shares: list[Plan] = []
        words: list[PathExpr] = []
        for step, rest in first_steps(expr):
            label = step.expr if isinstance(step, Inverse) else step
            assert isinstance(label, Label)
            side = 1 if isinstance(step, Inverse) else 0
            share = self.by(plan.inputs[int(label.name)], layout.at(side))
            if share is None:
                return None
            first: PathExpr = Label(str(len(plan.inputs) + len(shares)))
            shares.append(share)
            words.append(then([Inverse(first) if isinstance(step, Inverse) else first, *rest]))
        if not words:
            return None
        read = {label.name for label in labels(either(words))}
        inputs = [
            _limited(self.full(source), layout) if str(number) in read else source
            for number, source in enumerate(plan.inputs)
        ]
        return trees.path([*inputs, *shares], either(words), plan.label, plan.order)

    def _owned_vertices(self, plan: Path, layout: Layout) -> Plan | None:
        """The owned end points of the inputs of a path, each joined to itself."""
        loops: list[Plan] = []
        for source in plan.inputs:
            for side in range(2):
                share = self.by(source, layout.at(side))
                if share is None:
                    return None
                loops.append(Pattern((share,), (tuple(range(share.width)),), (side, side), plan.label))
        return Union(tuple(dict.fromkeys(loops)), plan.label)


def _partitioned(scan: WScan | Receive, layout: Layout) -> WScan | Receive:
    return replace(scan, share=layout.share())


def _limited(plan: Plan, layout: Layout) -> Plan:
    """An input in full, for the cells of the grid alone."""
    if layout.cells == layout.of:
        return plan

    def limit(node: Plan, inputs: tuple[Plan, ...]) -> Plan:
        if isinstance(node, WScan | Receive):
            return _partitioned(node, layout.whole()) if node.share is None else node
        return trees.with_inputs(node, inputs)

    return fold(plan, limit)


@cache
def nameless(plan: Plan) -> Plan:
    """A plan without the labels of derived tuples: plans that derive the same tuples are then equal."""
    inputs = tuple(map(nameless, plan.inputs))
    match plan:
        case Path(expr=expr):
            return trees.path(inputs, expr, "", plan.order)
        case Union() | Pattern():
            return replace(plan, inputs=inputs, label="")
    return trees.with_inputs(plan, inputs)


def is_derived(plan: Plan) -> bool:
    """Whether a plan costs more than reading its edges: a PATH, or a PATTERN that joins."""
    return any(
        isinstance(node, Path) or (isinstance(node, Pattern) and len(node.inputs) > 1) for node in walk(plan)
    )


def scans(plan: Plan) -> list[WScan | Receive]:
    """The distinct nodes of a plan that read a stream, whole or by shares."""
    return [node for node in walk(plan) if isinstance(node, WScan | Receive)]


def first_steps(expr: PathExpr) -> Iterator[tuple[PathExpr, list[PathExpr]]]:
    """A tidy expression as steps that a path can begin with, each with what comes after it in sequence."""
    if is_step(expr):
        yield expr, []
        return
    match expr:
        case Then(parts):
            for at, part in enumerate(parts):
                for step, rest in first_steps(part):
                    yield step, [*rest, *parts[at + 1 :]]
                if not nullable(part):
                    return
        case Either(parts):
            for part in parts:
                yield from first_steps(part)
        case Repeat(inner, low, high) if high != 0:
            less = None if high is None else high - 1
            again = [] if less == 0 else [repeat(inner, max(low - 1, 0), less)]
            for step, rest in first_steps(inner):
                yield step, [*rest, *again]
