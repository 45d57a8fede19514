"""SGQParser: a regular query to its canonical plan.

Heads are taken in the topological order of the dependency graph. A label of a stream becomes a `WScan`, a
path atom a `Path`, a rule a `Pattern` over its body, and a head of several rules a `Union`. It differs from
the paper's text where the paper's own example does:

- A rule that only forwards its single atom adds no node: `Answer(u, m) <- Notify(u, m)` is Notify's plan.
- A pattern's inputs stand as the atoms were written, but a path whose variables are all bound by plain
  atoms of the same rule is a check on those, and comes after them.

Constants become a `Filter` on the atom's plan, comparisons the `Pattern`'s predicate. The values that an atom binds
are columns of its input; a variable that is bound to an INT and a FLOAT is a FLOAT column of each scan. A head that
only renames another, used inside a path expression, keeps its name by a `Union` of one input: the edges of a path
have the labels that the expression uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from graphlib import CycleError, TopologicalSorter

from meander.algebra import automata
from meander.algebra.nodes import EDGE_TIME, Filter, Path, Pattern, Plan, PlanError, Union, WScan
from meander.algebra.routes import Column, Each, Here, Input, PathValue, Route
from meander.algebra.timed import selected, single_edges
from meander.errors import QueryError
from meander.syntax.printing import expression_text
from meander.syntax.query import (
    Atom,
    Constant,
    Label,
    PathOrder,
    RegularQuery,
    Rule,
    Term,
    Variable,
    map_labels,
)
from meander.syntax.types import value_types
from meander.syntax.values import (
    ALL_PROPERTIES,
    LABEL,
    Property,
    Ref,
    ValueType,
    conjunction,
    equals_vertex,
    map_refs,
)


def translate(query: RegularQuery) -> dict[str, Plan]:
    """The canonical plan of each result, in the order of `query.results`."""
    plans = Translation(query).plans
    return {head: plans[head] for head in query.results}


def result_labels(query: RegularQuery) -> dict[str, str]:
    """The label of each result's answers: its head, without the name of the view it belongs to.

    An `Answer` that only forwards another head selects it as the result: its answers keep that head's name.
    """
    rules = _rules_by_head(query)
    named = {}
    for head in query.results:
        forwarded = _forwarded(rules[head][0]) if head == "Answer" and len(rules[head]) == 1 else None
        named[head] = edge_label(head)
        if forwarded is not None and isinstance(forwarded.expr, Label):
            label = forwarded.expr
            if label.stream is None and label.predicate is None:
                named[head] = edge_label(label.name)
    return named


def path_results(query: RegularQuery) -> dict[str, tuple[Path, ...] | None]:
    """For each result whose answers are paths, the canonical `Path`s that prove them; None for the others.

    An answer is a path if its rule forwards a path atom, names one of its body's (`Rule.path`), or forwards
    a head whose answers are paths; with several rules, if that is so for each.
    """
    translation = Translation(query)
    proofs: dict[str, tuple[Path, ...] | None] = {}
    for head in translation.order:
        by_rule = [translation.proofs(rule, proofs) for rule in translation.rules[head]]
        paths = [path for rule_paths in by_rule if rule_paths is not None for path in rule_paths]
        proofs[head] = None if None in by_rule else tuple(dict.fromkeys(paths))
    return {head: proofs[head] for head in query.results}


def path_routes(query: RegularQuery) -> dict[str, Route | None]:
    """By result: where the path of an answer comes from that is a path by some rule; None if it is by none."""
    own_paths = Translation(query).own_paths
    return {head: own_paths[head] for head in query.results}


def path_values(query: RegularQuery) -> dict[str, tuple[PathValue, ...]]:
    """By result: the paths that its answers have as values, by name."""
    routes = Translation(query).routes
    return {
        head: tuple(PathValue(name, route) for name, route in sorted(routes[head].items()))
        for head in query.results
    }


class Translation:
    """The plans of all heads of a query, built in `order`, and the routes of their path values."""

    def __init__(self, query: RegularQuery) -> None:
        self.streams = {stream.name: stream for stream in query.streams}
        self.rules = _rules_by_head(query)
        self.numbers = {id(rule): number for number, rule in enumerate(query.rules)}
        self.types = value_types(query)
        self.order = self._topological_order()
        self.plans: dict[str, Plan] = {}
        self.routes: dict[str, dict[str, Route]] = {}
        self.own_paths: dict[str, Route | None] = {}  # by head: of answers that are paths
        for head in self.order:
            # Of rules with one plan, the first says where the paths come from.
            alternatives: dict[Plan, Rule] = {}
            for rule in self.rules[head]:
                alternatives.setdefault(self.rule(self.numbers[id(rule)], rule), rule)
            routes = list(map(self._routes, alternatives.values()))
            own_paths = tuple(map(self._own_path_route, alternatives.values()))
            if len(alternatives) == 1:
                [self.plans[head]], [self.routes[head]], [self.own_paths[head]] = (
                    alternatives,
                    routes,
                    own_paths,
                )
                continue
            self.plans[head] = Union(tuple(alternatives), edge_label(head))
            self.routes[head] = {name: Each(tuple(route[name] for route in routes)) for name in routes[0]}
            self.own_paths[head] = Each(own_paths) if any(own_paths) else None

    def _topological_order(self) -> list[str]:
        needs = {
            head: {label.name for rule in rules for label in _labels(rule) if label.stream is None}
            for head, rules in self.rules.items()
        }
        for head, needed in needs.items():
            if unknown := sorted(needed - needs.keys()):
                raise PlanError(f"{head} needs {unknown[0]}, which no rule defines")
        try:
            return list(TopologicalSorter(needs).static_order())
        except CycleError as error:
            raise PlanError(f"rules are recursive: {' <- '.join(reversed(error.args[1]))}") from None

    def rule(self, number: int, rule: Rule) -> Plan:
        """The plan of one rule, by its number."""
        if (forwarded := self.forwarded(number, rule)) is not None:
            return forwarded
        numbers: dict[Hashable, int] = {}
        inputs, ends = [], []
        for position in pattern_order(rule.body):
            atom = rule.body[position]
            plan = self.atom(number, atom)
            bound = dict(atom.values)
            inputs.append(plan)
            # A constant is selected by its Filter: here it is a variable that occurs once. So is a label that is not
            # named.
            columns: list[Hashable] = [
                term if isinstance(term, Variable) else (position, side)
                for term, side in ((atom.src, "src"), (atom.trg, "trg"))
            ]
            columns += [bound.get(value.name, (position, value.name)) for value in plan.values]
            ends.append(tuple(numbers.setdefault(column, len(numbers)) for column in columns))
        kinds = {column: self._kind(number, column) for column in numbers if isinstance(column, Variable)}
        named = {column.name: at for column, at in numbers.items() if isinstance(column, Variable)}

        def numbered(ref: Ref) -> Ref:
            return Ref(named[ref.name], ref.type) if isinstance(ref.name, str) else ref

        returned = [*rule.args, *(variable for _, variable in rule.values)]
        if unbound := [variable.name for variable in returned if variable not in kinds]:
            raise PlanError(f"{rule.head} returns {unbound[0]}, which its body does not bind")
        return Pattern(
            tuple(inputs),
            tuple(ends),
            tuple(numbers[variable] for variable in returned),
            edge_label(rule.head),
            None if rule.predicate is None else map_refs(rule.predicate, numbered),
            tuple(Property(name, kinds[variable]) for name, variable in rule.values),
        )

    def forwarded(self, number: int, rule: Rule) -> Plan | None:
        """The plan of the only atom of a rule that does nothing but forward it; None for any other rule."""
        atom = _forwarded(rule)
        plan = None if atom is None else self.atom(number, atom)
        names = [name for name, _ in rule.values]
        return plan if plan is not None and [value.name for value in plan.values] == names else None

    def _routes(self, rule: Rule) -> dict[str, Route]:
        """The routes of a rule's path values, from its plan."""
        routes: dict[str, Route] = {}
        for name, variable in rule.paths:
            for atom in rule.body:
                route = self._atom_route(atom, variable)
                if route is not None:
                    routes[name] = self._rule_route(rule, atom, route)
        if missing := [name for name, _ in rule.paths if name not in routes]:
            raise PlanError(f"{rule.head} returns the path {missing[0]}, which its body does not have")
        return routes

    def _own_path_route(self, rule: Rule) -> Route | None:
        """The route to the path that an answer of a rule is; None if it is none."""
        atom = _own_path(rule)
        if atom is None:
            return None
        route: Route | None = Here() if is_path(atom) else None
        if route is None and isinstance(atom.expr, Label) and atom.expr.stream is None:
            route = self.own_paths[atom.expr.name]
        return None if route is None else self._rule_route(rule, atom, self._from_atom(atom, route))

    def _rule_route(self, rule: Rule, atom: Atom, route: Route) -> Route:
        """A route from the plan of an atom, as one from the plan of its rule."""
        if self.forwarded(self.numbers[id(rule)], rule) is not None:
            return route
        positions = pattern_order(rule.body)
        return Input(positions.index(rule.body.index(atom)), route)

    def _atom_route(self, atom: Atom, variable: Variable) -> Route | None:
        """The route to the path that a variable stands for, from the plan of an atom; None if it is not there."""
        if atom.name == variable.name:
            return self._from_atom(atom, Here())
        for name, bound in atom.paths:
            if bound.name == variable.name and isinstance(atom.expr, Label):
                is_head = atom.expr.stream is None
                return self._from_atom(atom, self.routes[atom.expr.name][name] if is_head else Column(name))
        return None

    def _from_atom(self, atom: Atom, route: Route) -> Route:
        """A route from the plan of a path, a head or a scan, as one from the plan of an atom over it."""
        if isinstance(atom.expr, Label) and atom.expr.stream is None and not is_path(atom):
            plan = self.head(atom.expr, tuple(name for name, _ in atom.values))
            while plan is not self.plans[atom.expr.name]:
                plan, route = plan.inputs[0], Input(0, route)
        is_bound = isinstance(atom.src, Constant) or isinstance(atom.trg, Constant)
        return Input(0, route) if is_bound else route

    def _kind(self, rule: int, variable: Hashable) -> ValueType | None:
        return self.types.variable(rule, variable.name) if isinstance(variable, Variable) else None

    def atom(self, rule: int, atom: Atom) -> Plan:
        """The plan of an atom of a rule."""
        if is_path(atom):
            return _bound(self.path(atom), atom)
        label = automata.labels(atom.expr)[0]
        if label.stream is None:
            return _bound(self.head(label, tuple(name for name, _ in atom.values)), atom)
        # A variable that is an INT here and a FLOAT elsewhere is a FLOAT, to which the scan converts.
        values = [Property(name, self._kind(rule, variable)) for name, variable in atom.values]
        values += [Property(name, ValueType.PATH) for name, _ in atom.paths]
        return _bound(self.scan(label, tuple(values)), atom)

    def step(self, label: Label, order: PathOrder) -> Plan:
        """The edges that a label of a path stands for: pairs without values, or with their times alone if the path
        has an order."""
        if order is not PathOrder.ANY:
            return self._timed(label)
        return self.head(label, ()) if label.stream is None else self.scan(label, ())

    def scan(self, label: Label, values: tuple[Property, ...]) -> WScan:
        """The edges of a stream's label with these properties."""
        if label.stream not in self.streams:
            raise PlanError(f"no stream {label.stream}; streams: {', '.join(sorted(self.streams)) or 'none'}")
        stream = self.streams[label.stream]
        # Edges that differ in their label alone are different edges: one may be deleted while the other stays.
        labels = [Property(LABEL, ValueType.STRING)] if label.is_any else []
        return WScan(
            stream.input,
            () if label.is_any else (label.name,),
            stream.window,
            stream.slide,
            label.predicate,
            values=tuple(sorted([*values, *labels], key=lambda value: value.name)),
            named=tuple(sorted([*stream.properties, *([ALL_PROPERTIES] if stream.is_tuples else [])])),
            vertex=label.vertex,
            table=stream.is_table,
            tuples=stream.is_tuples,
        )

    def head(self, label: Label, bound: tuple[str, ...]) -> Plan:
        """The derived edges that satisfy the label's predicate, with the values that are bound."""
        plan = self.plans[label.name]
        columns = {value.name: column for column, value in enumerate(plan.values, start=plan.arity)}
        if label.predicate is not None:
            plan = Filter(plan, map_refs(label.predicate, lambda ref: Ref(columns[str(ref.name)], ref.type)))
        kept = [columns[name] for name in columns if name in bound]
        if len(kept) == len(columns):
            return plan
        return Pattern(
            (plan,),
            (tuple(range(plan.width)),),
            (0, 1, *kept),
            plan.label,
            None,
            tuple(plan.values[column - 2] for column in kept),
        )

    def path(self, atom: Atom) -> Path:
        """The Path of a path atom; the same for equal atoms."""
        inputs: dict[Plan, int] = {}
        numbers: dict[Label, Label] = {}
        for label in automata.labels(atom.expr):
            plan = self.input(label, atom.order)
            numbers[label] = Label(str(inputs.setdefault(plan, len(inputs))))
        name = atom.name or expression_text(atom.expr, lambda label: label.name)
        path = Path(tuple(inputs), map_labels(atom.expr, numbers.__getitem__), name, order=atom.order)
        try:
            automata.minimal_dfa(
                path.expr
            )  # too large an automaton is better refused now than when a run starts
        except QueryError as error:
            error.span = atom.span
            raise
        return path

    def input(self, label: Label, order: PathOrder) -> Plan:
        """The input of a path for one of its labels: an edge of the path has the label that the expression uses."""
        plan = self.step(label, order)
        renamed = label.stream is None and plan.label != edge_label(label.name)
        return Union((plan,), edge_label(label.name)) if renamed else plan

    def _timed(self, label: Label) -> Plan:
        """The edges of a label with their times. A head's rules are single edges: they are read in its place."""
        if label.stream is not None:
            return self.scan(label, (EDGE_TIME,))
        edges: dict[Plan, None] = {}
        for edge, through in single_edges(self.rules, label):
            plan: Plan = self.scan(edge, (EDGE_TIME,))
            for rule in reversed(through):
                plan = selected(plan, rule.turns, edge_label(rule.head))
            edges[plan] = None
        return Union(tuple(edges), edge_label(label.name))

    def proofs(self, rule: Rule, known: dict[str, tuple[Path, ...] | None]) -> tuple[Path, ...] | None:
        """The Paths that prove the answers of one rule; `known` has those of the heads before it."""
        atom = _own_path(rule)
        if atom is None:
            return None
        if is_path(atom):
            return (self.path(atom),)
        label = automata.labels(atom.expr)[0]
        return known[label.name] if label.stream is None else None


