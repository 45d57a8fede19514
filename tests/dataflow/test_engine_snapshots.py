"""A snapshot between two batches has the same future as what it was taken of, record for record."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_runs import Run, dataflow_of, edges_of, planned, processed, steps_of
from meander.dataflow.dataflow import OperatorFigures
from meander.dataflow.edges import INFINITY
from meander.dataflow.ingest import Ingest
from meander.errors import StateError
from meander.physical.plan import PathOp, PhysicalPlan
from strategies import Case, cases, path_value_cases, property_cases, tables_of

CLOSURE = "STREAM s WINDOW 10 SLIDE 2\nAnswer(x, y) <- (a/b*)(x, y)."
EDGES = [("u", "a", "v", 1), ("v", "b", "w", 2), ("w", "b", "x", 4), ("u", "a", "w", 7), ("x", "b", "y", 9)]

drawn = settings(
    max_examples=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def run_of(case: Case, plan: PhysicalPlan, folder: Path | None = None) -> Run:
    return Run(
        plan, tuple(case.streams), lateness=case.lateness, folder=folder, mode=case.mode, paths=case.paths
    )


def kept(run: Run, path_operator: str, capacity: int | None) -> list[OperatorFigures]:
    """The figures, but for the counts of `auto` and for the size of what is in no snapshot: scratch arrays of the
    closure and of ascending paths, and outputs, which grow where tables start small."""
    figures = run.dataflow.figures()
    ascending = any(isinstance(node, PathOp) and node.order for node in run.dataflow.plan.operators)
    if path_operator in ("s-path", "negative-tuple") and capacity is None and not ascending:
        return figures
    return [operator._replace(state_bytes=0, choice="") for operator in figures]


def by_instant(records: list[Any]) -> list[list[str]]:
    """The records of each instant, instants in the order in which they came: within one there is no order."""
    return [sorted(map(repr, group)) for _, group in groupby(records, key=lambda record: record["ts"])]


@pytest.mark.parametrize("path_operator", ["s-path", "negative-tuple", "closure", "auto"])
@given(
    case=cases() | property_cases() | path_value_cases(),
    cut=st.floats(0, 1),
    batch_rows=st.sampled_from((1, 2, 3, 7)),
    in_files=st.booleans(),
)
@drawn
def test_a_restored_run_goes_on_as_if_nothing_had_happened(
    path_operator: str, case: Case, cut: float, batch_rows: int, in_files: bool
) -> None:
    number = None if case.plan is None else 0
    plan = planned(case.text, paths=case.paths, path_operator=path_operator, plan=number)
    steps = steps_of(case.streams, batch_rows, plan.schemas)
    done = round(cut * len(steps))
    with TemporaryDirectory() as folder, tables_of(case.capacity):
        first = run_of(case, plan, Path(folder, "first") if in_files else None)
        for step in steps[:done]:
            first.feed(step)
        snapshot = first.snapshot()
        uninterrupted = [first.feed(step) for step in steps[done:]]
        second = run_of(case, plan, Path(folder, "second") if in_files else None)
        second.restore(snapshot)
        restored = [second.feed(step) for step in steps[done:]]
        assert [by_instant(records) for records in restored] == [
            by_instant(records) for records in uninterrupted
        ]
        assert kept(second, path_operator, case.capacity) == kept(first, path_operator, case.capacity)


def test_a_snapshot_is_a_copy_that_later_batches_leave_alone() -> None:
    dataflow = dataflow_of(CLOSURE)
    processed(dataflow, {"s": edges_of(*EDGES[:2])}, 2)
    snapshot = dataflow.snapshot()
    before = {name: array.copy() for name, array in snapshot.items()}
    processed(dataflow, {"s": edges_of(*EDGES[2:])}, INFINITY)
    assert all(np.array_equal(snapshot[name], array) for name, array in before.items())


def test_a_dataflow_can_be_restored_more_than_once_and_over_what_it_holds() -> None:
    dataflow = dataflow_of(CLOSURE)
    processed(dataflow, {"s": edges_of(*EDGES[:2])}, 2)
    snapshot = dataflow.snapshot()
    held = dataflow.state_bytes
    future = processed(dataflow, {"s": edges_of(*EDGES[2:])}, INFINITY)
    assert future
    for _ in range(2):
        dataflow.restore(snapshot)
        assert dataflow.time == 2
        assert dataflow.state_bytes == held
        assert processed(dataflow, {"s": edges_of(*EDGES[2:])}, INFINITY) == future


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("STREAM s WINDOW 11 SLIDE 2\nAnswer(x, y) <- (a/b*)(x, y).", {}),
        ("STREAM s WINDOW 10 SLIDE 1\nAnswer(x, y) <- (a/b*)(x, y).", {}),
        ("STREAM s WINDOW 10 SLIDE 2\nAnswer(x, y) <- (b/a*)(x, y).", {}),
        ("STREAM s WINDOW 10 SLIDE 2\nAnswer(x, y) <- a(x, m), b(m, y).", {}),
        ('STREAM s WINDOW 10 SLIDE 2\nAnswer(x) <- (a/b*)("u", x).', {}),
        (CLOSURE, {"mode": "changes"}),
        (CLOSURE, {"paths": True}),
        (CLOSURE, {"path_operator": "negative-tuple"}),
    ],
    ids=["window", "slide", "labels", "pattern", "constant", "mode", "paths", "operator"],
)
def test_a_snapshot_of_another_plan_is_refused_and_changes_nothing(
    text: str, options: dict[str, Any]
) -> None:
    other = dataflow_of(text, **options)
    before = other.snapshot()
    with pytest.raises(StateError, match="another plan"):
        other.restore(dataflow_of(CLOSURE).snapshot())
    after = other.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_what_is_no_snapshot_is_refused() -> None:
    dataflow = dataflow_of(CLOSURE)
    with pytest.raises(StateError):
        dataflow.restore({})
    whole = dataflow.snapshot()
    with pytest.raises(StateError):
        dataflow.restore({name: array for name, array in whole.items() if not name.endswith("/first_out")})
    with pytest.raises(StateError):
        dataflow.restore(whole | {"elsewhere/array": np.zeros(1)})


def test_an_ingest_of_other_streams_is_refused() -> None:
    with pytest.raises(StateError):
        Ingest(("s",)).restore(Ingest(("s", "t")).snapshot())


# ---------------------------------------------------------------------------------------------------------
# State in files


def test_the_arrays_are_files_that_another_process_can_open(tmp_path: Path) -> None:
    dataflow = dataflow_of(CLOSURE, folder=tmp_path, mode="changes")
    processed(dataflow, {"s": edges_of(*EDGES[:3])}, 4)
    arrays = {}
    for owner, store in dataflow.stores.items():
        for name, array in store:
            assert store.folder is not None
            file = store.folder / f"{name}.bin"
            if array.nbytes == 0:
                continue
            assert file.stat().st_size == array.nbytes
            opened = np.asarray(np.memmap(file, array.dtype, "r", shape=array.shape))
            assert np.array_equal(opened, array)
            if name not in store.scratch:
                arrays[f"{owner}/{name}"] = opened
    # What has no bytes has no file, only a shape.
    whole = {name: array for name, array in dataflow.snapshot().items() if array.nbytes == 0} | arrays
    other = dataflow_of(CLOSURE, mode="changes")
    other.restore(whole)
    rest = {"s": edges_of(*EDGES[3:])}
    assert processed(other, rest, INFINITY) == processed(dataflow, rest, INFINITY)


def test_what_grows_in_files_grows_in_files(tmp_path: Path) -> None:
    edges = [(i % 700, "a", i % 699 + 1, i // 4) for i in range(6000)]
    text = "STREAM s WINDOW 300\nAnswer(x, y) <- a(x, m), a(m, y)."
    in_files, in_memory = dataflow_of(text, folder=tmp_path), dataflow_of(text)
    records = processed(in_files, {"s": edges_of(*edges)}, INFINITY)
    assert len(records) > 5000
    assert records == processed(in_memory, {"s": edges_of(*edges)}, INFINITY)
    assert in_files.state_bytes == in_memory.state_bytes
    on_disk = sum(file.stat().st_size for file in tmp_path.rglob("*.bin"))
    assert on_disk == sum(array.nbytes for store in in_files.stores.values() for _, array in store)


def test_a_name_too_long_for_a_folder_is_no_trouble(tmp_path: Path) -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- (" + "/".join(["label_of_some_length"] * 20) + ")(x, y)."
    dataflow = dataflow_of(text, folder=tmp_path)
    edges = [(i, "label_of_some_length", i + 1, 1) for i in range(20)]
    assert [
        (answer["src"], answer["trg"]) for answer in processed(dataflow, {"s": edges_of(*edges)}, INFINITY)
    ] == [(0, 20)]
