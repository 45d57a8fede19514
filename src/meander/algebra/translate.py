"""SGQParser: a regular query to its canonical plan.

Heads are taken in the topological order of the dependency graph. A label of a stream becomes a `WScan`, a
path atom a `Path`, a rule a `Pattern` over its body, and a head of several rules a `Union`. It differs from
the paper's text where the paper's own example does:

- A rule that only forwards its single atom adds no node: `Answer(u, m) <- Notify(u, m)` is Notify's plan.
- A pattern's inputs stand as the atoms were written, but a path whose variables are all bound by plain
  atoms of the same rule is a check on those, and comes after them.

Constants become a `Filter` on the atom's plan. A head that only renames another, used inside a path
expression, keeps its name by a `Union` of one input: the edges of a path have the labels that the
expression uses.
"""

from __future__ import annotations

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

from meander.algebra import automata
from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, PlanError, Union, WScan
from meander.errors import QueryError
from meander.syntax.printing import expression_text
from meander.syntax.query import (
    Atom,
    Constant,
    Label,
    RegularQuery,
    Rule,
    Term,
    Variable,
    map_labels,
)


def translate(query: RegularQuery) -> dict[str, Plan]:
    """The canonical plan of each result, in the order of `query.results`."""
    plans = _Translation(query).plans
    return {head: plans[head] for head in query.results}


def result_labels(query: RegularQuery) -> dict[str, str]:
    """The label of each result's answers: its head, without the name of the view it belongs to.

    An `Answer` that only forwards another head selects it as the result: its answers keep that head's name.
    """
    rules = _rules_by_head(query)
    named = {}
    for head in query.results:
        forwarded = _forwarded(rules[head][0]) if head == "Answer" and len(rules[head]) == 1 else None
        if forwarded is not None and isinstance(forwarded.expr, Label) and forwarded.expr.stream is None:
            named[head] = _edge_label(forwarded.expr.name)
        else:
            named[head] = _edge_label(head)
    return named


def path_results(query: RegularQuery) -> dict[str, tuple[Path, ...] | None]:
    """For each result whose answers are paths, the canonical `Path`s that prove them; None for the others.

    An answer is a path if its rule forwards a path atom, names one of its body's (`Rule.path`), or forwards
    a head whose answers are paths; with several rules, if that is so for each.
    """
    translation = _Translation(query)
    proofs: dict[str, tuple[Path, ...] | None] = {}
    for head in translation.order:
        by_rule = [translation.proofs(rule, proofs) for rule in translation.rules[head]]
        paths = [path for rule_paths in by_rule if rule_paths is not None for path in rule_paths]
        proofs[head] = None if None in by_rule else tuple(dict.fromkeys(paths))
    return {head: proofs[head] for head in query.results}


class _Translation:
    """The plans of all heads of a query, built in `order`."""

    def __init__(self, query: RegularQuery) -> None:
        self.streams = {stream.name: stream for stream in query.streams}
        self.rules = _rules_by_head(query)
        self.order = self._topological_order()
        self.plans: dict[str, Plan] = {}
        for head in self.order:
            alternatives = tuple(dict.fromkeys(self._rule(rule) for rule in self.rules[head]))
            only = len(alternatives) == 1
            self.plans[head] = alternatives[0] if only else Union(alternatives, _edge_label(head))

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

    def _rule(self, rule: Rule) -> Plan:
        forwarded = _forwarded(rule)
        if forwarded is not None:
            return self._atom(forwarded)
        numbers: dict[Term | tuple[int, str], int] = {}
        inputs, ends = [], []
        for position, atom in enumerate(_pattern_order(rule.body)):
            inputs.append(self._atom(atom))
            # A constant is selected by its Filter: here it is a variable that occurs once.
            src = atom.src if isinstance(atom.src, Variable) else (position, "src")
            trg = atom.trg if isinstance(atom.trg, Variable) else (position, "trg")
            ends.append((numbers.setdefault(src, len(numbers)), numbers.setdefault(trg, len(numbers))))
        if unbound := [variable.name for variable in rule.args if variable not in numbers]:
            raise PlanError(f"{rule.head} returns {unbound[0]}, which its body does not bind")
        output = tuple(numbers[variable] for variable in rule.args)
        return Pattern(tuple(inputs), tuple(ends), output, _edge_label(rule.head))

    def _atom(self, atom: Atom) -> Plan:
        plan = self.path(atom) if _is_path(atom) else self._edge(automata.labels(atom.expr)[0])
        condition = Condition(_value(atom.src), _value(atom.trg))
        return plan if condition == Condition() else Filter(plan, condition)

    def _edge(self, label: Label) -> Plan:
        if label.stream is None:
            return self.plans[label.name]
        if label.stream not in self.streams:
            raise PlanError(f"no stream {label.stream}; streams: {', '.join(sorted(self.streams)) or 'none'}")
        stream = self.streams[label.stream]
        return WScan(stream.name, (label.name,), stream.window, stream.slide)

    def path(self, atom: Atom) -> Path:
        """The Path of a path atom; the same for equal atoms."""
        inputs: dict[Plan, int] = {}
        numbers: dict[Label, Label] = {}
        for label in automata.labels(atom.expr):
            plan = self._edge(label)
            if label.stream is None and plan.label != _edge_label(label.name):
                plan = Union((plan,), _edge_label(label.name))
            numbers[label] = Label(str(inputs.setdefault(plan, len(inputs))))
        name = atom.name or expression_text(atom.expr, lambda label: label.name)
        path = Path(tuple(inputs), map_labels(atom.expr, numbers.__getitem__), name)
        try:
            automata.minimal_dfa(
                path.expr
            )  # too large an automaton is better refused now than when a run starts
        except QueryError as error:
            error.span = atom.span
            raise
        return path

    def proofs(self, rule: Rule, known: dict[str, tuple[Path, ...] | None]) -> tuple[Path, ...] | None:
        """The Paths that prove the answers of one rule; `known` has those of the heads before it."""
        if rule.path is not None:
            return tuple(self.path(atom) for atom in rule.body if atom.name == rule.path)
        if len(rule.body) != 1 or rule.args != (rule.body[0].src, rule.body[0].trg):
            return None
        atom = rule.body[0]
        if _is_path(atom):
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


def _is_path(atom: Atom) -> bool:
    """Whether an atom is a path: any expression but a plain label, and a plain label if it is named."""
    return atom.name is not None or not isinstance(atom.expr, Label)


def _forwarded(rule: Rule) -> Atom | None:
    """The atom of a rule that does nothing but forward it; None for any other rule."""
    atom = rule.body[0]
    same = len(rule.body) == 1 and rule.args == (atom.src, atom.trg) and atom.src != atom.trg
    return atom if same else None


def _pattern_order(body: tuple[Atom, ...]) -> list[Atom]:
    """The atoms as written, but paths whose variables are all bound by plain atoms last."""
    bound = {term for atom in body if not _is_path(atom) for term in (atom.src, atom.trg)}
    return sorted(body, key=lambda atom: _is_path(atom) and _variables(atom) <= bound)


def _variables(atom: Atom) -> set[Term]:
    return {term for term in (atom.src, atom.trg) if isinstance(term, Variable)}


def _value(term: Term) -> str | int | None:
    return term.value if isinstance(term, Constant) else None


def _edge_label(name: str) -> str:
    """The label of edges under a name: a view's label is qualified by the view in queries only."""
    return name.rpartition(".")[2]
