"""G-CORE, second half: abstract syntax tree to regular query.

    PATH RL = (u1)-/ <:follows^*> /->(u2), (u1)-[:likes]->(m1)<-[:posts]-(u2)
    CONSTRUCT (u)-[:notify]->(m)
    MATCH (u)-/ p<~RL*> /->(v), (v)-[:posts]->(m) ON social_stream WINDOW(24h)

becomes

    RL(u1, u2) <- follows*(u1, u2), likes(u1, m1), posts(u2, m1).
    notify(u, m) <- RL*(u, v) as p, posts(v, m).
    Answer(u, m) <- notify(u, m).

- A CONSTRUCT that makes one kind of edge gives its head and an `Answer` over it. One that makes several, or
  paths, has them all as results: a rule for each element, elements of one label in union.
- A constructed path `(u)-/@p:because/->(v)` is a rule over the whole MATCH that says which atom is its path.
- A PATH clause is a rule for each stream or view that it is used on, as its labels are those of the MATCH.
- WHERE unifies variables; the one that comes first in the text stays. A variable that equals a vertex is
  replaced by it. Where it is needed as the end of an element it stays, and is bound by the empty path from that
  vertex: `follows{0}("alice", u)`.
- OPTIONAL blocks are alternatives, each together with the mandatory part of its MATCH. Where two variables
  connect a MATCH with all else they become the rules of one head over these two; otherwise each element has a rule
  for each choice of alternatives.
- A view's labels are heads `view.label`. A text that ends with a view has that view's labels as results.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import prod

from meander.errors import QueryError, Span
from meander.syntax.checks import check_acyclic, check_query, listed
from meander.syntax.equalities import Equalities
from meander.syntax.gcore_tree import (
    REFERENCE,
    Element,
    Match,
    Node,
    PathClause,
    Pattern,
    Query,
    Source,
    parse_tree,
)
from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Label,
    PathExpr,
    RegularQuery,
    Repeat,
    Rule,
    Stream,
    Term,
    Variable,
    labels_of,
)
from meander.syntax.views import map_labels, merge_streams, splice

MAX_CHOICES = 100
"""How many rules one CONSTRUCT may need: one for each of its elements and each choice of alternatives."""

MAX_RULES = 10_000
"""How many rules a text may need, PATH clauses being copied for every stream that they are used on."""


def parse_gcore(
    text: str, *, unit: str = "s", views: Mapping[str, RegularQuery] | None = None
) -> RegularQuery:
    """The regular query of a G-CORE text; raises `QueryError` with the place marked where it is not one."""
    return _Translator(text, views or {}).translate(parse_tree(text, unit))


@dataclass(frozen=True, slots=True)
class _Block:
    """A MATCH as atoms: what is mandatory, and the alternatives."""

    mandatory: tuple[Atom, ...]
    alternatives: tuple[tuple[Atom, ...], ...]

    @property
    def variants(self) -> tuple[tuple[Atom, ...], ...]:
        if not self.alternatives:
            return (self.mandatory,)
        return tuple(self.mandatory + alternative for alternative in self.alternatives)


class _Translator:
    """What the queries of one text share: streams, rules, views, and which names are taken."""

    def __init__(self, text: str, views: Mapping[str, RegularQuery]) -> None:
        self.text = text
        self.views = views
        self.streams: list[Stream] = []
        self.rules: list[Rule] = []
        self.view_labels: dict[str, tuple[str, ...]] = {}
        self.taken = {"Answer"}

    def translate(self, queries: Sequence[Query]) -> RegularQuery:
        for query, following in zip(queries, [*queries[1:], None], strict=True):
            if query.view is None and following is not None:
                raise self.error(
                    "the text goes on after its query",
                    following.span,
                    "one text is one query; what comes before it is GRAPH VIEW name AS (…)",
                )
            self.taken.update(element.label for element in query.elements)
        for query in queries:
            heads = self.heads(query)
            _QueryTranslator(self, query, heads).translate()
            if query.view is not None:
                self.view_labels[query.view.value] = tuple(heads)
        results = self.results(queries[-1], heads)
        return check_query(RegularQuery(tuple(self.streams), tuple(self.rules), results), self.text)

    def heads(self, query: Query) -> dict[str, str]:
        """The head of each label that the query makes."""
        view = query.view
        if view is not None and (
            view.value in self.view_labels or view.value in {s.name for s in self.streams}
        ):
            raise self.error(
                f"the name {view.value} is in use already",
                view.span,
                "give each view and stream its own name",
            )
        for element in query.elements:
            if view is None and "." in element.label:
                raise self.error(
                    f"{element.label} would be a label of a view",
                    element.span,
                    "a constructed label has no dot in its name",
                )
        labels = dict.fromkeys(element.label for element in query.elements)
        return {label: label if view is None else f"{view.value}.{label}" for label in labels}

    def results(self, query: Query, heads: Mapping[str, str]) -> tuple[str, ...]:
        """The results of the last query: `Answer` over the only label, or the labels themselves."""
        results = tuple(heads.values())
        if len(results) > 1 or results == ("Answer",) or any(element.path for element in query.elements):
            return results
        src, trg = next(rule.args for rule in self.rules if rule.head == results[0])
        self.rules.append(Rule("Answer", (src, trg), (Atom(Label(results[0]), src, trg),)))
        return ("Answer",)

    def fresh(self, name: str) -> str:
        """The name, or the name with a number, that no head and no path has."""
        names = (name if number == 1 else f"{name}_{number}" for number in count(1))
        found = next(candidate for candidate in names if candidate not in self.taken)
        self.taken.add(found)
        return found

    def declare(self, source: Source) -> str:
        """The name of the stream or view that a MATCH is on, now known to the query."""
        name = source.name.value
        windowed = source.window is not None or source.slide is not None
        if name not in self.view_labels and name in self.views:
            spliced = splice(name, self.views[name])
            self.rules += spliced
            self.streams = merge_streams(self.streams, self.views[name].streams, self.text, source.span)
            self.view_labels[name] = tuple(dict.fromkeys(rule.head.partition(".")[2] for rule in spliced))
        if name in self.view_labels:
            if windowed:
                raise self.error(
                    f"{name} is a view, which has no window of its own",
                    source.span,
                    f"its tuples keep their validity: write ON {name}",
                )
            return name
        if source.window is not None:
            stream = Stream(name, source.window, source.slide or 1, source.span)
            self.streams = merge_streams(self.streams, [stream], self.text, source.span)
        elif windowed or name not in {stream.name for stream in self.streams}:
            known = [*self.view_labels, *self.views]
            raise self.error(
                f"the stream {name} is missing its window",
                source.span,
                f"write ON {name} WINDOW(24h) SLIDE(1h); without a window, {name} would be a view, "
                f"and the views before it are: {listed(known)}",
            )
        return name

    def label(self, label: Label, source: str) -> Label:
        """A label as it is to be read from a stream or view."""
        if source not in self.view_labels:
            return Label(label.name, source, label.span)
        if label.name not in self.view_labels[source]:
            raise self.error(
                f"the view {source} has no label {label.name}",
                label.span,
                f"its labels are {listed(self.view_labels[source])}",
            )
        return Label(f"{source}.{label.name}", None, label.span)

    def error(self, message: str, span: Span | None, hint: str) -> QueryError:
        return QueryError(message, text=self.text, span=span, hint=hint)


class _QueryTranslator:
    """One CONSTRUCT … MATCH …, which adds its rules to those of the text."""

    def __init__(self, shared: _Translator, query: Query, heads: Mapping[str, str]) -> None:
        self.shared = shared
        self.query = query
        self.heads = heads
        self.clauses: dict[str, PathClause] = {}
        self.clause_heads: dict[tuple[str, str], str] = {}
        self.made_paths = {element.path.name for element in query.elements if element.path is not None}
        self.named_paths: set[str] = set()
        self.anonymous: dict[int, str] = {}
        written = {node.variable.name for node in _nodes(query) if node.variable is not None}
        self.anonymous_names = (name for number in count(1) if (name := f"_{number}") not in written)

    def translate(self) -> None:
        self.collect_clauses()
        equalities = Equalities(self.shared.text)
        blocks = [self.block(match, equalities) for match in self.query.matches]
        self.check_path_variables(blocks)
        for equality in self.query.equalities:
            for term in (equality.left, equality.right):
                if isinstance(term, Variable) and term.name not in equalities:
                    raise self.shared.error(
                        f"the variable {term.name} does not occur in MATCH",
                        term.span,
                        f"the variables of MATCH are {listed(equalities)}",
                    )
            equalities.unify(equality.left, equality.right, equality.span)
        ends = [self.ends(element) for element in self.query.elements]
        needed = {equalities.variable(variable).name for pair in ends for variable in pair}
        bodies = self.bodies(blocks, equalities, needed)
        for element, args in zip(self.query.elements, ends, strict=True):
            self.check_choices(element, args, bodies, equalities)
            for body in bodies:
                path = None if element.path is None else element.path.name
                self.add_rule(self.heads[element.label], args, body, equalities, element.span, path)

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
                raise self.shared.error(
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
                raise self.shared.error(
                    f"PATH {clause.name.value} is defined twice", clause.name.span, "give each its own name"
                )
            self.clauses[clause.name.value] = clause
        uses: dict[str, dict[str, Label]] = {name: {} for name in self.clauses}
        for name, clause in self.clauses.items():
            for pattern in clause.patterns:
                for step in pattern.steps:
                    for label in labels_of(step.expression.expr):
                        if label.stream == REFERENCE:
                            self.check_reference(label)
                            uses[name].setdefault(label.name, label)
        hint = "a repetition is written in an expression: ~RL* for any number of steps"
        check_acyclic(uses, "PATH clauses", hint, self.shared.text)

    def check_reference(self, label: Label) -> None:
        if label.name not in self.clauses:
            close = difflib.get_close_matches(label.name, list(self.clauses), n=1)
            raise self.shared.error(
                f"unknown PATH name {label.name}",
                label.span,
                f"did you mean {close[0]}?"
                if close
                else f"PATH clauses are {listed(self.clauses)}; "
                f"a label of the stream is written :{label.name}",
            )

    def clause_head(self, name: str, source: str) -> str:
        """The head of a PATH clause on a stream or view; its rule is added on first use."""
        if (name, source) not in self.clause_heads:
            clause = self.clauses[name]
            equalities = Equalities(self.shared.text)
            atoms = self.atoms(clause.patterns, source, equalities)
            self.check_path_variables([_Block(atoms, ())])
            if not atoms:
                raise self.shared.error(
                    f"PATH {name} has neither an edge nor a path",
                    clause.name.span,
                    "write it with edges: (x)-[:follows]->(y)",
                )
            nodes = clause.patterns[0].nodes
            head = self.shared.fresh(name)
            ends = (self.variable(nodes[0]), self.variable(nodes[-1]))
            self.add_rule(head, ends, atoms, equalities, clause.name.span)
            self.clause_heads[name, source] = head
        return self.clause_heads[name, source]

    # -- MATCH

    def block(self, match: Match, equalities: Equalities) -> _Block:
        source = self.shared.declare(match.source)
        return _Block(
            self.atoms(match.mandatory, source, equalities),
            tuple(self.atoms(patterns, source, equalities) for patterns in match.alternatives),
        )

    def atoms(self, patterns: Sequence[Pattern], source: str, equalities: Equalities) -> tuple[Atom, ...]:
        """The atoms of patterns on a stream or view; their variables and vertices go into `equalities`."""

        def resolved(label: Label) -> Label:
            if label.stream != REFERENCE:
                return self.shared.label(label, source)
            self.check_reference(label)
            return Label(self.clause_head(label.name, source), None, label.span)

        atoms = []
        for pattern in patterns:
            for node in pattern.nodes:
                equalities.add(self.variable(node).name)
                if node.constant is not None:
                    equalities.unify(self.variable(node), node.constant, node.span)
            for left, step, right in zip(pattern.nodes[:-1], pattern.steps, pattern.nodes[1:], strict=True):
                src, trg = (right, left) if step.backwards else (left, right)
                atoms.append(
                    Atom(
                        map_labels(step.expression.expr, resolved),
                        self.variable(src),
                        self.variable(trg),
                        None if step.variable is None else step.variable.name,
                        step.span,
                    )
                )
        return tuple(atoms)

    def variable(self, node: Node) -> Variable:
        """The node's variable, or one of its own."""
        if node.variable is not None:
            return node.variable
        place = node.span.start
        if place not in self.anonymous:
            self.anonymous[place] = next(self.anonymous_names)
        return Variable(self.anonymous[place], node.span)

    def bodies(
        self, blocks: Sequence[_Block], equalities: Equalities, needed: set[str]
    ) -> list[tuple[Atom, ...]]:
        """The bodies of every element's rules: one, or one for each choice of alternatives."""
        shared_by = Counter(
            name
            for block in blocks
            for name in {name for variant in block.variants for name in variables_of(variant, equalities)}
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
            raise self.shared.error(
                f"this CONSTRUCT needs {rules:,} rules; the most is {MAX_CHOICES}",
                self.query.elements[0].span,
                "it needs one for each element and each choice of OPTIONALs: make views of some parts",
            )
        bodies = [tuple(atom for part in choice for atom in part) for choice in product(*parts)]
        if not all(bodies):
            raise self.shared.error(
                "MATCH has neither an edge nor a path",
                self.query.matches[0].source.span,
                "a vertex by itself matches nothing: MATCH (u)-[:follows]->(v)",
            )
        return bodies

    def united(
        self, variants: Sequence[tuple[Atom, ...]], equalities: Equalities, outside: set[str]
    ) -> tuple[tuple[Atom, ...], ...]:
        """Variants as one atom over a head of their own, where the same two variables join all of them to the rest."""
        joined = [
            [name for name in dict.fromkeys(variables_of(variant, equalities)) if name in outside]
            for variant in variants
        ]
        names = {atom.name for variant in variants for atom in variant}
        if (
            any(set(found) != set(joined[0]) for found in joined)
            or len(joined[0]) != 2
            or names & self.made_paths
        ):
            return tuple(variants)
        ends = (Variable(joined[0][0]), Variable(joined[0][1]))
        head = self.shared.fresh("Alternative")
        for variant in variants:
            self.add_rule(head, ends, variant, equalities, variant[0].span)
        return ((Atom(Label(head), *ends),),)

    # -- CONSTRUCT

    def ends(self, element: Element) -> tuple[Variable, Variable]:
        for node in (element.src, element.trg):
            if node.variable is None or node.constant is not None:
                raise self.shared.error(
                    "CONSTRUCT connects variables of MATCH",
                    node.span,
                    'name a variable; WHERE can say which vertex it is: WHERE (u) = "alice"',
                )
        return (self.variable(element.src), self.variable(element.trg))

    def check_choices(
        self,
        element: Element,
        args: tuple[Variable, Variable],
        bodies: Sequence[tuple[Atom, ...]],
        equalities: Equalities,
    ) -> None:
        """Every alternative must bind what the element is made of."""
        for variable in args:
            name = equalities.variable(variable).name
            bound = [name in set(variables_of(body, equalities)) for body in bodies]
            if any(bound) and not all(bound):
                raise self.shared.error(
                    f"the variable {variable.name} is not bound by every OPTIONAL",
                    variable.span,
                    f"each OPTIONAL is an alternative, and {element.label} needs {variable.name} in all of them",
                )
        if element.path is not None:
            named = [{atom.name for atom in body if atom.name is not None} for body in bodies]
            if not all(element.path.name in names for names in named):
                everywhere = sorted(set.intersection(*named))
                raise self.shared.error(
                    f"MATCH has no path named {element.path.name} (in every OPTIONAL)"
                    if len(bodies) > 1
                    else f"MATCH has no path named {element.path.name}",
                    element.path.span,
                    f"its paths are {listed(everywhere)}; a path is named before its expression: -/p<:a*>/->",
                )

    def add_rule(
        self,
        head: str,
        args: Sequence[Variable],
        body: Sequence[Atom],
        equalities: Equalities,
        span: Span | None,
        path: str | None = None,
    ) -> None:
        """Add the rule with variables unified, vertices put in, and path names made unique in the query."""
        if len(self.shared.rules) >= MAX_RULES:
            raise self.shared.error(
                f"the query needs more than {MAX_RULES:,} rules", span, "use PATH clauses on fewer streams"
            )
        args = tuple(equalities.variable(variable) for variable in args)
        kept = {variable.name for variable in args}

        def placed(term: Term) -> Term:
            if isinstance(term, Constant):
                return term
            variable = equalities.variable(term)
            constant = equalities.constant(variable.name)
            return (
                variable if constant is None or variable.name in kept else replace(constant, span=term.span)
            )

        atoms = []
        path_name = None
        for atom in body:
            name = self.path_name(atom.name, made=atom.name == path)
            if atom.name is not None and atom.name == path:
                path_name = name
            atoms.append(replace(atom, src=placed(atom.src), trg=placed(atom.trg), name=name))
        for name in dict.fromkeys(variable.name for variable in args):
            constant = equalities.constant(name)
            binding = next((a for a in atoms if Variable(name) in (a.src, a.trg)), None)
            if constant is not None and binding is not None:
                atoms.append(Atom(_no_step(binding.expr), constant, Variable(name), None, binding.span))
        self.shared.rules.append(Rule(head, args, tuple(atoms), path_name, span))

    def path_name(self, name: str | None, *, made: bool) -> str | None:
        """The name of a path in a rule. Of several rules over one path, the one that hands it out has its name."""
        if name is None or (not made and (name in self.made_paths or name in self.named_paths)):
            return None
        self.named_paths.add(name)
        return self.shared.fresh(name)


def _no_step(expr: PathExpr) -> Repeat:
    """The empty path at every vertex that an expression can reach: `follows{0}`, `(likes|posts){0}`."""
    labels = tuple(dict.fromkeys(labels_of(expr)))
    return Repeat(labels[0] if len(labels) == 1 else Either(labels), 0, 0)


def variables_of(atoms: Iterable[Atom], equalities: Equalities) -> Iterator[str]:
    """The variables of atoms, unified, in order."""
    for atom in atoms:
        for term in (atom.src, atom.trg):
            if isinstance(term, Variable):
                yield equalities.variable(term).name


def _nodes(query: Query) -> Iterator[Node]:
    lists = [clause.patterns for clause in query.paths]
    for match in query.matches:
        lists += [match.mandatory, *match.alternatives]
    for patterns in lists:
        for pattern in patterns:
            yield from pattern.nodes
