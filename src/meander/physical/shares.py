"""Plans by shares: what one of N cells computes of a query, and what cells compute for each other.

A cell owns the vertices whose hash is its number, and emits the answers that have one of them at a chosen position.
So the answers of the cells are disjoint, and together they are all answers. A share of a plan is a plan:

- A share of a WSCAN by its source (target) reads the edges whose source (target) is owned (`WScan.side`).
- A share of a PATH by its root: `e` is the union of `s/r` over the steps `s` that a path can begin with, and each
  first step reads the share of its input. Later steps read all of it. If `e` accepts the empty word, it is `o/e`
  instead, where `o` joins the owned vertices of all inputs to themselves.
- A share of a PATTERN by a variable: the inputs that have it read their shares, the others everything.

A derived input that a share needs in full, or by a position that it has no share by (a PATH by its target), is
*cut out*: an earlier stage computes it once, by shares of its own, and the cells that read it *receive* its tuples.
A plan that is cheap to derive, such as edges read backwards, is derived where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from meander.algebra.automata import labels, nullable
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.printing import walk
from meander.physical.streams import SIDES
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

    def of(self, plan: Plan, position: int | None) -> Plan | None:
        """The tuples of a plan whose vertex at a position is owned (without a position: all of them), computed here;
        None if it cannot compute less than all of them."""
        return self.native(plan, position) if position is not None else self.inlined(plan)

    def by(self, plan: Plan, position: int) -> Plan | None:
        """As `of`, for an input: computed here or received."""
        if not self.is_cut(plan):
            share = self.native(plan, position)
            if share is not None or not is_derived(plan) or plan.arity != 2:
                return share
        return _partitioned(self.received(plan), position)

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

    def native(self, plan: Plan, position: int) -> Plan | None:
        match plan:
            case WScan() | Receive():
                return _partitioned(plan, position)
            case Filter():
                cut = self.is_cut(plan.input)
                inner = self.by(plan.input, position) if cut else self.native(plan.input, position)
                return None if inner is None else Filter(inner, plan.predicate)
            case Union():
                parts = [self.by(part, position) for part in plan.inputs]
                shares = tuple(dict.fromkeys(part for part in parts if part is not None))
                return Union(shares, plan.label) if None not in parts else None
            case Pattern():
                return self._pattern(plan, plan.output[position])
            case Path():
                return self._path(plan) if position == 0 else None

    def _pattern(self, plan: Pattern, variable: int) -> Plan | None:
        inputs: list[Plan] = []
        for source, ends in zip(plan.inputs, plan.ends, strict=True):
            sides = [side for side, end in enumerate(ends) if end == variable]
            share = self.by(source, sides[0]) if sides else None
            inputs.append(self.full(source) if share is None else share)
        partitioned = any(scan.side is not None for source in inputs for scan in scans(source))
        return replace(plan, inputs=tuple(inputs)) if partitioned else None

    def _path(self, plan: Path) -> Plan | None:
        expr = tidy(plan.expr)
        if nullable(expr) and plan.order is PathOrder.ANY:
            owned = self._owned_vertices(plan)
            if owned is None:
                return None
            words: PathExpr = then([Label(str(len(plan.inputs))), expr])
            return trees.path([*map(self.full, plan.inputs), owned], words, plan.label)
        rest = self._after_first_steps(plan, expr)
        if rest is None or not nullable(expr):
            return rest
        owned = self._owned_vertices(plan)
        return None if owned is None else Union((rest, owned), plan.label)

    def _after_first_steps(self, plan: Path, expr: PathExpr) -> Path | None:
        """The paths of at least one edge from owned roots."""
        shares: list[Plan] = []
        words: list[PathExpr] = []
        for step, rest in first_steps(expr):
            label = step.expr if isinstance(step, Inverse) else step
            assert isinstance(label, Label)
            share = self.by(plan.inputs[int(label.name)], 1 if isinstance(step, Inverse) else 0)
            if share is None:
                return None
            first: PathExpr = Label(str(len(plan.inputs) + len(shares)))
            shares.append(share)
            words.append(then([Inverse(first) if isinstance(step, Inverse) else first, *rest]))
        if not words:
            return None
        read = {label.name for label in labels(either(words))}
        inputs = [
            self.full(source) if str(number) in read else source for number, source in enumerate(plan.inputs)
        ]
        return trees.path([*inputs, *shares], either(words), plan.label, plan.order)

    def _owned_vertices(self, plan: Path) -> Plan | None:
        """The owned end points of the inputs of a path, each joined to itself."""
        loops: list[Plan] = []
        for source in plan.inputs:
            for side in range(2):
                share = self.by(source, side)
                if share is None:
                    return None
                loops.append(Pattern((share,), (tuple(range(share.width)),), (side, side), plan.label))
        return Union(tuple(dict.fromkeys(loops)), plan.label)


def _partitioned(scan: WScan | Receive, position: int) -> WScan | Receive:
    return replace(scan, side=SIDES[position])


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
