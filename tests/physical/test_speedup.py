"""The number of cells that `auto` chooses, and why."""

from __future__ import annotations

import pytest

from meander.engine import compile_query, with_cells
from meander.errors import ArgumentError
from meander.options import AUTO_CELLS, RunOptions
from meander.physical.speedup import choose_cells

AUTO = RunOptions.of(cells="auto")
CLOSURE = "Answer(x, y) <- (a/b*)(x, y) as P."


def chosen(body: str, cores: int, options: RunOptions = AUTO) -> tuple[int, str]:
    run, reason = with_cells([compile_query(f"STREAM s WINDOW 24h\n{body}", name="q")], options, cores)
    return run.cells, reason


@pytest.mark.parametrize("cores", [2, 8])
def test_closures_get_a_cell_for_each_core(cores: int) -> None:
    cells, reason = chosen(CLOSURE, cores)
    assert cells == cores
    assert reason.startswith(f"{cores} cells on {cores} cores: an estimated gain of ")


def test_what_mostly_reads_gets_one_cell() -> None:
    cells, reason = chosen("Answer(x, y) <- a(x, y).", 8)
    assert cells == 1
    assert reason.startswith("1 cell: by estimate several on 8 cores would gain ")


def test_one_core_gets_one_cell() -> None:
    assert chosen(CLOSURE, 1) == (1, "1 cell: there is one core")


def test_what_needs_all_edges_in_one_place_gets_one_cell() -> None:
    assert chosen(CLOSURE, 8, RunOptions.of(cells="auto", proofs=True))[0] == 1
    assert chosen("Answer(x, y, P) <- a+(x, y) as P.", 8)[0] == 1


def test_a_number_of_cells_stays_as_it_is() -> None:
    assert chosen(CLOSURE, 8, RunOptions(cells=3)) == (3, "")


def test_no_more_cells_are_chosen_than_gain() -> None:
    assert choose_cells(32, lambda cells: min(cells, 5) * 0.9)[0] == 8
    assert choose_cells(32, lambda cells: 1.0)[0] == 1


def test_auto_is_text_and_no_number_is_auto() -> None:
    assert AUTO.cells is AUTO_CELLS
    assert str(AUTO.cells) == "auto"
    assert RunOptions.of(cells="4").cells == 4
    for wrong in (0, "0", "some", 2.5):
        with pytest.raises(ArgumentError):
            RunOptions.of(cells=wrong)
