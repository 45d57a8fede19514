"""Paths as values of answers: what records look like in every form, and how they follow deletions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import meander
from meander.dataflow.answers import Answers, Paths, ValueColumn, as_dicts, as_table, take_answers
from meander.dataflow.edges import as_text
from meander.spark.output.dataframes import spark_arrow
from meander.syntax.values import ValueType

NOTIFY = """STREAM s WINDOW 10
Answer(u, m, P) <- follows+(u, v) as P, posts(v, m).
"""
EDGES = [
    ("ann", "follows", "bob", 1),
    ("bob", "follows", "cem", 2),
    ("ann", "follows", "cem", 3),
    ("cem", "posts", "m", 4),
]
OVER_BOB = [["ann", "follows", "bob"], ["bob", "follows", "cem"]]
DIRECT = [["ann", "follows", "cem"]]


def records(text: str, edges: Any, **options: Any) -> list[dict[str, Any]]:
    return list(meander.run(text, edges, **options))


def paths_of(found: list[dict[str, Any]], src: str) -> list[tuple[str, int, Any]]:
    return [(one["op"], one["ts"], one["properties"]["P"]) for one in found if one["src"] == src]


def test_an_answer_has_its_path_among_its_properties() -> None:
    found = records(NOTIFY, EDGES)
    assert paths_of(found, "ann") == [("+", 4, DIRECT)]
    assert paths_of(found, "bob") == [("+", 4, [["bob", "follows", "cem"]])]


def test_a_deletion_retracts_the_record_whose_path_it_breaks_and_another_path_follows() -> None:
    found = records(NOTIFY, [*EDGES, ("ann", "follows", "cem", 5, "-")])
    assert paths_of(found, "ann") == [("+", 4, DIRECT), ("-", 5, None), ("+", 5, OVER_BOB)]


def test_a_retraction_has_no_path_in_changes_mode() -> None:
    assert paths_of(records(NOTIFY, EDGES, mode="changes"), "ann") == [("+", 4, DIRECT), ("-", 13, None)]


def test_paths_of_several_rules_stand_under_one_name() -> None:
    text = NOTIFY + "Answer(u, m, P: Q) <- likes(u, m) as Q.\n"
    found = records(text, [*EDGES, ("dan", "likes", "m", 5)])
    assert paths_of(found, "dan") == [("+", 5, [["dan", "likes", "m"]])]
    assert paths_of(found, "ann") == [("+", 4, DIRECT)]


def test_a_view_hands_on_its_path() -> None:
    text = (
        "GRAPH VIEW seen AS (CONSTRUCT (u)-[:notify {why: p}]->(m)\n"
        "MATCH (u)-/p<:follows+>/->(v)-[:posts]->(m) ON s WINDOW(10))\n"
        "CONSTRUCT (u)-[:alert {P: e.why}]->(m) MATCH (u)-[e:notify]->(m) ON seen"
    )
    assert paths_of(records(text, EDGES), "ann") == [("+", 4, DIRECT)]


def test_every_output_has_the_same_paths(tmp_path: Path) -> None:
    found = records(NOTIFY, EDGES)
    list(meander.run(NOTIFY, EDGES, answers=tmp_path / "answers.jsonl"))
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == found
    list(meander.run(NOTIFY, EDGES, answers=tmp_path / "answers.parquet"))
    wanted = [as_structs(record["properties"]["P"]) for record in found]
    for table in (pq.read_table(tmp_path / "answers.parquet"), meander.run(NOTIFY, EDGES).to_arrow()):
        assert [row["P"] for row in table["properties"].to_pylist()] == wanted


def as_structs(path: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(("src", "label", "trg"), step, strict=True)) for step in path]


def some_answers(names: list[Any]) -> Answers:
    """Three answers: the first path is in order of time, the second record has none, the third path has no times."""
    paths = Paths(
        offsets=np.array([0, 1, 1, 3]),
        src=as_text(names[:3]),
        label=as_text(["a", "b", "c"]),
        trg=as_text(names[1:4]),
        given=np.array([True, False, True]),
        ts=np.array([7, -1, -1]),
    )
    ts, exp, op = np.array([7, 8, 9]), np.array([17, -1, 19]), np.array([1, -1, 1], np.int8)
    vertices = as_text(names[:3]), as_text(names[1:4])
    return Answers("Answer", vertices, ts, exp, op, None, (ValueColumn("P", ValueType.PATH, paths),))


def test_columns_of_paths_have_one_type_per_table() -> None:
    answers = some_answers([1, 2, 3, 4])
    steps = [("src", pa.int64()), ("label", pa.large_string()), ("trg", pa.int64()), ("ts", pa.int64())]
    table = as_table(answers)
    assert table.schema.field("properties").type == pa.struct([("P", pa.large_list(pa.struct(steps)))])
    assert table["properties"].to_pylist()[0] == {"P": [{"src": 1, "label": "a", "trg": 2, "ts": 7}]}
    assert table["properties"].to_pylist()[1] == {"P": None}
    # A batch of integers joins a file whose vertices are strings.
    strings = table.cast(as_table(answers, vertex=pa.large_string()).schema)
    assert strings["properties"].to_pylist()[2]["P"][0] == {"src": "2", "label": "b", "trg": "3", "ts": None}
    assert as_table(some_answers([1, 2, "3", 4])).schema.field("src").type == pa.large_string()


def test_spark_gets_the_same_paths() -> None:
    answers = some_answers(["u", "v", "w", "x"])
    table = as_table(answers)
    frame = table.cast(spark_arrow(answers.schema))
    assert frame["properties"].to_pylist() == table["properties"].to_pylist()


def test_some_records_are_taken_with_their_paths() -> None:
    taken = take_answers(some_answers(["u", "v", "w", "x"]), np.array([True, False, True]))
    paths = [record["properties"]["P"] for record in as_dicts(taken)]
    assert paths == [[["u", "a", "v", 7]], [["v", "b", "w"], ["w", "c", "x"]]]


def test_with_paths_the_answers_of_a_rule_that_is_a_path_have_theirs() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- follows+(x, y) as P.\nAnswer(x, y) <- posts(x, y).\n"
    found = {(one["src"], one["trg"]): one["path"] for one in records(text, EDGES[1:], paths=True)}
    assert found == {
        ("bob", "cem"): [["bob", "follows", "cem"]],
        ("ann", "cem"): DIRECT,
        ("cem", "m"): None,
    }
