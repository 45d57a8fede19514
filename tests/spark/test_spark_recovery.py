"""One answer, once: what is lost during a run, or changed between two starts, does not show in its answers."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from incidents import (
    CLOSURE,
    TRIANGLE,
    assert_undisturbed,
    canonical,
    generate,
    kill_workers,
    open_session,
    read_records,
    write_tsv,
)
from pyspark import SparkFiles

import meander
from command import meander as command
from judge import judge
from meander.errors import StateError
from meander.options import RunOptions
from meander.spark.checkpoint.identity import record_queries, run_identity
from meander.spark.run import Run
from meander.spark.session import Session
from oracle import expect
from querytext import read_query

pytestmark = pytest.mark.spark


def run_bounded(
    spark, folder, rows, *, hook=None, text=CLOSURE, **options
) -> tuple[Run, list[dict[str, Any]]]:
    """A run over one file, with something done to it after each batch."""
    write_tsv(folder / "s.tsv", rows)
    session = open_session(spark, {"s": folder / "s.tsv"}, {"q": (text, None)})
    run = session.start(
        str(folder / "checkpoint"), {"q": str(folder / "out.jsonl")}, follow=False, batch_rows=100, **options
    )
    if hook is not None:
        run.batch_hooks.append(lambda figures: hook(run, figures["batch"]))
    try:
        assert run.wait(300)
    finally:
        run.stop()
    return run, read_records(folder / "out.jsonl")


def test_a_killed_python_worker_is_replaced(spark, tmp_path) -> None:
    rows = generate(21, 2400)
    killed = []

    def strike(run, batch) -> None:
        """Somewhere in the next batch."""
        if batch in (1, 3):
            delay = 0.15 * batch
            strikes = threading.Timer(
                delay, lambda: killed.append(kill_workers(run.job.run, daemon=batch == 3))
            )
            strikes.start()

    run, records = run_bounded(spark, tmp_path, rows, hook=strike)
    assert_undisturbed(records, CLOSURE, rows)
    assert len(killed) == 2
    assert min(killed) >= 1
    rebuilt = [cell["rebuilt"] for figures in run.figures for cell in figures["cells"]]
    assert sum(rebuilt[1:]) >= 1


@pytest.mark.parametrize("cells", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_cache_of_operator_state_may_be_deleted_at_any_time(spark, tmp_path, cells) -> None:
    rows = generate(22, 2400)
    lost = []

    def delete(run, batch) -> None:
        kept = [Path(SparkFiles.getRootDirectory()) / f"meander-{run.job.run[:16]}", Path(run.job.snapshots)]
        for folder in kept if batch % 2 else ():
            lost.append(folder.exists())
            shutil.rmtree(folder, ignore_errors=True)
        if batch % 2:
            kill_workers(run.job.run, daemon=False)

    _, records = run_bounded(spark, tmp_path, rows, hook=delete, cells=cells, snapshot_rows=150)
    assert_undisturbed(records, CLOSURE, rows)
    assert any(lost)


class Growing:
    """A folder that grows between the starts of one run."""

    def __init__(self, spark, folder, rows, parts) -> None:
        self.spark = spark
        self.folder = folder
        size = -(-len(rows) // parts)
        self.parts = [rows[at : at + size] for at in range(0, len(rows), size)]

    def start(self, part, queries, *, end=False, **options) -> Run:
        """Start the run with one more file, until that is read; at the end all held is released."""
        write_tsv(self.folder / "in" / f"{part}.tsv", self.parts[part])
        session = open_session(self.spark, {"s": self.folder / "in"}, queries)
        sinks = {name: str(self.folder / f"{name}.jsonl") for name in queries}
        run = session.start(str(self.folder / "checkpoint"), sinks, **options)
        try:
            run.finish() if end else run.process_available()
        finally:
            run.stop()
        return run

    def records(self, query) -> list[dict[str, Any]]:
        return read_records(self.folder / f"{query}.jsonl")


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_with_more_files_under_other_plans(spark, tmp_path) -> None:
    rows = generate(23, 1500, deletions=True)
    growing = Growing(spark, tmp_path, rows, 5)
    plans = len(meander.plans(CLOSURE))
    assert plans > 1
    growing.start(0, {"q": (CLOSURE, None)})
    growing.start(1, {"q": (CLOSURE, None)}, path_operator="negative-tuple")
    growing.start(2, {"q": (CLOSURE, 1)}, path_operator="closure")
    growing.start(3, {"q": (CLOSURE, plans - 1)}, path_operator="s-path")
    shutil.rmtree(tmp_path / "checkpoint" / "meander" / "snapshots", ignore_errors=True)
    with pytest.raises(StateError, match="belongs to another query; it was"):
        growing.start(4, {"q": (CLOSURE.replace("40", "41"), None)})
    growing.start(4, {"q": (CLOSURE, None)}, end=True)
    assert_undisturbed(growing.records("q"), CLOSURE, rows)


def test_queries_are_added_with_the_next_start_and_left_out_for_good(spark, tmp_path) -> None:
    rows = generate(24, 1200)
    growing = Growing(spark, tmp_path, rows, 4)
    growing.start(0, {"closure": (CLOSURE, None)})
    growing.start(1, {"closure": (CLOSURE, None), "triangle": (TRIANGLE, None)})
    begun = growing.parts[0][-1][3]
    growing.start(2, {"triangle": (TRIANGLE, None)})
    left = growing.records("closure")
    with pytest.raises(StateError, match="the query closure was left out of an earlier start"):
        growing.start(3, {"closure": (CLOSURE, None)})
    growing.start(3, {"triangle": (TRIANGLE, None)}, end=True)
    # The one that was there from the beginning says nothing more; what it said is true of the edges it had.
    assert growing.records("closure") == left
    assert_undisturbed(left, CLOSURE, rows[:600])
    # The one that came later has all its answers from the time that the run had reached.
    cut = {
        answer: later
        for answer, held in canonical(meander.run(TRIANGLE, rows)).items()
        if (later := [(max(start, begun), end) for start, end in held if end > begun])
    }
    assert canonical(growing.records("triangle")) == cut


@pytest.mark.slow
def test_a_restart_within_an_instant_takes_no_stop_with_it(spark, tmp_path) -> None:
    """In `changes` mode q is reached and lost at 10, in two starts; its stop waits for the instant to be over."""
    query = "STREAM s WINDOW 3\nOut(x, y) <- a(x, y)."
    rows = [("p", "a", "q", 10), ("p", "a", "q", 10, "-"), ("p", "a", "r", 40)]
    growing = Growing(spark, tmp_path, rows, 3)
    for part in range(3):
        run = growing.start(part, {"q": (query, None)}, end=part == 2, mode="changes")
        assert run.figures[0]["cells"][0]["rebuilt"]
    changes = [(record["trg"], record["op"], record["ts"]) for record in growing.records("q")]
    assert changes == [("q", "+", 10), ("q", "-", 10), ("r", "+", 40), ("r", "-", 43)]


@pytest.mark.slow
def test_a_rebuild_with_paths_and_deletions_keeps_every_path_true(spark, tmp_path) -> None:
    """State is lost in every second batch, and there are no snapshots; the law's judge looks at the paths."""
    rows = generate(25, 1200, deletions=True)

    def lose(run, batch) -> None:
        if batch % 2:
            kill_workers(run.job.run, daemon=False)

    run, records = run_bounded(spark, tmp_path, rows, hook=lose, paths=True, snapshot_rows=10**9)
    assert_undisturbed(records, CLOSURE, rows)
    text = CLOSURE.replace("(a/b*)", "(s.a/s.b*)")
    judge(records, expect(read_query(text), {"s": rows}), paths=True)
    assert sum(cell["rebuilt"] for figures in run.figures for cell in figures["cells"]) >= 2


