"""From plans to operators: what is one operator, what is indexed and how, what the description says of it."""

from __future__ import annotations

import pytest

from engine_runs import plan_query
from meander.errors import ArgumentError
from meander.physical.builder import build
from meander.physical.plan import PathOp, PatternOp, PhysicalPlan, ScanOp
from meander.physical.printing import describe, shared_by_queries
from meander.physical.programs import JoinProgram, JoinStep, Walk, lists_walked, plan_programs

WINDOW = "STREAM s WINDOW 24h SLIDE 1h\n"


def built(*rules: str, path_operator: str = "auto", paths: bool = False) -> PhysicalPlan:
    """One query for each of the texts, called q0, q1, …, by its canonical plan."""
    plans = [
        plan for at, text in enumerate(rules) for plan in plan_query(WINDOW + text, name=f"q{at}", plan=0)
    ]
    return build(plans, path_operator=path_operator, paths=paths)


def test_operators_stand_after_what_they_read() -> None:
    plan = built("R(x, y) <- a+(x, y), b(x, m), c(m, y).\nAnswer(x, m) <- R+(x, y), c(m, y).")
    assert all(
        source < number for number, operator in enumerate(plan.operators) for source in operator.inputs
    )


def test_equal_subplans_are_one_operator_in_one_query_and_in_several() -> None:
    plan = built(
        "D(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D+(x, y).",
        "E(p, q) <- a(p, r), b(r, q).\nAnswer(x) <- E(x, y), c(y, x).",
    )
    assert sum(isinstance(operator, PatternOp) for operator in plan.operators) == 2
    assert sum(isinstance(operator, ScanOp) for operator in plan.operators) == 3
    join = next(number for number, operator in enumerate(plan.operators) if isinstance(operator, PatternOp))
    assert plan.readers[join] == ("#3", "#5")
    assert shared_by_queries(plan) == {("q0", "q1"): (0, 1, 2)}


def test_another_window_is_another_scan() -> None:
    plans = [
        *plan_query("STREAM s WINDOW 5\nAnswer(x, y) <- a(x, y)."),
        *plan_query(WINDOW + "Answer(x, y) <- a(x, y)."),
    ]
    assert [operator.window for operator in build(plans).operators if isinstance(operator, ScanOp)] == [
        5,
        86400,
    ]


def test_the_same_query_twice_costs_nothing_more() -> None:
    once, twice = built("Answer(x, y) <- (a/b*)(x, y)."), built(*["Answer(x, y) <- (a/b*)(x, y)."] * 2)
    assert twice.operators == once.operators
    assert [result.input for result in twice.results] == [2, 2]


def test_only_the_lists_that_are_walked_are_indexed() -> None:
    plan = built("Answer(x, y) <- (a/^b)+(x, y).")
    assert {plan.names[number]: (links.out, links.into) for number, links in plan.indexed.items()} == {
        "WSCAN s: a": (True, False),
        "WSCAN s: b": (False, True),
    }
    both = built("Answer(x, y) <- (a/^b)+(x, y).", path_operator="negative-tuple")
    assert all(links.out and links.into for links in both.indexed.values())


def test_a_path_from_a_constant_grows_one_tree() -> None:
    plan = built('Answer(y) <- a+("ann", y).')
    assert [operator.root for operator in plan.operators if isinstance(operator, PathOp)] == ["ann"]


def test_each_move_of_a_proof_knows_the_name_of_its_edge() -> None:
    plan = built("D(x, y) <- a(x, y).\nAnswer(x, y) <- (D/a)(x, y).", paths=True)
    (proof,) = plan.results[0].proofs
    assert len(proof.path.inputs) == 1
    assert proof.labels == ("D", "a")


def test_an_unknown_path_operator_is_refused() -> None:
    with pytest.raises(ArgumentError, match="accepted: auto, s-path, negative-tuple, closure"):
        built("Answer(x, y) <- a+(x, y).", path_operator="quick")


def test_a_plan_that_is_not_there_is_refused() -> None:
    with pytest.raises(ArgumentError, match="Answer has no plan 99"):
        plan_query(WINDOW + "Answer(x, y) <- a+(x, y).", plan=99)


# ---------------------------------------------------------------------------------------------------------
# Programs


def test_a_program_binds_first_what_most_atoms_reach() -> None:
    """a(x, m), b(m, y), c(x, y): whichever atom a tuple is for, the third variable is bound through both others."""
    programs = plan_programs(((0, 1), (1, 2), (0, 2)), (0, 2), (False, False, False))
    assert programs[0] == JoinProgram((), (JoinStep((Walk(1, "src"), Walk(2, "src")), (2,), (1, 2)),))
    assert programs[1] == JoinProgram((), (JoinStep((Walk(0, "trg"), Walk(2, "trg")), (0,), (0, 2)),))
    assert programs[2] == JoinProgram((), (JoinStep((Walk(0, "src"), Walk(1, "trg")), (1,), (0, 1)),))
    # The last one starts from an answer: c is bound from the start.
    assert programs[3] == JoinProgram((2,), (JoinStep((Walk(0, "src"), Walk(1, "trg")), (1,), (0, 1)),))


