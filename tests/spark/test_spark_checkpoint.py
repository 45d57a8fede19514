"""Checkpoints: one run at a time, nothing used that is damaged, and no output lost because a part is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from incidents import CLOSURE, assert_undisturbed, generate, open_session, read_records, write_tsv

from command import environment
from command import meander as command
from meander.engine import compile_query, staged_plan
from meander.errors import ArgumentError, InputError, StateError
from meander.options import RunOptions
from meander.spark.cell.recovery import INDEX, adopt_arrays
from meander.spark.checkpoint import locks
from meander.spark.checkpoint.identity import check_checkpoint, check_parts, record_queries, run_identity
from meander.spark.checkpoint.locks import CheckpointLock, output_lock
from meander.spark.checkpoint.notes import FORMAT, read_note, write_note
from meander.spark.run import Run

HOLD = """
import sys, time
from pathlib import Path
from meander.spark.checkpoint.locks import CheckpointLock
lock = CheckpointLock(Path(sys.argv[1]), Path(sys.argv[1]).parent)
print("locked", flush=True)
time.sleep(600)
"""


def flip(path, at) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def hold_in_another_process(folder) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_lock_names_its_holder_and_ends_with_its_process(tmp_path) -> None:
    folder = tmp_path / "checkpoint" / "meander"
    with hold_in_another_process(folder) as holder:
        with pytest.raises(StateError) as refused:
            CheckpointLock(folder, folder.parent)
        assert refused.value.message.startswith(
            f"the checkpoint {folder.parent} is in use by process {holder.pid} on "
        )
        assert refused.value.hint.startswith("wait for that run or stop it")
        holder.send_signal(signal.SIGKILL)
    # The file still names the process that was killed, which means nothing.
    assert json.loads((folder / "lock").read_text())["pid"] == holder.pid
    lock = CheckpointLock(folder, folder.parent)
    with pytest.raises(StateError, match="is in use by another run of this process"):
        CheckpointLock(folder, folder.parent)
    lock.release()
    CheckpointLock(folder, folder.parent).release()


@pytest.mark.parametrize("alive", [True, False])
def test_a_holder_on_another_machine_is_alive_while_it_touches_its_file(tmp_path, monkeypatch, alive) -> None:
    """As where storage is shared and its locks are not: the lock itself can be had."""
    monkeypatch.setattr(locks, "TOUCH_SECONDS", 0.2)
    monkeypatch.setattr(locks, "WATCH_SECONDS", 1.0)
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": 7, "host": "elsewhere", "since": 0}))
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(0.1):
            os.utime(path)

    with ExitStack() as stack:
        if alive:
            stack.callback(ended.set)
            threading.Thread(target=touch).start()
            stack.enter_context(
                pytest.raises(StateError, match="is in use by process 7 on elsewhere, since 19")
            )
        CheckpointLock(tmp_path, tmp_path).release()


def test_a_lock_is_touched_while_it_is_held_and_not_after(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "TOUCH_SECONDS", 0.05)
    lock = CheckpointLock(tmp_path, tmp_path)
    os.utime(tmp_path / "lock", (0, 0))
    deadline = time.monotonic() + 60
    while (tmp_path / "lock").stat().st_mtime == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lock.release()
    assert json.loads((tmp_path / "lock").read_text()) == {}


def test_a_folder_that_cannot_be_a_checkpoint_is_refused(tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match="cannot be written: "):
        CheckpointLock(tmp_path / "file" / "meander", tmp_path / "file")
    with pytest.raises(ArgumentError, match="cannot be read: File name too long"):
        check_parts(tmp_path / ("long" * 100) / "meander")


EDGES_OF_BANK = "STREAM bank (amount INT) WINDOW 9\nAnswer(x, y) <- {0}."
FIRST = EDGES_OF_BANK.format("a[amount > 1](x, y), b(x, y)")


def identity_of(**texts) -> dict[str, Any]:
    queries = [compile_query(text, name=name) for name, text in texts.items()]
    return run_identity(queries, RunOptions(), schemas=staged_plan(queries, RunOptions()).schemas)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "STREAM bank WINDOW 9\nAnswer(x, y) <- a[fee > 1 and amount > 2](x, y).",
            "reads fee INT of the stream bank, and of that the checkpoint {} holds amount INT",
        ),
        (
            "STREAM other WINDOW 9\nAnswer(x, y) <- a[fee > 1](x, y).",
            "reads fee INT of the stream other, and of that the checkpoint {} holds no properties",
        ),
        (
            EDGES_OF_BANK.format("a(x, y), b(x)"),
            "reads bank as a stream of vertices, and the checkpoint {} holds it",
        ),
        (
            "TABLE bank (amount INT)\nAnswer(x, y) <- a(x, y).",
            "reads bank as a table, and the checkpoint {} holds it as a stream with a window",
        ),
    ],
)
def test_a_query_that_reads_more_than_a_checkpoint_holds_is_not_added(tmp_path, text, message) -> None:
    folder = tmp_path / "checkpoint" / "meander"
    folder.mkdir(parents=True)
    plain = "STREAM other WINDOW 9\nAnswer(x, y) <- a(x, y)."
    record_queries(folder, identity_of(first=FIRST, plain=plain), "run")
    with pytest.raises(StateError) as refused:
        check_checkpoint(folder, identity_of(first=FIRST, added=text))
    assert f"a query that is added {message.format(folder.parent)}" in refused.value.message
    assert refused.value.hint == "rows are not read a second time: start all queries with a new checkpoint"
    new_stream = "STREAM new (fee INT) WINDOW 9\nAnswer(x, y) <- a[fee > 1](x, y)."
    fewer = "STREAM bank (amount INT) WINDOW 9\nAnswer(x, y) <- b[amount < 5](x, y)."
    assert check_checkpoint(folder, identity_of(first=FIRST, new=new_stream, fewer=fewer)) == "run"


def test_what_a_start_has_not_stored_no_later_query_reads(tmp_path) -> None:
    """Between two starts with queries that read a property, one without them."""
    folder = tmp_path / "checkpoint" / "meander"
    folder.mkdir(parents=True)
    plain = "STREAM bank WINDOW 9\nAnswer(x, y) <- a(x, y)."
    for identity in (identity_of(first=FIRST, plain=plain), identity_of(plain=plain)):
        record_queries(folder, identity, "run")
    with pytest.raises(StateError, match="reads amount INT of the stream bank"):
        check_checkpoint(folder, identity_of(plain=plain, added=FIRST))


def test_an_output_is_locked_by_one_run(tmp_path) -> None:
    (tmp_path / "out.jsonl").touch()
    for path in (tmp_path, tmp_path / "out.jsonl"):
        with (
            output_lock(path),
            pytest.raises(StateError, match="is writing to"),
            output_lock(path),
        ):
            pass
        with output_lock(path):
            pass


def test_a_checkpoint_of_another_format_is_refused_by_its_number(tmp_path) -> None:
    identity = run_identity([compile_query(CLOSURE, name="q")], RunOptions())
    path = tmp_path / "run.json"
    path.write_text(json.dumps(identity | {"run": "r", "left": []}))
    with pytest.raises(
        StateError,
        match=rf"run.json is of checkpoint format 1, and this version .* format {FORMAT}\nhint: ",
    ):
        check_checkpoint(tmp_path, identity)
    path.unlink()
    record_queries(tmp_path, identity, "r")
    assert check_checkpoint(tmp_path, identity) == "r"
    for version in (FORMAT - 1, 77):
        text = path.read_text()
        path.write_text(text.replace(f'"format": {FORMAT}', f'"format": {version}'))
        with pytest.raises(StateError, match=f"is of checkpoint format {version}"):
            check_checkpoint(tmp_path, identity)
        path.write_text(text)


def test_a_start_that_is_refused_does_not_bind_the_checkpoint_to_its_query(tmp_path) -> None:
    write_tsv(tmp_path / "s.tsv", generate(51, 10))
    (tmp_path / "out.jsonl").write_text("answers of another run\n")
    for text in (CLOSURE, CLOSURE.replace("40", "41")):
        session = open_session(None, {"s": tmp_path / "s.tsv"}, {"q": (text, None)})
        with pytest.raises(ArgumentError, match=r"out.jsonl has content already.*\nhint: .*--overwrite"):
            session.start(str(tmp_path / "checkpoint"), {"q": str(tmp_path / "out.jsonl")})
    assert (tmp_path / "out.jsonl").read_text() == "answers of another run\n"


def test_arrays_whose_index_fails_its_checksum_are_not_adopted(tmp_path) -> None:
    write_note(tmp_path / INDEX, {"token": 1, "stamp": "x", "arrays": []})
    assert adopt_arrays(tmp_path, 1, "x") == {}
    flip(tmp_path / INDEX, -5)
    assert adopt_arrays(tmp_path, 1, "x") is None


PATIENCE = 300


def start_here(spark, folder, checkpoint="checkpoint", out="out.jsonl", **options) -> Run:
    session = open_session(spark, {"s": folder / "in"}, {"query": (CLOSURE, None)})
    return session.start(
        str(folder / checkpoint), {"query": str(folder / out)}, batch_rows=100, snapshot_rows=150, **options
    )


@pytest.mark.spark
def test_a_second_run_is_refused_before_spark_starts_and_a_killed_one_can_be_resumed(spark, tmp_path) -> None:
    rows = generate(61, 1200)
    write_tsv(tmp_path / "in" / "0.tsv", rows[:600])
    arguments = ["run", CLOSURE, "--stream", f"s={tmp_path / 'in'}", "--out", str(tmp_path / "out.jsonl")]
    arguments += ["--checkpoint", str(tmp_path / "checkpoint"), "--batch-rows", "100", "--follow"]
    with open(tmp_path / "log", "wb") as log:
        first = subprocess.Popen(
            [sys.executable, "-m", "meander", *arguments],
            stderr=log,
            env=environment(),
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        note = tmp_path / "checkpoint" / "meander" / "sinks" / "query.json"
        while not note.exists() or read_note(note)["batch"] < 1:
            assert first.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        second = command(*arguments, JAVA_HOME=os.devnull)
        assert second.returncode == 1
        assert f"is in use by process {first.pid} on " in second.stderr
        assert "hint: wait for that run or stop it" in second.stderr
        assert "Traceback" not in second.stderr
        with pytest.raises(StateError, match=f"is in use by process {first.pid} on "):
            start_here(spark, tmp_path)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    write_tsv(tmp_path / "in" / "1.tsv", rows[600:])
    run = start_here(spark, tmp_path)
    try:
        run.finish()
    finally:
        run.stop()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


def lose(name) -> Callable[[Path], None]:
    def change(folder) -> None:
        path = folder / "checkpoint" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def damage(name) -> Callable[[Path], None]:
    def change(folder) -> None:
        (path,) = (folder / "checkpoint").glob(name)
        flip(path, path.stat().st_size // 2)

    return change


def lose_last_entry(folder) -> None:
    max((folder / "checkpoint" / "meander" / "ledger").glob("*.json")).unlink()


def change_input(folder) -> None:
    flip(folder / "in" / "0.tsv", 1000)


REFUSALS = {
    "all of meander": (lose("meander"), StateError, r"not whole: .*/checkpoint/meander is missing"),
    "the notes of sinks": (
        lose("meander/sinks"),
        StateError,
        r"query.json, which says how far .* is missing",
    ),
    "the note of the run": (lose("meander/run.json"), StateError, r"not whole: .*/run.json is missing"),
    "the ledger": (lose("meander/ledger"), StateError, r"not whole: .*/ledger/0.*.json is missing"),
    "the last entry": (lose_last_entry, StateError, r"not whole: .*/ledger/0.*.json is missing"),
    "Spark's part": (lose("spark"), StateError, r"not whole: .*/spark/offsets is missing"),
    "damage of the run": (damage("meander/run.json"), StateError, r"/run.json is damaged"),
    "damage of a sink": (damage("meander/sinks/query.json"), StateError, r"/query.json is damaged"),
    "damage of an entry": (damage("meander/ledger/*2.json"), StateError, r"2.json is damaged"),
    "another input": (change_input, InputError, r"0.tsv has changed since it was read: its first \d+ bytes"),
}


@pytest.mark.spark
def test_a_checkpoint_of_which_a_part_is_lost_or_damaged_is_refused_and_no_output_is_touched(
    spark, tmp_path
) -> None:
    rows = generate(62, 900)
    here = tmp_path / "here"
    write_tsv(here / "in" / "0.tsv", rows[:600])
    run = start_here(spark, here)
    with pytest.raises(StateError, match="is in use by another run of this process"):
        start_here(spark, here)
    run.process_available()
    run.stop()
    answers = (here / "out.jsonl").read_bytes()
    assert answers
    copy = tmp_path / "copy"
    for what, (change, error, match) in REFUSALS.items():
        here.rename(copy)
        shutil.copytree(copy, here)
        change(here)
        for overwrite in (False, True):
            with pytest.raises(error, match=match + r"[^\n]*\nhint: "):
                start_here(spark, here, overwrite=overwrite)
        assert (here / "out.jsonl").read_bytes() == answers, what
        shutil.rmtree(here)
        copy.rename(here)
    with pytest.raises(ArgumentError, match=r"out.jsonl has content already.*\nhint: .*--overwrite"):
        start_here(spark, here, "new")
    # Snapshots are a cache: damaged ones are rebuilt.
    snapshots = list((here / "checkpoint" / "meander" / "snapshots").rglob("*.snapshot"))
    assert snapshots
    for path in snapshots:
        flip(path, path.stat().st_size // 2)
    write_tsv(here / "in" / "1.tsv", rows[600:])
    run = start_here(spark, here, overwrite=True)
    try:
        run.process_available()
        assert run.figures[0]["cells"][0]["seconds"]["load"] == 0
        # A file that is changed during the run ends it.
        kept = (here / "in" / "1.tsv").read_bytes()
        flip(here / "in" / "1.tsv", 100)
        with pytest.raises(InputError, match=r"1.tsv has changed since it was read.*\nhint: a file may grow"):
            run.wait(PATIENCE)
        (here / "in" / "1.tsv").write_bytes(kept)
        run = start_here(spark, here)
        run.finish()
    finally:
        run.stop()
    assert_undisturbed(read_records(here / "out.jsonl"), CLOSURE, rows)
    for _ in range(2):
        run = start_here(spark, here, "new", overwrite=True, follow=False)
        try:
            assert run.wait(PATIENCE)
        finally:
            run.stop()
        assert_undisturbed(read_records(here / "out.jsonl"), CLOSURE, rows)
        # That the run has ended is known without this note.
        (here / "new" / "meander" / "ended").unlink()
