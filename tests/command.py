"""The command in a process of its own: status, standard output, standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SOURCE = str(ROOT / "src")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, **more}


def messages(stderr: str) -> str:
    """What was said on standard error, whether or not kernels had to be compiled first."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("compiling "))


def meander(*arguments: str, given: bytes = b"", **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "meander", *arguments],
        input=given,
        capture_output=True,
        env=environment(**more),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(*arguments: str, given: bytes = b"") -> str:
    """What the command says on standard error when it refuses its arguments: without a traceback, in status 2."""
    done = meander(*arguments, given=given)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr
