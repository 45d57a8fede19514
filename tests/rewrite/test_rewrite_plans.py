"""The plan space holds the paper's plans, each once, in a stable order, and all of them mean the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_strategies import VERTICES, make_snapshots, plans
from plan_text import read, write

from meander.algebra.nodes import Plan, Union
from meander.algebra.translate import translate
from meander.rewrite import enumerate_plans
from meander.rewrite.engine import simplify
from meander.rewrite.identity import Identities
from meander.syntax import parse
from plan_evaluator import evaluate
from querytext import Query, query_text
from strategies import queries


def canonical(rules: str) -> Plan:
    return translate(parse(f"STREAM s WINDOW 10\n{rules}"))["Answer"]


def position(plan: Plan, wanted: str) -> int:
    """The number of a plan, by identity: the labels of derived edges are up to the enumeration."""
    identities = Identities()
    number = identities.number(read(wanted))
    positions = [i for i, other in enumerate(enumerate_plans(plan)) if identities.number(other) == number]
    assert len(positions) == 1, [write(other) for other in enumerate_plans(plan)]
    return positions[0]


Q1 = "Answer(x, y) <- a*(x, y) as P."
Q2 = "Answer(x, y) <- (a/b*)(x, y) as P."
Q3 = "Answer(x, y) <- (a/b*/c*)(x, y) as P."
Q4 = "D(x, y) <- a(x, u), b(u, v), c(v, y).  Answer(x, y) <- D+(x, y) as P."
Q5 = "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1)."
Q6 = "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y)."
Q7 = "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).  Answer(x, m) <- RL+(x, y) as RLP, c(m, y)."
ALL = (Q1, Q2, Q3, Q4, Q5, Q6, Q7)


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        pytest.param(0, "𝒫[P: 0+](⋈[d: x y](a(x, u), b(u, v), c(v, y)))", id="SGA"),
        pytest.param(1, "𝒫[P: (0/1/2)+](a, b, c)", id="P1"),
        pytest.param(None, "𝒫[P: (0/1)+](a, ⋈[d: x y](b(x, u), c(u, y)))", id="P2"),
        pytest.param(None, "𝒫[P: (1/0)+](c, ⋈[d: x y](a(x, u), b(u, y)))", id="P3"),
    ],
)
def test_q4_has_the_plans_of_the_paper(number: int | None, wanted: str) -> None:
    actual = position(canonical(Q4), wanted)
    assert number is None or actual == number


B, C = "𝒫[b+: 0+](b)", "𝒫[c+: 0+](c)"
AB, ABC = "𝒫[ab: 0/1*](a, b)", "𝒫[abc: 0/1*/2*](a, b, c)"


def test_q2_has_one_automaton_and_b_closed_on_its_own() -> None:
    plan = canonical(Q2)
    assert position(plan, AB) == 0
    assert position(plan, f"∪[P](a, ⋈[j: x y](a(x, u), {B}(u, y)))") == 1


def test_q3_has_one_automaton_and_b_and_c_closed_on_their_own() -> None:
    plan = canonical(Q3)
    assert position(plan, ABC) == 0
    a_b, a_c = f"⋈[j: x y](a(x, u), {B}(u, y))", f"⋈[j: x y](a(x, u), {C}(u, y))"
    a_b_c = f"⋈[j: x y](a(x, u), {B}(u, v), {C}(v, y))"
    assert position(plan, f"∪[P](a, {a_b}, {a_c}, {a_b_c})") == 1


def test_q3_has_mixed_plans() -> None:
    plan = canonical(Q3)
    position(plan, f"∪[P]({AB}, ⋈[j: x y]({AB}(x, u), {C}(u, y)))")
    position(plan, "∪[P](a, ⋈[j: x y](a(x, u), 𝒫[bc: 0+/1*|1+](b, c)(u, y)))")
    a_b = f"⋈[j: x y](a(x, u), {B}(u, y))"
    position(plan, f"∪[P](a, {a_b}, ⋈[j: x y](∪[u](a, {a_b})(x, u), {C}(u, y)))")


def test_a_join_with_a_closure_can_become_one_automaton() -> None:
    rooted = canonical('Answer(y) <- a("x", u), b+(u, y).')
    position(simplify(rooted)[0], '⋈[A: y](𝒫[P: 0/1+](a[src="x"], b)(x, y))')


def test_rules_and_alternations_meet() -> None:
    plan = canonical("D(x, y) <- a(x, y).  D(x, y) <- b(x, y).  Answer(x, y) <- D+(x, y).")
    assert position(plan, "𝒫[P: 0+](∪[D](a, b))") == 0
    position(plan, "𝒫[P: (0|1)+](a, b)")
    position(plan, "𝒫[P: 0+](a|b)")


def test_a_closure_with_the_empty_word_is_not_unnested_over_other_end_points() -> None:
    plan = canonical("D(x, y) <- a(x, u), b(u, y).  Answer(x, y) <- D*(x, y).")
    identities = Identities()
    wrong = identities.number(read("𝒫[P: (0/1)*](a, b)"))
    assert wrong not in {identities.number(other) for other in enumerate_plans(plan)}
    ends = "⋈[d: x y](a(x, u), b(u, y))"
    position(plan, f"∪[P](𝒫[p: (0/1)+](a, b), ⋈[s: x x]({ends}(x, y)), ⋈[t: y y]({ends}(x, y)))")


# ---------------------------------------------------------------------------------------------------------
# The list as a list


@pytest.mark.parametrize("rules", ALL)
def test_plans_are_numbered_from_the_canonical_one_and_always_alike(rules: str) -> None:
    plan = canonical(rules)
    plans = enumerate_plans(plan)
    assert plans[0] == plan
    assert plans == enumerate_plans(canonical(rules))
    assert plans[:2] == enumerate_plans(plan, limit=2)
    assert enumerate_plans(plan, limit=1) == [plan]
    identities = Identities()
    assert len({identities.number(other) for other in plans}) == len(plans) <= 64


def test_a_plan_that_can_be_simplified_is_listed_as_it_was_given() -> None:
    plan = read("σ[src=1](∪[D](a))")
    assert [write(other) for other in enumerate_plans(plan)] == ["σ[src=1](∪[D](a))", "∪[D](a[src=1])"]
    assert enumerate_plans(plan, limit=1) == [plan]


def test_a_plan_whose_automaton_cannot_be_built_is_left_out() -> None:
    plan = canonical("D(x, y) <- a{1,101}(x, y).  Answer(x, y) <- D{1,101}(x, y).")
    assert enumerate_plans(plan) == [plan]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("∪[D](a, b)", "∪[E](b, a)"),
        ("⋈[D: x z](a(x, y), b(y, z))", "⋈[E: x z](b(y, z), a(x, y))"),
        ("⋈[D: x z](a(x, y), a(y, z), a(z, x))", "⋈[D: y x](a(x, y), a(y, z), a(z, x))"),
        ("𝒫[P: 0/1*](a, b)", "𝒫[Q: 1/(0+)?](b, a)"),
        ("𝒫[P: 0+](⋈[D: x z](a(x, y), b(y, z)))", "𝒫[P: 0+](⋈[E: x z](a(x, y), b(y, z)))"),
        ("∪[D](a)", "a"),
    ],
)
def test_plans_that_differ_in_words_alone_are_one(first: str, second: str) -> None:
    identities = Identities()
    assert identities.number(read(first)) == identities.number(read(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "a@20"),
        ("a", "a[src=1]"),
        ('a[src="1"]', "a[src=1]"),
        ("⋈[D: x z](a(x, y), b(y, z))", "⋈[D: z x](a(x, y), b(y, z))"),
        ("𝒫[P: 0/1*](a, b)", "𝒫[P: 0/1*](b, a)"),
        ("𝒫[P: 0*](a)", "𝒫[P: 0*|1{0,0}](a, b)"),
    ],
)
def test_plans_that_differ_in_more_are_two(first: str, second: str) -> None:
    identities = Identities()
    assert identities.number(read(first)) != identities.number(read(second))


# ---------------------------------------------------------------------------------------------------------
# Equivalence


def all_mean_the_same(plan: Plan, limit: int, seed: int) -> None:
    snapshots = make_snapshots(plan, seed, 4)
    answers = [evaluate(plan, snapshot) for snapshot in snapshots]
    for other in enumerate_plans(plan, limit):
        assert (other.label, other.arity) == (plan.label, plan.arity)
        assert [evaluate(other, snapshot) for snapshot in snapshots] == answers, write(other)


@pytest.mark.parametrize("rules", ALL)
def test_all_plans_of_the_papers_queries_mean_the_same(rules: str) -> None:
    for seed in range(5):
        all_mean_the_same(canonical(rules), 64, seed)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queries(VERTICES), st.integers(0, 1000))
def test_all_plans_of_a_query_mean_the_same(query: Query, seed: int) -> None:
    for plan in translate(parse(query_text(query))).values():
        all_mean_the_same(plan, 24, seed)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.integers(0, 1000))
def test_all_plans_of_a_plan_mean_the_same(plan: Plan, seed: int) -> None:
    all_mean_the_same(plan, 24, seed)


def test_generated_queries_have_other_plans() -> None:
    many = 0

    @settings(max_examples=40, deadline=None, database=None)
    @given(queries(VERTICES))
    def count(query: Query) -> None:
        nonlocal many
        many += any(
            len(enumerate_plans(plan, limit=2)) > 1 for plan in translate(parse(query_text(query))).values()
        )

    count()
    assert many >= 8


def test_what_is_shared_stays_shared() -> None:
    shared = canonical(
        "D(x, y) <- a(x, u), b(u, y).  Answer(x, y) <- D+(x, y).  Answer(x, y) <- D(x, u), D(u, y), c(y, x)."
    )
    assert isinstance(shared, Union)
    for plan in enumerate_plans(shared):
        simple, _ = simplify(plan)
        assert simple == plan or plan is shared
