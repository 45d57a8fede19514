"""Input that cannot be used, through the whole engine: an error or a reject, and nothing good is lost."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

import meander
from meander.errors import ArgumentError, InputError, MeanderError, MemoryBudgetError

QUERY = "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y)."
GOOD = "u\ta\tv\t1\nv\ta\tw\t2\n"
ANSWERS = [("u", "v", 1, 11), ("v", "w", 2, 12), ("u", "w", 2, 11)]


def answers_of(source: Any, rejects: list[dict[str, str]] | None = None, **options: Any) -> list[Any]:
    records = meander.run(QUERY, source, rejects=rejects, path_operator="s-path", **options)
    return [(record["src"], record["trg"], record["ts"], record["exp"]) for record in records]


def written(folder: Path, text: str | bytes, name: str = "edges.tsv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x\ta\ty", "missing field"),
        ("x\ta\ty\t12:30", "bad time"),
        ("x\ta\ty\t-4", "negative time"),
        ("x\ta\t\t3", "missing field trg"),
        ("x\ta\ty\t3\t*", "bad op"),
        ("x\ta\ty\t99999999999999999999", "time out of range"),
        ("x\ta\ty\t0", "too late"),
    ],
)
def test_a_row_that_cannot_be_used_is_a_reject_and_no_other_row_suffers(
    tmp_path: Path, row: str, reason: str
) -> None:
    first, second = GOOD.splitlines(keepends=True)
    rejects: list[dict[str, str]] = []
    file = written(tmp_path, f"{first}{row}\n{second}")
    assert answers_of(file, rejects) == ANSWERS
    assert rejects == [{"stream": "s", "reason": reason, "text": row}]


def test_a_nul_byte_in_a_name_is_a_character_of_the_name(tmp_path: Path) -> None:
    rejects: list[dict[str, str]] = []
    file = written(tmp_path, "u\0x\ta\tv\t1\nu\ta\tv\t1\n")
    assert answers_of(file, rejects) == [("u\0x", "v", 1, 11), ("u", "v", 1, 11)]
    assert rejects == []


def test_a_broken_gzip_file_is_an_error_after_what_came_before_it(tmp_path: Path) -> None:
    later = "".join(f"p{i * i % 9973}\ta\tq{i * i * i % 9967}\t{i}\n" for i in range(20, 2000))
    whole = gzip.compress((GOOD + later).encode(), mtime=0)
    file = written(tmp_path, whole[: len(whole) // 2], "edges.tsv.gz")
    records: list[Any] = []
    with pytest.raises(InputError, match=r"edges\.tsv\.gz"):
        records.extend(meander.run(QUERY, file, batch_rows=100))
    assert [(record["src"], record["trg"], record["ts"], record["exp"]) for record in records][:3] == ANSWERS
    assert 100 < max(record["ts"] for record in records) < 1999


def test_what_is_no_gzip_file_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"edges\.tsv\.gz"):
        answers_of(written(tmp_path, GOOD, "edges.tsv.gz"))


@pytest.mark.parametrize("name", ["edges.tsv", "edges.jsonl", "edges.csv", "edges.tsv.gz"])
def test_an_empty_file_has_no_edges(tmp_path: Path, name: str) -> None:
    empty = gzip.compress(b"") if name.endswith(".gz") else b""
    rejects: list[dict[str, str]] = []
    assert answers_of(written(tmp_path, empty, name), rejects) == []
    assert rejects == []


def test_an_empty_stream_beside_another_holds_nothing_back(tmp_path: Path) -> None:
    text = "STREAM s WINDOW 10\nSTREAM t WINDOW 10\nAnswer(x, y) <- (s.a|t.b)(x, y)."
    streams = {"s": written(tmp_path, GOOD), "t": written(tmp_path, "", "other.tsv")}
    assert [(answer["src"], answer["trg"]) for answer in meander.run(text, streams)] == [
        ("u", "v"),
        ("v", "w"),
    ]


@pytest.mark.parametrize(
    "name",
    ["missing.tsv", "missing/", "empty/", "missing.parquet"],
    ids=lambda name: name.replace("/", "-folder"),
)
def test_what_is_not_there_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MeanderError) as refused:
        answers_of(str(tmp_path / name))
    assert name.rstrip("/") in str(refused.value)


def test_a_label_of_ten_megabytes_is_a_label_that_nobody_asked_for(tmp_path: Path) -> None:
    long = "L" * (10 << 20)
    rejects: list[dict[str, str]] = []
    file = written(tmp_path, f"u\ta\tv\t1\nu\t{long}\tv\t1\nv\ta\tw\t2\n")
    assert answers_of(file, rejects, batch_rows=2) == ANSWERS
    assert rejects == []


def test_a_vertex_of_ten_megabytes_is_a_vertex(tmp_path: Path) -> None:
    long = "V" * (10 << 20)
    file = written(tmp_path, f"u\ta\t{long}\t1\n{long}\ta\tw\t2\n")
    assert answers_of(file) == [("u", long, 1, 11), (long, "w", 2, 12), ("u", "w", 2, 11)]


def test_rejects_go_to_a_file_too(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "x\ta\ty\n")
    out = tmp_path / "rejects.jsonl"
    assert answers_of(file, out) == ANSWERS  # type: ignore[arg-type]
    assert '"missing field"' in out.read_text()


def test_an_error_in_one_stream_keeps_the_answers_that_all_streams_have_reached(tmp_path: Path) -> None:
    """`t` breaks at time 5; answers from edges of `s` after that would be made from half of what they need."""
    text = "STREAM s WINDOW 10\nSTREAM t WINDOW 10\nAnswer(x, y) <- (s.a|t.b)(x, y)."
    rows = "".join(f"p{i}\tb\tq\t{i}\n" for i in range(6)).encode()
    broken = gzip.compress(rows, mtime=0)[:-6]
    streams = {
        "s": written(tmp_path, "".join(f"u{i}\ta\tv\t{i}\n" for i in range(20))),
        "t": written(tmp_path, broken, "other.tsv.gz"),
    }
    records: list[Any] = []
    with pytest.raises(InputError):
        records.extend(meander.run(text, streams, batch_rows=1))
    times = [record["ts"] for record in records]
    assert times == sorted(times)
    assert max(times) <= 5


@pytest.mark.parametrize(
    ("query", "edges", "options", "message"),
    [
        (QUERY, 42, {}, "the edges of stream s are 42"),
        (None, [], {}, "the query is None"),
        (QUERY, [], {"plan": "x"}, "plan is 'x'"),
        (QUERY, [], {"memory": 1.5}, "memory is 1.5"),
        (QUERY, [], {"memory": "much"}, "invalid size: 'much'"),
        (QUERY, [], {"batch_rows": 0}, "batch_rows is 0"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(query: Any, edges: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        meander.run(query, edges, **options)


def test_a_budget_may_be_given_as_people_write_it() -> None:
    with pytest.raises(MemoryBudgetError, match=r"the memory budget of 2\.0 KB"):
        meander.run(QUERY, [], memory="2 KB")
