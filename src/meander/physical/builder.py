"""Logical plans to the physical plan.

All queries of a run become one list of operators in topological order. Operators that would do the same
work are one operator, whatever their outputs are called: equal subplans of one query, or of several, are
computed once. An operator whose output others look into is *indexed*: its tuples stand in the window's
graph, once, with the lists (by source, by target) that any of its readers walks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from meander.algebra import automata
from meander.algebra.derivations import Head
from meander.algebra.nodes import Filter, Path, Pattern, Plan, Receive, Union, WScan
from meander.algebra.printing import path_expression, value_names
from meander.algebra.routes import Column, Each, Input, PathValue, Route
from meander.algebra.trees import walk
from meander.errors import ArgumentError
from meander.physical.path_operators import ASCENDING, PATH_OPERATORS
from meander.physical.plan import (
    ChoiceTrace,
    ColumnTrace,
    FilterOp,
    Links,
    Operator,
    PathOp,
    PathTrace,
    PatternOp,
    PatternTrace,
    PhysicalPlan,
    Proof,
    ReceiveOp,
    Result,
    ScanOp,
    Trace,
    UnionOp,
    UnionTrace,
    output_arity,
)
from meander.physical.programs import lists_walked, plan_programs
from meander.physical.proofs import proof_plan
from meander.physical.streams import PLAIN, StreamSchema, stream_of
from meander.rewrite.trees import root_of
from meander.syntax.query import PathOrder
from meander.syntax.values import Property, ValueType, bound_vertex, conjunction, conjuncts, refs


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What to run of one query's result: its logical plan, the label of its answers, the paths that prove them, and
    how the plan, which is then the canonical one, derives them.

    `raw` is for plans whose tuples go to another stage. `paths` have routes through the plan, and `path_route` leads
    to the path of an answer if some of the answers are paths and others are not.
    """

    query: str
    head: str
    label: str
    plan: Plan
    proofs: tuple[Path, ...] = ()
    raw: bool = False
    derivation: Head | None = None
    paths: tuple[PathValue, ...] = ()
    path_route: Route | None = None

    @property
    def routes(self) -> dict[int, Route]:
        """The routes of the path values by number, and after these that of the answer's own path."""
        routes = [path.route for path in self.paths]
        return dict(enumerate(routes if self.path_route is None else [*routes, self.path_route]))

    @property
    def has_routes(self) -> bool:
        return bool(self.paths) or self.path_route is not None


