"""One answer, once, on executors of their own: cells are on both, and drivers, executors and workers are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from incidents import CLOSURE, assert_undisturbed, descendants, generate, read_records, write_tsv
from kafka_broker import NoKafka
from run_processes import PATIENCE, Command
from s3_server import S3Server, cluster_variables, s3a_jars

from meander.spark.checkpoint.storage import Location, location

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = str(Path(__file__).with_name("local_cluster.py"))
EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER, WORKER = "driver", "worker"
STRIKES = [DRIVER] * 3 + [EXECUTOR] * 4 + [WORKER] * 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        s3a_jars()
    except NoKafka as reason:
        pytest.skip(f"S3 is left out: {reason}")
    server = S3Server(tmp_path_factory.mktemp("s3") / "log")
    yield server
    server.stop()


def executors(run: Command) -> list[int]:
    return [process[0] for process in descendants(run.process.pid) if EXECUTOR in process[2]]


def workers(parent: int) -> list[int]:
    """The Python processes below another that have cells."""
    return [process[0] for process in descendants(parent) if "MEANDER_POOL=" in process[3]]


def await_workers_on_both(run: Command) -> list[int]:
    """The executors, once each of two has a worker with cells."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = executors(run)
        if len(found) == 2 and all(workers(executor) for executor in found):
            return found
        assert run.process.poll() is None, run.said()
        assert time.monotonic() < deadline, run.said()
        time.sleep(0.1)


def figures(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics").read_text().splitlines()]


@pytest.mark.parametrize("shared", ["disk", "store"])
def test_a_killed_executor_is_replaced_and_its_cells_load_their_snapshots(
    tmp_path: Path, server: S3Server, shared: str
) -> None:
    """The snapshots are where all executors reach them: on a disk here, or in a store."""
    rows = generate(34, 7200)
    write_tsv(tmp_path / "s.tsv", rows)
    checkpoint: Location = location(str(tmp_path / "checkpoint"))
    variables = {}
    if shared == "store":
        checkpoint = server.folder(tmp_path.name)
        variables = cluster_variables(server, tmp_path)
    with Command(tmp_path, SCRIPT, str(tmp_path), "s.tsv", **variables) as run:
        note = checkpoint / "meander" / "sinks" / "q.json"
        for _ in range(5):
            run.wait_for_batch(note)
        struck = await_workers_on_both(run)[0]
        batch = figures(tmp_path)[-1]["batch"]
        os.kill(struck, signal.SIGKILL)
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
    later = [cell for line in figures(tmp_path) if line["batch"] > batch for cell in line["cells"]]
    assert any(cell["rebuilt"] and cell["seconds"]["load"] > 0 for cell in later)
    if shared == "store":
        stored = server.objects(tmp_path.name)
        assert any(name.endswith(".snapshot") for name in stored)
        assert not (tmp_path / "checkpoint").exists()


def strike(run: Command, what: str, draw: random.Random) -> None:
    """Kill a process of a run: one of its executors, or a worker that has cells."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = executors(run)
        chosen = found if what == EXECUTOR else [worker for executor in found for worker in workers(executor)]
        if chosen:
            os.kill(draw.choice(chosen), signal.SIGKILL)
            return
        assert run.process.poll() is None, run.said()
        assert time.monotonic() < deadline, run.said()
        time.sleep(0.1)


def test_a_run_with_two_cells_gives_every_answer_once_whatever_is_killed_ten_times(tmp_path: Path) -> None:
    draw = random.Random(35)
    strikes = [*STRIKES]
    draw.shuffle(strikes)
    rows = generate(35, 24000)
    size = -(-len(rows) // (STRIKES.count(DRIVER) + 1))
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    write_tsv(tmp_path / "in" / "0.tsv", parts.pop(0))
    note = tmp_path / "checkpoint" / "meander" / "sinks" / "q.json"
    started = 1
    while True:
        with Command(tmp_path, SCRIPT, str(tmp_path), "in") as run:
            while strikes:
                what = strikes.pop()
                run.wait_for_batch(note)
                time.sleep(draw.uniform(0.0, 0.7))
                if what == DRIVER:
                    break
                strike(run, what, draw)
            else:
                assert run.process.wait(PATIENCE) == 0, run.said()
                break
            write_tsv(tmp_path / f"{started}.tsv", parts.pop(0))
            (tmp_path / f"{started}.tsv").rename(tmp_path / "in" / f"{started}.tsv")
            os.killpg(run.process.pid, signal.SIGKILL)
            assert run.process.wait(PATIENCE) == -signal.SIGKILL, run.said()
            started += 1
    assert started == STRIKES.count(DRIVER) + 1
    assert not strikes
    assert not parts
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
