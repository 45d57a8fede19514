"""What stops a run is said in one sentence with a hint, before Spark starts where it can be known then."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import environment, messages
from meander.cli import main
from small_disk import SmallDisk

ONE = "STREAM s WINDOW 1h Answer(x, y) <- a(x, y)."
RUNNERS = ["local", "spark"]
NO_JAVA = ("JAVA_HOME", "/nosuch/jdk")
"""With this Spark cannot start: what is reported in spite of it was found before."""

STREAM = "a stream is a file or folder on a local or mounted disk, or kafka://host:port/topic"
READ_BY_SPARK = (
    "mount it or copy it; in Python, Session.stream also takes a DataFrame that Spark reads from there"
)
ANSWERS = (
    "answers go to a file or folder on a local or mounted disk, to kafka://host:port/topic, to format:NAME?…, "
    "or to -"
)
WRITTEN_BY_SPARK = "write to a mounted path; with --runner spark, format:NAME?path=… is written by Spark"
ANOTHER = "--columns s:{}=COLUMN reads it from another column (in Python, columns=)"
HEADER = (
    "the first line of a .csv file names src, label, trg, ts and perhaps op, in any order; "
    + ANOTHER.format("src")
)
COLUMNS = "the columns of edges are src, label, trg, ts and perhaps op; " + ANOTHER.format("trg")
MORE_SPACE = "free some space on its disk, or write to another disk"


@pytest.fixture
def edges(tmp_path: Path) -> str:
    path = tmp_path / "edges.tsv"
    path.write_text("x\ta\ty\t1\n")
    return str(path)


def run(folder: Path, *options: str, runner: str = "spark", **more: str) -> tuple[int, str]:
    """The status of a run in a folder, and what it wrote to standard error; in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "meander", "run", ONE, "--runner", runner, *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(**more),
        check=False,
    )
    return done.returncode, messages(done.stderr)


