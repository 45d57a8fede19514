"""Sinks with a journal in the checkpoint: a batch that is written twice is in the output once."""

import gzip
import json
import shutil
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from meander.dataflow.edges import Reject
from meander.dataflow.sinks import lines, registry
from meander.dataflow.sinks.parquet import unified
from meander.dataflow.sinks.sink import Encoding, SinkContext
from meander.dataflow.sinks.standard_output import StandardOutput
from meander.dataflow.sinks.writer import reject_lines
from meander.errors import ArgumentError, StateError
from meander.spark.output.journal import CheckpointJournal


def LineFile(path, journal):
    sink = lines.LineFile(path, journal)
    sink.begin()
    return sink


def checked_sink(target, journal, *, bounded=True):
    return registry.open_sink(str(target), SinkContext(journal=journal, bounded=bounded))


def open_sink(target, journal, *, bounded=True):
    """A sink that a run has begun to write to."""
    sink = checked_sink(target, journal, bounded=bounded)
    sink.begin()
    return sink


def part(*names):
    return pa.table({"src": pa.array(names, pa.large_string())})


def test_lines_of_a_batch_that_was_cut_off_are_written_again(tmp_path):
    path, record = tmp_path / "out.jsonl", CheckpointJournal(tmp_path / "record.json")
    sink = LineFile(path, record)
    sink.write(0, [b"a\n", b"b\n"])
    known = record.path.read_text()
    sink.write(1, [b"c\n"])
    # Killed after the lines were written and before the record was; half a line more for good measure.
    record.path.write_text(known)
    with open(path, "ab") as file:
        file.write(b"hal")
    again = LineFile(path, record)
    again.write(0, [b"a\n", b"b\n"])
    again.write(1, [b"c\n"])
    again.write(1, [b"c\n"])
    assert path.read_bytes() == b"a\nb\nc\n"


def test_a_batch_that_is_repeated_replaces_its_first_lines(tmp_path):
    path, record = tmp_path / "out.jsonl", CheckpointJournal(tmp_path / "record.json")
    sink = LineFile(path, record)
    sink.write(0, [b"a\n"])
    sink.write(1, [b"one way\n"])
    again = LineFile(path, record)
    again.write(1, [b"another\n"])
    again.write(2, [b"c\n"])
    assert path.read_bytes() == b"a\nanother\nc\n"


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "folder"])
def test_an_output_of_another_run_is_refused_unless_it_is_to_be_overwritten(tmp_path, name):
    def sink(record):
        return open_sink(tmp_path / name, record)

    def write(sink, *names):
        sink.write(
            0,
            [part(*names)] if sink.encoding == Encoding.TABLES else [f"{name}\n".encode() for name in names],
        )
        sink.finish()

    def content():
        files = [file for file in (tmp_path / name, *(tmp_path / name).glob("*")) if file.is_file()]
        return [
            file.read_text().split() if file.suffix == ".jsonl" else pq.read_table(file)["src"].to_pylist()
            for file in files
        ]

    write(sink(CheckpointJournal(tmp_path / "first.json")), "old", "older")
    second = CheckpointJournal(tmp_path / "second.json")
    with pytest.raises(ArgumentError, match=rf"{name} has content already.*\n.*--overwrite"):
        sink(second)
    assert content() == [["old", "older"]]
    write(sink(CheckpointJournal(second.path, overwrite=True)), "new")
    assert content() == [["new"]]
    # The command that overwrote resumes when it is given again.
    sink(CheckpointJournal(second.path, overwrite=True)).finish()
    assert content() == [["new"]]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "folder"])
def test_without_its_note_no_output_is_emptied_or_continued(tmp_path, name):
    for content in ("answers", ""):
        record = CheckpointJournal(tmp_path / "record.json", expected=True, overwrite=True)
        (tmp_path / "out.jsonl").write_text(content)
        with pytest.raises(StateError, match=r"record.json, which says .*, is missing\nhint: restore"):
            open_sink(tmp_path / name, record)
        assert (tmp_path / "out.jsonl").read_text() == content
        assert len(list(tmp_path.iterdir())) == 1


def test_a_note_with_flipped_bytes_is_refused_by_name(tmp_path):
    path, record = tmp_path / "out.jsonl", CheckpointJournal(tmp_path / "record.json")
    LineFile(path, record).write(0, [b"abc\n" * 50])
    whole = record.path.read_bytes()
    for at in range(len(whole)):
        record.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StateError, match=r"record.json is (damaged|of checkpoint format)"):
            LineFile(path, record)
    for torn in (b"", whole[:10], b"[]", b"{}"):
        record.path.write_bytes(torn)
        with pytest.raises(StateError, match=r"record.json is (damaged|of checkpoint format)"):
            LineFile(path, record)
    assert path.read_bytes() == b"abc\n" * 50


