"""Every kernel once more as plain Python, in tests that compare its results with a twin or with the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kernel_calls import declared_kernels

TESTS = Path(__file__).parents[1]

SELECTION = (
    "kernels/test_arrivals_kernel.py",
    "kernels/test_ascending_operator.py",
    "kernels/test_changes_kernel.py",
    "kernels/test_conditions_kernel.py",
    "kernels/test_expiries_kernel.py",
    "kernels/test_forest_kernel.py",
    "kernels/test_graph_kernel.py",
    "kernels/test_interning_spans.py",
    "kernels/test_lookups_kernel.py",
    "kernels/test_parsing.py",
    "kernels/test_parsing_values.py",
    "kernels/test_pattern_kernel.py",
    "kernels/test_value_graph_kernel.py::test_the_graph_with_values_answers_as_of_any_instant",
    "kernels/test_value_pattern_kernel.py",
    "kernels/test_writing.py",
    "kernels/test_closure_operator.py::test_threads_that_share_the_roots_give_the_same_answers",
    "kernels/test_closure_operator.py::test_extensions_within_a_slide_are_one_record",
    "dataflow/test_ascending_paths.py",
    "dataflow/test_engine_examples.py",
    "dataflow/test_known_paths.py",
    "dataflow/test_predicates.py::test_edges_are_selected_as_row_by_row",
    "dataflow/test_properties_input.py",
    "dataflow/test_sources.py",
    "dataflow/test_tuples.py",
    "test_run_result.py::test_values_are_an_object_in_json_and_a_struct_in_arrow",
    "laws/test_law_demand.py",
    "laws/test_proof_checker.py::test_a_proof_with_one_thing_changed_is_rejected",
    "laws/test_law_local.py::test_a_named_case_holds_with_the_smallest_tables",
    "laws/test_law_path_values.py::test_a_named_case_with_path_values_holds_with_the_smallest_tables",
    "spark/test_spark_exchange.py",
    "spark/test_spark_many_cells.py::test_edges_of_any_label_get_to_the_cells_that_read_them",
    "spark/test_spark_recovery_law.py::test_a_named_case_holds_as_it_was_found",
)
"""Tests that take plain Python no longer than a few seconds."""


def test_every_kernel_has_the_same_results_uncompiled(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    settings = {
        "NUMBA_DISABLE_JIT": "1",
        "MEANDER_KERNEL_CALLS": str(calls),
        "MEANDER_KERNEL_EXAMPLES": "15",
        "MEANDER_LAW_EXAMPLES": "24",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])),
    }
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "kernel_calls"),
            *("-m", "not slow"),
            *(str(TESTS / selected) for selected in SELECTION),
        ],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    uncalled = declared_kernels().keys() - set(calls.read_text(encoding="utf-8").split())
    assert not uncalled, f"no test in SELECTION calls {', '.join(sorted(uncalled))}"
