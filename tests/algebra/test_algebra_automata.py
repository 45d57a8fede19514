"""Path expressions as automata, against Python's `re` and against plain enumeration."""

import re
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meander.algebra import automata
from meander.algebra.automata import Dfa, labels, nullable, reverse, without_empty
from meander.errors import QueryError
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then

A, B, C = Label("a"), Label("b"), Label("c", "s")
LETTERS = {("a", 1): "a", ("a", -1): "A", ("b", 1): "b", ("b", -1): "B", ("s.c", 1): "c", ("s.c", -1): "C"}

bounds = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2)).map(
    lambda low_more: (low_more[0], None if low_more[1] is None else sum(low_more))
)
expressions: st.SearchStrategy[PathExpr] = st.recursive(
    st.sampled_from([A, B, C]),
    lambda inner: (
        inner.map(Inverse)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Then)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Either)
        | st.tuples(inner, bounds).map(lambda drawn: Repeat(drawn[0], *drawn[1]))
    ),
    max_leaves=6,
)
words = st.lists(st.sampled_from(sorted(LETTERS)), max_size=7).map(tuple)


def as_regex(expr: PathExpr, backwards: bool = False) -> str:
    """The same language for `re`: a letter for each label, a capital where it is read backwards."""
    match expr:
        case Label(name):
            return name.upper() if backwards else name
        case Inverse(inner):
            return as_regex(inner, not backwards)
        case Then(parts):
            return "".join(
                f"(?:{as_regex(part, backwards)})" for part in (parts[::-1] if backwards else parts)
            )
        case Either(parts):
            return "|".join(f"(?:{as_regex(part, backwards)})" for part in parts)
        case Repeat(inner, low, high):
            return f"(?:{as_regex(inner, backwards)}){{{low},{'' if high is None else high}}}"


def spelled(word) -> str:
    return "".join(LETTERS[symbol] for symbol in word)


def accepted_words(dfa: Dfa, longest: int) -> set[str]:
    """All accepted words up to a length, by walking the transitions."""
    words, front = set(), {("", 0)}
    for _ in range(longest + 1):
        words |= {word for word, state in front if state in dfa.accepting}
        front = {
            (word + LETTERS[symbol], target)
            for word, state in front
            for symbol, target in dfa.transitions[state].items()
        }
    return words


def language(expr: PathExpr, longest: int) -> set[str]:
    """All words up to a length, by the definition of each operator on sets of words."""

    def then(first: set[str], second: set[str]) -> set[str]:
        return {u + v for u in first for v in second if len(u + v) <= longest}

    match expr:
        case Label(name):
            return {name}
        case Inverse(inner):
            return {word[::-1].swapcase() for word in language(inner, longest)}
        case Then(parts):
            words = {""}
            for part in parts:
                words = then(words, language(part, longest))
            return words
        case Either(parts):
            return set().union(*(language(part, longest) for part in parts))
        case Repeat(inner, low, high):
            once, power, words = language(inner, longest), {""}, set()
            # Beyond `low + longest` copies nothing new of this length can come, unless by empty words.
            for count in range((low + longest if high is None else high) + 1):
                words |= power if count >= low else set()
                power = then(power, once)
            return words


@given(expressions, words)
def test_an_automaton_accepts_the_words_of_its_expression(expr, word):
    expected = re.fullmatch(as_regex(expr), spelled(word)) is not None
    assert automata.minimal_dfa(expr).accepts(word) == expected


@given(expressions)
def test_an_automaton_accepts_exactly_the_short_words_of_the_definition(expr):
    assert accepted_words(automata.minimal_dfa(expr), 4) == language(expr, 4)


