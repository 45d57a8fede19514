"""Columns that nothing reads are found without reading more than the first line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from meander.dataflow.sources.columns import extra_columns

JSON = b'{"src": "x", "label": "a", "trg": "y", "ts": 1, "exp": 9, "path": null}\n'


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("s.csv", b"src,label,trg,ts,op\n", []),
        ("s.csv", b'\xef\xbb\xbf\r\nts,"a b", src,label,trg,\r\n', ["a b"]),
        ("s.csv.gz", gzip.compress(b"src,label,trg,ts,weight", mtime=0), ["weight"]),
        ("s.jsonl", b"\n" + JSON + b'{"other": 1}\n', ["exp", "path"]),
        ("s.jsonl", b"[1, 2]\n", []),
        ("s.jsonl", b"no JSON\n", []),
        ("s.csv.gz", b"no gzip", []),
        ("s.tsv", b"x\ta\ty\t1\t+\tmore\n", []),  # is rejected
        ("s.csv", b"", []),
        ("s.parquet", b"no Parquet", []),
    ],
)
def test_the_columns_of_a_file_that_nothing_reads(
    tmp_path: Path, name: str, content: bytes, names: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert list(extra_columns(str(tmp_path / name))) == ([(tmp_path / name, names)] if names else [])


def test_of_a_folder_the_first_file_with_such_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.tsv").write_text("x\ta\ty\t1\n")
    table = pa.table({"src": ["x"], "label": ["a"], "trg": ["y"], "ts": [1], "weight": [2]})
    pq.write_table(table, tmp_path / "1.parquet")
    (tmp_path / "2.jsonl").write_bytes(JSON)
    assert list(extra_columns(str(tmp_path))) == [(tmp_path / "1.parquet", ["weight"])]


def test_pipes_and_what_is_no_file_are_not_touched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.csv")  # reading it would wait for a writer
    assert list(extra_columns(str(tmp_path / "s.csv"))) == []
    assert list(extra_columns("kafka://localhost:9092/topic")) == []
    assert list(extra_columns(str(tmp_path / "nosuch.csv"))) == []
