"""The default plan is the cheapest; what is cheaper is said here by example, not by numbers."""

from __future__ import annotations

from plan_text import read

from meander.rewrite import choose
from meander.rewrite.choice import WEIGHTS, cost


def cheaper(first: str, second: str) -> bool:
    """Whether the first is chosen, wherever it stands."""
    plans = [read(first), read(second)]
    assert (choose(plans) == 0) == (choose(plans[::-1]) == 1)
    return choose(plans) == 0


def test_one_automaton_is_cheaper_than_a_join_with_a_closure() -> None:
    assert cheaper("𝒫[P: 0/1*](a, b)", "∪[P](a, ⋈[j: x z](a(x, y), 𝒫[b+: 0+](b)(y, z)))")
    assert cheaper("𝒫[P: 0+/1+](a, b)", "⋈[P: x z](𝒫[a+: 0+](a)(x, y), 𝒫[b+: 0+](b)(y, z))")


def test_a_join_is_cheaper_than_an_automaton_without_closure() -> None:
    assert cheaper("⋈[P: x z](a(x, y), b(y, z))", "𝒫[P: 0/1](a, b)")
    assert cheaper("∪[P](a, b)", "𝒫[P: 0|1](a, b)")


def test_one_join_of_many_is_cheaper_than_a_tree_of_joins() -> None:
    flat = "⋈[D: x y](a(x, u), b(u, v), c(v, y))"
    assert cheaper(flat, "⋈[D: x y](⋈[E: x v](a(x, u), b(u, v))(x, v), c(v, y))")


def test_a_filter_is_cheaper_below() -> None:
    assert cheaper("⋈[D: x z](a[src=1](x, y), b(y, z))", "⋈[D: x z](σ[src=1](a)(x, y), b(y, z))")
    assert cheaper("⋈[D: x z](a[src=1](x, y), b(y, z))", "σ[src=1](⋈[D: x z](a(x, y), b(y, z)))")


JOINED, WALKED = "𝒫[P: 0+](⋈[D: x y](a(x, u), b(u, v), c(v, y)))", "𝒫[P: (0/1/2)+](a, b, c)"


def test_a_closure_over_a_chain_walks_it_as_one_automaton() -> None:
    assert cheaper(WALKED, JOINED)


def test_from_one_root_walking_is_cheaper_than_joining_everything() -> None:
    assert cheaper(f"σ[src=1]({WALKED})", f"σ[src=1]({JOINED})")
    assert cheaper("𝒫[P: 0/1+](a[src=1], b)", "⋈[P: x z](a[src=1](x, y), 𝒫[b+: 0+](b)(y, z))")


def test_a_root_is_cheaper_than_a_bound_end() -> None:
    assert cheaper("⋈[P: y x](σ[src=1](𝒫[p: (^0)+](a))(x, y))", "σ[trg=1](𝒫[P: 0+](a))")


def test_what_is_shared_is_paid_once() -> None:
    closure = "𝒫[P: 0+](a)"
    once = cost(read(f"⋈[D: x z]({closure}(x, y), b(y, z))"))
    twice = cost(read(f"⋈[D: x z]({closure}(x, y), {closure}(y, z))"))
    two = cost(read(f"⋈[D: x z]({closure}(x, y), 𝒫[P: 0+](b)(y, z))"))
    assert once < twice < two


def test_of_equal_costs_the_first_is_taken() -> None:
    assert choose([read("∪[D](a, b)"), read("∪[D](b, a)")]) == 0


def test_weights_decide() -> None:
    sparse = WEIGHTS._replace(join_growth=1.0)
    assert choose([read(JOINED), read(WALKED)], sparse) == 0
