"""Grids of cells for joins of edges: their size, and what is spread of heavy vertices."""

from __future__ import annotations

from math import prod

import pytest

from engine_runs import plan_query
from meander.algebra.nodes import Plan
from meander.physical.layouts import Layout, Statistics, best_grid, grids


def plan_of(body: str) -> Plan:
    (result,) = plan_query(f"STREAM s WINDOW 9\n{body}", plan=0, demand=False)
    return result.plan


def grid(body: str, cells: int, statistics: Statistics | None = None) -> Layout:
    layout = best_grid(plan_of(body), cells, statistics or Statistics())
    assert layout is not None
    assert layout.cells == prod(axis.size for axis in layout.axes) <= cells
    return layout


def sizes(layout: Layout) -> dict[int, int]:
    return {axis.position: axis.size for axis in layout.axes}


@pytest.mark.parametrize(("cells", "side"), [(8, 2), (27, 3), (64, 4)])
def test_a_triangle_has_a_cube(cells: int, side: int) -> None:
    layout = grid("Answer(x, y, z) <- a(x, y), b(y, z), c(z, x).", cells)
    assert sizes(layout) == {0: side, 1: side, 2: side}


@pytest.mark.parametrize("cells", [2, 3, 7, 11, 13])
def test_a_prime_number_of_cells_has_a_grid_of_nearly_as_many(cells: int) -> None:
    assert grid("Answer(x, z) <- a(x, y), b(y, z).", cells).cells > cells / 2


def test_a_larger_label_goes_to_fewer_cells() -> None:
    body = "Answer(x, z) <- a(x, y), b(y, z)."
    few_a = grid(body, 8, Statistics({("s", "a"): 1, ("s", "b"): 100}))
    few_b = grid(body, 8, Statistics({("s", "a"): 100, ("s", "b"): 1}))
    assert sizes(few_a) == {1: 8}
    assert sizes(few_b) == {0: 8}


def test_derived_inputs_have_no_grid() -> None:
    assert best_grid(plan_of("Answer(x, z) <- a+(x, y), b(y, z)."), 8) is None
    assert best_grid(plan_of("Answer() <- a(x, y), b(y, z)."), 8) is None


@pytest.mark.parametrize(("closed", "expected"), [(1, {0: 2, 1: 4}), (1000, {0: 8})])
def test_a_closure_of_few_edges_is_searched_for_each_coordinate_of_its_targets(
    closed: int, expected: dict[int, int]
) -> None:
    known = {("s", "a"): closed, ("s", "b"): 10, ("s", "c"): 40}
    assert sizes(grid("Answer(x, y) <- a+(x, y), b(x, m), c(m, y).", 8, Statistics(known))) == expected


def test_two_closures_have_no_grid() -> None:
    known = Statistics({("s", "a"): 1, ("s", "b"): 1})
    assert best_grid(plan_of("Answer(x, y) <- a+(x, y), a+(y, x), b(x, y)."), 8, known) is None


def test_heavy_vertices_are_spread_by_a_column_beside_them() -> None:
    heavy = Statistics(heavy=(7,))
    spread = grid("Answer(x, y) <- a(x, y), b(y, z).", 8, heavy)
    assert [(axis.position, axis.spreads, axis.other) for axis in spread.axes] == [(1, True, 0)]
    apart = grid("Answer(x, z) <- a(x, y), b(y, z).", 8, heavy)
    assert not any(axis.spreads for axis in apart.axes)


def test_grids_are_all_sizes_that_fit() -> None:
    assert list(grids((0,), 3)) == [{0: 2}, {0: 3}]
    assert {(0, 2), (1, 3)} in [set(sizes.items()) for sizes in grids((0, 1), 7)]
    assert max(prod(sizes.values()) for sizes in grids((0, 1, 2), 100)) <= 100
