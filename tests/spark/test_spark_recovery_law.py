"""The law holds over cells that forget: whatever is lost between two batches but the store, the answers are those
of the snapshots, and each stands by a path that holds.

A case is fed to one cell or several batch by batch, and its instants are split over batches. Before a batch the
workers may have lost their state, the snapshots may be gone, tasks may have failed after they had done their work,
and the run may have been started again by another plan, with another path operator, or with one more query.

`make test` draws the same cases every time, `make test-slow` new ones (`MEANDER_RECOVERY_EXAMPLES` of them): what
they find is printed as a file for `cases/`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from recovery import (
    RARELY,
    Recovery,
    hold_law,
    path_value_recoveries,
    property_recoveries,
    read_recovery,
    recoveries,
    table_recoveries,
)

from meander.physical.path_operators import PATH_OPERATORS
from querytext import read_query
from strategies import Case

CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))
EXAMPLES = int(os.environ.get("MEANDER_RECOVERY_EXAMPLES", "4000"))
LOST = ("state and snapshots",)
LOSSES_OF_ALL = ((1, "state and snapshots", RARELY), (3, "state and snapshots", RARELY), (1, "state", 4))
drawn = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def closure_case(edges, losses, operators, **options) -> Recovery:
    query = read_query("STREAM s WINDOW 40\nAnswer(x, y) <- s.a+(x, y) as P.")
    return Recovery(Case(query, {"s": edges}, batch_rows=1, **options), tuple(losses), tuple(operators))


TWO_WAYS = [("u", "a", "v", 1), ("v", "a", "w", 1), ("u", "a", "x", 2), ("x", "a", "w", 3)]


@pytest.mark.parametrize("operator", PATH_OPERATORS)
def test_a_path_emitted_before_a_loss_is_cut_with_its_edge(operator) -> None:
    """u reaches w over v, then for as long over x; what is rebuilt may choose the way over x."""
    ways = [(src, "a", trg, 1) for middle in "vxyz" for src, trg in (("u", middle), (middle, "w"))]
    edges = [*ways, ("u", "a", "v", 5, "-")]
    records = hold_law(closure_case(edges, ["state and snapshots"], [operator], paths=True))
    assert ("-", 5) in [
        (record["op"], record["ts"]) for record in records if (record["src"], record["trg"]) == ("u", "w")
    ]


@pytest.mark.parametrize("before", PATH_OPERATORS)
@pytest.mark.parametrize("after", PATH_OPERATORS)
def test_what_one_path_operator_has_not_emitted_yet_another_emits(before, after) -> None:
    operators = [before, before, before, before, after]
    records = hold_law(closure_case(TWO_WAYS, ["another plan"], operators))
    assert max(Counter(map(json.dumps, records)).values()) == 1


def test_a_stop_that_waits_for_its_instant_to_pass_is_emitted_after_a_loss() -> None:
    edges = [("u", "a", "v", 1), ("u", "a", "w", 41), ("u", "a", "x", 50)]
    hold_law(closure_case(edges, ["state and snapshots"], ["auto"], mode="changes"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_as_it_was_found(file) -> None:
    hold_law(read_recovery(file.read_text()))


@pytest.mark.parametrize("operator", PATH_OPERATORS)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_holds_whatever_is_lost(file, operator) -> None:
    """Its instants are split at every edge, and before every batch state is lost."""
    recovery = read_recovery(file.read_text())
    for paths in (False, True):
        case = replace(recovery.case, mode="changes", paths=paths, batch_rows=1)
        for cells, loss, snapshot_rows in LOSSES_OF_ALL:
            hold_law(Recovery(case, (loss,), (operator,), cells, snapshot_rows, recovery.added))
    hold_law(Recovery(replace(case, mode="intervals"), LOST, (operator,), added=recovery.added))


def test_the_stop_of_an_answer_deleted_in_its_instant_is_emitted_once() -> None:
    """The case of the report, by its records."""
    (file,) = [file for file in CASES if file.stem == "an_answer_deleted_in_its_instant_stops_after_a_loss"]
    recovery = read_recovery(file.read_text())
    for cells in (1, 2):
        records = hold_law(
            replace(recovery, case=replace(recovery.case, mode="changes", batch_rows=1), cells=cells)
        )
        changes = [(record["trg"], record["op"], record["ts"]) for record in records if record["trg"] == "q"]
        assert changes == [("q", "+", 10), ("q", "-", 10)]


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_named_case_is_proved_whatever_is_lost(file, mode) -> None:
    recovery = read_recovery(file.read_text())
    case = replace(recovery.case, mode=mode, paths=False, proofs=True, batch_rows=1)
    for loss, snapshot_rows in (("state and snapshots", RARELY), ("state", 4), ("another plan", RARELY)):
        hold_law(Recovery(case, (loss,), ("auto", "s-path"), 1, snapshot_rows, recovery.added))


@given(recovery=recoveries(large=12) | property_recoveries())
@settings(drawn, max_examples=30)
def test_answers_are_proved_whatever_the_cell_has_lost(recovery) -> None:
    hold_law_of_drawn(replace(recovery, cells=1, case=replace(recovery.case, paths=False, proofs=True)))


@contextmanager
def naming(recovery) -> Iterator[None]:
    """Whatever is wrong shows the case as a file for `cases/`."""
    try:
        yield
    except Exception as error:
        error.add_note(f"save this as tests/spark/cases/WHAT_HOLDS.case:\n\n{recovery!r}")
        raise


def hold_law_of_drawn(recovery) -> None:
    with naming(recovery):
        assert repr(read_recovery(repr(recovery))) == repr(recovery)
        hold_law(recovery)


@given(recovery=recoveries(large=12))
@drawn
def test_answers_are_those_of_the_snapshots_whatever_cells_have_lost(recovery) -> None:
    hold_law_of_drawn(recovery)


@given(recovery=property_recoveries())
@settings(drawn, max_examples=20)
def test_answers_with_values_are_those_of_the_snapshots_whatever_cells_have_lost(recovery) -> None:
    hold_law_of_drawn(recovery)


@given(recovery=path_value_recoveries())
@settings(drawn, max_examples=20)
def test_answers_with_paths_as_values_stand_by_them_whatever_a_cell_has_lost(recovery) -> None:
    hold_law_of_drawn(recovery)


@given(recovery=table_recoveries())
@drawn
def test_answers_over_tables_are_those_of_the_snapshots_whatever_cells_have_lost(recovery) -> None:
    hold_law_of_drawn(recovery)


@pytest.mark.slow
@given(recovery=path_value_recoveries())
@settings(drawn, max_examples=EXAMPLES // 4, derandomize=False, report_multiple_bugs=False)
def test_answers_with_paths_as_values_stand_by_them_in_many_more_cases(recovery) -> None:
    hold_law_of_drawn(recovery)


@pytest.mark.slow
@given(recovery=table_recoveries())
@settings(drawn, max_examples=EXAMPLES, derandomize=False, report_multiple_bugs=False)
def test_answers_over_tables_are_those_of_the_snapshots_in_many_more_cases(recovery) -> None:
    hold_law_of_drawn(recovery)


@pytest.mark.slow
@given(recovery=property_recoveries())
@settings(drawn, max_examples=EXAMPLES, derandomize=False, report_multiple_bugs=False)
def test_answers_with_values_are_those_of_the_snapshots_in_many_more_cases(recovery) -> None:
    hold_law_of_drawn(recovery)


@pytest.mark.slow
@given(recovery=recoveries(large=4))
@settings(drawn, max_examples=EXAMPLES, derandomize=False, report_multiple_bugs=False)
def test_answers_are_those_of_the_snapshots_in_many_more_cases(recovery) -> None:
    hold_law_of_drawn(recovery)


def test_a_case_that_fails_is_printed_as_a_file() -> None:
    recovery = closure_case(TWO_WAYS, ["state", "the task"], ["auto", "s-path"], mode="changes", paths=True)
    with pytest.raises(AssertionError) as raised, naming(recovery):
        raise AssertionError("the answers are others")
    (note,) = raised.value.__notes__
    printed = read_recovery(note.partition("\n\n")[2])
    assert (printed.losses, printed.operators) == (recovery.losses, recovery.operators)
    assert (printed.case.text, printed.case.streams) == (recovery.case.text, recovery.case.streams)
    assert (printed.case.mode, printed.case.paths, printed.case.batch_rows) == ("changes", True, 1)