def test_another_file_than_was_written_is_not_cut(tmp_path):
    record = CheckpointJournal(tmp_path / "record.json")
    LineFile(tmp_path / "out.jsonl", record).write(0, [b"abc\n"])
    (tmp_path / "other.jsonl").write_text("something\nelse\n")
    with pytest.raises(StateError, match=r"other.jsonl is another file than was written"):
        LineFile(tmp_path / "other.jsonl", record)
    with pytest.raises(ArgumentError, match="the answers so far went to the file"):
        open_sink(str(tmp_path / "folder"), record)
    assert (tmp_path / "other.jsonl").read_text() == "something\nelse\n"
    # What was moved is still the same.
    (tmp_path / "out.jsonl").rename(tmp_path / "moved.jsonl")
    LineFile(tmp_path / "moved.jsonl", record).write(1, [b"def\n"])
    assert (tmp_path / "moved.jsonl").read_text() == "abc\ndef\n"


def test_a_finished_parquet_file_stays_when_the_run_is_started_again(tmp_path):
    record = CheckpointJournal(tmp_path / "record.json")
    for _ in range(3):
        sink = open_sink(str(tmp_path / "out.parquet"), record)
        sink.write(0, [part("a")])
        sink.finish()
        assert pq.read_table(tmp_path / "out.parquet")["src"].to_pylist() == ["a"]
    (tmp_path / "out.parquet").unlink()
    with pytest.raises(StateError, match=r"out.parquet, to which answers were written, is missing"):
        open_sink(str(tmp_path / "out.parquet"), record)


def test_answers_that_wait_to_become_a_parquet_file_are_checked(tmp_path):
    record = CheckpointJournal(tmp_path / "record.json")
    sink = open_sink(str(tmp_path / "out.parquet"), record)
    sink.write(0, [part(*(f"name {number}" for number in range(1000)))])
    (waiting,) = sink.parts.path.iterdir()
    content = bytearray(waiting.read_bytes())
    content[len(content) // 3] ^= 1
    waiting.write_bytes(content)
    with pytest.raises(StateError, match=r"out.parquet.parts are damaged"):
        sink.finish()
    shutil.rmtree(sink.parts.path)
    with pytest.raises(StateError, match=r"out.parquet.parts, to which answers were written, is missing"):
        open_sink(str(tmp_path / "out.parquet"), record)


def test_two_runs_do_not_write_to_one_output(tmp_path):
    for name in ("out.jsonl", "folder"):
        with ExitStack() as first, ExitStack() as second:
            records = [
                CheckpointJournal(tmp_path / f"{name} {run}", locks=held)
                for run, held in enumerate((first, second))
            ]
            open_sink(tmp_path / name, records[0])
            with pytest.raises(StateError, match=rf"is writing to .*{name}"):
                open_sink(tmp_path / name, records[1])
            first.close()
            open_sink(tmp_path / name, records[1])


def test_another_output_than_before_is_refused_by_the_name_of_the_first(tmp_path):
    record = CheckpointJournal(tmp_path / "record.json")
    LineFile(tmp_path / "out.jsonl", record).write(0, [b"abc\n"])
    with pytest.raises(
        StateError, match=r"the answers so far went to .*out.jsonl, and .*other.jsonl is not there"
    ):
        LineFile(tmp_path / "other.jsonl", record)
    assert not (tmp_path / "other.jsonl").exists()


def test_a_file_that_lost_lines_is_not_continued(tmp_path):
    path, record = tmp_path / "out.jsonl", CheckpointJournal(tmp_path / "record.json")
    LineFile(path, record).write(0, [b"abc\n"])
    path.write_text("")
    with pytest.raises(StateError, match="has 0 bytes, and the checkpoint says that 4 were written"):
        LineFile(path, record)


@pytest.mark.parametrize("name", ["out.jsonl", "out", "out.parquet"])
def test_an_output_to_replace_is_left_alone_until_the_run_begins(tmp_path, name):
    """What is wrong with other arguments shows between the two."""
    first = open_sink(tmp_path / name, CheckpointJournal(tmp_path / "first"))
    first.write(0, [part("a")] if first.encoding == Encoding.TABLES else [b"a\n"])
    first.finish()
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    record = CheckpointJournal(tmp_path / "second", overwrite=True)
    sink = checked_sink(str(tmp_path / name), record)
    after = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    assert after == before
    sink.begin()
    sink.write(0, [])
    sink.finish()
    assert {path for path, content in before.items() if path.exists() and path.read_bytes() == content} == {
        tmp_path / "first"
    }


@pytest.mark.parametrize("change", ["removed", "shorter", "another folder"])
def test_a_folder_without_its_last_part_is_not_continued(tmp_path, change):
    record = CheckpointJournal(tmp_path / "record")
    sink = open_sink(str(tmp_path / "out"), record, bounded=False)
    sink.write(0, [part("a")])
    sink.write(1, [part("b")])
    last = tmp_path / "out" / "part-000000001.parquet"
    if change == "removed":
        last.unlink()
    elif change == "shorter":
        last.write_bytes(last.read_bytes()[:-1])
    name = "other" if change == "another folder" else "out"
    with pytest.raises(
        StateError, match=r"part-000000001.parquet, to which answers were written, is missing"
    ):
        open_sink(tmp_path / name, record, bounded=False)


def test_a_folder_whose_last_batch_is_repeated_without_answers_continues(tmp_path):
    record = CheckpointJournal(tmp_path / "record")
    sink = open_sink(str(tmp_path / "out"), record, bounded=False)
    sink.write(0, [part("a")])
    sink.write(1, [part("b")])
    sink.write(1, [])
    open_sink(str(tmp_path / "out"), record, bounded=False).write(2, [part("c")])
    assert pq.read_table(tmp_path / "out").column("src").to_pylist() == ["a", "c"]


def test_packed_lines_can_be_read_whole(tmp_path):
    sink = LineFile(tmp_path / "out.jsonl.gz", CheckpointJournal(tmp_path / "record.json"))
    sink.write(0, [b"a\n"])
    sink.write(1, [b"b\n"])
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()) == b"a\nb\n"


