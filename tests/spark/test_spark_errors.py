"""What fails on Spark is reported as one error that says what happened and what to do, not as a Java stack."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest
from incidents import CLOSURE, assert_undisturbed, descendants, generate, read_records, write_tsv

import meander.spark
from command import ROOT, environment, messages
from meander.errors import ArgumentError, InputError, MemoryBudgetError, OutputError, SparkError, StateError
from meander.spark.checkpoint.storage import location
from meander.spark.output.handover import check_handover
from meander.spark.run import Run
from meander.spark.session import Session
from meander.spark.settings import PROVIDER, ROCKSDB
from meander.spark.workers.failures import translate_error

RESUMES = "with a checkpoint, the same run then resumes"
ANOTHER_PYTHON = f"set PYSPARK_PYTHON to a Python that has Meander, such as {sys.executable}"

FROM_A_WORKER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] Traceback:
  File "advance.py", line 1, in advance
    raise MemoryBudgetError(
meander.errors.MemoryBudgetError: the memory budget of 1.0 KB is reached
hint: a larger --memory
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
"""
BARE_PYTHON = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback:
  File "pyspark/sql/worker/create_data_source.py", line 57, in _main
    data_source_cls = read_command(pickleSer, infile)
ModuleNotFoundError: No module named 'meander'
 SQLSTATE: 38000
