"""What a cell's manifest records of the instant that is still open, and what a rebuild makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from engine_runs import edges_of
from meander.spark.cell.manifest import CellManifest


def rows_at(time, *ops) -> list[tuple[Any, ...]]:
    return [(f"v{number}", "a", "w", time, op) for number, op in enumerate(ops)]


def noted(*parts) -> CellManifest:
    """A manifest that has seen these parts of stream `s`, each up to the time of its last edge."""
    manifest = CellManifest()
    for rows in parts:
        manifest.record_part({"s": edges_of(*rows)}, rows[-1][3])
    return manifest


def replayed(manifest, rows) -> list[int]:
    return [part["s"].rows for part in manifest.parts_of({"s": edges_of(*rows)})]


def test_an_instant_without_deletions_is_not_split() -> None:
    manifest = noted(*[rows_at(5, "+")] * 1000)
    assert (manifest.splits, manifest.open_rows) == ([], {"s": 1000})


def test_an_instant_is_split_before_each_part_that_deletes() -> None:
    manifest = noted(
        rows_at(4, "+", "-"), rows_at(5, "+"), rows_at(5, "+"), rows_at(5, "-", "+"), rows_at(5, "+", "-")
    )
    assert manifest.splits == [{"s": 2}, {"s": 4}]
    assert replayed(manifest, rows_at(4, "+", "-") + rows_at(5, "+", "+", "-", "+", "+", "-")) == [4, 2, 2]


def test_splits_are_forgotten_with_their_instant() -> None:
    manifest = noted(rows_at(5, "+"), rows_at(5, "-"), rows_at(6, "+"))
    assert (manifest.time, manifest.splits, manifest.open_rows) == (6, [], {"s": 1})
    manifest.record_part({}, 9)
    assert (manifest.time, manifest.splits, manifest.open_rows) == (9, [], {})


def test_splits_are_counted_for_each_stream() -> None:
    manifest = CellManifest()
    s, t = edges_of(*rows_at(5, "+", "-")), edges_of(*rows_at(5, "+"))
    for edges in ({"s": s}, {"t": t}, {"s": s, "t": t}):
        manifest.record_part(edges, 5)
    assert manifest.splits == [{"s": 2, "t": 1}]
    whole = {"s": edges_of(*rows_at(5, "+", "-", "+", "-")), "t": edges_of(*rows_at(5, "+", "+"))}
    assert [{name: edges.rows for name, edges in part.items()} for part in manifest.parts_of(whole)] == [
        {"s": 2, "t": 1},
        {"s": 2, "t": 1},
    ]


@pytest.mark.parametrize(
    ("later", "parts"), [(5, [1, 2, 2]), (4, [0, 2, 2]), (3, [0, 1, 2]), (1, [0, 0, 1]), (0, [0, 0, 0])]
)
def test_after_a_snapshot_only_what_came_later_is_split(later, parts) -> None:
    manifest = noted(rows_at(5, "+"), rows_at(5, "-", "+"), rows_at(5, "+", "-"))
    assert replayed(manifest, rows_at(5, "+", "-", "+", "+", "-")[5 - later :]) == parts


def test_a_manifest_that_is_read_back_has_its_splits() -> None:
    manifest = noted(rows_at(5, "+"), rows_at(5, "-"))
    assert CellManifest.from_bytes(manifest.to_bytes()) == manifest
