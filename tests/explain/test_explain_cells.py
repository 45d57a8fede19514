"""The physical plan for several cells: its stages, and what is sent to whom."""

from __future__ import annotations

import meander.explain
from command import ROOT

NOTIFY = (ROOT / "examples" / "notify.dl").read_text(encoding="utf-8")


def physical(text: str, cells: int) -> str:
    return meander.explain.explain(text, "physical", cells=cells)


def test_one_cell_has_no_stages() -> None:
    assert "stage" not in physical(NOTIFY, 1)


def test_stages_and_exchanges_are_shown_for_several_cells() -> None:
    shown = physical(NOTIFY, 3)
    assert "Physical plan for 3 cells" in shown
    assert "stage 0: one cell puts edges in order" in shown
    first, second = shown.split("stage 1: 3 cells")[1].split("stage 2: 3 cells")
    assert "likes: those whose source it owns" in first
    assert "follows: all" in first
    assert "PATTERN RL" in first
    assert "@1 (RL, from stage 1): all" in second
    assert "PATTERN" not in second


def test_what_goes_to_the_owner_of_a_target_says_so() -> None:
    shown = physical("STREAM s WINDOW 1h\nAnswer(y) <- a+(x, y), b(y, z).", 2)
    assert "from stage 1): those whose target it owns" in shown
    assert "s b: those whose source it owns" in shown
