"""The physical plan for several cells: its stages, and how their input is distributed."""

from __future__ import annotations

import meander.explain
from command import ROOT
from meander.explain.stages import Explanation
from meander.options import RunOptions
from picture_geometry import check_picture

NOTIFY = (ROOT / "examples" / "notify.dl").read_text(encoding="utf-8")


def physical(text: str, cells: int) -> str:
    return meander.explain.explain(text, "physical", options=RunOptions(cells=cells))


def test_one_cell_has_no_stages() -> None:
    assert "stage" not in physical(NOTIFY, 1)


def test_stages_and_exchanges_are_shown_for_several_cells() -> None:
    shown = physical(NOTIFY, 3)
    assert "Physical plan for 3 cells" in shown
    assert "stage 0: tasks read the edges and send each to the cells" in shown
    first, second = shown.split("stage 1: 3 cells")[1].split("stage 2: 3 cells")
    assert "likes: hash-partitioned by source" in first
    assert "follows: broadcast" in first
    assert "PATTERN RL" in first
    assert "@1 (RL, from stage 1): broadcast" in second
    assert "PATTERN" not in second.split("State of each cell")[0]


def test_partitioning_by_target_is_shown() -> None:
    shown = physical("STREAM s WINDOW 1h\nAnswer(y) <- a+(x, y), b(y, z).", 2)
    assert "from stage 1): hash-partitioned by target" in shown
    assert "s b: hash-partitioned by source" in shown


def test_the_number_of_cells_is_chosen_with_a_reason() -> None:
    options = RunOptions.of(cells="auto")
    (section, _) = Explanation(NOTIFY, options, cores=4).stage("physical")
    assert section.title == "Physical plan for 4 cells"
    assert "4 cells on 4 cores: an estimated gain of " in section.text
    plan = Explanation(NOTIFY, options, cores=1).summary()[1]
    assert "cells: 1 cell: there is one core" in plan.text


def test_the_state_of_several_cells_is_that_of_their_stages() -> None:
    shown = meander.explain.explain(NOTIFY, options=RunOptions(cells=3))
    _, state = shown.split("State of each cell\n")
    assert "stage 1: #6 PATTERN RL" in state
    assert "stage 1: #4 PATTERN demand for FP" in state


def test_the_grid_of_a_join_is_shown() -> None:
    shown = physical("STREAM s WINDOW 1h\nAnswer(x, y) <- a(x, z), b(z, w), c(w, y).", 8)
    assert "Answer: a grid of 2×3 cells (6 of 8) by source and target" in shown
    assert "s a: hash-partitioned by source, to 3 of 8 cells each" in shown
    assert "s b: to the 6 cells of the grid" in shown
    assert "s c: hash-partitioned by target, to 2 of 8 cells each" in shown


def test_the_picture_for_several_cells_shows_their_stages() -> None:
    picture = Explanation(NOTIFY, RunOptions(cells=3)).draw()
    check_picture(picture)
    assert "stage 2 #0 RECEIVE" in picture
    assert "stage 1 #6 PATTERN" in picture
