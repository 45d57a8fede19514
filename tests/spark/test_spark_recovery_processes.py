"""One answer, once, when processes end: an executor is killed, and the whole run is stopped or killed in the middle
of a batch and started again with more to read."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from incidents import CLOSURE, assert_undisturbed, descendants, generate, read_records, write_tsv

from command import environment
from meander.spark.checkpoint.notes import read_note

pytestmark = pytest.mark.spark

KILLS = 10
PATIENCE = 600


class Command:
    """A process with a group of its own, and with what it says in a file."""

    def __init__(self, folder, *arguments) -> None:
        self.log = folder / "log"
        with open(self.log, "ab") as log:
            # Sending an interrupt must work though the shell that started the tests may ignore it.
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=log,
                stderr=log,
                env=environment(),
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *exception) -> None:
        """Whatever is left of it, its JVM and their Python workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_for_batch(self, note) -> None:
        """Until the note of a sink speaks of another batch than now."""
        before = last_batch(note)
        deadline = time.monotonic() + PATIENCE
        while last_batch(note) == before:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02)

    def said(self) -> str:
        return self.log.read_text()[-3000:]


def last_batch(note) -> int:
    return read_note(note)["batch"] if note.exists() else -1


def start(folder, *more) -> Command:
    return Command(
        folder,
        *(
            "-m",
            "meander",
            "run",
            CLOSURE,
            "--stream",
            f"s={folder / 'in'}",
            "--out",
            str(folder / "out.jsonl"),
        ),
        *("--checkpoint", str(folder / "checkpoint"), "--batch-rows", "100", *more),
    )


def survive(folder, rows, strikes, seed) -> None:
    """A run that is struck by one signal after another, each somewhere in a batch, with a new file after each."""
    draw = random.Random(seed)
    size = -(-len(rows) // (len(strikes) + 1))
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    sink = folder / "checkpoint" / "meander" / "sinks" / "query.json"
    write_tsv(folder / "in" / "00.tsv", parts[0])
    for number, strike in enumerate(strikes, start=1):
        with start(folder) as run:
            run.wait_for_batch(sink)
            write_tsv(folder / f"{number:02}.tsv", parts[number])
            (folder / f"{number:02}.tsv").rename(folder / "in" / f"{number:02}.tsv")
            time.sleep(draw.uniform(0.0, 0.7))
            if strike == signal.SIGKILL:
                os.killpg(run.process.pid, strike)
            else:
                run.process.send_signal(strike)
            status = run.process.wait(PATIENCE)
            assert status == {signal.SIGINT: 130}.get(strike, -strike), run.said()
    assert not (folder / "checkpoint" / "meander" / "ended").exists(), "nothing was left to do"
    with start(folder) as run:
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(folder / "out.jsonl"), CLOSURE, rows)


@pytest.mark.slow
def test_a_run_goes_on_after_a_kill_and_after_an_interrupt(tmp_path) -> None:
    survive(tmp_path, generate(31, 3000), [signal.SIGKILL, signal.SIGINT], 31)


@pytest.mark.slow
def test_a_command_that_follows_a_folder_waits_for_more_until_it_is_interrupted(tmp_path) -> None:
    rows = generate(35, 300)
    write_tsv(tmp_path / "in" / "0.tsv", rows[:100])
    sink = tmp_path / "checkpoint" / "meander" / "sinks" / "query.json"
    with start(tmp_path, "--follow") as run:
        for number in (1, 2):
            run.wait_for_batch(sink)
            write_tsv(tmp_path / f"{number}.tsv", rows[100 * number : 100 * (number + 1)])
            (tmp_path / f"{number}.tsv").rename(tmp_path / "in" / f"{number}.tsv")
        run.wait_for_batch(sink)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(PATIENCE) == 130, run.said()
    with start(tmp_path) as run:
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


@pytest.mark.slow
def test_a_run_that_is_killed_ten_times_gives_every_answer_once(tmp_path) -> None:
    survive(tmp_path, generate(32, 12000), [signal.SIGKILL] * KILLS, 32)


@pytest.mark.slow
def test_a_run_goes_on_after_it_was_asked_to_end(tmp_path) -> None:
    survive(tmp_path, generate(33, 4000), [signal.SIGTERM, signal.SIGTERM], 33)


@pytest.mark.slow
def test_a_killed_executor_is_replaced(tmp_path) -> None:
    rows = generate(34, 3000)
    write_tsv(tmp_path / "s.tsv", rows)
    with Command(tmp_path, str(Path(__file__).with_name("local_cluster.py")), str(tmp_path)) as run:
        for _ in range(2):
            run.wait_for_batch(tmp_path / "checkpoint" / "meander" / "sinks" / "q.json")
            executors = [
                process
                for process in descendants(run.process.pid)
                if "CoarseGrainedExecutorBackend" in process[2]
            ]
            assert executors, run.said()
            os.kill(executors[0][0], signal.SIGKILL)
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
