"""Kernels that stop for room: the loop around them ends, and one switch makes every table fill at once."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import meander
from engine_runs import dataflow_of
from meander.dataflow.resumption import run_to_end
from meander.dataflow.state import FIRST_CAPACITY, Store
from meander.errors import ArgumentError, StalledError
from meander.kernels.status import DONE, FULL_OUTPUT, FULL_TABLE

SOURCES = Path(meander.__file__).parent


class Table:
    """Holds as many rows as its array is long, and takes ten."""

    def __init__(self) -> None:
        self.store = Store("the table")
        self.store.array("rows", 1, np.int64)
        self.cursor = np.zeros(2, np.int64)

    def take(self) -> int:
        self.cursor[0] = min(10, self.store.arrays["rows"].size)
        return DONE if self.cursor[0] == 10 else FULL_TABLE

    def grow(self) -> None:
        self.store.grow("rows", 2 * self.store.arrays["rows"].size)


def test_a_kernel_that_gets_the_room_it_asks_for_runs_to_its_end() -> None:
    table = Table()
    run_to_end(table.store, table.cursor, table.take, {FULL_TABLE: table.grow})
    assert table.cursor[0] == 10


def test_a_second_stop_without_a_row_or_growth_is_an_error_that_names_the_operator() -> None:
    table = Table()
    calls: list[str] = []
    with pytest.raises(StalledError, match="the table stopped twice at row 1") as caught:
        run_to_end(table.store, table.cursor, table.take, {FULL_TABLE: lambda: calls.append("packed")})
    assert calls == ["packed", "packed"]
    assert "the table is full" in str(caught.value)
    assert "defect of Meander" in caught.value.hint


def test_room_may_be_made_once_for_each_reason_without_growth() -> None:
    table = Table()
    statuses = iter([FULL_TABLE, FULL_OUTPUT, DONE])
    capacities: list[int] = []
    run_to_end(
        table.store,
        table.cursor,
        lambda: next(statuses),
        {status: lambda status=status: capacities.append(status) for status in (FULL_TABLE, FULL_OUTPUT)},
    )
    assert capacities == [FULL_TABLE, FULL_OUTPUT]


def test_only_one_loop_waits_for_a_kernel_to_be_done() -> None:
    """Outside the kernels, nothing but `run_to_end` compares a status with DONE."""

    def compares(file: Path) -> bool:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        return any(
            isinstance(name, ast.Name) and name.id == "DONE"
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for name in ast.walk(node)
        )

    outside = [file for file in SOURCES.rglob("*.py") if SOURCES / "kernels" not in file.parents]
    assert [file.stem for file in outside if compares(file)] == ["resumption"]


@pytest.mark.parametrize("path_operator", ["s-path", "negative-tuple", "closure", "auto"])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
def test_one_switch_gives_every_table_the_least_room(
    path_operator: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """STREAM s WINDOW 10
        H(x, y) <- a(x, m), b(m, y).
        H(x, y) <- c(x, y).
        Answer(x, y) <- (H/a)+(x, y), b(x, y).
        Answer(x, y) <- H+(x, y)."""
    usual = dataflow_of(text, paths=True, mode=mode, path_operator=path_operator)
    monkeypatch.setenv(FIRST_CAPACITY, "1")
    least = dataflow_of(text, paths=True, mode=mode, path_operator=path_operator)
    sizes = {
        f"{owner}/{name}": array.shape[0] for owner, store in least.stores.items() for name, array in store
    }
    # What is left has a fixed size: counters, cursors, settings.
    assert {name: size for name, size in sizes.items() if size > 16 and "clock/plan" not in name} == {}
    assert least.state_bytes < usual.state_bytes / 10


@pytest.mark.parametrize("text", ["100", "0", "-4", "3", "many", "²"])
def test_a_first_capacity_that_is_no_power_of_two_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FIRST_CAPACITY, text)
    with pytest.raises(ArgumentError, match=f"MEANDER_FIRST_CAPACITY={text} is not a power of two"):
        dataflow_of("STREAM s WINDOW 10 Answer(x, y) <- a(x, y).")


@pytest.mark.parametrize("count", [256, 257, 5000])
@pytest.mark.parametrize(
    "rules",
    [
        "Answer(x, y) <- a(x, y).\nAnswer(x, y) <- b(x, y).",
        "Answer(x, y) <- (a|b)(x, y).",
        "H(x, y) <- a(x, y).\nH(x, y) <- b(x, y).\nAnswer(x, y) <- H+(x, y).",
    ],
    ids=["two rules", "alternation", "two rules in a closure"],
)
def test_a_union_takes_more_tuples_in_an_instant_than_its_table_starts_with(rules: str, count: int) -> None:
    edges = [(i, "ab"[i % 2], i + 10_000, 1) for i in range(count)]
    answers = list(meander.run(f"STREAM s WINDOW 10\n{rules}", edges))
    assert sorted((answer["src"], answer["trg"], answer["ts"], answer["exp"]) for answer in answers) == [
        (i, i + 10_000, 1, 11) for i in range(count)
    ]
