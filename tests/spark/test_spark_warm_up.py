"""Workers of a session of our own are forked with everything loaded."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from incidents import CLOSURE, TRIANGLE, descendants, generate, open_session, write_tsv

from meander.engine import compile_query, staged_plan
from meander.options import RunOptions
from meander.spark.cell.job import Job, stage_jobs
from meander.spark.daemon import load
from meander.spark.workers.pool import JOBS, MODULE, POOL, Pool, pack_jobs, unpack_jobs

AFTERWARDS = """
import sys
from meander.kernels.jit import KernelCache as Cache
from meander.spark.workers.warm_up import generated_batches, warm_up
from meander.spark.workers.pool import unpack_jobs
from meander.spark.cell.local_cells import LocalCells

loaded = []
load_one = Cache.load_overload
Cache.load_overload = lambda self, *rest: (loaded.append(self), load_one(self, *rest))[1]
warm_up(sys.argv[1])
assert loaded
loaded.clear()
modules = set(sys.modules)
cells = LocalCells(unpack_jobs(sys.argv[1]))
rows = [row for batch in generated_batches(cells.jobs) for _, row in cells.run_batch(batch)]
answers = [row.rows for row in rows if row.kind == "answers"]
assert answers
print(len(loaded), len(set(sys.modules) - modules))
"""


def jobs_of(*texts, cells) -> list[Job]:
    options = RunOptions(cells=cells)
    queries = [compile_query(text, name=f"q{number}") for number, text in enumerate(texts)]
    formats = {query.name: "jsonl" for query in queries}
    return stage_jobs(
        staged_plan(queries, options),
        range(cells),
        run="r",
        formats=formats,
        options=options,
        snapshots="s",
        started=1.0,
    )


@pytest.mark.parametrize("cells", [1, 2])
def test_what_was_warmed_up_has_nothing_left_to_load(cells) -> None:
    packed = pack_jobs(jobs_of(CLOSURE, TRIANGLE, cells=cells))
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS, packed], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.split() == ["0", "0"]


def test_what_is_known_of_jobs_does_not_change_from_start_to_start() -> None:
    first, second = (jobs_of(CLOSURE, cells=1) for _ in range(2))
    assert pack_jobs(first) == pack_jobs(second)
    assert unpack_jobs(pack_jobs(first))[0].plan == first[0].plan


def test_what_cannot_be_warmed_up_does_not_stop_a_worker(capfd) -> None:
    load("no jobs at all")
    assert capfd.readouterr() == ("", "")


def test_the_workers_of_a_run_are_forked_from_one_process_that_is_warm(spark, tmp_path) -> None:
    write_tsv(tmp_path / "s.tsv", generate(1, 40))
    session = open_session(spark, {"s": tmp_path / "s.tsv"}, {"q": (CLOSURE, None)})
    run = session.start(str(tmp_path / "checkpoint"), {"q": str(tmp_path / "out.jsonl")})
    run.process_available()
    mine = {
        process[0]: process for process in descendants(os.getpid()) if f"{POOL}={run.job.run}" in process[3]
    }
    daemons = [process for process in mine.values() if process[1] not in mine]
    run.stop()
    assert [MODULE in process[2] for process in daemons] == [True]
    assert JOBS in daemons[0][3]
    assert len(mine) > 1


def test_the_worker_that_has_a_cells_state_gets_the_next_batch(spark, tmp_path) -> None:
    """Also where the pool was prepared while the first batch was on its way, as it is when Java is warm."""
    rows = generate(2, 200)
    (tmp_path / "in").mkdir()
    for number in range(4):
        write_tsv(tmp_path / "in" / f"{number}.tsv", rows[50 * number : 50 * (number + 1)])
    for attempt in ("first", "second"):
        session = open_session(spark, {"s": tmp_path / "in"}, {"q": (CLOSURE, None)})
        sinks = {"q": str(tmp_path / f"{attempt}.jsonl")}
        run = session.start(str(tmp_path / attempt), sinks, follow=False, batch_rows=50)
        run.wait()
        rebuilt = [figures["cells"][0]["rebuilt"] for figures in run.figures]
        assert len(rebuilt) >= 4
        assert rebuilt == [True] + [False] * (len(rebuilt) - 1)


def test_a_session_with_the_usual_daemon_goes_without() -> None:
    environment: dict[str, str] = {}
    context = SimpleNamespace(environment=environment, getConf=dict)
    pool = Pool(SimpleNamespace(sparkContext=context), jobs_of(CLOSURE, cells=1))
    with pool.declared():
        assert environment == {POOL: "r"}
    assert environment == {}
    pool.prepare()


def test_what_workers_are_forked_from_ends_after_the_last_of_them() -> None:
    program = "import meander.spark.daemon as d; d.IDLE, d.LOOK = 1.0, 0.1; d.main()"
    environment = os.environ | {JOBS: "none"}
    daemon = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = int.from_bytes(daemon.stdout.read(4), "big")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            assert int.from_bytes(connection.recv(4), "big") > 0, "the number of a worker"
            time.sleep(3)
            assert daemon.poll() is None, "a worker is there"
        daemon.wait(30)
    finally:
        daemon.kill()
        daemon.wait()