# ---------------------------------------------------------------------------------------------------------
# Parts of rules


def _rules_by_head(query: RegularQuery) -> dict[str, list[Rule]]:
    rules: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in query.rules:
        rules[rule.head].append(rule)
    if missing := [head for head in query.results if head not in rules]:
        raise PlanError(f"no rule for the result {missing[0]}")
    return dict(rules)


def _labels(rule: Rule) -> list[Label]:
    return [label for atom in rule.body for label in automata.labels(atom.expr)]


def is_path(atom: Atom) -> bool:
    """Whether an atom is a path: any expression but a plain label, and a plain label if it is named."""
    return atom.name is not None or not isinstance(atom.expr, Label)


def _own_path(rule: Rule) -> Atom | None:
    """The atom whose path, if it is one, is the answer's: the one that the rule names, or its only one with the same
    ends."""
    if rule.path is not None:
        return next(atom for atom in rule.body if atom.name == rule.path)
    atom = rule.body[0]
    return atom if len(rule.body) == 1 and rule.args == (atom.src, atom.trg) else None


def _forwarded(rule: Rule) -> Atom | None:
    """The atom of a rule that does nothing but forward it; None for any other rule."""
    atom = rule.body[0]
    same = len(rule.body) == 1 and rule.args == (atom.src, atom.trg) and atom.src != atom.trg
    bound = [variable for _, variable in atom.values]
    same = same and rule.values == atom.values and len(set(bound)) == len(bound)
    return atom if same and rule.predicate is None else None


def pattern_order(body: tuple[Atom, ...]) -> list[int]:
    """The positions of the atoms as written, but paths whose variables are all bound by plain atoms last."""
    bound = {term for atom in body if not is_path(atom) for term in (atom.src, atom.trg)}
    checks = [is_path(atom) and _variables(atom) <= bound for atom in body]
    return sorted(range(len(body)), key=checks.__getitem__)


def _variables(atom: Atom) -> set[Term]:
    return {term for term in (atom.src, atom.trg) if isinstance(term, Variable)}


def _bound(plan: Plan, atom: Atom) -> Plan:
    """The plan of an atom with the constants of its ends selected."""
    ends = ((0, atom.src), (1, atom.trg))
    predicate = conjunction(
        equals_vertex(end, term.value) for end, term in ends if isinstance(term, Constant)
    )
    return plan if predicate is None else Filter(plan, predicate)


def edge_label(name: str) -> str:
    """The label of edges under a name: a view's label is qualified by the view in queries only."""
    return name.rpartition(".")[2]
