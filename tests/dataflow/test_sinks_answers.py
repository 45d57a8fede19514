"""Answers become dicts and tables with the fields of an answer record, whatever the arity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from meander.dataflow.answers import NO_EXPIRY, Answers, Paths, as_dicts, as_table
from meander.dataflow.edges import as_text, empty_text


def edges_answer(*, paths: bool = False) -> Answers:
    path = None
    if paths:
        path = Paths(
            np.array([0, 2, 2, 2]),
            as_text(["a", "x"]),
            as_text(["l", "l"]),
            as_text(["x", "b"]),
            np.array([True, False, True]),
        )
    return Answers(
        "Notify",
        (as_text(["a", "é", 5]), as_text(["b", 'q"', "5"])),
        np.array([1, 2, 3]),
        np.array([10, NO_EXPIRY, 30]),
        np.array([1, -1, 1], np.int8),
        path,
    )


def test_an_edge_has_src_trg_and_label() -> None:
    assert list(as_dicts(edges_answer())) == [
        {"src": "a", "trg": "b", "label": "Notify", "ts": 1, "exp": 10, "op": "+"},
        {"src": "é", "trg": 'q"', "label": "Notify", "ts": 2, "exp": None, "op": "-"},
        {"src": 5, "trg": "5", "label": "Notify", "ts": 3, "exp": 30, "op": "+"},
    ]


def test_an_answer_that_is_no_path_has_none_and_an_empty_path_is_empty() -> None:
    paths = [record["path"] for record in as_dicts(edges_answer(paths=True))]
    assert paths == [[["a", "l", "x"], ["x", "l", "b"]], None, []]
    table = as_table(edges_answer(paths=True))
    first = [{"src": "a", "label": "l", "trg": "x"}, {"src": "x", "label": "l", "trg": "b"}]
    assert table["path"].to_pylist() == [first, None, []]
    table.validate(full=True)


def test_other_arities_have_answer() -> None:
    for arity in (0, 1, 3):
        columns = tuple(as_text([f"{column}{row}" for row in range(2)]) for column in range(arity))
        answers = Answers("A", columns, np.array([1, 2]), np.array([3, 4]), np.array([1, 1], np.int8))
        wanted = [[f"{column}{row}" for column in range(arity)] for row in range(2)]
        assert [record["answer"] for record in as_dicts(answers)] == wanted
        assert "src" not in next(as_dicts(answers))
        assert as_table(answers)["answer"].to_pylist() == wanted


def test_vertices_of_a_table_are_integers_only_where_all_are() -> None:
    mixed = as_table(edges_answer())
    assert mixed["src"].to_pylist() == ["a", "é", "5"]
    assert mixed["exp"].to_pylist() == [10, None, 30]
    assert mixed["op"].to_pylist() == ["+", "-", "+"]
    ones = Answers(
        "A",
        (as_text([1, -2]), as_text([3, 4])),
        np.array([1, 2]),
        np.array([3, 4]),
        np.array([1, 1], np.int8),
    )
    assert as_table(ones)["src"].type == pa.int64()
    assert as_table(ones)["src"].to_pylist() == [1, -2]


def test_no_answers_are_an_empty_table_of_the_same_columns() -> None:
    none = np.empty(0, np.int64)
    answers = Answers("A", (empty_text(), empty_text()), none, none, none.astype(np.int8))
    assert list(as_dicts(answers)) == []
    assert as_table(answers).column_names == ["src", "trg", "label", "ts", "exp", "op"]
