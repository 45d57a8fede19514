"""The law of translation for values: on every snapshot, every plan of a query means what its rules say.

Rules are evaluated here by trying all edges for every atom. Paths, and the truth of comparisons, are those of
`plan_evaluator`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from meander.algebra.translate import translate
from meander.rewrite import enumerate_plans, pass_demand
from meander.syntax import parse
from meander.syntax.query import Atom, Label, PathOrder, RegularQuery, Rule, Variable, labels_of, map_labels
from plan_evaluator import evaluate, match_ordered_path, match_path, truth

HEADER = "STREAM s (m INT, k INT, w FLOAT, c STRING) WINDOW 10\nTABLE t (r INT)\n"
QUERIES = (
    "Answer(x, y) <- s.a[m > 1 and k != 2](x, y).",
    "Answer(x, y) <- s.a(x, y, m: v, k: v).",
    "Answer(x, y, out: v) <- s.a(x, y, m: v), s.b(y, x, m: v).",
    "Answer(x, z, out: v) <- s.a(x, y, m: v, ts: p), s.b(y, z, m: u, ts: q), p < q, q - p <= 2, u >= v - 1, x != z.",
    "Answer(x, y) <- s.a(x, y, m: v), s.b(y, z), v > 1 or x = z.",
    "Answer(x, y) <- s.a(x, y, m: v), s.b(x, y, w: v).",
    'Answer(x, y) <- s.a(x, y, c: v), s.b(x, y, c: v), v in ["p", "q"], x != "u".',
    "D(x, y, v: m) <- s.a(x, y, m: m). D(x, y, v: m) <- s.b(y, x, k: m). "
    "Answer(x, y) <- D(x, y, v: m), m < 3, D(y, z).",
    "D(x, y, v: m) <- s.a(x, z, m: m), s.b(z, y). Answer(x, y) <- (D[v > 1]/s.a)+(x, y) as P, x != y.",
    "D(x, y, v: m, q: n) <- s.a(x, z, m: m), s.b(z, y, k: n). Answer(x, y, q: n) <- D(x, y, q: n).",
    "Answer(x, y) <- s.a+(x, y) as P, t.n(y, r: v), v >= 2.",
    "Answer(x) <- t.n(x, r: v), s.a(x, y, m: w), v = w.",
    "Answer(x, y) <- (s.a[m > 1]/s.b)*(x, y) as P ascending, x != y.",
    'Answer(x, y) <- (s.a|^s.b)+(x, y) strictly ascending, x = "u".',
    "D(x, y) <- s.a(x, y, m: v), v > 1, x != y. D(x, y) <- s.b(x, y, k: _). "
    "Answer(x, y) <- (D/s.a?)+(x, y) ascending.",
    "D(x, y, q: v) <- s.a(x, y, m: v). E(x, y) <- D[q > 1](x, y). Answer(x, y) <- E+(x, y) ascending.",
    "Answer(x, y) <- s.a(x, y), s.a[m = 1 or not (k < 2 and w > 0.5)](y, y).",
    "Answer(x, y) <- s.*(x, y), s.*[m > 1](y, x).",
    "Answer(x, y, v: l) <- s.a(x, y, m: l), s.a(y, z, m: p), s.b(z, x, k: q), l <= p, p <= q, x != y.",
)
PATTERN_LABELS = ("a", "b")


def rows(
    query: RegularQuery, snapshot: dict[Any, Any], label: Label
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The edges of a label that satisfy its predicate, each with its properties."""
    if label.stream is None:
        found = [(u, v, dict(values)) for u, v, values in answers(query, snapshot, label.name)]
    else:
        names = (
            [name for stream, name in snapshot if stream == label.stream] if label.is_any else [label.name]
        )
        found = [(u, v, dict(p)) for name in names for u, v, p in snapshot.get((label.stream, name), ())]
    if label.predicate is None:
        return found
    return [(u, v, p) for u, v, p in found if truth(label.predicate, p) is True]


def answers(query: RegularQuery, snapshot: dict[Any, Any], head: str) -> set[Any]:
    """What the rules of a head derive: vertices, and then the named values."""
    return {
        (*(binding[term.name] for term in rule.args), tuple((n, binding[v.name]) for n, v in rule.values))
        for rule in query.rules
        if rule.head == head
        for binding in bindings(query, snapshot, rule)
    }