def test_a_folder_has_one_file_per_batch(tmp_path):
    sink = open_sink(str(tmp_path / "out"), CheckpointJournal(tmp_path / "record"), bounded=False)
    sink.write(0, [part("a"), part("b")])
    sink.write(1, [])
    sink.write(2, [part("c")])
    sink.write(2, [part("c")])
    assert pq.read_table(tmp_path / "out").to_pydict() == {"src": ["a", "b", "c"]}
    assert len(list((tmp_path / "out").iterdir())) == 2
    with pytest.raises(ArgumentError, match="has content already"):
        open_sink(str(tmp_path / "out"), CheckpointJournal(tmp_path / "other record"), bounded=False)


def test_a_parquet_file_is_there_when_the_input_has_ended(tmp_path):
    path = tmp_path / "out.parquet"
    sink = open_sink(str(path), CheckpointJournal(tmp_path / "record"))
    sink.write(0, [part("a")])
    assert not path.exists()
    again = open_sink(str(path), CheckpointJournal(tmp_path / "record"))
    again.write(1, [part("b")])
    again.finish()
    assert pq.read_table(path).to_pydict() == {"src": ["a", "b"]}
    nothing = open_sink(tmp_path / "none.parquet", CheckpointJournal(tmp_path / "record2"))
    nothing.finish()
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_integers_and_strings_in_one_file_are_strings():
    tables = [
        pa.table({"src": pa.array([7], pa.int64())}),
        pa.table({"src": pa.array(["x"], pa.large_string())}),
    ]
    assert pa.concat_tables(unified(tables)).to_pydict() == {"src": ["7", "x"]}


def test_rejects_are_lines_of_json(tmp_path):
    sink = LineFile(tmp_path / "r.jsonl", CheckpointJournal(tmp_path / "record.json"))
    sink.write(0, [reject_lines([Reject("s", "too late", "ä\tb")])])
    assert json.loads((tmp_path / "r.jsonl").read_text()) == {
        "stream": "s",
        "reason": "too late",
        "text": "ä\tb",
    }


def test_standard_output_and_unknown_endings(tmp_path, capfdbinary):
    sink = open_sink("-", CheckpointJournal(tmp_path / "record"))
    assert isinstance(sink, StandardOutput)
    sink.write(0, [b"a\n"])
    assert capfdbinary.readouterr().out == b"a\n"
    (tmp_path / "file").write_text("in the way")
    for name in ("out.txt", "file"):
        with pytest.raises(ArgumentError, match="unknown file extension"):
            open_sink(tmp_path / name, CheckpointJournal(tmp_path / "record"))


def test_a_device_cannot_take_answers_back(tmp_path):
    with pytest.raises(ArgumentError, match=r"/dev/null is a pipe or a device.*\n.*--runner local"):
        open_sink("/dev/null", CheckpointJournal(tmp_path / "record"))
