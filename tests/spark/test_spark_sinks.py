"""Sinks: a batch that is handed over twice is there once."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from meander.dataflow.edges import Reject
from meander.errors import ArgumentError, StateError
from meander.spark.codec import encode_rejects
from meander.spark.formats import encode_table
from meander.spark.sinks import LineFile, Rejects, StandardOutput, one_table, open_sink

EMPTY = pa.schema([("src", pa.large_string())])


def part(*names):
    return encode_table(pa.table({"src": pa.array(names, pa.large_string())}))


def test_lines_of_a_batch_that_was_cut_off_are_written_anew(tmp_path):
    path, record = tmp_path / "out.jsonl", tmp_path / "record.json"
    sink = LineFile(path, record)
    sink.write(0, [b"a\n", b"b\n"])
    known = record.read_text()
    sink.write(1, [b"c\n"])
    # Killed after the lines were written and before the record was; half a line more for good measure.
    record.write_text(known)
    with open(path, "ab") as file:
        file.write(b"hal")
    again = LineFile(path, record)
    again.write(0, [b"a\n", b"b\n"])
    again.write(1, [b"c\n"])
    again.write(1, [b"c\n"])
    assert path.read_bytes() == b"a\nb\nc\n"


def test_a_batch_that_comes_again_takes_the_place_of_what_it_said_before(tmp_path):
    path, record = tmp_path / "out.jsonl", tmp_path / "record.json"
    sink = LineFile(path, record)
    sink.write(0, [b"a\n"])
    sink.write(1, [b"one way\n"])
    again = LineFile(path, record)
    again.write(1, [b"another\n"])
    again.write(2, [b"c\n"])
    assert path.read_bytes() == b"a\nanother\nc\n"


def test_a_new_run_begins_a_new_file(tmp_path):
    (tmp_path / "out.jsonl").write_text("old\n")
    LineFile(tmp_path / "out.jsonl", tmp_path / "record.json").write(0, [b"new\n"])
    assert (tmp_path / "out.jsonl").read_text() == "new\n"


def test_a_file_that_lost_lines_is_not_written_on(tmp_path):
    path, record = tmp_path / "out.jsonl", tmp_path / "record.json"
    LineFile(path, record).write(0, [b"abc\n"])
    path.write_text("")
    with pytest.raises(StateError, match="has 0 bytes, and the checkpoint says that 4 were written"):
        LineFile(path, record)


def test_packed_lines_can_be_read_whole(tmp_path):
    sink = LineFile(tmp_path / "out.jsonl.gz", tmp_path / "record.json")
    sink.write(0, [b"a\n"])
    sink.write(1, [b"b\n"])
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()) == b"a\nb\n"


def test_a_folder_has_one_file_a_batch(tmp_path):
    sink = open_sink(str(tmp_path / "out"), tmp_path / "record", bounded=False, empty=EMPTY)
    sink.write(0, [part("a"), part("b")])
    sink.write(1, [])
    sink.write(2, [part("c")])
    sink.write(2, [part("c")])
    assert pq.read_table(tmp_path / "out").to_pydict() == {"src": ["a", "b", "c"]}
    assert len(list((tmp_path / "out").iterdir())) == 2
    with pytest.raises(ArgumentError, match="has answers already"):
        open_sink(str(tmp_path / "out"), tmp_path / "other record", bounded=False, empty=EMPTY)


def test_a_parquet_file_is_there_when_the_input_has_ended(tmp_path):
    path = tmp_path / "out.parquet"
    sink = open_sink(str(path), tmp_path / "record", bounded=True, empty=EMPTY)
    sink.write(0, [part("a")])
    assert not path.exists()
    again = open_sink(str(path), tmp_path / "record", bounded=True, empty=EMPTY)
    again.write(1, [part("b")])
    again.finish()
    assert pq.read_table(path).to_pydict() == {"src": ["a", "b"]}
    nothing = open_sink(str(tmp_path / "none.parquet"), tmp_path / "record2", bounded=True, empty=EMPTY)
    nothing.finish()
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_integers_and_strings_in_one_file_are_strings():
    tables = [
        pa.table({"src": pa.array([7], pa.int64())}),
        pa.table({"src": pa.array(["x"], pa.large_string())}),
    ]
    assert one_table(tables).to_pydict() == {"src": ["7", "x"]}


def test_rejects_are_lines_of_json(tmp_path):
    sink = Rejects(LineFile(tmp_path / "r.jsonl", tmp_path / "record.json"))
    sink.write(0, [encode_rejects([Reject("s", "too late", "ä\tb")])])
    assert json.loads((tmp_path / "r.jsonl").read_text()) == {
        "stream": "s",
        "reason": "too late",
        "text": "ä\tb",
    }


def test_standard_output_and_unknown_endings(tmp_path, capfdbinary):
    sink = open_sink("-", tmp_path / "record", bounded=True, empty=EMPTY)
    assert isinstance(sink, StandardOutput)
    sink.write(0, [b"a\n"])
    assert capfdbinary.readouterr().out == b"a\n"
    (tmp_path / "file").write_text("in the way")
    for name in ("out.txt", "file"):
        with pytest.raises(ArgumentError, match="says nothing of its format"):
            open_sink(str(tmp_path / name), tmp_path / "record", bounded=True, empty=EMPTY)


def test_a_device_cannot_take_answers_back(tmp_path):
    with pytest.raises(ArgumentError, match=r"/dev/null is a pipe or a device.*\n.*--runner local"):
        open_sink("/dev/null", tmp_path / "record", bounded=True, empty=EMPTY)
