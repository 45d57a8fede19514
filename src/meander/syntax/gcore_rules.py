"""One CONSTRUCT … MATCH … of a G-CORE text to rules; `meander.syntax.gcore` describes the translation."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import prod

from meander.errors import Span
from meander.syntax.checks import check_acyclic
from meander.syntax.conditions import Condition
from meander.syntax.equalities import Equalities
from meander.syntax.gcore_members import Members, is_member
from meander.syntax.gcore_scope import Scope
from meander.syntax.gcore_tree import (
    REFERENCE,
    EdgePattern,
    Element,
    GcoreQuery,
    GraphPattern,
    Located,
    Match,
    PathClause,
    Properties,
    StepPattern,
    VertexPattern,
)
from meander.syntax.gcore_writer import RuleWriter
from meander.syntax.printing import short_list
from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Inverse,
    Label,
    PathExpr,
    Rule,
    Term,
    Values,
    Variable,
    labels_of,
    map_labels,
)
from meander.syntax.values import (
    TIME_PROPERTY,
    Comparison,
    Const,
    Predicate,
    Ref,
    ValueType,
    conjunction,
    conjuncts,
    map_refs,
    refs,
)

MAX_CHOICES = 100
"""How many rules one CONSTRUCT may need: one for each of its elements and each choice of alternatives."""


@dataclass(frozen=True, slots=True)
class _Block:
    """The atoms of a MATCH: the mandatory ones, and the alternatives."""

    mandatory: tuple[Atom, ...]
    alternatives: tuple[tuple[Atom, ...], ...]

    @property
    def variants(self) -> tuple[tuple[Atom, ...], ...]:
        if not self.alternatives:
            return (self.mandatory,)
        return tuple(self.mandatory + alternative for alternative in self.alternatives)


class QueryTranslator:
    """One CONSTRUCT … MATCH …, which adds its rules to those of the text."""

    def __init__(self, scope: Scope, query: GcoreQuery, heads: Mapping[str, str]) -> None:
        self.scope = scope
        self.query = query
        self.heads = heads
        self.clauses: dict[str, PathClause] = {}
        self.clause_heads: dict[tuple[str, str], str] = {}
        # A member is of an edge or a vertex; a name alone, of a path.
        self.returned_paths = {
            str(value.name)
            for element in query.elements
            for _, value in element.properties
            if isinstance(value, Ref) and not is_member(value)
        }
        self.returned_paths |= {element.path.name for element in query.elements if element.path is not None}
        self.anonymous: dict[int, str] = {}
        self.taken_names = {node.variable.name for node in _nodes(query) if node.variable is not None}
        self.writer = RuleWriter(scope, self.returned_paths, self.taken_names)
        self.path_names = {step.variable.name for step in _paths(query) if step.variable is not None}
        returned = [value for element in query.elements for _, value in element.properties]
        self.members = Members(scope, [query.where], returned, self.taken_names | self.path_names)
        taken = self.taken_names
        self.anonymous_names = (name for number in count(1) if (name := f"_{number}") not in taken)

    def translate(self) -> None:
        self.collect_clauses()
        equalities = Equalities(self.scope.text)
        blocks = [self.block(match, equalities) for match in self.query.matches]
        self.check_path_variables(blocks)
        self.members.check_bound(equalities, self.path_names)
        predicate = self.conditions(self.query.where, equalities)
        ends = [self.ends(element) for element in self.query.elements]
        paths = {atom.name for block in blocks for body in block.variants for atom in body if atom.name}
        values = [self.values(element, paths) for element in self.query.elements]
        needed = {equalities.variable(variable).name for pair in ends for variable in pair}
        needed |= {str(ref.name) for ref in refs(predicate)}
        bodies = self.bodies(blocks, equalities, needed)
        for element, args, returned in zip(self.query.elements, ends, values, strict=True):
            self.check_choices(element, args, bodies, equalities)
            for body in bodies:
                self.check_paths(body, element)
                self.check_members(body, [*(variable for _, variable in returned), *refs(predicate)])
                path = None if element.path is None else element.path.name
                head = self.heads[element.label]
                self.writer.add_rule(head, args, body, equalities, element.span, path, predicate, returned)

    def conditions(self, where: Condition | None, equalities: Equalities) -> Predicate | None:
        """The terms of a WHERE, but equalities of vertices, which unify; members are the variables of their
        values."""
        rest: list[Predicate] = []
        for term in conjuncts(None if where is None else where.predicate):
            for ref in refs(term):
                if ref.name in self.path_names - self.taken_names:
                    raise self.scope.error(
                        f"{ref.name} is a path, and paths are not compared",
                        ref.span,
                        "compare the vertices at its ends; a PATH clause compares the properties of its edges",
                    )
                if not is_member(ref) and str(ref.name) not in equalities:
                    raise self.scope.error(
                        f"the variable {ref.name} does not occur in MATCH",
                        ref.span,
                        f"{ref.name} is an edge: compare its properties, {ref.name}.amount"
                        if str(ref.name) in self.members.bound
                        else f"the variables of MATCH are {short_list(equalities)}",
                    )
            match term:
                case Comparison("=", Ref() | Const() as left, Ref() | Const() as right) if (
                    terms := (_vertex(left), _vertex(right))
                )[0] is not None and terms[1] is not None:
                    assert where is not None
                    spans = [side.span for side in (left, right) if side.span is not None]
                    span = Span(spans[0].start, spans[-1].end) if spans else where.span
                    equalities.unify(terms[0], terms[1], span)
                case _:
                    rest.append(term)
        predicate = conjunction(rest)
        return None if predicate is None else map_refs(predicate, self.members.value)

    def values(self, element: Element, paths: Collection[str]) -> Values:
        """The values that a constructed edge returns, paths among them."""
        returned = []
        for name, value in element.properties:
            is_path = isinstance(value, Ref) and value.name in paths
            if not isinstance(value, Ref) or not (is_path or is_member(value)):
                raise self.scope.error(
                    f"the property {name.value} of a constructed edge is one of MATCH's edges or vertices, or a path",
                    value.span,
                    f"name an edge, and its property: -[e:transfer]-> … {{{name.value}: e.amount}}; or a path: "
                    f"-/p<:follows+>/-> … {{{name.value}: p}}",
                )
            if name.value == TIME_PROPERTY:
                raise self.scope.error(
                    "a constructed edge has no ts of its own",
                    name.span,
                    f"return the time under another name: {{at: {value.name}}}",
                )
            returned.append((name.value, Variable(str(self.members.value(value).name), value.span)))
        return tuple(sorted(returned, key=lambda pair: pair[0]))

    def check_members(self, body: Sequence[Atom], used: Iterable[Variable | Ref]) -> None:
        """Every alternative must bind the values that are compared or returned."""
        bound = {variable.name for atom in body for _, variable in atom.values}
        for value in used:
            member = self.members.written.get(str(value.name))
            if member is not None and value.name not in bound:
                raise self.scope.error(
                    f"{member.name} is not bound by every OPTIONAL",
                    member.span,
                    "each OPTIONAL is an alternative, and what is compared or returned is needed in all of them",
                )

    def check_paths(self, body: Sequence[Atom], element: Element) -> None:
        """Every alternative must have the paths that are returned as values."""
        named = {atom.name for atom in body}
        for _, value in element.properties:
            if isinstance(value, Ref) and not is_member(value) and value.name not in named:
                raise self.scope.error(
                    f"the path {value.name} is not bound by every OPTIONAL",
                    value.span,
                    "each OPTIONAL is an alternative, and what is returned is needed in all of them",
                )

    def check_path_variables(self, blocks: Sequence[_Block]) -> None:
        """A path variable is used once, but that alternatives may use the same."""
        seen: set[str] = set()
        for block in blocks:
            mandatory = self.new_names(block.mandatory, seen)
            optional = [self.new_names(alternative, seen | mandatory) for alternative in block.alternatives]
            seen |= mandatory.union(*optional)

    def new_names(self, atoms: Sequence[Atom], seen: set[str]) -> set[str]:
        names: set[str] = set()
        for atom in atoms:
            if atom.name is None:
                continue
            if atom.name in seen or atom.name in names:
                raise self.scope.error(
                    f"the path name {atom.name} is used twice",
                    atom.span,
                    "each path has a name of its own, or none",
                )
            names.add(atom.name)
        return names

    # -- PATH clauses

    def collect_clauses(self) -> None:
        for clause in self.query.paths:
            if clause.name.value in self.clauses:
                raise self.scope.error(
                    f"PATH {clause.name.value} is defined twice", clause.name.span, "give each its own name"
                )
            self.clauses[clause.name.value] = clause
        uses: dict[str, dict[str, Label]] = {name: {} for name in self.clauses}
        for name, clause in self.clauses.items():
            for pattern in clause.patterns:
                for step in pattern.steps:
                    for label in labels_of(step.expression.expr) if isinstance(step, StepPattern) else ():
                        if label.stream == REFERENCE:
                            self.check_reference(label)
                            uses[name].setdefault(label.name, label)
        hint = "a repetition is written in an expression: ~RL* for any number of steps"
        check_acyclic(uses, "PATH clauses", lambda cycle: hint, self.scope.text)

    def check_reference(self, label: Label) -> None:
        if label.name not in self.clauses:
            close = difflib.get_close_matches(label.name, list(self.clauses), n=1)
            raise self.scope.error(
                f"unknown PATH name {label.name}",
                label.span,
                f"did you mean {close[0]}?"
                if close
                else f"PATH clauses are {short_list(self.clauses)}; "
                f"a label of the stream is written :{label.name}",
            )

    def clause_head(self, name: str, source: str) -> str:
        """The head of a PATH clause on a stream or view; its rule is added on first use."""
        if (name, source) not in self.clause_heads:
            clause = self.clauses[name]
            equalities = Equalities(self.scope.text)
            outer, self.members = (
                self.members,
                Members(self.scope, [clause.where], [], self.taken_names | self.path_names),
            )
            atoms = self.atoms(clause.patterns, source, equalities)
            self.members.check_bound(equalities, self.path_names)
            predicate = self.conditions(clause.where, equalities)
            self.members = outer
            self.check_path_variables([_Block(atoms, ())])
            if not atoms:
                raise self.scope.error(
                    f"PATH {name} has neither an edge nor a path",
                    clause.name.span,
                    "write it with edges: (x)-[:follows]->(y)",
                )
            nodes = clause.patterns[0].nodes
            head = self.scope.fresh(name)
            ends = (self.variable(nodes[0]), self.variable(nodes[-1]))
            self.writer.add_rule(head, ends, atoms, equalities, clause.name.span, predicate=predicate)
            self.clause_heads[name, source] = head
        return self.clause_heads[name, source]

    # -- MATCH

    def block(self, match: Match, equalities: Equalities) -> _Block:
        def atoms(located: Located) -> tuple[Atom, ...]:
            return self.atoms(located.patterns, self.scope.declare(located.source), equalities)

        mandatory = tuple(atom for located in match.mandatory for atom in atoms(located))
        return _Block(mandatory, tuple(map(atoms, match.alternatives)))

    def atoms(
        self, patterns: Sequence[GraphPattern], source: str, equalities: Equalities
    ) -> tuple[Atom, ...]:
        """The atoms of patterns on a stream or view; their variables and vertices go into `equalities`."""

        def resolved(label: Label) -> Label:
            if label.stream != REFERENCE:
                return self.scope.sources.label(label, source)
            self.check_reference(label)
            return Label(self.clause_head(label.name, source), None, label.span)

        atoms = []
        for pattern in patterns:
            for node in pattern.nodes:
                equalities.add(self.variable(node).name)
                if node.constant is not None:
                    equalities.unify(self.variable(node), node.constant, node.span)
                if node.label is not None:
                    label = self.scope.sources.label(
                        Label(
                            node.label.value,
                            None,
                            node.label.span,
                            self.literals(node.properties),
                            vertex=True,
                        ),
                        source,
                    )
                    vertex = self.variable(node)
                    values = self.bind(node.variable, label)
                    atoms.append(Atom(label, vertex, vertex, None, node.span, values))
            for left, step, right in zip(pattern.nodes[:-1], pattern.steps, pattern.nodes[1:], strict=True):
                src, trg = (right, left) if step.backwards else (left, right)
                ends = (self.variable(src), self.variable(trg))
                if isinstance(step, EdgePattern):
                    atoms.append(self.edge(step, ends, source))
                    continue
                name = None if step.variable is None else step.variable.name
                expr = map_labels(step.expression.expr, resolved)
                atoms.append(Atom(expr, *ends, name, step.span, (), step.order))
        return tuple(atoms)

    def literals(self, properties: Properties) -> Predicate | None:
        """The predicate of a property map in MATCH."""
        for _, value in properties:
            if not isinstance(value, Const):
                raise self.scope.error(
                    "in MATCH, a property map has values",
                    value.span,
                    "compare with the property of another edge in WHERE: e.amount = f.amount",
                )
        return conjunction(
            Comparison("=", Ref(name.value, None, name.span), value) for name, value in properties
        )

    def bind(self, variable: Variable | None, *labels: Label) -> Values:
        """The values that are read of an edge or vertex variable."""
        values = () if variable is None else self.members.bind(variable.name)
        for label in labels:
            if label.stream is not None:
                for name, value in values:
                    self.scope.sources.check_property(label.stream, name, value.span)
        return values

    def edge(self, step: EdgePattern, ends: tuple[Variable, Variable], source: str) -> Atom:
        """The atom of an edge. One of several labels or directions is a path of a single step; or, if values are read
        of it, an edge of a head of its own."""
        if step.variable is not None and step.variable.name in self.taken_names:
            raise self.scope.error(
                f"{step.variable.name} is an edge here, and a vertex elsewhere",
                step.variable.span,
                "give the edge another variable",
            )
        predicate = self.literals(step.properties)
        labels = [
            self.scope.sources.label(replace(label, predicate=predicate), source)
            for label in step.labels or (Label("", None, step.span),)
        ]
        values = self.bind(step.variable, *labels)
        if len(labels) == 1 and not step.both:
            return Atom(labels[0], *ends, None, step.span, values)
        if not values and not labels[0].is_any:
            steps: list[PathExpr] = [*labels, *(map(Inverse, labels) if step.both else ())]
            return Atom(Either(tuple(dict.fromkeys(steps))), *ends, None, step.span)
        head = self.scope.fresh("Edge")
        x, y = Variable("x"), Variable("y")
        inner = tuple((name, Variable(f"v{number}")) for number, (name, _) in enumerate(values, start=1))
        returned = tuple((name if name != TIME_PROPERTY else "at", variable) for name, variable in inner)
        for label in labels:
            for src, trg in ((x, y), (y, x)) if step.both else ((x, y),):
                atom = Atom(label, src, trg, None, step.span, inner)
                self.scope.rules.append(Rule(head, (x, y), (atom,), None, step.span, returned))
        outer = tuple((name if name != TIME_PROPERTY else "at", variable) for name, variable in values)
        return Atom(Label(head, None, step.span), *ends, None, step.span, outer)

    def variable(self, node: VertexPattern) -> Variable:
        """The vertex's variable; an anonymous vertex gets a fresh one."""
        if node.variable is not None:
            return node.variable
        offset = node.span.start
        if offset not in self.anonymous:
            self.anonymous[offset] = next(self.anonymous_names)
        return Variable(self.anonymous[offset], node.span)

    def bodies(
        self, blocks: Sequence[_Block], equalities: Equalities, needed: set[str]
    ) -> list[tuple[Atom, ...]]:
        """The bodies of every element's rules: one, or one for each choice of alternatives."""
        shared_by = Counter(
            name
            for block in blocks
            for name in {name for variant in block.variants for name in _variables_of(variant, equalities)}
        )
        outside = needed | {
            name for name, number in shared_by.items() if number > 1 and not equalities.constant(name)
        }
        parts = [
            block.variants
            if len(blocks) == 1 or len(block.variants) == 1
            else self.united(block.variants, equalities, outside)
            for block in blocks
        ]
        rules = prod(len(part) for part in parts) * len(self.query.elements)
        if rules > MAX_CHOICES:
            raise self.scope.error(
                f"this CONSTRUCT needs {rules:,} rules; the most is {MAX_CHOICES}",
                self.query.elements[0].span,
                "it needs one for each element and each choice of OPTIONALs: make views of some parts",
            )
        bodies = [tuple(atom for part in choice for atom in part) for choice in product(*parts)]
        if not all(bodies):
            raise self.scope.error(
                "MATCH has neither an edge nor a path",
                self.query.matches[0].span,
                "a vertex by itself matches nothing: MATCH (u)-[:follows]->(v)",
            )
        return bodies

    def united(
        self, variants: Sequence[tuple[Atom, ...]], equalities: Equalities, outside: set[str]
    ) -> tuple[tuple[Atom, ...], ...]:
        """Variants as one atom over a new head, if the same two variables join them to the rest."""
        joined = [
            [name for name in dict.fromkeys(_variables_of(variant, equalities)) if name in outside]
            for variant in variants
        ]
        names = {atom.name for variant in variants for atom in variant}
        if (
            any(set(variables) != set(joined[0]) for variables in joined)
            or len(joined[0]) != 2
            or any(atom.values for variant in variants for atom in variant)
            or names & self.returned_paths
        ):
            return tuple(variants)
        ends = (Variable(joined[0][0]), Variable(joined[0][1]))
        head = self.scope.fresh("Alternative")
        for variant in variants:
            self.writer.add_rule(head, ends, variant, equalities, variant[0].span)
        return ((Atom(Label(head), *ends),),)

    # -- CONSTRUCT

    def ends(self, element: Element) -> tuple[Variable, Variable]:
        for node in (element.src, element.trg):
            if node.variable is None or node.constant is not None:
                raise self.scope.error(
                    "CONSTRUCT connects variables of MATCH",
                    node.span,
                    'name a variable; WHERE can bind it to a vertex: WHERE (u) = "alice"',
                )
        return (self.variable(element.src), self.variable(element.trg))

    def check_choices(
        self,
        element: Element,
        args: tuple[Variable, Variable],
        bodies: Sequence[tuple[Atom, ...]],
        equalities: Equalities,
    ) -> None:
        """Every alternative must bind the ends and the path of the element."""
        for variable in args:
            name = equalities.variable(variable).name
            bound = [name in set(_variables_of(body, equalities)) for body in bodies]
            if any(bound) and not all(bound):
                raise self.scope.error(
                    f"the variable {variable.name} is not bound by every OPTIONAL",
                    variable.span,
                    f"each OPTIONAL is an alternative, and {element.label} needs {variable.name} in all of them",
                )
        if element.path is not None:
            named = [{atom.name for atom in body if atom.name is not None} for body in bodies]
            if not all(element.path.name in names for names in named):
                everywhere = sorted(set.intersection(*named))
                raise self.scope.error(
                    f"MATCH has no path named {element.path.name} (in every OPTIONAL)"
                    if len(bodies) > 1
                    else f"MATCH has no path named {element.path.name}",
                    element.path.span,
                    f"its paths are {short_list(everywhere)}; a path is named before its expression: -/p<:a*>/->",
                )


