"""Simplification settles, keeps the meaning, says what it did, and names laws that would never settle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_strategies import make_snapshots, plans
from plan_text import read, write

from meander.algebra.nodes import Plan, Union, WScan
from meander.algebra.trees import walk
from meander.rewrite.engine import UnsettledError, simplify
from meander.rewrite.laws import NORMALIZING
from meander.rewrite.laws.wscan import merge_wscans, split_wscan
from meander.rewrite.trees import with_inputs
from plan_evaluator import evaluate


@settings(max_examples=200, deadline=None)
@given(plans(depth=3), st.integers(0, 1000))
def test_simplified_plans_mean_the_same_and_are_settled(plan: Plan, seed: int) -> None:
    simple, trace = simplify(plan)
    for snapshot in make_snapshots(plan, seed, 4):
        assert evaluate(simple, snapshot) == evaluate(plan, snapshot)
    assert (simple.label, simple.arity) == (plan.label, plan.arity)
    assert not any(next(law(node), None) for law in NORMALIZING for node in walk(simple))
    assert simplify(simple) == (simple, ())
    assert bool(trace) == (simple != plan)


@settings(max_examples=50, deadline=None)
@given(plans(depth=3))
def test_equal_subplans_are_one_object(plan: Plan) -> None:
    simple, _ = simplify(plan)
    objects: dict[Plan, Plan] = {}
    pending = [simple]
    while pending:
        node = pending.pop()
        assert objects.setdefault(node, node) is node
        pending.extend(node.inputs)


def test_the_trace_says_which_law_did_what_where() -> None:
    plan = read("⋈[D: x z](σ[src=1](∪[E](a, 𝒫[P: 0+](b)))(x, y), c(y, z))")
    simple, trace = simplify(plan)
    assert write(simple) == "⋈[D: v0 v2](∪[E](a[src=1], σ[src=1](𝒫[P: 0+](b)))(v0, v1), c(v1, v2))"
    assert [(firing.law, firing.position) for firing in trace] == [
        ("pushdown_filter_into_union", (0,)),
        ("pushdown_filter_into_wscan", (0, 0)),
    ]
    assert write(trace[1].before) == "σ[src=1](a)"
    assert write(trace[1].after) == "a[src=1]"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A bound source restricts a closure's roots, through whatever stands between them.
        ("σ[src=1](∪[D](𝒫[P: 0+](a)))", "σ[src=1](𝒫[D: 0+](a))"),
        (
            "σ[src=1](⋈[D: x z](𝒫[P: 0+](a)(x, y), b(y, z)))",
            "⋈[D: x z](σ[src=1](𝒫[P: 0+](a))(x, y), b(y, z))",
        ),
        ("σ[src=1](𝒫[P: 0/1](a, 𝒫[Q: 0*](b)))", "𝒫[P: 0/1](a[src=1], 𝒫[Q: 0*](b))"),
        # Two closures with two names are the same, and joined on the same ends they are one input.
        ("⋈[D: x y](𝒫[P: 0+](a)(x, y), 𝒫[Q: 0+](a)(x, y))", "𝒫[D: 0+](a)"),
        # What can never hold is left as it is said.
        ("σ[src=1](σ[src=2](a))", "a[src=2, src=1]"),
    ],
)
def test_laws_work_together(before: str, after: str) -> None:
    simple, _ = simplify(read(before))
    assert write(simple) == write(read(after))


def test_labels_settle_where_one_thing_is_seen_under_two_names_and_unseen_under_a_third() -> None:
    inner = "⋈[E: x z](𝒫[p: 0+](∪[X](b, c))(x, y), ∪[Y](b, c)(y, z))"
    simple, _ = simplify(read(f"⋈[A: x z]({inner}(x, y), 𝒫[q: 0+](∪[D](b, c))(y, z))"))
    inner = "⋈[E: x z](𝒫[p: 0+](∪[X](b, c))(x, y), ∪[D](b, c)(y, z))"
    assert simple == read(f"⋈[A: x z]({inner}(x, y), 𝒫[q: 0+](∪[D](b, c))(y, z))")


# ---------------------------------------------------------------------------------------------------------
# Laws that do not settle


def turn_round(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, Union):
        yield with_inputs(plan, plan.inputs[::-1])


def widen(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, WScan):
        yield replace(plan, window=plan.window + 1)


def wrap(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, WScan):
        yield Union((replace(plan, window=plan.window + 1),), plan.label)


def test_two_laws_that_undo_each_other_are_named() -> None:
    with pytest.raises(UnsettledError) as caught:
        simplify(read("∪[a|b](a, b)"), laws=(merge_wscans, split_wscan, *NORMALIZING))
    assert caught.value.laws == ("merge_wscans", "split_wscan")
    assert str(caught.value).startswith("laws that do not settle: merge_wscans, split_wscan (")


def test_a_law_that_undoes_itself_is_named_alone() -> None:
    with pytest.raises(UnsettledError) as caught:
        simplify(read("⋈[D: x z](σ[src=1](a)(x, y), ∪[E](b, c)(y, z))"), laws=(*NORMALIZING, turn_round))
    assert str(caught.value) == "laws that do not settle: turn_round (the same plan came back)"


def test_a_law_that_goes_on_for_ever_is_named() -> None:
    with pytest.raises(UnsettledError, match=r"widen \(not settled after \d+ steps\)"):
        simplify(read("𝒫[P: 0+](a)"), laws=(*NORMALIZING, widen))


def test_a_law_that_builds_ever_deeper_is_named() -> None:
    with pytest.raises(UnsettledError, match=r"wrap \(the plan grows deeper and deeper\)"):
        simplify(read("𝒫[P: 0+](a)"), laws=(wrap,))


def test_plans_that_double_with_every_rule_are_simplified_as_they_are_shared() -> None:
    plan = read("a")
    for _ in range(40):
        plan = Union((plan,), "E")
        plan = with_inputs(read("σ[src=1](⋈[D: x z](a(x, y), b(y, z)))"), (doubled(plan),))
    simple, _ = simplify(plan)
    assert sum(1 for _ in walk(simple)) < 200


def doubled(plan: Plan) -> Plan:
    return with_inputs(read("⋈[D: x z](a(x, y), b(y, z))"), (plan, plan))
