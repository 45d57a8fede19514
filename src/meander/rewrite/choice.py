"""Which of several equivalent plans to run: the cheapest, by an estimate without statistics.

The unit is the number of edges that one label has in a window. A subplan has a *size*, its estimated cardinality at
an instant, and a *work*, the cost of maintaining it; a shared subplan is paid for once. The weights are the only
parameters:

- A FILTER checks its input, a UNION of several stores its output, a PATTERN stores its inputs and finds its output.
- A PATH stores its inputs, and from each root reaches vertices in each state of its automaton, and from these tries
  each outgoing edge. So one automaton for `a/b*` is cheaper than a join with the closure `b+`, which also starts at
  vertices that no `a` leads to; and for `(a/b/c)+` a join leaves fewer states, but more edges to try
  (on a dense graph the automaton was six times as fast; on a sparse one both were alike).
- A bound source leaves a single root. That saves work in an automaton over the stream's edges, and none in a join
  below a closure: an unnested plan wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from meander.algebra.automata import minimal_dfa
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.rewrite.expressions import subexpressions
from meander.rewrite.trees import root_of
from meander.syntax.query import PathExpr
from meander.syntax.values import And, Comparison, Membership, Not, Or, Predicate, ValueType


class Weights(NamedTuple):
    """Selectivities, growth factors, and the cost of a unit of each kind of work."""

    bound_end: float = 0.01  # the selectivity of a constant at one end
    join_growth: float = (
        3.0  # tuples of an input that join with a tuple of another at a shared end; on dense graphs many
    )
    closing_edge: float = 0.1  # the selectivity of a further edge between bound ends of a pattern
    closure_growth: float = 10.0  # vertices that a closure reaches from a root
    compared: float = 0.3  # the selectivity of a comparison by < or >
    any_label: float = 5.0  # the labels of a stream
    check: float = 0.1  # a tuple that a FILTER checks
    store: float = 1.0  # a tuple in the index of a PATTERN or PATH, or in a UNION
    find: float = 1.0  # a match of a PATTERN
    reach: float = 1.0  # a vertex in one state of a PATH
    step: float = 1.0  # an edge from there


WEIGHTS = Weights()


def choose(plans: Sequence[Plan], weights: Weights = WEIGHTS) -> int:
    """The number of the plan to run; of equally cheap ones the first."""
    return min(range(len(plans)), key=lambda i: cost(plans[i], weights))


def cost(plan: Plan, weights: Weights = WEIGHTS) -> float:
    """The work of all distinct subplans of `plan`."""
    sizes = Sizes(weights)
    seen: set[Plan] = set()
    pending = [plan]
    total = 0.0
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        match node:
            case Filter(Path() as closure, predicate) if root_of(predicate) is not None:
                total += _path_work(closure, sizes, weights.bound_end)
                node = closure  # it runs with this root only: continue with its inputs
            case Filter(inner, _):
                total += weights.check * sizes.of(inner)
            case Union(inputs, _) if len(inputs) > 1:
                total += weights.store * sizes.of(node)
            case Path():
                total += _path_work(node, sizes)
            case Pattern(inputs):
                total += weights.store * sum(map(sizes.of, inputs)) + weights.find * sizes.of(node)
        pending.extend(node.inputs)
    return total


class Sizes:
    """The estimated cardinality of each subplan; `edges` are the sizes of labels, by stream, that are known."""

    def __init__(
        self, weights: Weights = WEIGHTS, edges: Mapping[tuple[str, str | None], float] | None = None
    ) -> None:
        self.weights = weights
        self.edges = edges or {}
        self.known: dict[Plan, float] = {}

    def of(self, plan: Plan) -> float:
        if plan not in self.known:
            self.known[plan] = self._estimate(plan)
        return self.known[plan]

    def _estimate(self, plan: Plan) -> float:
        weights = self.weights
        match plan:
            case WScan(stream, names, predicate=predicate):
                labels = [self.edges.get((stream, name), 1.0) for name in names]
                return (sum(labels) or weights.any_label) * _selectivity(predicate, weights)
            case Receive():
                return 1.0
            case Filter(inner, predicate):
                return self.of(inner) * _selectivity(predicate, weights)
            case Union(inputs, _):
                return sum(map(self.of, inputs))
            case Pattern(inputs):
                met = weights.join_growth ** (len(inputs) - 1)
                vertices = plan.variable_types.count(ValueType.VERTEX)
                closing = max(0, len(inputs) + 1 - vertices)
                kept = _selectivity(plan.predicate, weights)
                return prod(map(self.of, inputs)) * met * weights.closing_edge**closing * kept
            case Path(inputs, expr, _):
                dfa = minimal_dfa(expr)
                first = {int(label) for label, _ in dfa.transitions[0]}
                # Every vertex is a root at most once, however many edges leave it.
                roots = min(1.0, sum(self.of(inputs[i]) for i in first))
                if is_unbounded(expr):
                    return roots * weights.closure_growth
                return roots * weights.join_growth ** max(0, dfa.states - 2)


def _path_work(plan: Path, sizes: Sizes, roots: float = 1.0) -> float:
    stored = sum(map(sizes.of, plan.inputs))
    return sizes.weights.store * stored + roots * search_work(plan, sizes)


def search_work(plan: Path, sizes: Sizes) -> float:
    """The work of a PATH from all of its roots, beside that of storing its inputs."""
    weights, dfa = sizes.weights, minimal_dfa(plan.expr)
    per_vertex = 0.0
    for state in {target for row in dfa.transitions for target in row.values()}:
        edges = sum(sizes.of(plan.inputs[int(label)]) for label, _ in dfa.transitions[state])
        per_vertex += weights.reach + weights.step * edges
    return sizes.of(plan) * per_vertex


def _selectivity(predicate: Predicate | None, weights: Weights) -> float:
    match predicate:
        case None:
            return 1.0
        case And(parts):
            return prod(_selectivity(part, weights) for part in parts)
        case Or(parts):
            return min(1.0, sum(_selectivity(part, weights) for part in parts))
        case Not(part):
            return 1.0 - _selectivity(part, weights)
        case Membership(_, values):
            return min(1.0, len(values) * weights.bound_end)
        case Comparison("=", left, right) if left != right:
            return weights.bound_end
        case Comparison("<" | "<=" | ">" | ">="):
            return weights.compared
    return 1.0


def is_unbounded(expr: PathExpr) -> bool:
    """Whether an expression has words of any length."""
    return any(part.looped for part in subexpressions(expr))