class Here:
    """The same in this process: what is refused before Spark starts needs no other one."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        self.monkeypatch = monkeypatch
        self.capture = capture
        monkeypatch.chdir(folder)
        monkeypatch.setenv(*NO_JAVA)

    def run(self, *options: str, runner: str = "spark") -> tuple[int, str]:
        self.monkeypatch.setattr(sys, "argv", ["meander", "run", ONE, "--runner", runner, *options])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, messages(self.capture.readouterr().err)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


# -- paths with a scheme


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("s3://bucket/x.tsv", READ_BY_SPARK),
        ("hdfs://host:9000/x.tsv", READ_BY_SPARK),
        ("file:///data/x.tsv", "leave the scheme out: /data/x.tsv"),
    ],
)
def test_a_stream_with_a_scheme_is_refused(
    tmp_path: Path, here: Here, runner: str, location: str, hint: str
) -> None:
    printed = here.run("--stream", location, "--out", "out.jsonl", runner=runner)
    assert printed == (2, f"error: {location} cannot be used: {STREAM}\nhint: {hint}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_output_with_a_scheme_is_refused_and_no_folder_of_that_name_made(
    tmp_path: Path, here: Here, edges: str, runner: str
) -> None:
    location = "gs://bucket/out.jsonl"
    printed = here.run("--stream", edges, "--out", location, runner=runner)
    assert printed == (2, f"error: {location} cannot be used: {ANSWERS}\nhint: {WRITTEN_BY_SPARK}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.tsv"]


@pytest.mark.parametrize(
    ("option", "location", "message"),
    [
        (
            "--checkpoint",
            "abfss://box@host/c",
            "a checkpoint is a folder on a local or mounted disk, or s3a://bucket/folder",
        ),
        (
            "--rejects",
            "s3a://bucket/r.jsonl",
            "rejects go to a .jsonl file on a local or mounted disk, or to -",
        ),
        (
            "--rejects",
            "kafka://host:1/topic",
            "rejects go to a .jsonl file on a local or mounted disk, or to -",
        ),
        ("--metrics", "s3://bucket/m.jsonl", "metrics go to a file on a local or mounted disk"),
    ],
)
def test_every_other_path_with_a_scheme_is_refused(
    tmp_path: Path, here: Here, edges: str, option: str, location: str, message: str
) -> None:
    status, printed = here.run("--stream", edges, "--out", "-", option, location)
    assert status == 2
    assert printed.startswith(f"error: {location} cannot be used: {message}\nhint: ")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.tsv"]


# -- input that cannot be used


def broken_inputs(folder: Path) -> dict[str, tuple[int, str]]:
    """Inputs that cannot be used: the status and what is said of each."""
    (folder / "header.csv").write_text("source,label,target,time\nx,a,y,1\n")
    pq.write_table(pa.table({"src": ["x"], "label": ["a"], "ts": [1]}), folder / "columns.parquet")
    (folder / "text.parquet").write_text("x\ta\ty\t1\n")
    (folder / "plain.tsv.gz").write_text("x\ta\ty\t1\n")
    (folder / "edges.xml").write_text("<edges/>")
    (folder / "empty").mkdir()
    (folder / "mixed").mkdir()
    (folder / "mixed" / "1.tsv").write_text("x\ta\ty\t1\n")
    (folder / "mixed" / "2.csv").write_text("source,label,target,time\nx,a,y,1\n")
    header = "has no column src: it has source, label, target, time"
    return {
        "nosuch.tsv": (
            2,
            "error: nosuch.tsv does not exist\nhint: --stream s=PATH names a file or a folder\n",
        ),
        "edges.xml": (2, "error: unknown file extension: edges.xml\n"),
        "empty": (1, "error: the folder empty has no files\n"),
        "header.csv": (1, f"error: the header of header.csv {header}\nhint: {HEADER}\n"),
        "mixed": (1, f"error: the header of mixed/2.csv {header}\nhint: {HEADER}\n"),
        "columns.parquet": (
            1,
            f"error: columns.parquet has no column trg: it has src, label, ts\nhint: {COLUMNS}\n",
        ),
        "text.parquet": (1, "error: text.parquet cannot be read as Parquet: "),
        "plain.tsv.gz": (1, "error: plain.tsv.gz is not a gzip file\n"),
    }


@pytest.mark.parametrize("runner", RUNNERS)
def test_input_that_cannot_be_used_is_refused_before_spark_starts_and_before_output_is_touched(
    tmp_path: Path, here: Here, runner: str
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("answers of another day\n")
    for location, (status, message) in broken_inputs(tmp_path).items():
        code, printed = here.run("--stream", location, "--out", str(out), runner=runner)
        assert (code, printed[: len(message)]) == (status, message), printed
        assert "Traceback" not in printed
    assert out.read_text() == "answers of another day\n"


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.skipif(os.geteuid() != 0, reason="a file is made unreadable by giving up root's rights")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, here: Here, runner: str) -> None:
    """Root may read everything, except below /proc: this file gives an error to every reader."""
    link = tmp_path / "edges.tsv"
    link.symlink_to("/proc/self/mem")
    status, printed = here.run("--stream", "edges.tsv", "--out", "-", runner=runner)
    assert (status, printed) == (1, "error: edges.tsv cannot be read further: Input/output error\n")


# -- Kafka

STARTING = "starting Spark …\n"


def closed_port() -> int:
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


def test_a_broker_that_is_down_is_named_at_once(tmp_path: Path, here: Here, edges: str) -> None:
    server = f"127.0.0.1:{closed_port()}"
    expected = (
        f"{STARTING}error: no Kafka broker can be reached for the topic flows: {server} (Connection refused)\n"
        "hint: check that the broker runs, and that its host and port can be reached from here\n"
    )
    location = f"kafka://{server}/flows"
    assert here.run("--stream", location, "--out", "-") == (1, expected)
    assert here.run("--stream", edges, "--out", location) == (1, expected)


# -- Java and Spark


def java_hint(text: str) -> str:
    hint = "install a JDK 17 or newer and set JAVA_HOME to its folder; --runner local and meander.run need no Spark"
    return f"{STARTING}error: Spark needs Java 17 or newer: {text}\nhint: {hint}\n"


def test_spark_without_java_says_what_is_missing(tmp_path: Path, edges: str) -> None:
    printed = run(tmp_path, "--stream", edges, "--out", "-", JAVA_HOME="/nosuch/jdk")
    assert printed == (1, java_hint("JAVA_HOME is /nosuch/jdk, which has no bin/java"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "ps", "uname"):
        tool = shutil.which(name)
        if tool is not None:
            (tools / name).symlink_to(tool)
    printed = run(tmp_path, "--stream", edges, "--out", "-", JAVA_HOME="", PATH=str(tools))
    assert printed == (1, java_hint("there is no java in PATH"))


def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path: Path, edges: str) -> None:
    """The script does what Java 11 does with Spark's classes."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -version ]; then echo \'openjdk version "11.0.13" 2021-10-19\' >&2; exit 0; fi\n'
        "echo 'java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been compiled' >&2\n"
        "exit 1\n"
    )
    java.chmod(0o755)
    printed = run(tmp_path, "--stream", edges, "--out", "-", JAVA_HOME=str(tmp_path / "jdk"))
    assert printed == (1, java_hint(f"{java} is Java 11"))


