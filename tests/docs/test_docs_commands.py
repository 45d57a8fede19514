"""Every command and every piece of Python in the documentation runs as it is printed.

The blocks of a page are run one after the other, in one folder, and those in Python in one interpreter. A comment
before a block marks it: `<!-- skip -->` is not run (it sets up the project itself, or needs a cluster or a broker),
`<!-- spark -->` needs Java, `<!-- slow -->` leaves its page to the slow tests. What follows a block at once is what
it prints: lines of JSON in any order, or text as it is, in which `…` stands for anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import ROOT, environment

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>\w+) -->\n)?```(?P<kind>bash|python)\n(?P<text>.*?)^```$"
    r"(?:\n\n```(?P<shown>json|text)\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
MARKS = {"spark": pytest.mark.spark, "slow": pytest.mark.slow}
PROGRAMS = ("python", "spark-class", "spark-submit")
DONE = "the block is done"
LOOP = f"""
import json, sys
names = {{"__name__": "__main__"}}
for line in sys.stdin:
    exec(compile(json.loads(line), "<page>", "exec"), names)
    print({DONE!r}, flush=True)
"""


def blocks(page: Path) -> list[re.Match[str]]:
    matches = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [block for block in matches if block["mark"] != "skip"]


def pages() -> list[pytest.ParameterSet]:
    """The pages that have something to run."""
    return [
        pytest.param(
            page,
            id=page.name,
            marks=[MARKS[mark] for mark in MARKS if mark in {block["mark"] for block in blocks(page)}],
        )
        for page in PAGES
        if blocks(page)
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A folder like the project's, set up, in which commands may leave files, and processes in `.pid` files."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    scripts = {name: f'#!/bin/sh\nexec "{Path(sys.executable).with_name(name)}" "$@"\n' for name in PROGRAMS}
    # As pip installs it: the program is called by the name that was typed, which the demonstration prints.
    scripts["meander"] = f"#!{sys.executable}\nimport sys\nfrom meander.cli import main\nsys.exit(main())\n"
    for name, script in scripts.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    yield tmp_path
    for started in tmp_path.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(started.read_text()), signal.SIGKILL)


class Interpreter:
    """A Python that runs one block after the other."""

    def __init__(self, folder: Path) -> None:
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment(),
            encoding="utf-8",
        )

    def run(self, text: str) -> str:
        """What the block prints; fails with its traceback where it raises an error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        printed = ""
        for line in self.process.stdout:
            if line.rstrip("\n") == DONE:
                return printed
            printed += line
        self.errors.seek(0)
        pytest.fail(f"{text}\n{self.errors.read()}")

    def close(self) -> None:
        self.process.communicate(timeout=60)
        self.errors.close()


@pytest.fixture
def interpreter(checkout: Path) -> Iterator[Interpreter]:
    interpreter = Interpreter(checkout)
    yield interpreter
    interpreter.close()


def run_command(text: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", text], cwd=folder, capture_output=True, env=environment(), encoding="utf-8"
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return done.stdout


def check_output(shown: str, output: str, printed: str) -> None:
    if shown == "json":
        assert sorted(printed.splitlines()) == sorted(output.splitlines())
    elif not re.fullmatch(".*?".join(map(re.escape, output.split("…"))), printed, re.DOTALL):
        assert printed == output


@pytest.mark.parametrize("page", pages())
def test_a_page_works_from_its_first_block_to_its_last(
    page: Path, checkout: Path, interpreter: Interpreter
) -> None:
    for block in blocks(page):
        text = block["text"]
        printed = run_command(text, checkout) if block["kind"] == "bash" else interpreter.run(text)
        if block["output"] is not None:
            check_output(block["shown"], block["output"], printed)


def test_pages_link_to_files_that_exist() -> None:
    for page in PAGES:
        prose = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
            assert os.path.exists(page.parent / target), f"{page.name} links to {target}"
