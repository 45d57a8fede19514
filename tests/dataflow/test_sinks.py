"""A sink holds every record that was written to it, whole, also after an error; and says what it cannot hold."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from meander.dataflow.answers import Answers, AnswerSchema, Paths, as_dicts
from meander.dataflow.edges import Reject, as_text, empty_text
from meander.dataflow.sinks import parquet
from meander.dataflow.sinks.writer import open_answers, open_rejects
from meander.dataflow.sources.reader import open_source
from meander.errors import ArgumentError, MeanderError


def answers_of(*pairs: tuple[Any, ...], label: str = "A", paths: bool = False) -> Answers:
    rows = len(pairs)
    columns = tuple(as_text(pair[position] for pair in pairs) for position in range(len(pairs[0])))
    path = None
    if paths:
        offsets = np.arange(rows + 1, dtype=np.int64)
        path = Paths(offsets, columns[0], as_text(["l"] * rows), columns[1], np.ones(rows, np.bool_))
    op = np.ones(rows, np.int8)
    return Answers(label, columns, np.arange(rows), np.arange(rows) + 10, op, path)


def nothing(arity: int = 2) -> Answers:
    none = np.empty(0, np.int64)
    return Answers("A", (empty_text(),) * arity, none, none, none.astype(np.int8))


def fill(path: Path, *batches: Answers, schema: AnswerSchema | None = None) -> None:
    with open_answers(str(path), schema) as sink:
        for batch in batches:
            sink.write(batch)


BATCHES = (answers_of(("a", "b"), ("é\n", 'q"')), nothing(), answers_of((1, "c"), label="B"))
RECORDS = [record for batch in BATCHES for record in as_dicts(batch)]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "new/folder/out.jsonl"])
def test_lines_of_json(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name, *BATCHES)
    raw = (tmp_path / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    assert [json.loads(line) for line in text.splitlines()] == RECORDS


def test_a_line_file_can_be_read_while_it_grows(tmp_path: Path) -> None:
    with open_answers(str(tmp_path / "out.jsonl")) as sink:
        sink.write(BATCHES[0])
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_parquet_vertices_are_strings_where_not_all_are_integers(tmp_path: Path) -> None:
    fill(tmp_path / "out.parquet", *BATCHES)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert rows == [record | {"src": str(record["src"])} for record in RECORDS]


def test_parquet_vertices_are_integers_where_all_are(tmp_path: Path) -> None:
    fill(tmp_path / "out.parquet", nothing(), answers_of((1, 2)), answers_of((3, -4)))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["src"].to_pylist() == [1, 3]
    assert table["trg"].to_pylist() == [2, -4]
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("paths", [False, True])
def test_a_string_after_written_integers_makes_all_of_them_strings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: bool
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)
    batches = [answers_of((1, 2), (3, 4), paths=paths), answers_of((5, 6), paths=paths)]
    fill(tmp_path / "out.parquet", *batches, answers_of(("x", 7), paths=paths))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["src"].to_pylist() == ["1", "3", "5", "x"]
    assert table["trg"].to_pylist() == ["2", "4", "6", "7"]
    if paths:
        first = [path[0] for path in table["path"].to_pylist()]
        assert [edge["src"] for edge in first] == ["1", "3", "5", "x"]
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]


def test_other_arities_in_parquet(tmp_path: Path) -> None:
    fill(tmp_path / "out.parquet", answers_of((1, 2, 3), (4, 5, 6)))
    assert pq.read_table(tmp_path / "out.parquet")["answer"].to_pylist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(
        ArgumentError, match=r"mixed.parquet cannot hold .* columns src, .* beside those with answer"
    ):
        fill(tmp_path / "mixed.parquet", answers_of((1, 2, 3)), answers_of((1, 2)))
    assert pq.read_table(tmp_path / "mixed.parquet").num_rows == 1


@pytest.mark.parametrize(("arity", "columns"), [(2, ["src", "trg", "label"]), (3, ["answer"])])
def test_no_answers_are_a_file_without_rows(tmp_path: Path, arity: int, columns: list[str]) -> None:
    fill(tmp_path / "out.parquet", nothing(arity), schema=AnswerSchema(arity))
    table = pq.read_table(tmp_path / "out.parquet")
    assert (table.num_rows, table.column_names) == (0, [*columns, "ts", "exp", "op"])
    fill(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_a_folder_has_parts_of_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PART_ROWS", 2)
    folder = tmp_path / "answers"
    fill(folder, *(answers_of((row, row)) for row in range(5)))
    assert sorted(file.name for file in folder.iterdir()) == [f"part-{part:09}.parquet" for part in range(3)]
    assert pa.concat_tables(map(pq.read_table, sorted(folder.iterdir())))["src"].to_pylist() == list(range(5))
    with pytest.raises(ArgumentError, match=r"answers has answers already\nhint: .*--overwrite"):
        open_answers(str(folder))
    (folder / "notes.txt").write_text("not an answer")
    with open_answers(str(folder), overwrite=True) as sink:
        sink.write(answers_of((7, 7)))
    assert sorted(file.name for file in folder.iterdir()) == ["notes.txt", "part-000000000.parquet"]
    assert pq.read_table(folder / "part-000000000.parquet")["src"].to_pylist() == [7]


def test_answers_can_be_the_edges_of_another_query(tmp_path: Path) -> None:
    """The fields of an edge's record are those that the readers ask for."""
    fill(tmp_path / "out.jsonl", *BATCHES)
    fill(tmp_path / "out.parquet", *BATCHES)
    for name in ("out.jsonl", "out.parquet"):
        labels = [label for edges, _ in open_source(str(tmp_path / name)) for label in edges.label.values()]
        assert labels == ["A", "A", "B"]