def test_another_version_of_spark_is_refused_with_the_one_that_is_supported(
    tmp_path: Path, edges: str
) -> None:
    package = tmp_path / "other" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "4.0.2"\n')
    path = f"{package.parent}{os.pathsep}{environment()['PYTHONPATH']}"
    assert run(tmp_path, "--stream", edges, "--out", "-", PYTHONPATH=path) == (
        1,
        f"{STARTING}error: Spark 4.0.2 is not supported: Meander runs on Spark 4.1, 4.2 and 4.3\n"
        "hint: pip install 'pyspark>=4.1.0,<4.4'; --runner local and meander.run need no Spark\n",
    )


def test_a_spark_connect_server_that_does_not_answer_is_named(here: Here, edges: str) -> None:
    here.monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1/;user_id=ann")
    assert here.run("--stream", edges, "--out", "-") == (
        1,
        f"{STARTING}error: no Spark Connect server answers at 127.0.0.1:1: Connection refused\n"
        "hint: start one, or correct or unset SPARK_REMOTE\n",
    )


def processes_of(session: int) -> list[str]:
    """The processes of a session of the operating system, with their names."""
    listed = subprocess.run(["ps", "-eo", "sid=,comm="], capture_output=True, text=True, check=True).stdout
    return [line.split()[1] for line in listed.splitlines() if line.split()[0] == str(session)]


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")
@pytest.mark.parametrize("wait", [0.0, pytest.param(2.0, marks=pytest.mark.slow)])
def test_an_interrupt_while_spark_starts_ends_in_one_line_and_leaves_no_java(
    tmp_path: Path, edges: str, wait: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "meander", "run", ONE, "--stream", edges, "--out", str(tmp_path / "o.jsonl")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while "java" not in processes_of(process.pid):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)
    # Standard error is at its end when Java, too, has ended.
    _, printed = process.communicate(timeout=120)
    assert process.returncode == 130
    assert [line for line in printed.splitlines() if "Spark" not in line] == ["interrupted"]
    while processes_of(process.pid):  # a script of Spark's may still be ending
        assert time.monotonic() < deadline
        time.sleep(0.05)


# -- disks that are full


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet", "out"])
def test_a_full_disk_ends_a_local_run_with_the_path(
    tmp_path: Path, here: Here, small_disk: SmallDisk, name: str
) -> None:
    stream = tmp_path / "edges.tsv"
    stream.write_text("".join(f"{n}\ta\t{n * 7919 % 100_003}\t{n}\n" for n in range(200_000)))
    out = small_disk.folder / name
    written = out / "part-000000000.parquet" if name == "out" else out
    printed = here.run("--stream", str(stream), "--out", str(out), runner="local")
    assert printed == (
        1,
        f"error: {written} cannot be written: No space left on device\nhint: {MORE_SPACE}\n",
    )
    assert not any(path.name.startswith(".") for path in small_disk.folder.rglob("*")), "a draft is left"


def test_standard_output_on_a_full_disk_is_an_error(tmp_path: Path, edges: str) -> None:
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"{sys.executable} -m meander run '{ONE}' --runner local --stream {edges} --out - >/dev/full",
        ],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    expected = f"error: standard output cannot be written: No space left on device\nhint: {MORE_SPACE}\n"
    assert (done.returncode, messages(done.stderr)) == (1, expected)
