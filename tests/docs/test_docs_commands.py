"""Every command and every piece of Python in the documentation runs as it is printed.

A comment before a block marks it: `<!-- skip -->` is not run (it sets up the project itself), `<!-- spark -->` needs
Java. A block of JSON right after a command is what the command prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import ROOT, environment

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>\w+) -->\n)?```(?P<kind>bash|python)\n(?P<text>.*?)^```$"
    r"(?:\n\n```json\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def blocks(kind: str) -> list[pytest.ParameterSet]:
    found = []
    for page in PAGES:
        for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), start=1):
            if block["kind"] == kind and block["mark"] != "skip":
                marks = [pytest.mark.spark] if block["mark"] == "spark" else []
                found.append(
                    pytest.param(block["text"], block["output"], id=f"{page.name}-{number}", marks=marks)
                )
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the project's, set up, in which commands may leave files."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program = tmp_path / ".venv" / "bin" / "meander"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m meander "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("text", "output"), blocks("bash"))
def test_a_command_in_the_documentation_works(text: str, output: str | None, checkout: Path) -> None:
    done = subprocess.run(
        ["bash", "-euc", text], cwd=checkout, capture_output=True, env=environment(), encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    if output is not None:
        assert sorted(done.stdout.splitlines()) == sorted(output.splitlines())


@pytest.mark.parametrize(("text", "output"), blocks("python"))
def test_python_in_the_documentation_works(text: str, output: str | None, checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=checkout, capture_output=True, env=environment(), encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr


def test_pages_link_to_files_that_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert os.path.exists(page.parent / target), f"{page.name} links to {target}"
