"""From text to plans: each stage once, and in one place."""

from __future__ import annotations

import subprocess
import sys

import pytest

from command import environment
from meander.engine import compile_query, open_dataflow, physical_plan, query_plans, staged_plan
from meander.errors import ArgumentError
from meander.options import RunOptions
from meander.physical.plan import PathOp

TEXT = "STREAM s WINDOW 9\nPair(x, y) <- a(x, z), b(z, y).\nAnswer(x, y) <- Pair+(x, y) as P."


def test_the_canonical_plan_is_number_0_and_the_cheapest_is_chosen() -> None:
    query = compile_query(TEXT)
    assert query.plans["Answer"][0] == query.canonical["Answer"]
    assert query.chosen_plans["Answer"] == query.plans["Answer"][query.chosen["Answer"]]
    assert compile_query(TEXT, RunOptions(plan=0)).chosen == {"Answer": 0}


def test_a_plan_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArgumentError, match="Answer has no plan 99\nhint: its plans are 0 to "):
        physical_plan([compile_query(TEXT, RunOptions(plan=99))])


def test_only_a_run_with_paths_has_proofs() -> None:
    query = compile_query(TEXT)
    assert query_plans(query)[0].proofs == ()
    assert query_plans(query, RunOptions(paths=True))[0].proofs == query.proofs["Answer"] != ()


def test_queries_of_one_run_share_operators() -> None:
    first, second = (compile_query(TEXT, name=name) for name in ("first", "second"))
    plan = physical_plan([first, second])
    assert {result.query for result in plan.results} == {"first", "second"}
    assert len(plan.operators) == len(physical_plan([first]).operators)


def test_demand_is_for_operators_that_use_it_in_any_number_of_cells() -> None:
    query = compile_query("STREAM s WINDOW 9\nAnswer(x, m) <- a(x, y), b+(x, z), c(z, m), d(y, z).")

    def has_demand(options: RunOptions) -> bool:
        stages = staged_plan([query], options).stages
        operators = [operator for stage in stages for operator in stage.plan.operators]
        return any(isinstance(operator, PathOp) and operator.demand is not None for operator in operators)

    assert has_demand(RunOptions())
    assert not has_demand(RunOptions(demand=False))
    assert not has_demand(RunOptions(path_operator="s-path"))
    assert has_demand(RunOptions(cells=2))
    assert not has_demand(RunOptions(cells=2, demand=False))


def test_a_dataflow_has_the_options_of_its_run() -> None:
    options = RunOptions(mode="changes", paths=True)
    dataflow = open_dataflow(physical_plan([compile_query(TEXT)], options), options)
    assert (dataflow.mode, dataflow.paths) == ("changes", True)


def test_planning_a_query_imports_neither_kernels_nor_spark() -> None:
    program = (
        "import sys\nfrom meander.engine import compile_query, physical_plan\n"
        "physical_plan([compile_query('STREAM s WINDOW 9 Answer(x, y) <- a+(x, y).')])\n"
        "print([name for name in ('numba', 'numpy', 'pyarrow', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("first", [0, 1])
def test_queries_that_read_a_property_as_two_number_types_are_told_to_declare_a_float(first: int) -> None:
    """Converting it would make the type of one query's answers, and what it rejects, depend on the other query."""
    queries = [
        compile_query(f"STREAM s WINDOW 9\nAnswer(x, y) <- a[w > {least}](x, y).", name=f"q{least}")
        for least in (1, 1.5)
    ]
    with pytest.raises(ArgumentError, match=r"queries read w of s as [\s\S]*STREAM s \(w FLOAT\)"):
        physical_plan([queries[first], queries[1 - first]])
