"""Tests in a process of their own, for a Spark that cannot be the one that other tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NEEDS_JAVA = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")


def environment() -> dict[str, str]:
    """For a Spark of this Python; its Connect server chooses a free port."""
    folders = (HERE, HERE.parent, HERE.parents[1] / "src")
    bin_folder = str(Path(sys.executable).parent)
    return os.environ | {
        "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",
    }


def run_apart(file: str) -> None:
    """The tests of a file of this folder, all of which have to pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        str(HERE / file),
    ]
    done = subprocess.run(
        command, env=environment(), cwd=HERE, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
