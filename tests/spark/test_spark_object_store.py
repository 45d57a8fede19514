"""Checkpoints in an object store: its parts hold there what they hold on a disk."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import BUCKET, KEY, SECRET, S3Server

from meander.dataflow.layout import StreamLayout
from meander.errors import ArgumentError, InputError, StateError
from meander.spark.cell.store import KEEP_SNAPSHOTS, read_snapshot, write_snapshot
from meander.spark.checkpoint import locks
from meander.spark.checkpoint.locks import Lock, lock_checkpoint
from meander.spark.checkpoint.notes import read_note, write_note
from meander.spark.checkpoint.storage import (
    Location,
    children,
    location,
    remove_folder,
    settings_of,
    write_whole,
)
from meander.spark.checkpoint.stores import merged_settings, store_settings
from meander.spark.input.ledger import END_SIGNAL, Ledger
from meander.spark.input.reader import read_segment, size_of
from meander.spark.output.journal import CheckpointJournal
from meander.spark.session import Session


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "log")
    yield server
    server.stop()


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, server: S3Server) -> Location:
    """A folder that does not exist yet."""
    if request.param == "disk":
        return location(str(tmp_path / "checkpoint"))
    return server.folder(tmp_path.name)


def test_a_folder_holds_what_was_written_whole_and_nothing_else(folder: Location) -> None:
    assert children(folder) == []
    assert not folder.exists()
    folder.mkdir(parents=True)
    path = folder / "b.json"
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        path.read_bytes()
    with pytest.raises(FileNotFoundError):
        path.stat()
    write_whole(path, b"one", memoryview(b" two"))
    write_whole(path, b"three", b" four")
    (folder / "a.json").touch()
    (folder / "deep").mkdir()
    write_whole(folder / "deep" / "c.txt", b"")
    assert path.read_bytes() == b"three four"
    with path.open("rb", buffering=0) as file:
        file.seek(6)
        assert file.read(3) == b"fou"
    assert (path.name, path.stem, path.suffix, str(path.parent)) == ("b.json", "b", ".json", str(folder))
    assert path.stat().st_size == 10
    assert abs(path.stat().st_mtime_ns / 1e9 - time.time()) < 600
    assert [child.name for child in children(folder)] == ["a.json", "b.json", "deep"]
    assert children(folder, ".json") == [folder / "a.json", path]
    assert folder.exists()
    path.unlink()
    path.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        path.unlink()
    assert [child.name for child in children(folder)] == ["a.json", "deep"]
    remove_folder(folder)
    remove_folder(folder)
    assert children(folder) == children(folder / "deep") == []


def test_a_large_object_is_there_whole_or_as_it_was(server: S3Server) -> None:
    path = server.folder("large") / "object"
    parts = [bytes([number]) * (1 << 20) for number in range(12)]
    write_whole(path, *parts)
    assert path.read_bytes() == b"".join(parts)
    assert server.objects("large") == ["object"]


def test_a_note_is_read_as_it_was_written_and_its_damage_is_seen(folder: Location) -> None:
    folder.mkdir()
    path = folder / "note.json"
    with pytest.raises(FileNotFoundError):
        read_note(path)
    write_note(path, {"batch": 1})
    write_note(path, {"batch": 2})
    assert read_note(path) == {"batch": 2}
    write_whole(path, path.read_bytes().replace(b"2", b"3"))
    with pytest.raises(StateError, match=r"note.json is (damaged|of checkpoint format)"):
        read_note(path)


def test_a_journal_in_a_store_says_how_far_an_output_was_written(folder: Location, tmp_path: Path) -> None:
    folder.mkdir()
    journal = CheckpointJournal(folder / "query.json")
    assert journal.read("the file") is None
    journal.write("the file", tmp_path / "out", batch=3)
    known = CheckpointJournal(folder / "query.json").read("the file")
    assert known is not None
    assert known["batch"] == 3


def test_the_newest_snapshots_of_a_cell_stay(folder: Location) -> None:
    arrays = {"table": np.arange(100_000), "empty": np.empty(0, np.int32)}
    for number in range(KEEP_SNAPSHOTS + 2):
        write_snapshot(folder / f"{number}.snapshot", "plan", arrays)
        time.sleep(0.01)
    assert len(children(folder)) == KEEP_SNAPSHOTS
    read = read_snapshot(folder / f"{KEEP_SNAPSHOTS + 1}.snapshot", "plan")
    assert read is not None
    assert {name: array.tolist() for name, array in read.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert read_snapshot(folder / f"{KEEP_SNAPSHOTS + 1}.snapshot", "another") is None
    assert read_snapshot(folder / "0.snapshot", "plan") is None


def test_a_ledger_goes_on_where_its_entries_end(folder: Location, tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("a\tb\tc\t1\n" * 5000)

    def open_ledger() -> Ledger:
        return Ledger(folder / "ledger", {"s": str(file)}, ("s",), frozenset(), 1000)

    first = open_ledger()
    assert [first.advance(number) for number in range(3)] == [1, 2, 3]
    entries = [first.entry(number) for number in (1, 2, 3)]
    assert all(entry.segments for entry in entries)
    again = open_ledger()
    again.check_files()
    assert [again.advance(number) for number in range(3)] == [1, 2, 3]
    assert [again.entry(number) for number in (1, 2, 3)] == entries
    end = max(segment.end for entry in entries for segment in entry.segments)
    assert again.advance(3) == 4
    assert again.entry(4).segments[0].start == end
    (folder / "ledger" / "000000002.json").unlink()
    with pytest.raises(StateError, match=r"not whole: .*/ledger/000000002.json is missing"):
        open_ledger()


def test_the_copy_of_a_static_dataframe_is_read_once_and_its_change_is_seen(server: S3Server) -> None:
    folder = server.folder("copied/meander")
    copy = folder / "static" / "s"
    table = pa.table({"src": ["a", "b"], "label": ["x", "x"], "trg": ["b", "c"], "ts": [1, 2]})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    content = buffer.getvalue().to_pybytes()
    write_whole(copy / "part-0.parquet", content)
    write_whole(copy / "_SUCCESS")

    def open_ledger() -> Ledger:
        return Ledger(folder / "ledger", {"s": str(copy)}, ("s",), frozenset({"s"}), 1000)

    ledger = open_ledger()
    assert ledger.advance(0) == 1
    (segment,) = ledger.entry(1).segments
    assert ledger.entry(1).closed == ("s",)
    assert size_of([segment], folder) == len(content)
    ((edges, rejects),) = read_segment(segment, StreamLayout("s"), folder)
    assert (edges.ts.tolist(), rejects) == ([1, 2], [])
    again = open_ledger()
    again.check_files()
    assert again.unread() == ""
    # A store knows times to the second: the change is in the size, too.
    write_whole(copy / "part-0.parquet", content.replace(b"x", b"y") + b" ")
    with pytest.raises(InputError, match=r"part-0.parquet has changed since it was read"):
        open_ledger().check_files()


def test_a_run_is_asked_to_end_through_its_store(folder: Location) -> None:
    ledger = Ledger(folder / "ledger", {}, ("s",), frozenset(), 1000)
    assert ledger.advance(0) == 0
    (folder / "ledger" / END_SIGNAL).touch()
    deadline = time.monotonic() + 60
    while ledger.advance(0) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ledger.entry(1).closed == ("s",)


OTHER = {"id": "another", "pid": 7, "host": "elsewhere", "since": 0, "beats": 1}


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TOUCH_SECONDS", 0.1)
    monkeypatch.setattr(locks, "WATCH_SECONDS", 3.0)


@pytest.mark.usefixtures("fast")
def test_a_checkpoint_in_a_store_has_one_run_at_a_time(server: S3Server) -> None:
    folder = server.folder("locked/meander")
    lock = lock_checkpoint(folder, folder.parent)
    with pytest.raises(StateError, match="locked is in use by another run of this process"):
        lock_checkpoint(folder, folder.parent)
    lock.check()
    lock.release()
    lock.release()
    assert server.objects("locked") == []
    # The object of a run that was killed is not written again.
    write_whole(folder / "lock", json.dumps(OTHER).encode())
    lock_checkpoint(folder, folder.parent).release()
    assert server.objects("locked") == []


@pytest.mark.usefixtures("fast")
def test_a_run_whose_lock_another_has_taken_writes_no_more_answers(server: S3Server) -> None:
    folder = server.folder("taken/meander")
    lock = lock_checkpoint(folder, folder.parent)
    for _ in range(20):  # a beat that is under way may come after it
        write_whole(folder / "lock", json.dumps(OTHER).encode())
        time.sleep(0.2)
    with pytest.raises(StateError, match="is in use by process 7 on elsewhere, since 19"):
        lock.check()
    lock.release()
    assert json.loads((folder / "lock").read_bytes()) == OTHER


@pytest.mark.usefixtures("fast")
def test_of_runs_that_start_at_once_at_most_one_has_the_checkpoint(server: S3Server) -> None:
    folder = server.folder("raced/meander")
    held: list[Lock] = []
    together = threading.Barrier(4)

    def start() -> None:
        together.wait()
        with contextlib.suppress(StateError):
            held.append(lock_checkpoint(folder, folder.parent))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 1
    held[0].check()
    held[0].release()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"s3a://{BUCKET}", "has no folder for a checkpoint"),
        (f"s3://{BUCKET}/", "has no folder for a checkpoint"),
        ("gs://bucket/folder", "a checkpoint is a folder on a local or mounted disk, or s3a://"),
        ("file:///folder", "a checkpoint is a folder on a local or mounted disk, or s3a://"),
    ],
)
def test_what_names_no_folder_of_a_known_store_is_refused(url: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as refused:
        location(url)
    assert refused.value.hint


def test_a_store_that_cannot_be_written_is_refused_with_the_reason(server: S3Server) -> None:
    folder = location("s3a://no-such-bucket/folder/meander", server.settings)
    with pytest.raises(
        ArgumentError, match=r"no-such-bucket/folder cannot be written: .*bucket does not exist"
    ):
        lock_checkpoint(folder, folder.parent)


def test_secrets_are_in_no_text(server: S3Server) -> None:
    folder = server.folder("secret")
    assert settings_of(folder)["fs.s3a.secret.key"] == SECRET
    for text in (str(folder), repr(folder), repr(folder / "run.json"), f"{folder.parent}"):
        assert SECRET not in text
        assert KEY not in text


def test_a_session_that_is_started_here_reaches_the_store_of_the_environment(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    folder = location(f"s3a://{BUCKET}/environment")
    write_whole(folder / "object", b"content")
    assert server.objects("environment") == ["object"]
    (tmp_path / "a.jar").touch()
    monkeypatch.setenv("MEANDER_S3_JARS", str(tmp_path))
    settings = store_settings(folder)
    assert settings["spark__hadoop__fs__s3a__endpoint"] == server.endpoint
    assert settings["spark__jars"] == str(tmp_path / "a.jar")
    assert SECRET not in str(settings)
    assert store_settings(tmp_path) == {}
    monkeypatch.delenv("MEANDER_S3_JARS")
    assert store_settings(folder)["spark__jars__packages"].startswith("org.apache.hadoop:hadoop-aws:3.")
    both = merged_settings([{"spark__jars": "a,b"}, {"spark__jars": "b,c", "other": "1"}])
    assert both == {"spark__jars": "a,b,c", "other": "1"}


@pytest.mark.spark
def test_a_session_of_the_user_says_how_its_store_is_reached(spark, server: S3Server) -> None:
    """By its settings: the environment has none, and nothing shows the secret."""
    for name, value in server.settings.items():
        spark.conf.set(name, value)
    try:
        folder = Session(spark)._folder(f"s3a://{BUCKET}/session")
        write_whole(folder / "object", b"content")
    finally:
        for name in server.settings:
            spark.conf.unset(name)
    assert server.objects("session") == ["object"]