def bindings(query: RegularQuery, snapshot: dict[Any, Any], rule: Rule) -> Iterator[dict[str, Any]]:
    def extend(atoms: tuple[Atom, ...], bound: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not atoms:
            if rule.predicate is None or truth(rule.predicate, bound) is True:
                yield bound
            return
        atom = atoms[0]
        for u, v, properties in matches(query, snapshot, atom):
            more = dict(bound)
            fits = all(
                more.setdefault(term.name, vertex) == vertex
                if isinstance(term, Variable)
                else vertex == term.value
                for term, vertex in ((atom.src, u), (atom.trg, v))
            )
            for name, variable in atom.values:
                value = properties.get(name)
                fits = fits and value is not None and more.setdefault(variable.name, value) == value
            if fits:
                yield from extend(atoms[1:], more)

    yield from extend(rule.body, {})


def matches(
    query: RegularQuery, snapshot: dict[Any, Any], atom: Atom
) -> list[tuple[Any, Any, dict[str, Any]]]:
    if isinstance(atom.expr, Label) and atom.name is None and not atom.order:
        return rows(query, snapshot, atom.expr)
    used = list(dict.fromkeys(labels_of(atom.expr)))
    expr = map_labels(atom.expr, lambda label: Label(str(used.index(label))))
    if atom.order is PathOrder.ANY:
        pairs = match_path([{(u, v) for u, v, _ in rows(query, snapshot, label)} for label in used], expr)
    else:
        timed = [set(times(query, snapshot, label)) for label in used]
        pairs = match_ordered_path(timed, expr, atom.order)
    return [(u, v, {}) for u, v in pairs]


def times(query: RegularQuery, snapshot: dict[Any, Any], label: Label) -> Iterator[tuple[Any, Any, int]]:
    """The edges of a label with their times; those of a head are the edges that its rules select."""
    if label.stream is not None:
        yield from ((u, v, p["ts"]) for u, v, p in rows(query, snapshot, label))
        return
    moments = sorted({dict(p)["ts"] for edges in snapshot.values() for _, _, p in edges})
    for moment in moments:
        then = {
            key: {edge for edge in edges if dict(edge[2])["ts"] == moment} for key, edges in snapshot.items()
        }
        yield from ((u, v, moment) for u, v, _ in rows(query, then, label))


def draw_snapshot(random: Random) -> dict[Any, Any]:
    def edge() -> tuple[Any, ...]:
        values = {
            "m": (1, 2, 3, None),
            "k": (1, 2, 3, None),
            "w": (1.0, 2.0, 0.5, None),
            "c": ("p", "q", "r"),
        }
        found = ((name, random.choice(options)) for name, options in values.items())
        kept = tuple((name, value) for name, value in found if value is not None)
        return random.choice("uvw"), random.choice("uvw"), (("ts", random.randrange(4)), *kept)

    snapshot = {("s", label): {edge() for _ in range(random.choice((2, 4, 7)))} for label in PATTERN_LABELS}
    vertices = random.sample("uvw", 2)
    return snapshot | {("t", "n"): {(v, v, (("r", random.choice((1, 2, 3))), ("ts", 0))) for v in vertices}}


@pytest.mark.parametrize("text", QUERIES)
def test_every_plan_means_what_the_rules_say(text: str) -> None:
    query = parse(HEADER + text)
    plan = translate(query)["Answer"]
    plans = enumerate_plans(plan, limit=24)
    plans = list(dict.fromkeys([*plans, *map(pass_demand, plans)]))
    random = Random(text)
    answered = 0
    for _ in range(40):
        snapshot = draw_snapshot(random)
        expected = {
            (*found[:-1], *(value for _, value in found[-1])) for found in answers(query, snapshot, "Answer")
        }
        answered += bool(expected)
        for number, each in enumerate(plans):
            assert evaluate(each, snapshot) == expected, f"plan {number}"
    assert answered > 3


def test_a_number_names_the_vertex_of_its_digits_too() -> None:
    plan = translate(parse(HEADER + "Answer(x, y) <- s.a(x, y), x = 7."))["Answer"]
    edges = {("7", "u", (("ts", 1),)), (7, "v", (("ts", 1),)), ("u", "v", (("ts", 1),))}
    for each in enumerate_plans(plan):
        assert evaluate(each, {("s", "a"): edges}) == {("7", "u"), (7, "v")}