class _Builder:
    def __init__(self, path_operator: str, plans: list[QueryPlan], paths: bool) -> None:
        self.path_operator = path_operator
        # Paths of which some reader needs all pairs: these serve the other readers too.
        rooted = {
            node.input
            for query in plans
            for node in walk(query.plan)
            if isinstance(node, Filter) and root_of(node.predicate) is not None
        }
        self.wanted_whole = {
            (node.inputs, node.expr)
            for query in plans
            for node in walk(query.plan)
            if isinstance(node, Path) and node.demand is None and node not in rooted
        }
        # A proof reads derived edges as of each instant, and the plan may derive the answer in another way. So the
        # operator of these edges must not lag behind: S-PATH extends a pair at the very instant, the closure per
        # segment.
        derived = [
            source for query in plans for proof in (query.proofs if paths else ()) for source in proof.inputs
        ]
        derived += [plan for query in plans if query.derivation for plan in _looked_up(query.plan)]
        self.proving = {
            (node.inputs, node.expr) for plan in derived for node in walk(plan) if isinstance(node, Path)
        }
        self.operators: list[Operator] = []
        self.names: list[str] = []
        self.columns: list[tuple[str, ...]] = []
        self.known: dict[Operator, int] = {}
        self.built: dict[Plan, int] = {}
        self.links: dict[int, Links] = {}
        self.readers: dict[int, list[str]] = {}

    def add(self, operator: Operator, name: str, plan: Plan) -> int:
        number = self.known.get(operator)
        if number is None:
            number = len(self.operators)
            self.known[operator] = number
            self.operators.append(operator)
            self.names.append(name)
            self.columns.append(value_names(plan))
            for source in dict.fromkeys(operator.inputs):
                self.readers.setdefault(source, []).append(f"#{number}")
        return number

    def index(self, number: int, *, out: bool = False, into: bool = False, value: int | None = None) -> None:
        links = self.links.get(number, Links())
        values = links.values if value is None else tuple(sorted({*links.values, value}))
        width = max(0, output_arity(self.operators, number) - 2)
        self.links[number] = Links(links.out or out, links.into or into, values, width)

    def build(self, plan: Plan) -> int:
        if plan not in self.built:
            self.built[plan] = self._build(plan)
        return self.built[plan]

    def _build(self, plan: Plan) -> int:
        match plan:
            case Receive():
                return self.add(
                    ReceiveOp(stream_of(plan), plan.values), f"RECEIVE {plan.stream}: {plan.label}", plan
                )
            case WScan(labels=labels) if len(labels) <= 1:
                operator = ScanOp(
                    stream_of(plan),
                    labels[0] if labels else None,
                    plan.window,
                    plan.slide,
                    plan.predicate,
                    plan.values,
                    plan.named,
                    plan.vertex,
                    plan.table,
                    plan.tuples,
                )
                return self.add(operator, f"WSCAN {plan.stream}: {plan.label}", plan)
            case WScan():
                # A deletion is of one label's edge: the same pair under another label stays.
                scans = tuple(replace(plan, labels=(label,)) for label in plan.labels)
                return self.build(Union(scans, plan.label))
            case Filter(input=Path() as path) if (root := root_of(plan.predicate)) is not None:
                bound = bound_vertex(root)
                assert bound is not None
                rooted = self.build_path(path, bound[1])
                rest = conjunction(term for term in conjuncts(plan.predicate) if term != root)
                if rest is None:
                    return rooted
                return self.add(FilterOp((rooted,), rest, _decided(plan.types)), "FILTER", plan)
            case Filter():
                source = self.build(plan.input)
                return self.add(FilterOp((source,), plan.predicate, _decided(plan.types)), "FILTER", plan)
            case Union(inputs=(only,)):
                return self.build(only)
            case Union():
                sources = tuple(dict.fromkeys(self.build(source) for source in plan.inputs))
                if len(sources) == 1:
                    return sources[0]
                return self.add(UnionOp(sources, plan.width), f"UNION {plan.label}", plan)
            case Pattern():
                return self.build_pattern(plan)
            case Path():
                return self.build_path(plan, None)

    def build_pattern(self, plan: Pattern) -> int:
        return self.add(self.pattern(plan), f"PATTERN {plan.label}", plan)

    def pattern(self, plan: Pattern, *, checks_answers: bool = False) -> PatternOp:
        """The operator of a `Pattern`, its inputs built and indexed."""
        sources = tuple(self.build(source) for source in plan.inputs)
        closures = tuple(isinstance(self.operators[source], PathOp) for source in sources)
        compared = [frozenset(int(ref.name) for ref in refs(term)) for term in conjuncts(plan.predicate)]
        programs = plan_programs(plan.ends, plan.output, closures, compared, checks_answers=checks_answers)
        for atom, side in lists_walked(programs):
            self.index(
                sources[atom],
                out=side == "src",
                into=side == "trg",
                value=side if isinstance(side, int) else None,
            )
        for source in sources:
            self.index(source)
        types = plan.variable_types
        has_values = any(kind is not ValueType.VERTEX for kind in types)
        return PatternOp(
            sources,
            plan.ends,
            plan.output,
            programs,
            plan.predicate,
            _decided(types) if has_values else (),
        )

    def source(self, plan: Plan) -> int:
        """The operator below the filters of a plan; a filter may keep to the paths from one vertex."""
        match plan:
            case Filter(input=Path() as path) if (root := root_of(plan.predicate)) is not None:
                bound = bound_vertex(root)
                assert bound is not None
                return self.build_path(path, bound[1])
            case Filter():
                return self.source(plan.input)
        return self.build(plan)

    def build_path(self, plan: Path, root: str | int | None) -> int:
        operator, _ = self.path(plan, root)
        whole = plan.demand is None or (plan.inputs, plan.expr) in self.wanted_whole
        demand_aware = plan.order is PathOrder.ANY and PATH_OPERATORS[operator.operator].demand_aware
        if plan.demand is not None and not whole and demand_aware:
            demand = self.build(plan.demand)
            if demand not in operator.edges:
                self.index(demand)
                operator = replace(operator, demand=demand)
        order = f" {plan.order}" if plan.order else ""
        return self.add(operator, f"PATH {plan.label}: {path_expression(plan)}{order}", plan)

    def path(self, plan: Path, root: str | int | None) -> tuple[PathOp, tuple[int, ...]]:
        """The operator of a `Path`, its inputs built and indexed, and which input each move reads.

        Inputs of other names may be one operator, so it is the move that knows the name.
        """
        built = [self.build(source) for source in plan.inputs]
        sources = tuple(dict.fromkeys(built))
        dfa = automata.minimal_dfa(plan.expr)
        numbered = [
            ((state, sources.index(built[int(name)]), direction < 0, target), int(name))
            for state, row in enumerate(dfa.transitions)
            for (name, direction), target in sorted(row.items())
        ]
        moves = tuple(move for move, _ in numbered)
        for _, source, inverse, _ in moves:
            self.index(sources[source], out=not inverse, into=inverse)
        is_ordered = plan.order is not PathOrder.ANY
        for source in sources:
            both = PATH_OPERATORS[self.path_operator].walks_backward and not is_ordered
            self.index(source, out=both, into=both)
        how = "s-path" if (plan.inputs, plan.expr) in self.proving else self.path_operator
        if is_ordered:
            how = ASCENDING
        operator = PathOp(
            sources, dfa.states, tuple(sorted(dfa.accepting)), moves, how, root, order=plan.order
        )
        return operator, tuple(number for _, number in numbered)

    def proof(self, path: Path) -> Proof:
        """A path that proves answers, with what the edge of each move is called."""
        operator, read = self.path(path, None)
        return Proof(operator, tuple(path.inputs[number].label for number in read))

    def trace(self, plan: Plan, routes: Mapping[int, Route]) -> Trace | None:
        """How to find the paths, by number, that routes lead to from the plan; None without routes."""
        if not routes:
            return None
        match plan:
            case Path():
                return PathTrace(self.proof(plan), tuple(routes))
            case Filter():
                return self.trace(plan.input, _routes_of(routes, 0))
            case Pattern():
                numbers = sorted({route.number for route in routes.values() if isinstance(route, Input)})
                found = [self.trace(plan.inputs[number], _routes_of(routes, number)) for number in numbers]
                inputs = [(number, trace) for number, trace in zip(numbers, found, strict=True) if trace]
                return PatternTrace(self.pattern(plan), tuple(inputs))
            case Union():
                operators = [self.build(source) for source in plan.inputs]
                traces: dict[int, Trace] = {}
                for number, (source, operator) in enumerate(zip(plan.inputs, operators, strict=True)):
                    trace = self.trace(source, _routes_of(routes, number))
                    if trace is not None:
                        traces.setdefault(operator, trace)
                if len(set(operators)) == 1:
                    return traces.get(operators[0])
                if plan.arity != 2:
                    # Only pairs can be looked up. What is no pair is derived by a pattern, which has a match or not.
                    patterns = traces.values()
                    return ChoiceTrace(tuple(trace for trace in patterns if isinstance(trace, PatternTrace)))
                for operator in traces:
                    self.index(operator)
                return UnionTrace(tuple(traces.items()))
            case WScan():
                columns: dict[int, list[int]] = {}
                names = [value.name for value in plan.values]
                for value, route in routes.items():
                    assert isinstance(route, Column)
                    columns.setdefault(plan.arity + names.index(route.name), []).append(value)
                return ColumnTrace(tuple((column, tuple(values)) for column, values in columns.items()))
            case Receive():
                raise AssertionError("another stage has the paths")


