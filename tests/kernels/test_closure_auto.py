"""The operator that chooses: forced to switch between S-PATH and the closure at random, and left to itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from test_closure_operator import EXPRESSIONS, draw_edges

import meander
from engine_runs import plan_query
from judge import judge
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges, as_text
from meander.dataflow.operators.path_auto import PathAuto
from meander.physical.builder import build
from oracle import expect
from querytext import read_query
from strategies import RandomChoice


@pytest.mark.parametrize("paths", [False, True], ids=["bare", "paths"])
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_law_holds_across_switches_at_random(
    expression: str, mode: str, paths: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"STREAM s WINDOW 9 SLIDE 3\nAnswer(x, y) <- {expression}(x, y) as P."
    monkeypatch.setattr(PathAuto, "part_rows", 2)
    for seed in range(4):
        monkeypatch.setattr(PathAuto, "costs", RandomChoice(random.Random(seed)))
        edges = draw_edges(seed, deletions=0.0 if paths else 0.1)
        answers = meander.run(
            text, edges, mode=mode, paths=paths, batch_rows=5 * seed + 3, path_operator="auto"
        )
        judge(answers, expect(read_query(text), {"s": edges}, 0), mode=mode, paths=paths)


def as_edges(rows: list[tuple[Any, ...]]) -> Edges:
    src, label, trg, ts = zip(*rows, strict=True)
    return Edges(
        as_text(src), as_text(label), as_text(trg), np.array(ts, np.int64), np.ones(len(ts), np.int8)
    )


def choose(rows: list[tuple[Any, ...]]) -> str:
    """What the operator chooses after the edges, as the figures report it."""
    plan = build(plan_query("STREAM s WINDOW 100 SLIDE 100\nAnswer(x, y) <- a+(x, y)."))
    dataflow = Dataflow(plan)
    for _ in dataflow.process({"s": as_edges(rows)}, rows[-1][3]):
        pass
    return dataflow.figures()[-1].choice


def test_a_dense_component_is_left_to_the_closure() -> None:
    chance = random.Random(5)
    rows = [(chance.randrange(200), "a", chance.randrange(200), 1 + i // 10) for i in range(900)]
    assert choose(rows).startswith("closure: ")


def test_short_trees_are_left_to_s_path() -> None:
    rows = [(2 * i, "a", 2 * i + 1, 1 + i // 100) for i in range(9000)]
    assert choose(rows).startswith("s-path: ")