"""
NO_PYTHON = """[STREAM_FAILED] Job aborted: java.io.IOException: Cannot run program "/nosuch/python3": error=2
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
"""
OTHER_PYTHON = """[PYTHON_VERSION_MISMATCH] Python in worker has a different version: 3.9 than that in driver: 3.11,
PySpark cannot run with different minor versions.
"""
OUT_OF_MEMORY = """[STREAM_FAILED] Query [id = 1] terminated with exception: Java heap space
java.lang.OutOfMemoryError: Java heap space
\tat org.apache.spark.X
"""
NO_TOPIC = """[STREAM_FAILED] Query [id = 1] terminated with exception: Partitions of a topic were lost
org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.
"""
KAFKA_IS_SILENT = """[STREAM_FAILED] Query [id = 1] terminated with exception:
java.util.Exception: org.apache.kafka.common.errors.TimeoutException: Topic t not present in metadata
"""


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint"),
    [
        (FROM_A_WORKER, MemoryBudgetError, "the memory budget of 1.0 KB is reached", "a larger --memory"),
        (BARE_PYTHON, SparkError, "the Python of Spark's workers has no module meander", ANOTHER_PYTHON),
        (
            NO_PYTHON,
            SparkError,
            "Spark cannot start the Python of its workers: there is no /nosuch/python3",
            ANOTHER_PYTHON,
        ),
        (
            OTHER_PYTHON,
            SparkError,
            "Spark's workers have Python 3.9, and the driver has 3.11",
            ANOTHER_PYTHON,
        ),
        (
            OUT_OF_MEMORY,
            SparkError,
            "Spark's Java process ran out of memory (Java heap space)",
            f"give it more (spark.driver.memory, spark.executor.memory) or a smaller --batch-rows; {RESUMES}",
        ),
        (
            NO_TOPIC,
            InputError,
            "Kafka has no such topic: This server does not host this topic-partition.",
            "create the topic, or check its name",
        ),
        (
            KAFKA_IS_SILENT,
            InputError,
            "Kafka does not answer: Topic t not present in metadata",
            f"check that the broker runs and can be reached; {RESUMES}",
        ),
    ],
)
def test_a_known_failure_is_one_sentence_with_a_hint(text, kind, message, hint) -> None:
    error = translate_error(RuntimeError(text))
    assert (type(error), error.message, error.hint) == (kind, message, hint)


OF_A_CHECKPOINT = """
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0 in stage
1.0 failed 4 times: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.
\tat org.apache.Spark
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/spark/state/0/0/1.changelog at 1024 exp: 3
"""


def test_damage_of_sparks_part_of_a_checkpoint_is_named() -> None:
    error = translate_error(RuntimeError(OF_A_CHECKPOINT))
    assert isinstance(error, StateError)
    stderr = "Spark's part of the checkpoint is damaged: Checksum error: file:/c/spark/state/0/0/1.changelog"
    assert error.message == stderr
    assert error.hint.startswith("restore the checkpoint from a backup, or start over")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "\n[STREAM_FAILED] the disk is on fire\n\tat org.apache.Spark\n",
            "[STREAM_FAILED] the disk is on fire",
        ),
        (
            "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
            '  File "sink.py", line 1, in take\nValueError: no such table\n\tat py4j.Protocol\n',
            "ValueError: no such table",
        ),
    ],
)
def test_any_other_failure_is_one_line_and_names_the_file_with_its_trace(text, line) -> None:
    error = translate_error(RuntimeError(text))
    assert type(error) is SparkError
    assert error.message == f"the Spark query failed: {line}"
    path = Path(error.hint.removeprefix("the full trace is in ").split(";")[0])
    assert text in path.read_text()
    assert error.hint == f"the full trace is in {path}; MEANDER_DEBUG=1 shows it as it comes"
    path.unlink()


def test_a_full_disk_is_named_by_the_path_that_is_on_it(small_disk) -> None:
    checkpoint = small_disk.folder / "checkpoint"
    error = translate_error(RuntimeError("OSError: [Errno 28] No space left on device"), [checkpoint])
    assert type(error) is OutputError
    assert error.message == f"the disk is full: {checkpoint} cannot be written"
    assert error.hint == f"free some space, or use another disk; {RESUMES}"


def test_the_supported_version_is_the_one_that_is_required() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert meander.spark.REQUIREMENT in required
    oldest, newest = meander.spark.SUPPORTED[0], meander.spark.NEWEST
    below = f"4.{int(newest.split('.')[1]) + 1}"
    assert f"pyspark>={oldest}.0,<{below}" == meander.spark.REQUIREMENT


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'local\[2\]' is not a SparkSession\nhint: Session\(\) starts"):
        Session("local[2]")
    with pytest.raises(ArgumentError, match=r"the stream s is \[\]\nhint: give a DataFrame, a path"):
        Session().stream("s", [])


@pytest.mark.spark
def test_the_error_for_another_state_store_names_the_setting(spark) -> None:
    session = spark.newSession()
    session.conf.set(PROVIDER, "org.example.OtherProvider")
    with pytest.raises(ArgumentError) as refused:
        Session(session)
    assert str(refused.value) == (
        "the Spark session keeps state with OtherProvider, and Meander needs RocksDB\n"
        f'hint: spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
    )


def start(spark, stream, checkpoint, out, metrics=None) -> Run:
    session = Session(spark)
    session.stream("s", stream)
    session.query(CLOSURE, "q")
    return session.start(str(checkpoint), {"q": str(out)}, metrics=metrics, follow=False, batch_rows=1000)


@pytest.mark.slow
@pytest.mark.spark
def test_a_disk_that_fills_ends_a_run_which_resumes_when_there_is_space(spark, tmp_path, small_disk) -> None:
    """First the disk of the answers, then that of the checkpoint; metrics that are lost do not cost answers."""
    rows = generate(51, 4000)
    write_tsv(tmp_path / "in.tsv", rows)
    small_disk.grow("100k")
    out = small_disk.folder / "out.jsonl"
    with pytest.raises(OutputError) as failed:
        start(spark, str(tmp_path / "in.tsv"), tmp_path / "checkpoint", out).wait(900)
    assert str(failed.value) == (
        f"{out} cannot be written: No space left on device\n"
        "hint: free some space on its disk, or write to another disk"
    )
    assert out.read_bytes()[-1:] in (b"", b"\n"), "half a line is left"
    small_disk.grow("100m")
    assert start(spark, str(tmp_path / "in.tsv"), tmp_path / "checkpoint", out).wait(900)
    assert_undisturbed(read_records(out), CLOSURE, rows)
    out.unlink()

    small_disk.grow("100k")
    checkpoint, out = small_disk.folder / "checkpoint", tmp_path / "out.jsonl"
    with pytest.raises(OutputError) as failed:
        start(spark, str(tmp_path / "in.tsv"), checkpoint, out).wait(900)
    assert str(failed.value) == (
        f"the disk is full: {checkpoint} cannot be written\n"
        f"hint: free some space, or use another disk; {RESUMES}"
    )
    small_disk.grow("100m")
    run = start(spark, str(tmp_path / "in.tsv"), checkpoint, out, metrics="/dev/full")
    with pytest.raises(OutputError, match="/dev/full cannot be written: No space left on device"):
        run.wait(900)
    assert_undisturbed(read_records(out), CLOSURE, rows)


# -- processes


def command(folder, *options, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "meander", "run", CLOSURE, "--stream", f"s={folder / 'in'}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_whose_java_process_is_killed_says_so_and_resumes(tmp_path) -> None:
    rows = generate(52, 400)
    write_tsv(tmp_path / "in" / "0.tsv", rows)
    out, options = tmp_path / "out.jsonl", ["--checkpoint", str(tmp_path / "checkpoint")]
    run = command(tmp_path, "--out", str(out), "--follow", *options)
    try:
        deadline = time.monotonic() + 300
        while not out.exists() or not out.stat().st_size:
            assert run.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        java = next(process for process in descendants(run.pid) if "java" in process[2].split()[0])
        os.kill(java[0], signal.SIGKILL)
        _, stderr = run.communicate(timeout=300)
    finally:
        run.kill()
    progress = re.compile(r"\d+ edges ")  # a line now and then, while it runs
    assert run.returncode == 1
    assert [line for line in messages(stderr).splitlines() if not progress.match(line)] == [
        "starting Spark …",
        "error: Spark's Java process was killed (SIGKILL)",
        f"hint: a process that was killed may have used more memory than there is; {RESUMES}",
    ]
    again = command(tmp_path, "--out", str(out), *options)
    _, stderr = again.communicate(timeout=300)
    assert again.returncode == 0, stderr
    assert_undisturbed(read_records(out), CLOSURE, rows)


@pytest.mark.slow
@pytest.mark.spark
def test_workers_without_meander_are_named_with_the_python_to_use(tmp_path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    write_tsv(tmp_path / "in" / "0.tsv", generate(53, 40))
    bare = str(tmp_path / "bare" / "bin" / "python")
    run = command(tmp_path, "--out", str(tmp_path / "out.jsonl"), PYSPARK_PYTHON=bare, PYTHONPATH="")
    _, stderr = run.communicate(timeout=300)
    assert (run.returncode, messages(stderr)) == (
        1,
        f"starting Spark …\nerror: the Python of Spark's workers has no module meander\nhint: {ANOTHER_PYTHON}\n",
    )


PLAIN = """
import sys
from pyspark.sql import SparkSession
import meander

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
session = meander.Session(spark)
session.stream("s", sys.argv[1])
session.query(sys.argv[2], "q")
assert session.start(sinks={"q": sys.argv[3]}, follow=False).wait(900)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_plain_spark_session_is_made_ready(tmp_path) -> None:
    """Also where `python3` in PATH, which Spark takes by default, has no Meander."""
    rows = generate(54, 200)
    write_tsv(tmp_path / "in" / "0.tsv", rows)
    venv.create(tmp_path / "bare", with_pip=False)
    path = f"{tmp_path / 'bare' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    variables = environment(PATH=path)
    with contextlib.suppress(KeyError):
        del variables["PYSPARK_PYTHON"]
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(tmp_path / "in"), CLOSURE, str(tmp_path / "out.jsonl")],
        capture_output=True,
        text=True,
        env=variables,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


def test_a_checkpoint_in_an_object_store_is_refused_over_spark_connect() -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(ArgumentError, match="cannot have its checkpoint in an object store: s3a://lake/runs"):
        check_handover(remote, location("s3a://lake/runs"))
    check_handover(remote, Path("/shared/runs"))


def test_a_python_process_that_does_not_start_in_time_is_named() -> None:
    error = translate_error(
        RuntimeError(
            "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
        )
    )
    assert error.message == "a Python process of Spark did not start within ten seconds"