def _looked_up(plan: Plan) -> tuple[Plan, ...]:
    """The plans whose tuples a proof of the plan's tuples looks up: all below it, and itself unless it is a path or a
    selection from one."""
    while isinstance(plan, Filter):
        plan = plan.input
    return plan.inputs if isinstance(plan, Path) else (plan,)


def _routes_of(routes: Mapping[int, Route], number: int) -> dict[int, Route]:
    """Where the routes through one input of a node go on."""
    inner: dict[int, Route] = {}
    for value, route in routes.items():
        match route:
            case Each(each) if (rest := each[number]) is not None:
                inner[value] = rest
            case Input(of, rest) if of == number:
                inner[value] = rest
    return inner


def build(
    plans: list[QueryPlan],
    *,
    path_operator: str = "auto",
    paths: bool = False,
    declared: Mapping[str, StreamSchema] = {},
) -> PhysicalPlan:
    """One physical plan for all results of all queries; with `paths`, also what proves their answers.

    `declared` is by stream what the queries say of its rows, which counts even where no result reads the stream.
    """
    if path_operator not in PATH_OPERATORS:
        raise ArgumentError(
            f"unknown path operator {path_operator!r}", hint=f"accepted: {', '.join(PATH_OPERATORS)}"
        )
    builder = _Builder(path_operator, plans, paths)
    results = []
    for query in plans:
        number = builder.build(query.plan)
        if isinstance(builder.operators[number], ScanOp | ReceiveOp | FilterOp):
            # Answers come from a table that has each tuple once.
            builder.index(number)
        results.append(
            Result(
                query.query,
                query.head,
                query.label,
                number,
                query.plan.arity,
                tuple(map(builder.proof, query.proofs if paths else ())),
                query.raw,
                query.plan.values,
                tuple(path.name for path in query.paths),
                builder.trace(query.plan, query.routes),
                query.path_route is not None,
                None if query.derivation is None else proof_plan(query.derivation, builder),
            )
        )
        builder.readers.setdefault(number, []).append(
            f"{query.query}.{query.head}" if query.query else query.head
        )
    return PhysicalPlan(
        tuple(builder.operators),
        tuple(builder.names),
        tuple(results),
        dict(sorted(builder.links.items())),
        {number: tuple(names) for number, names in builder.readers.items()},
        stream_schemas((scan for scan in builder.operators if isinstance(scan, ScanOp)), declared),
        tuple(builder.columns),
    )


