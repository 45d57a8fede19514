"""One answer, once, when processes end: an executor is killed, and the whole run is stopped or killed in the middle
of a batch and started again with more to read."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from incidents import CLOSURE, assert_undisturbed, generate, read_records, write_tsv
from run_processes import PATIENCE, Command

pytestmark = pytest.mark.spark

KILLS = 10


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
