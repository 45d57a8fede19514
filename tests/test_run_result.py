"""The result of `meander.run`: the same answers as dicts, Arrow, pandas, polars, files and in a notebook."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meander
from meander.dataflow.answers import NO_TIME, Answers, AnswerSchema, Paths, ValueColumn, as_dicts, as_table
from meander.dataflow.edges import as_text
from meander.dataflow.sinks.jsonl import jsonl_blocks
from meander.errors import ArgumentError
from meander.syntax.values import Property, ValueType

QUERY = "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y) as P."
EDGES = [(number, "a", number + 1, number) for number in range(50)]
NAMED = [("ann", "a", "bob", 1), ("bob", "a", "cid", 2)]


def run(edges: Any = EDGES, query: str = QUERY, **options: Any) -> Any:
    return meander.run(query, edges, **options)


def test_every_form_has_the_same_answers() -> None:
    answers = list(run())
    assert len(answers) > 100
    assert run().to_arrow().to_pylist() == answers
    assert pa.Table.from_batches(run().batches()).to_pylist() == answers
    assert json.loads(run().to_pandas().to_json(orient="records")) == answers
    assert run().to_polars().to_dicts() == answers


def test_columns_are_typed() -> None:
    table = run().to_arrow()
    assert table.schema.types == [
        pa.int64(),
        pa.int64(),
        pa.large_string(),
        pa.int64(),
        pa.int64(),
        pa.large_string(),
    ]
    assert run(NAMED).to_arrow().schema.field("src").type == pa.large_string()
    assert run().to_arrow(vertices="string")["src"][0].as_py() == "0"


def test_no_answers_are_an_empty_table_with_the_columns() -> None:
    assert run([]).to_arrow().column_names == ["src", "trg", "label", "ts", "exp", "op"]
    assert run([], paths=True).to_pandas().columns.tolist()[-1] == "path"


def test_exp_is_a_nullable_integer_in_pandas() -> None:
    for mode in ("intervals", "changes"):
        assert str(run(mode=mode).to_pandas()["exp"].dtype) == "Int64"


def test_vertices_become_strings_with_the_first_batch_that_has_one() -> None:
    edges = [(1, "a", 2, 1), (2, "a", 3, 2), ("x", "a", 3, 3)]
    types = [batch.schema.field("src").type for batch in run(edges, batch_rows=1).batches()]
    assert types == [pa.int64(), pa.int64(), pa.large_string()]
    assert run(edges, batch_rows=1).to_arrow()["src"].type == pa.large_string()
    with pytest.raises(ArgumentError, match="not an integer"):
        run(edges).to_arrow(vertices="integer")
    with pytest.raises(ArgumentError, match="vertices cannot be 'int'"):
        run(edges).to_arrow(vertices="int")


def test_what_was_read_as_dicts_is_not_read_again() -> None:
    answers = list(run())
    for batch_rows in (7, 65536):
        result = run(batch_rows=batch_rows)
        first = list(islice(result, 30))
        assert first + result.to_arrow().to_pylist() == answers
        assert list(result) == []
        assert result.rows == len(answers)


def test_a_result_is_an_iterator() -> None:
    result = run()
    assert next(result) == next(iter(run()))
    assert len(list(result)) + 1 == len(list(run()))


def test_answers_are_written_to_any_output_of_the_command(tmp_path: Path) -> None:
    answers = list(run())
    for name in ("out.jsonl", "out.parquet"):
        result = run(answers=tmp_path / name)
        assert result.rows == len(answers)
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == answers
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == answers
    with pytest.raises(ArgumentError, match="unknown file extension"):
        run(answers=tmp_path / "out.xyz")
    with pytest.raises(ArgumentError, match="has no result Nothing"):
        run(answers={"Nothing": tmp_path / "out.jsonl"})


def test_several_results_are_several_tables(tmp_path: Path) -> None:
    query = "STREAM s WINDOW 10\nD(x, y) <- a(x, y).\nE(x, y) <- a(y, x).\nRESULT D, E"
    tables = run(query=query).to_tables()
    assert {name: table.num_rows for name, table in tables.items()} == {"D": 50, "E": 50}
    with pytest.raises(ArgumentError, match="several results: D, E") as error:
        run(query=query).to_arrow()
    assert error.value.hint == "to_tables() has a table of each"
    run(query=query, answers={"E": tmp_path / "e.jsonl"})
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 50
    with pytest.raises(ArgumentError, match="several results"):
        run(query=query, answers=tmp_path / "e.jsonl")


def test_a_notebook_shows_the_first_answers_and_loses_none() -> None:
    answers = list(run([*NAMED, ("<b>", "a", "ann", 3)]))
    result = run([*NAMED, ("<b>", "a", "ann", 3)])
    shown = result._repr_html_()
    assert shown.count("<tr>") == 1 + len(answers)
    assert "&lt;b&gt;" in shown
    assert f"{len(answers)} answers" in shown
    assert list(result) == answers
    long = run()
    assert long._repr_html_().count("<tr>") == 21
    assert "more answers follow" in long._repr_html_()
    assert list(long) == list(run())


def test_a_notebook_does_not_wait_for_a_live_source() -> None:
    def never() -> Any:
        raise AssertionError("it was read")
        yield

    result = run(never())
    assert "to_pandas()" in result._repr_html_()
    assert "src, trg, label, ts, exp, op" in repr(result)


# ---------------------------------------------------------------------------------------------------------
# Named values


def with_values() -> Answers:
    return Answers(
        "Alert",
        (as_text(["u", "v"]), as_text(["v", 7])),
        np.array([1, 2]),
        np.array([5, -1]),
        np.array([1, -1], np.int8),
        Paths(
            np.array([0, 2, 2]),
            as_text(["u", "x"]),
            as_text(["t", "t"]),
            as_text(["x", "v"]),
            np.array([True, False]),
            np.array([0, 1]),
        ),
        (
            ValueColumn("amount", ValueType.FLOAT, np.array([0.5, np.inf])),
            ValueColumn('"at"', ValueType.TIME, np.array([3, -(2**63)])),
            ValueColumn("big", ValueType.BOOL, np.array([True, False])),
            ValueColumn("memo", ValueType.STRING, as_text(['a"b', ""])),
        ),
    )


def test_values_are_an_object_in_json_and_a_struct_in_arrow() -> None:
    records = list(as_dicts(with_values()))
    assert records[0]["properties"] == {"amount": 0.5, '"at"': 3, "big": True, "memo": 'a"b'}
    assert records[0]["path"] == [["u", "t", "x", 0], ["x", "t", "v", 1]]
    assert list(records[0]) == ["src", "trg", "label", "ts", "exp", "op", "properties", "path"]
    lines = b"".join(bytes(block) for block in jsonl_blocks(with_values())).decode().splitlines()
    assert [json.loads(line) for line in lines] == records
    table = as_table(with_values())
    assert table["properties"].to_pylist() == [record["properties"] for record in records]
    assert table["path"].to_pylist()[0][1] == {"src": "x", "label": "t", "trg": "v", "ts": 1}
    kinds = (ValueType.FLOAT, ValueType.TIME, ValueType.BOOL, ValueType.STRING)
    names = ("amount", '"at"', "big", "memo")
    schema = AnswerSchema(paths=True, values=tuple(map(Property, names, kinds)), timed_paths=True)
    assert table.schema == schema.arrow


def test_an_edge_on_a_path_in_no_order_has_no_time_beside_others_that_have_one() -> None:
    answers = with_values()
    assert answers.path is not None
    answers = answers._replace(path=answers.path._replace(ts=np.array([0, NO_TIME])))
    path = [["u", "t", "x", 0], ["x", "t", "v"]]
    assert next(as_dicts(answers))["path"] == path
    line = b"".join(bytes(block) for block in jsonl_blocks(answers)).decode().splitlines()[0]
    assert json.loads(line)["path"] == path
    [steps, _] = as_table(answers)["path"].to_pylist()
    assert [step["ts"] for step in steps] == [0, None]


def test_values_are_written_without_paths_too() -> None:
    answers = with_values()._replace(path=None)
    lines = b"".join(bytes(block) for block in jsonl_blocks(answers)).decode().splitlines()
    assert [json.loads(line) for line in lines] == list(as_dicts(answers))


@pytest.mark.parametrize("value", [5e-324, 1e300, 1e16, 123456.789, -0.1, 3.0, float("-inf")])
def test_a_double_is_written_so_that_it_reads_back_the_same(value: float) -> None:
    column = ValueColumn("w", ValueType.FLOAT, np.array([value]))
    answers = with_values()._replace(path=None, properties=(column,))
    answers = answers._replace(
        vertices=tuple(text.take(slice(1)) for text in answers.vertices),
        ts=answers.ts[:1],
        exp=answers.exp[:1],
        op=answers.op[:1],
    )
    (line,) = b"".join(bytes(block) for block in jsonl_blocks(answers)).decode().splitlines()
    assert float(json.loads(line)["properties"]["w"]) == value


# ---------------------------------------------------------------------------------------------------------
# Types that the input decides

UNDECLARED = "STREAM s WINDOW 10\nAnswer(x, y, m: a, note: b) <- t(x, y, amount: a, memo: b), a > 1."


def typed_edges() -> pa.Table:
    return pa.table(
        {
            "src": ["u", "v", "w"],
            "label": ["t"] * 3,
            "trg": ["v", "w", "u"],
            "ts": [1, 2, 3],
            "amount": [1.5, 0.5, None],
            "memo": ["first", "second", "third"],
        }
    )


def test_the_input_decides_types_that_the_query_leaves_open(tmp_path: Path) -> None:
    table = typed_edges()
    pq.write_table(table, tmp_path / "edges.parquet")
    inputs = [table, table.to_reader(), table.to_pandas(), pl.from_arrow(table), tmp_path / "edges.parquet"]
    for edges in [*inputs, {"s": table}]:
        [answer] = list(run(edges, UNDECLARED))
        assert answer["properties"] == {"m": 1.5, "note": "first"}


def test_types_of_mapped_columns_are_known(tmp_path: Path) -> None:
    table = typed_edges().rename_columns(["from", "kind", "to", "at", "amount", "text"])
    columns = {"s": {"src": "from", "label": "kind", "trg": "to", "ts": "at", "memo": "text"}}
    [answer] = list(run(table, UNDECLARED, columns=columns))
    assert answer["properties"]["note"] == "first"


def test_rows_of_python_need_a_declaration() -> None:
    with pytest.raises(meander.MeanderError, match="the type of memo is not known"):
        run(typed_edges().to_pylist(), UNDECLARED)
    declared = UNDECLARED.replace("STREAM s", "STREAM s (amount FLOAT, memo STRING)")
    assert len(list(run(typed_edges().to_pylist(), declared))) == 1
