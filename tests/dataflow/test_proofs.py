"""Proofs as users see them: which tuples they have, in every form of the output, and what they cost without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import meander
from engine_runs import dataflow_of
from meander.errors import ArgumentError
from meander.explain import explain
from meander.options import RunOptions

EDGES = [("u", "a", "v", 1), ("v", "b", "w", 2), ("v", "c", "w", 3)]


def leaf(src: str, label: str, trg: str, ts: int, exp: int | None, **fields: Any) -> dict[str, Any]:
    return {"edge": [src, label, trg], "ts": ts, "exp": exp, **fields}


def proofs_of(text: str, edges: Any, **options: Any) -> list[Any]:
    return [answer["proof"] for answer in meander.run(text, edges, proofs=True, **options)]


def test_an_answer_of_another_arity_has_its_vertices() -> None:
    text = 'STREAM s WINDOW 10\nAnswer(x) <- a(x, y), (b/c?)(y, "w") as P.'
    (proof,) = proofs_of(text, EDGES)
    step = leaf("v", "b", "w", 2, 12)
    path = {"edge": ["v", "P", "w"], "ts": 2, "exp": 11, "because": [step]}
    subject = {"answer": ["u"], "label": "Answer", "ts": 2, "exp": 11}
    assert proof == {**subject, "because": [leaf("u", "a", "v", 1, 11), path]}


def test_vertices_and_rows_of_tables_are_leaves() -> None:
    text = """
    STREAM s WINDOW 10
    TABLE k (risk INT)
    Answer(x, y) <- s.a(x, y), k.account(y, risk: r), r > 3.
    """
    account = {"src": "v", "label": "account", "risk": 4}
    (proof,) = proofs_of(text, {"s": EDGES, "k": [account]})
    properties = {"risk": 4}
    assert proof["because"][1] == {"vertex": ["v", "account"], "ts": 0, "exp": None, "properties": properties}


def test_an_answer_may_name_a_derived_edge_as_its_path() -> None:
    text = "STREAM s WINDOW 10\nL(y, x) <- a(x, y).\nAnswer(x, y) <- L(x, y) as P"
    times = {"properties": {"ts": 1}}
    for order, of in (("", {}), (" ascending", times)):
        (proof,) = proofs_of(f"{text}{order}.", EDGES)
        step = {**leaf("v", "L", "u", 1, 11, **of), "because": [leaf("u", "a", "v", 1, 11, **of)]}
        path = {"edge": ["v", "P", "u"], "ts": 1, "exp": 11, "because": [step]}
        assert proof == {"edge": ["v", "L", "u"], "ts": 1, "exp": 11, "because": [path]}


def test_an_edge_of_any_label_has_its_own() -> None:
    text = "CONSTRUCT (u)-[:hit]->(w) MATCH (u)-[:a]->(v), (v)-[e]->(w) ON s WINDOW(10) SLIDE(1)"
    (first, *_) = proofs_of(text, EDGES)
    assert first["because"] == [leaf("u", "a", "v", 1, 11), leaf("v", "b", "w", 2, 12)]


def test_each_result_of_a_query_has_proofs_of_its_own() -> None:
    text = """CONSTRUCT (u)-[:hit]->(w), (u)-/@p:way/->(v)
    MATCH (u)-/p<:a+>/->(v), (v)-[:b]->(w) ON s WINDOW(10) SLIDE(1)"""
    assert [proof["edge"] for proof in proofs_of(text, EDGES)] == [["u", "hit", "w"], ["u", "way", "v"]]


def test_a_predicate_binds_nothing_and_a_value_does() -> None:
    text = "STREAM s (w INT) WINDOW 10\nAnswer(x, y, m: m) <- a(x, y, w: m), (a[w > 2])+(x, y)."
    (proof,) = proofs_of(text, [{"src": "u", "label": "a", "trg": "v", "ts": 1, "w": 3}])
    value, path = proof["because"]
    assert value == leaf("u", "a", "v", 1, 11, properties={"w": 3})
    assert path["because"] == [leaf("u", "a", "v", 1, 11)]


def test_a_leaf_is_valid_since_it_last_began_to_be() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, z) <- a(x, y), b(y, z)."
    edges = [
        ("u", "a", "v", 1),
        ("u", "a", "v", 8),  # still valid: since 1
        ("v", "b", "w", 9),
        ("u", "a", "v", 30),  # expired in between
        ("u", "a", "v", 31, "-"),
        ("u", "a", "v", 33),
        ("v", "b", "w", 34),
    ]
    for batch_rows in (1, 3, 100):
        leaves = [proof["because"][0] for proof in proofs_of(text, edges, batch_rows=batch_rows)]
        assert [(leaf["ts"], leaf["exp"]) for leaf in leaves] == [(1, 18), (33, 43)]


def test_a_record_whose_proof_loses_a_leaf_gets_another_one() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- a(x, m), b(m, y)."
    ways = [("u", "a", m, 1) for m in "mn"] + [(m, "b", "v", 1) for m in "mn"]
    first = proofs_of(text, ways)[0]
    gone = first["because"][0]["edge"]
    records = list(meander.run(text, [*ways, (*gone, 4, "-")], proofs=True))
    assert [(record["op"], record["ts"], record["exp"]) for record in records] == [
        ("+", 1, 11),
        ("-", 4, None),
        ("+", 4, 11),
    ]
    assert gone not in [node["edge"] for node in records[2]["proof"]["because"]]
    assert records[1]["proof"] is None


def test_every_form_of_the_output_has_the_same_proofs(tmp_path: Path) -> None:
    text = "STREAM s WINDOW 10\nD(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D+(x, y) as P."
    edges = [*EDGES, ("w", "a", 'x"\n', 4), ('x"\n', "b", "é", 5), ("u", "a", "v", 6, "-")]
    expected = proofs_of(text, edges, paths=True)
    assert None in expected
    assert len(expected) > 3

    def run(**given: Any) -> Any:
        return meander.run(text, edges, proofs=True, paths=True, **given)

    def read(texts: list[str | None]) -> list[Any]:
        return [proof and json.loads(proof) for proof in texts]

    assert read(run().to_arrow()["proof"].to_pylist()) == expected
    assert read(run().to_pandas()["proof"].to_list()) == expected
    run(answers=tmp_path / "answers.jsonl")
    lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["proof"] for line in lines] == expected
    assert [json.loads(line)["path"] for line in lines] == [record["path"] for record in run()]
    half = run()
    next(half)
    assert read(half.to_arrow()["proof"].to_pylist()) == expected[1:]


def test_a_run_without_proofs_has_no_state_for_them() -> None:
    text = "STREAM s WINDOW 10\nD(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D(x, y)."
    without, with_proofs = dataflow_of(text), dataflow_of(text, proofs=True)
    assert "since" not in without.stores["graph of the window"].arrays
    assert "since" in with_proofs.stores["graph of the window"].arrays
    assert without.plan.results[0].proof is None


def test_the_explanation_shows_what_proofs_cost() -> None:
    text = "STREAM s WINDOW 10\nD(x, y) <- a+(x, y) as P.\nAnswer(x, z) <- D(x, y), b(y, z)."
    shown = explain(text, None, RunOptions(proofs=True))
    assert "proofs follow the query as written" in explain(
        "STREAM s WINDOW 10\nAnswer(x, y) <- (a/b)(x, y).", None, RunOptions(proofs=True)
    )
    assert "for proofs, the tuples of #1; since when each edge is valid" in shown
    assert "for proofs" not in explain(text)


def test_proofs_are_of_the_plan_as_written_in_one_cell() -> None:
    for given in ({"cells": 2}, {"plan": 1}):
        with pytest.raises(ArgumentError, match="proofs"):
            RunOptions(proofs=True, **given)
