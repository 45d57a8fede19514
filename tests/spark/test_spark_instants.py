"""What a cell's head records of the instant that is still open, and what a rebuild makes of it."""

import pytest

from engine_runs import edges_of
from meander.spark.cell.instants import note_part, parts_of
from meander.spark.cell.manifest import Head


def rows_at(time, *ops):
    return [(f"v{number}", "a", "w", time, op) for number, op in enumerate(ops)]


def noted(*parts):
    """A head that has seen these parts of stream `s`, each up to the time of its last edge."""
    head = Head()
    for rows in parts:
        note_part(head, {"s": edges_of(*rows)}, rows[-1][3])
    return head


def replayed(head, rows):
    return [part["s"].rows for part in parts_of(head, {"s": edges_of(*rows)})]


def test_an_instant_without_deletions_is_not_split():
    head = noted(*[rows_at(5, "+")] * 1000)
    assert (head.splits, head.open_rows) == ([], {"s": 1000})


def test_an_instant_is_split_before_each_part_that_deletes():
    head = noted(
        rows_at(4, "+", "-"), rows_at(5, "+"), rows_at(5, "+"), rows_at(5, "-", "+"), rows_at(5, "+", "-")
    )
    assert head.splits == [{"s": 2}, {"s": 4}]
    assert replayed(head, rows_at(4, "+", "-") + rows_at(5, "+", "+", "-", "+", "+", "-")) == [4, 2, 2]


def test_splits_are_forgotten_with_their_instant():
    head = noted(rows_at(5, "+"), rows_at(5, "-"), rows_at(6, "+"))
    assert (head.time, head.splits, head.open_rows) == (6, [], {"s": 1})
    note_part(head, {}, 9)
    assert (head.time, head.splits, head.open_rows) == (9, [], {})


def test_splits_are_counted_for_each_stream():
    head = Head()
    s, t = edges_of(*rows_at(5, "+", "-")), edges_of(*rows_at(5, "+"))
    for edges in ({"s": s}, {"t": t}, {"s": s, "t": t}):
        note_part(head, edges, 5)
    assert head.splits == [{"s": 2, "t": 1}]
    whole = {"s": edges_of(*rows_at(5, "+", "-", "+", "-")), "t": edges_of(*rows_at(5, "+", "+"))}
    assert [{name: one.rows for name, one in part.items()} for part in parts_of(head, whole)] == [
        {"s": 2, "t": 1},
        {"s": 2, "t": 1},
    ]


@pytest.mark.parametrize(
    ("later", "parts"), [(5, [1, 2, 2]), (4, [0, 2, 2]), (3, [0, 1, 2]), (1, [0, 0, 1]), (0, [0, 0, 0])]
)
def test_after_a_snapshot_only_what_came_later_is_split(later, parts):
    head = noted(rows_at(5, "+"), rows_at(5, "-", "+"), rows_at(5, "+", "-"))
    assert replayed(head, rows_at(5, "+", "-", "+", "+", "-")[5 - later :]) == parts


def test_a_head_that_is_read_back_has_its_splits():
    head = noted(rows_at(5, "+"), rows_at(5, "-"))
    assert Head.from_bytes(head.to_bytes()) == head
