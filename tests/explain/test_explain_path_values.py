"""Paths as values in explanations: where they come from, what they cost, and that nothing else may run."""

from __future__ import annotations

import pytest

from meander.errors import ArgumentError
from meander.explain import explain
from meander.explain.stages import Explanation
from meander.options import RunOptions

QUERY = """STREAM s WINDOW 10
Answer(u, m, P)    <- follows+(u, v) as P, posts(v, m).
Answer(u, m, P: Q) <- shares+(u, m) as Q ascending.
"""


def test_a_path_value_is_shown_with_the_paths_that_it_comes_from() -> None:
    text = explain(QUERY)
    assert "Answer(u, m, P: P) <- follows+(u, v) as P, posts(v, m)." in text
    assert (
        "Answer.P: the path P (follows+) or Q (shares+) of a match that lasts as long as the record" in text
    )


def test_a_query_with_path_values_runs_as_it_is_written() -> None:
    assert "Answer: the query as written, whose rules lead to the paths that it returns" in explain(QUERY)
    assert "Plans of Answer: 1 equivalent plan" in explain(QUERY, "plans")


def test_the_state_of_path_values_is_named() -> None:
    assert (
        "for paths as values, the tuples of #3 and #5; of each answer, the edges and tuples that"
        in explain(QUERY)
    )
    alone = "STREAM s WINDOW 10 Answer(u, m, P) <- follows+(u, v) as P, posts(v, m)."
    assert "for paths as values, of each answer, the edges and tuples that prove it" in explain(alone)


def test_several_cells_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"Answer returns a path \(P\) as a value, which takes a single cell"
    ):
        Explanation(QUERY, RunOptions(cells=2)).summary()
