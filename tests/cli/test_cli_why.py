"""`meander why`: the proof of one answer at one instant, or what there is instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import meander
from meander.cli.why import find_proof, is_of_its_start, proof_lines, read_time
from meander.errors import ArgumentError, InputError

QUERY = """
STREAM s WINDOW 10
D(x, y) <- a+(x, y) as P.
Answer(x, y) <- D(x, y), b(y, z).
Answer(x, y) <- c(x, y).
"""
EDGES = [
    ("u", "a", "v", 1),
    ("v", "b", "w", 2),
    ("u", "a", "v", 5),
    ("u", "a", "v", 7, "-"),
    ("u", "a", "v", 20),
    ("v", "b", "w", 21),
    ("u, v", "c", 'x "y"', 3),
]


@pytest.fixture(params=["answers.jsonl", "answers.parquet", "answers"])
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    target = tmp_path / request.param
    meander.run(QUERY, sorted(EDGES, key=lambda edge: edge[3]), proofs=True, answers=target)
    return str(target)


def shown(source: str, answer: str, at: str, **given: Any) -> list[str]:
    record = find_proof(source, answer, at, given.get("label"), "s")
    return list(proof_lines(record["proof"], "s"))


def test_the_proof_is_the_one_that_holds_at_the_instant(answers: str) -> None:
    assert shown(answers, "u,v", "3") == [
        "u -Answer→ v  [2s, 11s)",
        "├─ u -D→ v",
        "│  └─ u -P→ v",
        "│     └─ u -a→ v  [1s, 11s)",
        "└─ v -b→ w  [2s, 12s)",
    ]
    assert shown(answers, "u,v", "25s")[0] == "u -Answer→ v  [21s, 30s)"


def test_names_with_commas_are_quoted(answers: str) -> None:
    assert shown(answers, '"u, v", "x ""y"""', "4")[1] == '└─ u, v -c→ x "y"  [3s, 13s)'


def test_the_message_has_the_intervals_in_which_the_answer_holds(answers: str) -> None:
    with pytest.raises(ArgumentError, match="u, v does not hold at 8s") as refused:
        shown(answers, "u,v", "8")
    assert refused.value.hint == "it holds in [2s, 7s); [5s, 7s); [21s, 30s)"


def test_an_unknown_answer_is_refused_with_those_that_there_are(answers: str) -> None:
    with pytest.raises(ArgumentError, match="has no answer v, u") as refused:
        shown(answers, "v,u", "3")
    assert "u,v" in (refused.value.hint or "")
    with pytest.raises(ArgumentError, match="u, v is no answer Other"):
        shown(answers, "u,v", "3", label="Other")


def test_answers_without_proofs_are_refused(tmp_path: Path) -> None:
    for name in ("answers.jsonl", "answers.parquet"):
        meander.run(QUERY, EDGES[:2], answers=tmp_path / name)
        with pytest.raises(ArgumentError, match="have no proofs") as refused:
            shown(str(tmp_path / name), "u,v", "3")
        assert refused.value.hint == "run the query again with --proofs"


def test_what_holds_no_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        shown(str(tmp_path / "nothing.parquet"), "u,v", "3")
    with pytest.raises(InputError, match=r"has no \.parquet files"):
        shown(str(tmp_path), "u,v", "3")


def test_one_of_several_labels_is_chosen(tmp_path: Path) -> None:
    proof = {"edge": ["u", "A", "v"], "ts": 1, "exp": 5, "because": []}
    record = {"src": "u", "trg": "v", "ts": 1, "exp": 5, "op": "+", "proof": proof}
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps({**record, "label": label}) + "\n" for label in "AB"))
    with pytest.raises(ArgumentError, match="several labels") as refused:
        shown(str(file), "u,v", "3")
    assert refused.value.hint == "give --label A or B"
    assert shown(str(file), "u,v", "3", label="B") == ["u -A→ v  (the empty path)  [1s, 5s)"]


def test_in_changes_mode_the_proof_is_that_of_the_start(tmp_path: Path) -> None:
    meander.run(QUERY, EDGES[:2], proofs=True, mode="changes", answers=tmp_path / "answers.jsonl")
    assert is_of_its_start(find_proof(str(tmp_path / "answers.jsonl"), "u,v", "9", None, "s"))


def test_an_instant_is_a_number_a_duration_or_a_date() -> None:
    assert read_time("90", "s") == 90
    assert read_time("1h", "ms") == 3_600_000
    assert read_time("2026-01-01T00:00", "s") == read_time("2026-01-01 01:00+01:00", "s") == 1_767_225_600
    with pytest.raises(ArgumentError, match="invalid time: soon"):
        read_time("soon", "s")


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.parquet"])
def test_a_record_with_a_path_value_ends_by_one_without(name: str, tmp_path: Path) -> None:
    query = "STREAM s (w INT) WINDOW 10\nAnswer(x, y, P, w: w) <- a+(x, z) as P, b(z, y, w: w)."
    edges = [
        {"src": "u", "label": "a", "trg": "v", "ts": 1},
        {"src": "v", "label": "b", "trg": "w", "ts": 2, "w": 3},
        {"src": "u", "label": "a", "trg": "v", "ts": 5, "op": "-"},
    ]
    meander.run(query, edges, proofs=True, answers=tmp_path / name)
    assert shown(str(tmp_path / name), "u,w", "4")[0] == "u -Answer→ w  w: 3  [2s, 11s)"
    with pytest.raises(ArgumentError, match="does not hold at 6s"):
        shown(str(tmp_path / name), "u,w", "6")


@pytest.mark.parametrize("as_ascii", [True, False])
def test_names_are_found_however_json_writes_them(as_ascii: bool, tmp_path: Path) -> None:
    edges = [('é "1"\t', "c", "\\ü\u2028", 3), (7, "c", 8, 4), ("x", "c", "y", 5)]
    lines = [
        json.dumps(record, ensure_ascii=as_ascii)
        for record in meander.run("STREAM s WINDOW 10\nAnswer(x, y) <- c(x, y).", edges, proofs=True)
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert shown(str(file), '"é ""1""\t",\\ü\u2028', "5")[0].endswith("[3s, 13s)")
    assert shown(str(file), "7,8", "5") == ["7 -Answer→ 8  [4s, 14s)", "└─ 7 -c→ 8  [4s, 14s)"]
