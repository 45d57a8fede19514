"""The law of translation: on every snapshot, the canonical plan means what the rules say.

The rules are evaluated here directly, by trying all bindings and following paths vertex by vertex, with
nothing in common with the evaluator of plans.
"""

from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from meander.algebra.translate import path_results, translate
from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Inverse,
    Label,
    RegularQuery,
    Repeat,
    Rule,
    Stream,
    Then,
    Variable,
)
from plan_evaluator import evaluate, snapshots

STREAMS = (Stream("s", 10), Stream("t", 20, 5))
LABELS = (Label("a", "s"), Label("b", "s"), Label("a", "t"))
VERTICES = ("u", "v", "w", 1)

# ---------------------------------------------------------------------------------------------------------
# What rules say


def answers(query, snapshot, head):
    """All tuples of a head, by the rules."""

    def edges(label):
        if label.stream is None:
            return answers(query, snapshot, label.name)
        return snapshot[label.stream, label.name]

    return {
        tuple(binding[term] for term in rule.args)
        for rule in query.rules
        if rule.head == head
        for binding in bindings(rule, edges)
    }


def bindings(rule, edges):
    """Each assignment of vertices to the rule's variables under which every atom holds."""
    relations = [relation(atom.expr, edges) for atom in rule.body]
    variables = sorted(
        {term for atom in rule.body for term in (atom.src, atom.trg) if isinstance(term, Variable)},
        key=lambda variable: variable.name,
    )
    for values in product(VERTICES, repeat=len(variables)):
        binding = dict(zip(variables, values, strict=True))

        def vertex(term, binding=binding):
            return term.value if isinstance(term, Constant) else binding[term]

        if all(
            (vertex(atom.src), vertex(atom.trg)) in pairs
            for atom, pairs in zip(rule.body, relations, strict=True)
        ):
            yield binding


def relation(expr, edges):
    """The pairs (u, v) such that a walk from u that spells a word of `expr` ends in v."""
    steps = {label: edges(label) for label in leaves(expr)}
    met = {vertex for pairs in steps.values() for pair in pairs for vertex in pair}
    return {(u, v) for u in met for v in walk(expr, {u}, steps, False)}


def leaves(expr):
    if isinstance(expr, Label):
        return {expr}
    return set().union(*map(leaves, getattr(expr, "parts", None) or (expr.expr,)))


def walk(expr, starts, steps, backwards):
    """Where walks from any of `starts` can end."""
    match expr:
        case Label():
            pairs = {(v, u) for u, v in steps[expr]} if backwards else steps[expr]
            return {v for u, v in pairs if u in starts}
        case Inverse(inner):
            return walk(inner, starts, steps, not backwards)
        case Either(parts):
            return set().union(*(walk(part, starts, steps, backwards) for part in parts))
        case Then(parts):
            for part in parts[::-1] if backwards else parts:
                starts = walk(part, starts, steps, backwards)
            return starts
        case Repeat(inner, low, high):
            for _ in range(low):
                starts = walk(inner, starts, steps, backwards)
            # A set of vertices grows at most as often as there are vertices.
            for _ in range(len(VERTICES) if high is None else high - low):
                starts = starts | walk(inner, starts, steps, backwards)
            return starts


# ---------------------------------------------------------------------------------------------------------
# Queries to try


@cache  # building a recursive strategy costs more than drawing from it
def expressions(labels):
    return st.recursive(
        st.sampled_from(labels),
        lambda inner: (
            inner.map(Inverse)
            | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Then)
            | st.lists(inner, min_size=2, max_size=2).map(tuple).map(Either)
            | st.tuples(inner, st.sampled_from([(0, None), (1, None), (0, 1), (2, 3), (0, 0)])).map(
                lambda drawn: Repeat(drawn[0], *drawn[1])
            )
        ),
        max_leaves=4,
    )


X, Y = Variable("x"), Variable("y")
variables = st.sampled_from("xyz").map(Variable)
terms = st.one_of(variables, variables, variables, st.sampled_from(VERTICES).map(Constant))


@st.composite
def queries(draw, proven=False):
    """Up to two heads and an Answer over them; where `proven`, all answers are paths."""
    heads = [*(f"D{number}" for number in range(draw(st.integers(0, 2)))), "Answer"]
    rules, labels = [], LABELS
    for head in heads:
        arity = 2 if proven or head != "Answer" else draw(st.integers(0, 3))
        for _ in range(draw(st.integers(1, 2))):
            rules.append(draw(one_rule(head, arity, labels, len(rules), proven)))
        labels += (Label(head),)
    return RegularQuery(STREAMS, tuple(rules), ("Answer",))


@st.composite
def one_rule(draw, head, arity, labels, number, proven):
    if proven and draw(st.booleans()):
        derived = [label for label in labels if label.stream is None]
        if derived:
            return Rule(head, (X, Y), (Atom(draw(st.sampled_from(derived)), X, Y),))
    body = []
    for index in range(draw(st.integers(1, 3))):
        expr = draw(st.sampled_from(labels) | expressions(labels))
        src = draw(terms if body else variables)
        name = None if isinstance(expr, Label) else draw(st.sampled_from([None, f"P{number}{index}"]))
        body.append(Atom(expr, src, draw(terms), name))
    if proven:
        path = f"P{number}"
        ends = draw(st.tuples(variables, variables))
        body.insert(draw(st.integers(0, len(body))), Atom(draw(expressions(labels)), *ends, path))
        return Rule(head, ends, tuple(body), path)
    first = body[0]
    if arity == 2 and isinstance(first.trg, Variable) and draw(st.booleans()):
        return Rule(head, (first.src, first.trg), tuple(body))
    bound = sorted(
        {term.name for atom in body for term in (atom.src, atom.trg) if isinstance(term, Variable)}
    )
    args = draw(st.lists(st.sampled_from(bound).map(Variable), min_size=arity, max_size=arity))
    return Rule(head, tuple(args), tuple(body))


everything = snapshots([(label.stream, label.name) for label in LABELS], VERTICES, edges=4)


@settings(deadline=None)
@given(queries(), everything)
def test_a_canonical_plan_means_what_the_rules_say(query, snapshot):
    assert evaluate(translate(query)["Answer"], snapshot) == answers(query, snapshot, "Answer")


@settings(deadline=None)
@given(queries(proven=True), everything)
def test_where_answers_are_paths_each_has_one_of_the_paths_named(query, snapshot):
    proofs = path_results(query)["Answer"]
    assert proofs is not None
    proven = set().union(*(evaluate(path, snapshot) for path in proofs))
    assert answers(query, snapshot, "Answer") <= proven