def note(checkpoint, query) -> None:
    """A checkpoint of this query."""
    (checkpoint / "meander").mkdir(parents=True)
    record_queries(checkpoint / "meander", run_identity([query.compiled], RunOptions()), "run")


def test_a_changed_query_ends_the_command_with_status_1_before_spark_starts(tmp_path) -> None:
    write_tsv(tmp_path / "s.tsv", generate(26, 10))
    session = Session()
    query = session.query(CLOSURE, "query")
    note(tmp_path / "checkpoint", query)
    arguments = ["run", CLOSURE.replace("40", "41"), "--stream", str(tmp_path / "s.tsv")]
    arguments += ["--out", str(tmp_path / "out.jsonl"), "--checkpoint", str(tmp_path / "checkpoint")]
    began = time.monotonic()
    done = command(*arguments, JAVA_HOME=os.devnull)
    assert done.returncode == 1
    assert "belongs to another query; it was" in done.stderr
    assert "hint: start the changed query with a new checkpoint" in done.stderr
    assert time.monotonic() - began < 30


def test_a_stream_that_spark_would_read_now_and_did_not_before_is_refused_before_spark_starts(
    tmp_path,
) -> None:
    note(tmp_path / "checkpoint", Session().query(CLOSURE, "query"))
    session = Session()
    with socket.create_server(("127.0.0.1", 0)) as broker:
        session.stream("s", f"kafka://127.0.0.1:{broker.getsockname()[1]}/edges")
        session.query(CLOSURE, "query")
        with pytest.raises(StateError, match="has no stream as read by Spark, and now there would be s"):
            session.start(str(tmp_path / "checkpoint"))