def stream_schemas(scans: Iterable[ScanOp], declared: Mapping[str, StreamSchema]) -> dict[str, StreamSchema]:
    """What is read of each stream from outside: what is `declared`, and what scans read. ArgumentError if they read a
    property as two types."""
    types: dict[str, dict[str, ValueType | None]] = {
        stream: dict(schema.properties) for stream, schema in declared.items()
    }
    kinds = dict(declared)
    for scan in scans:
        stream = scan.source.name
        known = types.setdefault(stream, {})
        for name, kind in scan.named:
            other = known.setdefault(name, kind)
            if other is not kind:
                # A query that compares with integers alone takes the property for one.
                one = ValueType.FLOAT if {kind, other} == {ValueType.INT, ValueType.FLOAT} else kind
                raise ArgumentError(
                    f"queries read {name} of {stream} as {other} and as {kind}",
                    hint=f"declare it in each of them with one type: STREAM {stream} ({name} {one}) …",
                )
        schema = kinds.get(stream, PLAIN)
        kinds[stream] = replace(
            schema,
            vertices=schema.vertices or scan.vertex,
            table=schema.table or scan.table,
            tuples=schema.tuples or scan.tuples,
        )
    return {
        stream: replace(
            schema, properties=tuple(Property(name, kind) for name, kind in sorted(types[stream].items()))
        )
        for stream, schema in kinds.items()
    }


def _decided(types: tuple[ValueType | None, ...]) -> tuple[ValueType, ...]:
    """The types of columns or variables. A plan with undecided ones is for explanations: it does not run."""
    return tuple(ValueType.STRING if kind is None else kind for kind in types)