def _vertex(scalar: Ref | Const) -> Term | None:
    """A side of an equality as a vertex; None for a value."""
    if isinstance(scalar, Ref):
        return None if is_member(scalar) else Variable(str(scalar.name), scalar.span)
    if scalar.type in (ValueType.STRING, ValueType.INT) and isinstance(scalar.value, str | int):
        return Constant(scalar.value, scalar.span)
    return None


def _variables_of(atoms: Iterable[Atom], equalities: Equalities) -> Iterator[str]:
    """The variables of atoms, unified, in order."""
    for atom in atoms:
        for term in (atom.src, atom.trg):
            if isinstance(term, Variable):
                yield equalities.variable(term).name


def _patterns(query: GcoreQuery) -> Iterator[GraphPattern]:
    lists = [clause.patterns for clause in query.paths]
    for match in query.matches:
        lists += [located.patterns for located in (*match.mandatory, *match.alternatives)]
    for patterns in lists:
        yield from patterns


def _nodes(query: GcoreQuery) -> Iterator[VertexPattern]:
    for pattern in _patterns(query):
        yield from pattern.nodes


def _paths(query: GcoreQuery) -> Iterator[StepPattern]:
    for pattern in _patterns(query):
        yield from (step for step in pattern.steps if isinstance(step, StepPattern))