@given(expressions)
def test_an_automaton_is_minimal_live_and_numbered_breadth_first(expr):
    dfa = automata.minimal_dfa(expr)
    assert dfa.start == 0
    assert len(dfa.transitions) == dfa.states

    met = [0]
    for state in met:
        for symbol in sorted(dfa.transitions[state]):
            if dfa.transitions[state][symbol] not in met:
                met.append(dfa.transitions[state][symbol])
    assert met == list(range(dfa.states))

    live = set(dfa.accepting)
    while more := {s for s in met if s not in live and live & set(dfa.transitions[s].values())}:
        live |= more
    assert live == set(met)

    # Two states are distinguished if one accepts and the other does not, or by a step to such a pair.
    apart = {(p, q) for p, q in product(met, met) if (p in dfa.accepting) != (q in dfa.accepting)}
    while more := {
        (p, q)
        for p, q in product(met, met)
        if (p, q) not in apart
        and any(
            (dfa.transitions[p].get(symbol), dfa.transitions[q].get(symbol)) in apart
            or (symbol in dfa.transitions[p]) != (symbol in dfa.transitions[q])
            for symbol in dfa.symbols
        )
    }:
        apart |= more
    assert apart == {(p, q) for p, q in product(met, met) if p != q}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Inverse(Then((A, B))), Then((Inverse(B), Inverse(A)))),
        (Inverse(Inverse(A)), A),
        (Repeat(Either((A, B)), 0, None), Repeat(Then((Repeat(A, 0, None), Repeat(B, 0, None))), 0, None)),
        (Repeat(Repeat(A, 0, 1), 2, 3), Repeat(A, 0, 3)),
        (Repeat(A, 2, 2), Then((A, A))),
        (Either((A, Then((A, Repeat(B, 1, None))))), Then((A, Repeat(B, 0, None)))),
        (Repeat(Repeat(A, 0, 0), 1, None), Repeat(B, 0, 0)),
    ],
)
def test_expressions_of_one_language_have_equal_automata(first, second):
    assert automata.minimal_dfa(first) == automata.minimal_dfa(second)
    assert hash(automata.minimal_dfa(first)) == hash(automata.minimal_dfa(second))


def test_the_automaton_of_a_chain_with_a_loop():
    dfa = automata.minimal_dfa(Then((A, Repeat(B, 0, None))))
    assert dfa == Dfa(2, frozenset({1}), ({("a", 1): 1}, {("b", 1): 1}))
    assert dfa.symbols == (("a", 1), ("b", 1))


@given(expressions)
def test_nullable_says_whether_the_empty_word_is_accepted(expr):
    assert nullable(expr) == automata.minimal_dfa(expr).accepts(())


@given(expressions)
@example(Then((Repeat(A, 0, 1), Repeat(B, 0, None), Repeat(A, 0, 2))))
@example(Repeat(Then((Repeat(A, 0, 1), Inverse(Repeat(B, 0, 1)))), 2, 3))
@example(Either((Repeat(A, 0, 0), Then((Repeat(B, 0, 0), Repeat(C, 0, 0))))))
def test_without_empty_takes_away_the_empty_word_and_no_other(expr):
    rest = without_empty(expr)
    if rest is None:
        assert language(expr, 4) == {""}
    else:
        assert language(rest, 4) == language(expr, 4) - {""}
        assert not nullable(rest)


@given(expressions)
def test_reversed_twice_an_expression_has_its_language_again(expr):
    assert language(reverse(expr), 4) == language(Inverse(expr), 4)
    assert automata.minimal_dfa(reverse(reverse(expr))) == automata.minimal_dfa(expr)


def test_labels_come_in_the_order_of_their_first_use():
    assert labels(Then((B, Inverse(A), Repeat(Either((C, B)), 0, None)))) == (B, A, C)


def test_long_repetitions_are_compiled_and_endless_ones_refused():
    assert automata.minimal_dfa(Repeat(A, 0, 2_000)).states == 2_001
    ninth_last = Then((Repeat(Either((A, B)), 0, None), A, Repeat(Either((A, B)), 8, 8)))
    assert automata.minimal_dfa(ninth_last).states == 2**9
    with pytest.raises(QueryError, match="too large") as raised:
        automata.minimal_dfa(Repeat(Repeat(A, 1, 10_000), 1, 10_000))
    assert "smaller bounds" in str(raised.value)
    with pytest.raises(QueryError, match="10,000 states"):
        automata.minimal_dfa(Then((Repeat(Either((A, B)), 0, None), A, Repeat(Either((A, B)), 14, 14))))


@settings(deadline=None)
@given(st.lists(expressions, min_size=2, max_size=3).map(tuple))
def test_the_order_of_alternatives_does_not_matter(parts):
    assert automata.minimal_dfa(Either(parts)) == automata.minimal_dfa(Either(parts[::-1]))
