"""One answer, once: the whole process group is killed at random moments, and started again."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from test_spark_run import CLOSURE, generate, instants, read_lines, write_tsv

import meander

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("MEANDER_KILLS", "3"))


def start(folder):
    command = [sys.executable, "-m", "meander", "run", str(folder / "q.dl")]
    command += ["--stream", f"s={folder / 's.tsv'}", "--out", str(folder / "out.jsonl")]
    command += ["--checkpoint", str(folder / "checkpoint"), "--batch-rows", "200"]
    log = open(folder / "log", "ab")  # noqa: SIM115
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def end(process):
    """The driver, its JVM and their Python workers, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_run_that_is_killed_again_and_again_gives_every_answer_once(tmp_path):
    rows = generate(7, 8000)
    write_tsv(tmp_path / "s.tsv", rows)
    (tmp_path / "q.dl").write_text(CLOSURE)
    draw = random.Random(7)
    record = tmp_path / "checkpoint" / "meander" / "sinks" / "query.json"
    for _ in range(KILLS):
        process = start(tmp_path)
        try:
            before = record.read_text() if record.exists() else ""
            deadline = time.monotonic() + 900
            # Some batches more than last time, and then somewhere in the middle of one.
            while (record.read_text() if record.exists() else "") == before:
                assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(draw.uniform(0.0, 3.0))
        finally:
            end(process)
    assert not (tmp_path / "checkpoint" / "meander" / "ended").exists(), (
        "nothing was left to do after the last kill"
    )
    process = start(tmp_path)
    try:
        assert process.wait(900) == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        end(process)
    records = read_lines(tmp_path / "out.jsonl")
    assert instants(records) == instants(meander.run(CLOSURE, rows))
    assert max(Counter(map(json.dumps, records)).values()) == 1
