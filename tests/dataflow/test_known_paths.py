"""The paths that operators report with their answers: which records there are, and by which path each holds."""

from __future__ import annotations

from typing import Any

import pytest

import meander
from meander.physical.path_operators import PATH_OPERATORS

QUERY = "STREAM s WINDOW 10 SLIDE 5  Answer(x, y) <- a+(x, y) as P."


def answers_of(edges: list[tuple[Any, ...]], path_operator: str) -> list[tuple[Any, ...]]:
    """The records from x to y: interval and vertices of the path."""
    records = meander.run(QUERY, edges, paths=True, path_operator=path_operator)
    return [
        (record["op"], record["ts"], record["exp"], "".join(step[2] for step in record["path"] or []))
        for record in records
        if (record["src"], record["trg"]) == ("x", "y")
    ]


def test_a_closure_proves_a_pair_by_an_early_path_until_one_that_lasts_is_there() -> None:
    edges = [("x", "a", "y", 1), ("x", "a", "z", 6), ("z", "a", "y", 7)]
    assert answers_of(edges, "closure") == [("+", 1, 10, "y"), ("+", 7, 15, "zy")]


def test_a_closure_has_one_record_for_a_pair_whose_first_path_lasts() -> None:
    edges = [("x", "a", "z", 5), ("z", "a", "y", 6), ("x", "a", "w", 6), ("w", "a", "y", 7)]
    assert answers_of(edges, "closure") == [("+", 6, 15, "zy")]


def test_an_early_path_leads_over_edges_from_before_the_segment() -> None:
    # The edge of 5 is from the segment before 10. It lasts until 15, and the path over u until 20.
    edges = [
        ("p", "a", "q", 1),
        ("x", "a", "w", 5),
        ("w", "a", "y", 11),
        ("x", "a", "u", 12),
        ("u", "a", "y", 13),
    ]
    assert answers_of(edges, "closure") == [("+", 11, 15, "wy"), ("+", 13, 20, "uy")]


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
def test_a_path_is_never_one_whose_edge_is_deleted(path_operator: str) -> None:
    edges = [
        ("x", "a", "z", 1, "+"),
        ("z", "a", "y", 2, "+"),
        ("x", "a", "w", 3, "+"),
        ("w", "a", "y", 4, "+"),
        ("z", "a", "y", 5, "-"),
        ("x", "a", "v", 6, "+"),
        ("v", "a", "y", 7, "+"),
    ]
    records = answers_of(edges, path_operator)
    assert records[:3] == [("+", 2, 10, "zy"), ("-", 5, None, ""), ("+", 5, 10, "wy")]
    assert ("+", 7 if path_operator != "negative-tuple" else 10, 15, "vy") in records


@pytest.mark.parametrize("path_operator", PATH_OPERATORS)
def test_the_retraction_of_an_answer_that_a_deletion_shortens_has_no_path(path_operator: str) -> None:
    # The empty path at x lasts until 15 with the second edge, and until 10 without it.
    query = "STREAM s WINDOW 10 SLIDE 5  Answer(x, y) <- a*(x, y) as P."
    edges = [("x", "a", "y", 4), ("x", "a", "z", 6), ("x", "a", "z", 7, "-")]
    records = meander.run(query, edges, paths=True, path_operator=path_operator)
    assert [
        (record["op"], record["ts"], record["exp"], record["path"])
        for record in records
        if (record["src"], record["trg"]) == ("x", "x")
    ] == [("+", 4, 10, []), ("+", 6, 15, []), ("-", 7, None, None), ("+", 7, 10, [])]