def fail_after_one_batch(path: Path) -> None:
    with open_answers(str(path)) as sink:
        sink.write(answers_of(("a", "b")))
        raise ZeroDivisionError


def test_after_an_error_what_was_written_is_there(tmp_path: Path) -> None:
    for name in ("out.jsonl", "out.jsonl.gz", "out.parquet", "folder"):
        with pytest.raises(ZeroDivisionError):
            fail_after_one_batch(tmp_path / name)
    assert json.loads((tmp_path / "out.jsonl").read_text())["src"] == "a"
    assert json.loads(gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()))["src"] == "a"
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1
    assert pq.read_table(tmp_path / "folder").num_rows == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("out.txt", "unknown file extension: .*out.txt"),
        ("kafka://host:9092/topic", "Kafka needs --runner spark"),
        (
            "format:delta?path=/x",
            "delta.* cannot be written by the local runner\nhint: a format of Spark needs",
        ),
        ("file/out.jsonl", "out.jsonl cannot be written"),
        ("file/out.parquet", "out.parquet cannot be written"),
        ("file/folder", "folder cannot be written"),
        ("file", "unknown file extension: .*file"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_at_once(tmp_path: Path, target: str, words: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match=words):
        open_answers(target if target.startswith(("kafka:", "format:")) else str(tmp_path / target))


def test_a_pipe_gets_lines_of_json(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        with open_answers(str(pipe)) as sink:
            sink.write(answers_of(("a", "b")))
    assert json.loads(read.result())["src"] == "a"


def test_a_full_disk_is_an_error_and_leaves_whole_lines(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk; it holds for a whole process, hence another one."""
    path = tmp_path / "out.jsonl"
    program = f"""
        import resource, signal
        import numpy as np
        from meander.dataflow.answers import Answers
        from meander.dataflow.edges import as_text
        from meander.dataflow.sinks.writer import open_answers
        from meander.errors import MeanderError

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        batch = Answers("A", (as_text(["a"]), as_text(["b"])), np.array([1]), np.array([2]), np.array([1], np.int8))
        with open_answers({str(path)!r}) as sink:
            sink.write(batch)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
            try:
                for _ in range(10):
                    sink.write(batch)
            except MeanderError as error:
                print(type(error).__name__, error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"OutputError {path} cannot be written: File too large\n"
    lines = path.read_text().split("\n")
    assert lines.pop() == ""
    assert len(lines) == 3
    assert all(json.loads(line)["src"] == "a" for line in lines)


def test_standard_output_ends_quietly_when_its_reader_goes(tmp_path: Path) -> None:
    program = """
        import sys
        import numpy as np
        from meander.dataflow.answers import Answers
        from meander.dataflow.edges import as_text
        from meander.dataflow.sinks.writer import open_answers

        rows = 1000
        ones = np.ones(rows, np.int64)
        batch = Answers("A", (as_text(["a"] * rows), as_text(["b"] * rows)), ones, ones, ones.astype(np.int8))
        batches = 0
        with open_answers("-") as sink:
            while not sink.done and batches < 1000:
                sink.write(batch)
                batches += 1
        print(batches, file=sys.stderr)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert json.loads(run.stdout.readline())["src"] == "a"
        run.stdout.close()
        stderr = run.stderr.read()
    assert run.returncode == 0
    assert int(stderr) < 1000


def test_rejects_are_lines_with_stream_reason_and_text(tmp_path: Path) -> None:
    rejects = [Reject("s", "too late", 'a\t"l"\tb\t1'), Reject("s", "not UTF-8", "é\\xff")]
    for name in ("rejects.jsonl", "rejects.jsonl.gz"):
        with open_rejects(str(tmp_path / name)) as sink:
            sink.write(rejects[:1])
            sink.write([])
            sink.write(rejects[1:])
        raw = (tmp_path / name).read_bytes()
        text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
        assert [Reject(**json.loads(line)) for line in text.splitlines()] == rejects
    with pytest.raises(ArgumentError, match=r"rejects cannot go to .*rejects.txt"):
        open_rejects(str(tmp_path / "rejects.txt"))


@pytest.mark.parametrize("target", ["out.parquet", "out"])
def test_parquet_without_answers_has_the_columns_of_the_query(tmp_path: Path, target: str) -> None:
    schema = AnswerSchema(arity=3, paths=True)
    with open_answers(str(tmp_path / target), schema):
        pass
    assert pq.read_table(tmp_path / target).schema.names == schema.arrow.names


def test_a_device_that_is_full_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(MeanderError, match="/dev/full cannot be written: No space left"),
        open_answers("/dev/full") as sink,
    ):
        sink.write(answers_of(("a", "b")))
    (tmp_path / "s.tsv").write_text("a\tl\tb\t1\n")
    query = "STREAM s WINDOW 10 Answer(x, y) <- l(x, y)."
    command = [sys.executable, "-m", "meander", "run", query, "--runner", "local", "--out", "-"]
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [*command, "--stream", str(tmp_path / "s.tsv")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 1, run.stderr
    assert "error: standard output cannot be written: No space left on device" in run.stderr
