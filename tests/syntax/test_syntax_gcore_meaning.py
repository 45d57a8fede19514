"""G-CORE means what its patterns say: a law, over generated queries and graphs of three vertices.

One side tries every assignment of vertices to the variables of MATCH, and keeps those for which, in each MATCH, the
mandatory steps hold and those of one OPTIONAL, and WHERE holds. The other side evaluates the rules of the regular
query. They share nothing but the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meander.errors import QueryError
from meander.syntax import parse
from meander.syntax.query import Constant, Label, PathExpr, RegularQuery, Repeat, Rule, Term, Variable
from plan_evaluator import truth

VERTICES = ("k", "l", "m")
VARIABLES = ("a", "b", "c", "d")
Pairs = frozenset[tuple[str, str]]
Graph = dict[tuple[str, str], Pairs]
"""The edges of each (stream, label)."""


def ends(pairs: Pairs) -> Pairs:
    return frozenset((vertex, vertex) for pair in pairs for vertex in pair)


def repeated(pairs: Pairs, suffix: str) -> Pairs:
    """One or more steps for `+`, also none for `*`, one for nothing."""
    if not suffix:
        return pairs
    closed = pairs
    while (more := closed | {(x, z) for x, y in closed for w, z in pairs if y == w}) != closed:
        closed = more
    return closed | ends(pairs) if suffix == "*" else closed


# -- the side of the patterns


@dataclass(frozen=True)
class Step:
    src: str
    label: str
    suffix: str
    backwards: bool
    trg: str

    def text(self) -> str:
        if self.suffix:
            left, right = ("<-/", "/-") if self.backwards else ("-/", "/->")
            return f"({self.src}){left}<:{self.label}{self.suffix}>{right}({self.trg})"
        left, right = ("<-[", "]-") if self.backwards else ("-[", "]->")
        return f"({self.src}){left}:{self.label}{right}({self.trg})"

    def holds(self, graph: Graph, stream: str, at: dict[str, str]) -> bool:
        pair = (at[self.trg], at[self.src]) if self.backwards else (at[self.src], at[self.trg])
        return pair in repeated(graph[stream, self.label], self.suffix)


@dataclass(frozen=True)
class Group:
    """Patterns on a stream, which is written with its window."""

    stream: str
    steps: tuple[Step, ...]

    def text(self) -> str:
        return ", ".join(step.text() for step in self.steps)

    def holds(self, graph: Graph, at: dict[str, str]) -> bool:
        return all(step.holds(graph, self.stream, at) for step in self.steps)


@dataclass(frozen=True)
class Match:
    mandatory: tuple[Group, ...]
    optional: tuple[Group, ...]

    def text(self) -> str:
        """An ON is left out where the next block is on the same stream, and OPTIONAL."""
        text = "MATCH"
        groups = (*self.mandatory, *self.optional)
        for number, group in enumerate(groups):
            is_optional = number >= len(self.mandatory)
            text += " OPTIONAL " if is_optional else ", " if number else " "
            text += group.text()
            later = groups[number + 1 :]
            if not later or number + 1 < len(self.mandatory) or later[0].stream != group.stream:
                text += f" ON {group.stream}"
        return text

    def holds(self, graph: Graph, at: dict[str, str]) -> bool:
        return all(group.holds(graph, at) for group in self.mandatory) and (
            not self.optional or any(group.holds(graph, at) for group in self.optional)
        )


STEPS = st.builds(
    Step,
    st.sampled_from(VARIABLES),
    st.sampled_from("pq"),
    st.sampled_from(("", "", "+", "*")),
    st.booleans(),
    st.sampled_from(VARIABLES),
)
SEVERAL = st.lists(STEPS, min_size=1, max_size=2).map(tuple)
STREAMS = ("s WINDOW(5)", "t WINDOW(5)", "s WINDOW(9)")
GROUPS = st.builds(Group, st.sampled_from(STREAMS), SEVERAL)
MANDATORY = st.lists(GROUPS, min_size=1, max_size=2).map(tuple)
ALTERNATIVES = st.lists(GROUPS, min_size=2, max_size=2).map(tuple)
MATCHES = st.builds(Match, MANDATORY, st.just(()) | ALTERNATIVES) | st.builds(
    Match, st.just(()), ALTERNATIVES
)
EQUALITIES = st.tuples(st.sampled_from(VARIABLES), st.sampled_from((*VARIABLES, '"k"', '"l"')))
EDGES = st.frozensets(st.tuples(st.sampled_from(VERTICES), st.sampled_from(VERTICES)), max_size=4)
GRAPHS = st.fixed_dictionaries({(stream, label): EDGES for stream in STREAMS for label in "pq"})


def matched(
    matches: list[Match], equalities: list[tuple[str, str]], ends: tuple[str, str], graph: Graph
) -> Pairs:
    answers = set()
    for values in product(VERTICES, repeat=len(VARIABLES)):
        at = dict(zip(VARIABLES, values, strict=True)) | {'"k"': "k", '"l"': "l"}
        if all(at[x] == at[y] for x, y in equalities) and all(match.holds(graph, at) for match in matches):
            answers.add((at[ends[0]], at[ends[1]]))
    return frozenset(answers)


# -- the side of the rules


def evaluated(query: RegularQuery, graph: Graph) -> Pairs:
    relations: dict[tuple[str | None, str], Pairs] = {
        (stream.name, label): graph[f"{stream.input} WINDOW({stream.window})", label]
        for stream in query.streams
        for label in "pq"
    }
    for rule in query.rules:
        answers = relations.get((None, rule.head), frozenset())
        relations[None, rule.head] = answers | rule_answers(rule, relations)
    return relations[None, query.results[0]]


def rule_answers(rule: Rule, relations: dict[tuple[str | None, str], Pairs]) -> Pairs:
    rows: list[dict[Term, str]] = [{}]
    for atom in rule.body:
        pairs = expression_pairs(atom.expr, relations)
        rows = [
            row | {atom.src: x, atom.trg: y}
            for row in rows
            for x, y in pairs
            if all(
                (term.value if isinstance(term, Constant) else row.get(term, vertex)) == vertex
                for term, vertex in ((atom.src, x), (atom.trg, y))
            )
            and (atom.src != atom.trg or x == y)
        ]
    if rule.predicate is not None:
        named = [{term.name: x for term, x in row.items() if isinstance(term, Variable)} for row in rows]
        rows = [row for row, names in zip(rows, named, strict=True) if truth(rule.predicate, names)]
    return frozenset((row[rule.args[0]], row[rule.args[1]]) for row in rows)


def expression_pairs(expr: PathExpr, relations: dict[tuple[str | None, str], Pairs]) -> Pairs:
    """Pairs of a label and of a repeated label: all that these queries have."""
    if isinstance(expr, Label):
        return relations[expr.stream, expr.name]
    assert isinstance(expr, Repeat)
    return repeated(expression_pairs(expr.expr, relations), "*" if expr.low == 0 else "+")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(MATCHES, min_size=1, max_size=3),
    st.lists(EQUALITIES, max_size=2),
    st.tuples(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES)),
    st.lists(GRAPHS, min_size=1, max_size=4),
)
def test_the_rules_answer_what_the_patterns_match(
    matches: list[Match], equalities: list[tuple[str, str]], ends: tuple[str, str], graphs: list[Graph]
) -> None:
    where = " AND ".join(f"{x} = {y}" for x, y in equalities)
    text = (
        f"CONSTRUCT ({ends[0]})-[:ends]->({ends[1]}) "
        + " ".join(match.text() for match in matches)
        + (f" WHERE {where}" if where else "")
    )
    try:
        query = parse(text)
    except QueryError as error:
        refused = error.message
    else:
        refused = ""
    assume(not any(reason in refused for reason in ("bound", "not occur", "never hold")))
    assert refused == ""
    for graph in graphs:
        assert evaluated(query, graph) == matched(matches, equalities, ends, graph)
