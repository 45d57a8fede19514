"""What `meander run` says of edges that it cannot use, of input that it ignores, and of how far it has come."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment, meander, messages, refused
from meander.cli.progress import BETWEEN_LINES, Progress
from meander.dataflow.tally import Tally

ONE = "STREAM s WINDOW 1h Answer(x, y) <- a(x, y)."
LATE = "x\ta\ty\t100\nx\ta\ty\t50\nx\ta\ty\t40\n"


def local(
    folder: Path, content: str, *options: str, query: str = ONE, name: str = "s.tsv"
) -> subprocess.CompletedProcess[str]:
    """A run in one process over a file with this content, answers to standard output."""
    (folder / name).write_text(content)
    return meander("run", query, "--runner", "local", "--stream", str(folder / name), "--out", "-", *options)


def figures(stderr: str) -> str:
    """The last line, without what differs from run to run."""
    return re.sub(r" \([0-9,]+/s\)|, [0-9.]+ [KMG]?B of state, .*", "", stderr.splitlines()[-1])


def test_late_edges_are_counted_and_the_first_is_shown_with_its_line(tmp_path: Path) -> None:
    done = local(tmp_path, LATE)
    assert done.returncode == 0
    assert figures(done.stderr) == "3 edges, 2 late, 0 rejected, 1 answer"
    first, hint, *_ = messages(done.stderr).splitlines()
    assert first == f"too late: 2 edges, the first in line 2 of {tmp_path / 's.tsv'}: x\\ta\\ty\\t50"
    assert hint.startswith("hint: --lateness DUR")
    assert (
        figures(local(tmp_path, LATE, "--lateness", "60").stderr) == "3 edges, 0 late, 0 rejected, 3 answers"
    )


def test_a_field_in_quotes_with_a_line_break_is_explained(tmp_path: Path) -> None:
    rows = 'x,a,y,1,"one\nrow"\ny,a,z,2,plain\n'
    done = local(tmp_path, f"src,label,trg,ts,note\n{rows}", name="s.csv")
    assert done.returncode == 0
    assert figures(done.stderr) == "1 edge, 0 late, 2 rejected, 1 answer"
    assert done.stderr.count("hint: a field in quotes ends on its own line") == 2


@pytest.mark.parametrize("content", ["", "src,label,trg,ts\n"], ids=["empty", "header"])
def test_input_without_rows_is_noted(tmp_path: Path, content: str) -> None:
    done = local(tmp_path, content, name="s.csv")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("note: the input has no rows\n")


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        ("x a y 1\nx a y 2\n", "2 missing field"),
        ("x\ta\ty\t12:30\nx\ta\n", "1 bad time, 1 missing field"),
    ],
)
def test_a_run_in_which_nothing_could_be_used_fails_and_says_why(
    tmp_path: Path, content: str, reasons: str
) -> None:
    done = local(tmp_path, content)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"error: no row of the input could be used: {reasons}\n")
    assert f"line 1 of {tmp_path / 's.tsv'}" in done.stderr


def test_empty_input_is_no_failure(tmp_path: Path) -> None:
    done = local(tmp_path, "")
    assert (done.returncode, done.stdout) == (0, "")
    assert figures(done.stderr) == "0 edges, 0 late, 0 rejected, 0 answers"
    assert "/s" not in done.stderr


def test_a_time_in_milliseconds_is_pointed_out_when_it_comes_and_rejected_with_max_jump(
    tmp_path: Path,
) -> None:
    lines = "x\ta\ty\t1700000000\nx\ta\tz\t1700000001000\nx\ta\tw\t1700000002\nx\ta\tw\t1800000003000\n"
    done = local(tmp_path, lines)
    assert done.returncode == 0
    warning, hint, *rest = done.stderr.splitlines()
    assert warning.startswith("warning: the time of stream s jumps from 1700000000 to 1700000001000")
    assert f"line 2 of {tmp_path / 's.tsv'}" in warning
    assert "--max-jump DUR" in hint
    assert not any(line.startswith("warning") for line in rest)
    assert figures(done.stderr) == "4 edges, 1 late, 0 rejected, 3 answers"

    done = local(tmp_path, lines, "--max-jump", "1d", "--rejects", str(tmp_path / "rejects.jsonl"))
    assert [json.loads(line)["trg"] for line in done.stdout.splitlines()] == ["y", "w"]
    assert figures(done.stderr) == "4 edges, 0 late, 2 rejected, 2 answers"
    assert "warning" not in done.stderr
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert rejects[0] == {
        "stream": "s",
        "reason": "time jumps ahead",
        "text": "x\ta\tz\t1700000001000",
    }
    assert len(rejects) == 2
    assert "longer than any pause" in refused(
        "run", ONE, "--stream", str(tmp_path / "s.tsv"), "--out", "-", "--max-jump", "0"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", "ts,src,weight,label,trg,city\n1,x,3,a,y,Rome\n"),
        ("s.jsonl", '{"src": "x", "label": "a", "trg": "y", "ts": 1, "weight": 3, "city": "Rome"}\n'),
    ],
)
def test_columns_that_are_ignored_are_pointed_out(tmp_path: Path, name: str, content: str) -> None:
    done = local(tmp_path, content, name=name)
    assert done.stderr.startswith(f"note: columns of {tmp_path / name} that are ignored: weight, city\n")
    assert len(done.stdout.splitlines()) == 1


def test_a_label_that_looks_like_a_wildcard_is_pointed_out(tmp_path: Path) -> None:
    done = local(tmp_path, "x\ta\ty\t1\n", query="STREAM s WINDOW 10 Answer(x, y) <- _(x, z), _+(z, y).")
    assert done.stderr.count("warning: _ is a label like any other, not a wildcard") == 1
    assert "note: no edge had the label _, which the query reads" in done.stderr


def on_terminal(*arguments: str) -> str:
    """What the command writes to a terminal as standard error; its standard output is a pipe."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "meander", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(TERM="xterm", COLUMNS="120"),
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        shown += block
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def test_a_terminal_shows_a_bar_with_share_and_time_left_and_then_the_figures(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("".join(f"{n}\ta\t{n + 1}\t{n}\n" for n in range(50_000)))
    shown = on_terminal("run", ONE, "--runner", "local", "--stream", str(stream), "--out", "-")
    assert re.search(r"━.*\d+%.*\d:\d\d:\d\d.* edges .* answers", shown)
    last = shown.rstrip().splitlines()[-1]
    assert "50,000 edges" in last
    assert "━" not in last.rpartition("\x1b[2K")[2]


def test_without_a_terminal_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    progress = Progress(1000, clock=lambda: now)
    with progress:
        for step in range(1, 5):
            now = step * (BETWEEN_LINES / 2)
            progress.show(Tally(edges=10 * step), 0, 200 * step)
    assert capsys.readouterr().err.splitlines() == [
        "40%, about 15 s left: 20 edges (2/s), 0 late, 0 rejected, 0 answers, 0 B of state, 10.0 s",
        "80%, about 5 s left: 40 edges (2/s), 0 late, 0 rejected, 0 answers, 0 B of state, 20.0 s",
    ]


def test_figures_that_came_too_soon_are_shown_when_no_batch_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    progress = Progress(clock=lambda: now)
    with progress:
        now = BETWEEN_LINES
        progress.show(Tally(edges=10), 0)
        now += 1
        progress.show(Tally(edges=20), 0)
        progress.show_withheld()
        assert capsys.readouterr().err.startswith("10 edges")
        now += BETWEEN_LINES
        progress.show_withheld()
        assert capsys.readouterr().err.startswith("20 edges")
        now += BETWEEN_LINES
        progress.show_withheld()
        assert capsys.readouterr().err == ""


@pytest.mark.spark
def test_late_edges_on_spark_are_counted_and_shown_as_by_the_local_runner(tmp_path: Path) -> None:
    """Times 100, 50, 40: two are late. A line is rejected besides, and no usable edge has one of the labels."""
    content = LATE + "x\ta\n"
    query = "STREAM s WINDOW 1h Answer(x, y) <- (a|b)(x, y)."
    expected = local(tmp_path, content, query=query)
    command = ["run", query, "--stream", str(tmp_path / "s.tsv"), "--out", str(tmp_path / "out.jsonl")]
    done = meander(*command)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("starting Spark …\n")
    count = len(expected.stderr.partition("missing field")[2].splitlines())
    printed, expected_lines = (run.stderr.splitlines()[-count - 1 : -1] for run in (done, expected))
    assert printed == expected_lines
    assert printed[0] == "note: no edge that could be used had the label b, which the query reads"
    assert f"too late: 2 edges, the first in line 2 of {tmp_path / 's.tsv'}: x\\ta\\ty\\t50" in printed
    assert figures(done.stderr) == figures(expected.stderr) == "3 edges, 2 late, 1 rejected, 1 answer"
