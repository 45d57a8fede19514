"""Generated regular queries: well formed by construction, in every shape that the languages know.

`regular_queries()` is a Hypothesis strategy for whole queries; `path_expressions(labels)` one for expressions.
"""

from __future__ import annotations

from hypothesis import strategies as st

from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Inverse,
    Label,
    PathExpr,
    RegularQuery,
    Repeat,
    Rule,
    Stream,
    Term,
    Then,
    Variable,
    map_labels,
)

PLAIN_NAMES = ("a", "b", "follows", "likes", "posts", "x1", "Größe")
ODD_NAMES = ("has-tag", "as", "Stream", "window", "result", "tick`ed", "two words", "a.b", "%", "7", '"')
VARIABLES = tuple(Variable(name) for name in ("x", "y", "z", "u", "v", "as", "stream", "_1"))


def path_expressions(labels: st.SearchStrategy[Label]) -> st.SearchStrategy[PathExpr]:
    """Expressions over labels, up to a few operators deep."""

    def grow(parts: st.SearchStrategy[PathExpr]) -> st.SearchStrategy[PathExpr]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        bounds = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2))
        return st.one_of(
            st.builds(Inverse, parts),
            st.builds(Then, several),
            st.builds(Either, several),
            st.builds(
                lambda part, pair: Repeat(part, pair[0], None if pair[1] is None else pair[0] + pair[1]),
                parts,
                bounds,
            ),
        )

    return st.recursive(labels, grow, max_leaves=5)


_VERTICES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.integers(1 - 2**63, 2**63 - 1)
_TERMS: st.SearchStrategy[Term] = st.one_of(
    st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), st.builds(Constant, _VERTICES)
)
_NAMES = st.sampled_from(PLAIN_NAMES) | st.sampled_from(ODD_NAMES)
_HEADS = st.sampled_from(("RL", "Notify", "D", "view.label", "view.has-tag", "Result")) | _NAMES

# Expressions are drawn over numbers, and the numbers then stand for labels: building a strategy again for the
# labels of every rule would take longer than all that is tested with it.
_SHAPES = path_expressions(st.builds(Label, st.sampled_from("0123456789")))
_BODIES = st.lists(st.tuples(_SHAPES, _TERMS, _TERMS), min_size=1, max_size=3)
_STREAMS = st.lists(
    st.builds(
        Stream,
        _NAMES.filter(lambda name: "." not in name),
        st.integers(1, 10**18),
        st.integers(1, 10**6),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda stream: stream.name,
)


@st.composite
def regular_queries(draw: st.DrawFn) -> RegularQuery:
    """Queries that `parse` could have made: heads build on earlier heads, and every head variable is bound."""
    streams = draw(_STREAMS)
    views = {stream.name for stream in streams}
    heads = [
        head
        for head in draw(st.lists(_HEADS, max_size=3, unique=True))
        if "." not in head or head.partition(".")[0] not in views
    ]
    result = draw(st.sampled_from(("Answer", "Last")))
    arity = draw(st.sampled_from((2, 2, 0, 1, 3)))
    labels = [Label(draw(_NAMES), draw(st.sampled_from(streams)).name) for _ in range(3)]
    rules: list[Rule] = []
    for head in [*heads, result]:
        for _ in range(draw(st.integers(1, 2))):
            rules.append(draw(_rules(head, 2 if head != result else arity, labels, f"P{len(rules)}")))
        labels.insert(0, Label(head))
    results = [result]
    if heads and arity == 2 and draw(st.booleans()):
        results = draw(st.lists(st.sampled_from([*heads, result]), min_size=1, max_size=3, unique=True))
    return RegularQuery(tuple(streams), tuple(rules), tuple(results))


@st.composite
def _rules(draw: st.DrawFn, head: str, arity: int, labels: list[Label], path: str) -> Rule:
    def labeled(number: Label) -> Label:
        return labels[int(number.name) % len(labels)]

    body = [Atom(map_labels(shape, labeled), src, trg) for shape, src, trg in draw(_BODIES)]
    bound = [term for atom in body for term in (atom.src, atom.trg) if isinstance(term, Variable)]
    if arity and not bound:
        bound = list(VARIABLES[:2])
        body.append(Atom(labels[0], *bound))
    args = tuple(draw(st.sampled_from(bound)) for _ in range(arity))
    if not draw(st.booleans()):
        return Rule(head, args, tuple(body))
    position = draw(st.integers(0, len(body) - 1))
    src, trg = body[position].src, body[position].trg
    body[position] = Atom(body[position].expr, src, trg, path)
    if arity == 2 and isinstance(src, Variable) and isinstance(trg, Variable) and draw(st.booleans()):
        return Rule(head, (src, trg), tuple(body), path)
    return Rule(head, args, tuple(body))
