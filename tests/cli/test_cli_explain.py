"""The command as a person uses it: status, standard output, standard error."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from command import EXAMPLES, environment, meander, refused
from meander.explain import explain
from meander.syntax import parse


def test_a_file_is_explained_on_standard_output() -> None:
    done = meander("explain", str(EXAMPLES / "q4.dl"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == explain((EXAMPLES / "q4.dl").read_text())


def test_a_query_comes_from_standard_input_too() -> None:
    text = (EXAMPLES / "notify.gcore").read_bytes()
    done = meander("explain", "-", "--stage", "query", given=text)
    assert done.returncode == 0
    assert parse(done.stdout) == parse(text.decode())


def test_a_query_may_be_the_argument_itself() -> None:
    text = "STREAM s WINDOW 1h Answer(x, y) <- a+(x, y)."
    assert meander("explain", text, "--stage", "query").stdout == explain(text, "query")


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "query.dl"
    path.write_bytes(b"\xef\xbb\xbfSTREAM s WINDOW 1h\r\nAnswer(x, y) <- a(x, y).\r\n")
    assert meander("explain", str(path)).returncode == 0


@pytest.mark.parametrize("stage", ["query", "logical", "plans", "physical", "all"])
def test_a_stage_is_drawn_to_a_file(stage: str, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    done = meander("explain", str(EXAMPLES / "q7.dl"), "--stage", stage, "--svg", str(picture))
    assert done.returncode == 0
    assert done.stdout == explain((EXAMPLES / "q7.dl").read_text(), stage)
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_warnings_of_a_single_stage_go_to_standard_error() -> None:
    text = "STREAM s WINDOW 1h Answer(x, v) <- a(x, y), b(u, v)."
    done = meander("explain", text, "--stage", "query")
    assert done.stdout == explain(text, "query")
    assert done.stderr.startswith("warning: the body of Answer is a cross product")


def test_the_version_is_printed() -> None:
    done = meander("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("meander ")


def test_help_is_there_for_every_command() -> None:
    for command in ("run", "explain", "bench", "demo"):
        done = meander(command, "--help")
        assert done.returncode == 0
        assert done.stdout.lower().startswith(f"usage: meander {command}")


# -- what is refused


@pytest.mark.parametrize("options", [["--nosuch"], ["--data", "nosuch"], ["--prefix", "few"]])
def test_bad_arguments_of_the_benchmark_are_refused(options: list[str]) -> None:
    assert options[-1].lstrip("-") in refused("bench", *options)


def test_a_bad_query_is_marked_on_standard_error() -> None:
    assert refused("explain", "STREAM s WINDOW 0 Answer(x, y) <- a(x, y).") == (
        "error: a window of zero\n"
        "   1 | STREAM s WINDOW 0 Answer(x, y) <- a(x, y).\n"
        "     |                 ^\n"
        "hint: a window is a length of time above zero\n"
    )


def test_a_missing_file_is_no_query() -> None:
    assert refused("explain", "nosuch.dl") == (
        "error: there is no query file 'nosuch.dl'\n"
        "hint: a query is the path of a .dl or .gcore file, - for standard input, or the text itself\n"
    )


def test_a_folder_is_no_query() -> None:
    assert "is a folder" in refused("explain", str(EXAMPLES))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the query is empty"),
        (b"   \n\n# nothing but a comment\n", "the query is empty"),
        (b"\x7fELF\x00\x01", "is not a query"),
        (b"STREAM s WINDOW 1h\nAnswer(x, y) <- \xff(x, y).", "is not UTF-8 text: byte 0xff in line 2"),
        (b"a" * 20_000_000, "is not a query"),
    ],
)
def test_a_file_that_is_no_query_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "query.dl"
    path.write_bytes(content)
    assert message in refused("explain", str(path))


def test_empty_standard_input_is_an_empty_query() -> None:
    assert "the query is empty" in refused("explain", "-")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stage", "final"], "accepted: query, logical, plans, physical, all"),
        (["--time-unit", "h"], "accepted: s, ms, us"),
        (["--path-operator", "dfs"], "accepted: auto, s-path, negative-tuple, closure"),
        (["--plan", "99"], "its plans are 0 to"),
        (["--plan", "x"], "--plan"),
        (["--plan", "-1"], "--plan"),
        (["--svg", "/nosuch/folder/plan.svg"], "cannot be written"),
        (["--nosuch"], "--nosuch"),
    ],
)
def test_a_bad_option_is_refused_with_what_is_accepted(options: list[str], message: str) -> None:
    assert message in refused("explain", str(EXAMPLES / "q1.dl"), *options)


def test_no_query_at_all_is_refused() -> None:
    assert "QUERY" in refused("explain")
    assert "nosuch" in refused("nosuch")


# -- terminals, pipes, interrupts


def test_a_terminal_gets_color_and_the_same_words() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "meander", "explain", str(EXAMPLES / "q1.dl"), "--stage", "logical"],
        stdout=follower,
        env=environment(TERM="xterm-256color", COLUMNS="200"),
    )
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:
        pass
    assert process.wait() == 0
    text = shown.decode()
    assert "\x1b[" in text
    assert "canonical plan" in text


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    command = f"{sys.executable} -m meander explain {EXAMPLES / 'notify.gcore'} --stage plans | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment())
    assert len(done.stdout) == 10
    assert done.stderr == b""


def test_output_that_the_locale_cannot_show_is_escaped() -> None:
    done = meander("explain", str(EXAMPLES / "q1.dl"), "--stage", "logical", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\U0001d4ab" in done.stdout


def test_an_interrupt_ends_in_one_word() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "meander", "explain", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # A shell starts what runs in its background with interrupts ignored; a person's program is not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(2.5)
    process.send_signal(2)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_a_traceback_is_there_for_those_who_ask() -> None:
    assert "Traceback" in meander("explain", "nosuch.dl", MEANDER_DEBUG="1").stderr


def test_explaining_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['meander', 'explain', sys.argv[1]]\n"
        "from meander.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'pyspark', 'pandas', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES / "q1.dl")], capture_output=True, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_drawing_answers_without_paths_says_so(tmp_path: Path) -> None:
    answers, picture = tmp_path / "answers.jsonl", tmp_path / "paths.svg"
    record = '{"src": "a", "trg": "b", "label": "P", "ts": 1, "exp": 2, "op": "+"%s}\n'
    answers.write_text(record % "")
    done = meander("draw", str(answers), "--svg", str(picture))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"note: no answer of {answers} has a path, so {picture} shows none\n"
        "hint: `meander run --paths` writes the paths of answers that are paths, such as those of a+(x, y)\n"
    )
    answers.write_text(record % ', "path": [["a", "l", "b"]]')
    assert meander("draw", str(answers), "--svg", str(picture)).stderr == ""