def test_a_closure_is_checked_rather_than_walked_where_an_edge_reaches_as_far() -> None:
    programs = plan_programs(((0, 1), (1, 2), (0, 2)), (0, 2), (False, True, False))
    assert programs[0] == JoinProgram((), (JoinStep((Walk(2, "src"),), (2,), (1, 2)),))


def test_what_nothing_reaches_is_scanned() -> None:
    programs = plan_programs(((0, 1), (2, 3)), (0, 3), (False, False))
    assert programs[0] == JoinProgram((), (JoinStep((Walk(1, None),), (2, 3), (1,)),))


def test_the_values_of_the_only_atom_that_reaches_them_are_bound_at_once() -> None:
    """transfer(x, z, m1), transfer(z, y, m2), m1 < m2: the second tuple is bound whole, and compared."""
    programs = plan_programs(((0, 1, 2), (1, 3, 4)), (0, 3), (False, False), [frozenset({2, 4})])
    assert programs[0] == JoinProgram((), (JoinStep((Walk(1, "src"),), (3, 4), (1,), (0,)),))
    assert programs[1] == JoinProgram((), (JoinStep((Walk(0, "trg"),), (0, 2), (0,), (0,)),))


def test_an_atom_that_may_have_been_walked_is_bound_whole_next() -> None:
    """a(x, z, v), b(z, y), c(y, w): z through a or b; then v, by the tuple of a that was walked or by all of them."""
    programs = plan_programs(((0, 1, 2), (1, 3), (0, 3), (3, 4)), (0,), (False,) * 4)
    assert programs[2] == JoinProgram(
        (),
        (
            JoinStep((Walk(0, "src"), Walk(1, "trg")), (1,), (1,)),
            JoinStep((Walk(0, "src", again=True), Walk(0, "trg", again=True)), (2,), (0,)),
            JoinStep((Walk(3, "src"),), (4,), (3,)),
        ),
    )


def test_an_atom_is_walked_by_a_value_only_if_no_end_of_it_is_bound() -> None:
    """login(u, d, ip), login(v, e, ip)."""
    programs = plan_programs(((0, 1, 2), (3, 4, 2)), (0, 3), (False, False))
    assert programs[0] == JoinProgram((), (JoinStep((Walk(1, 0),), (3, 4), (1,)),))
    assert set(lists_walked(programs)) == {(0, 0), (1, 0), (0, "src"), (1, "src")}


def test_of_two_variables_the_one_that_decides_a_comparison_comes_first() -> None:
    ends, closures = ((0, 1), (0, 2), (1, 3)), (False, False, False)
    first = [program.steps[0].binds for program in plan_programs(ends, (0,), closures)]
    compared = [
        program.steps[0].binds for program in plan_programs(ends, (0,), closures, [frozenset({1, 3})])
    ]
    assert (first[0], compared[0]) == ((2,), (3,))


def test_an_answer_has_satisfied_the_comparisons_of_its_own_columns() -> None:
    programs = plan_programs(((0, 1), (1, 2)), (0, 2), (False, False), [frozenset({0, 2}), frozenset({1})])
    assert [program.comparisons for program in programs] == [(1,), (1,), ()]
    assert [step.comparisons for program in programs for step in program.steps] == [(0,), (0,), (1,)]


# ---------------------------------------------------------------------------------------------------------
# In words


def test_the_description_shows_inputs_indexes_and_readers() -> None:
    plan = built(
        "D(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D+(x, y).",
        'D(x, y) <- a(x, m), b(m, y).\nAnswer(x) <- D("ann", x).',
        path_operator="negative-tuple",
    )
    assert describe(plan).splitlines() == [
        "#0 WSCAN s: a; window 1d, slide 1h; indexed by source and target; read by #2",
        "#1 WSCAN s: b; window 1d, slide 1h; indexed by source and target; read by #2",
        "#2 PATTERN D from #0, #1; (src1, trg2) where trg1 = src2; indexed by source and target; read by #3 and #4",
        "#3 PATH D+ from #2; negative-tuple; read by q0.Answer",
        '#4 FILTER from #2; where src = "ann"; indexed by target; read by #5',
        "#5 PATTERN Answer from #4; (trg1); read by q1.Answer",
        "q0 and q1 share #0, #1, #2",
    ]


def test_every_operator_has_a_reader() -> None:
    """What is there only for the paths of answers is said to be."""
    lines = describe(
        built("Answer(x, y) <- (a/b)(x, y).\nAnswer(x, y) <- c+(x, y).", paths=True)
    ).splitlines()
    assert all(line.count("; read by ") == 1 for line in lines)


def test_one_query_has_nothing_to_share_with_others() -> None:
    assert shared_by_queries(built("D(x, y) <- a(x, y).\nAnswer(x, y) <- D(x, m), D(m, y).")) == {}
