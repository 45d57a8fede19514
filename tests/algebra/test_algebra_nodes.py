"""Nodes check themselves, compare by structure, and travel between processes."""

import pickle
import subprocess
import sys

import pytest

from meander.algebra.nodes import Filter, Path, Pattern, PlanError, Union, WScan
from meander.syntax.query import Label, PathOrder, Repeat, Then
from meander.syntax.values import Comparison, Property, Ref, ValueType, end_point, equals_vertex, is_present

A, B = WScan("s", ("a",), 24), WScan("s", ("b",), 24)
AMOUNT = Property("amount", ValueType.INT)
AMOUNTS = WScan("s", ("a",), 24, values=(AMOUNT,), named=(AMOUNT,))
LOOP = Comparison("=", end_point(0), end_point(1))
ZERO, ONE = Label("0"), Label("1")
ONE_END = Pattern((A,), ((0, 1),), (0,), "d")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: WScan("s", ("b", "a"), 24), "sorted and distinct"),
        (lambda: WScan("s", ("a", "a"), 24), "sorted and distinct"),
        (lambda: WScan("s", ("a",), 0), "at least 1"),
        (lambda: WScan("s", ("a",), 24, 0), "at least 1"),
        (lambda: WScan("s", ("a",), 24, values=(AMOUNT,)), "names each property"),
        (lambda: WScan("s", ("a",), 24, values=(AMOUNT, AMOUNT), named=(AMOUNT,)), "sorted and distinct"),
        (lambda: Filter(ONE_END, equals_vertex(0, "u")), "reads pairs"),
        (lambda: Filter(A, equals_vertex("src", "u")), "columns of its input"),
        (lambda: Filter(A, is_present(Ref(2, ValueType.INT))), "columns of its input"),
        (lambda: Union((A, AMOUNTS), "d"), "same values"),
        (lambda: Pattern((AMOUNTS,), ((0, 1),), (0, 1), "d"), "each column"),
        (lambda: Pattern((AMOUNTS,), ((0, 1, 1),), (0, 1), "d"), "joins INT with VERTEX"),
        (lambda: Pattern((AMOUNTS,), ((0, 1, 2),), (0, 2), "d"), "vertices first"),
        (lambda: Pattern((A,), ((0, 1),), (0, 1), "d", is_present(Ref(2))), "its own variables"),
        (lambda: Path((AMOUNTS,), ZERO, "P"), "reads pairs"),
        (lambda: Path((A,), ZERO, "P", order=PathOrder.ASCENDING), "with their time alone"),
        (lambda: Union((), "d"), "needs an input"),
        (lambda: Union((A, ONE_END), "d"), "one arity"),
        (lambda: Pattern((), (), (), "d"), "ends of each"),
        (lambda: Pattern((A, B), ((0, 1),), (0,), "d"), "ends of each"),
        (lambda: Pattern((ONE_END,), ((0, 1),), (0,), "d"), "reads pairs"),
        (lambda: Pattern((A, B), ((0, 2), (2, 1)), (0, 1), "d"), "order of first use"),
        (lambda: Pattern((A,), ((0, 1),), (0, 2), "d"), "its own inputs"),
        (lambda: Path((), ZERO, "P"), "needs an input"),
        (lambda: Path((ONE_END,), ZERO, "P"), "reads pairs"),
        (lambda: Path((A, A), Then((ZERO, ONE)), "P"), "each input once"),
        (lambda: Path((A, B), Repeat(ZERO, 1, None), "P"), "each of its 2 inputs"),
        (lambda: Path((A,), Then((ZERO, ONE)), "P"), "each of its 1 inputs"),
        (lambda: Path((A,), Label("a"), "P"), "each of its 1 inputs"),
        (lambda: Path((A,), Label("0", "s"), "P"), "by position"),
    ],
)
def test_a_node_that_breaks_the_algebras_rules_is_not_built(build, message):
    with pytest.raises(PlanError, match=message):
        build()


def test_arity_and_label_of_each_node():
    assert (WScan("s", ("a", "b"), 24).label, A.arity, A.inputs) == ("a|b", 2, ())
    assert (Filter(A, LOOP).label, Filter(A, LOOP).arity) == ("a", 2)
    assert (Union((ONE_END,), "u").label, Union((ONE_END,), "u").arity) == ("u", 1)
    assert (ONE_END.arity, ONE_END.variables) == (1, 2)
    assert Path((A,), ZERO, "P").arity == 2


def test_nodes_of_different_kinds_or_fields_differ():
    assert (
        len(
            {
                A,
                B,
                Filter(A, equals_vertex(0, "u")),
                Filter(A, equals_vertex(1, "u")),
                Union((A,), "a"),
                ONE_END,
            }
        )
        == 6
    )
    assert Path((A,), ZERO, "P") != Path((A,), ZERO, "Q")


def test_a_plan_that_doubles_at_every_step_hashes_at_once():
    plan = A
    for _ in range(60):
        plan = Pattern((plan, plan), ((0, 1), (1, 2)), (0, 2), "d")
        hash(plan)
    assert plan in {plan}


def test_an_unpickled_plan_is_the_same_plan_in_another_process():
    plan = Path((A, B), Then((ZERO, Repeat(ONE, 0, None))), "P")
    hash(plan)
    assert pickle.loads(pickle.dumps(plan)) == plan
    read = (
        "import pickle, sys; plan = pickle.loads(sys.stdin.buffer.read());"
        "from meander.algebra.nodes import Path;"
        "assert plan in {Path(plan.inputs, plan.expr, plan.label)}"
    )
    subprocess.run([sys.executable, "-c", read], input=pickle.dumps(plan), check=True)
