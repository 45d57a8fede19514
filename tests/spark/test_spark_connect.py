"""Spark Connect: the tests of `connect/on_connect.py`, in a process whose sessions are remote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENVIRONMENT = {
    **os.environ,
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": os.pathsep.join(str(path) for path in (HERE, HERE.parent, HERE.parents[1] / "src")),
    "SPARK_LOCAL_IP": "127.0.0.1",
}


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")
def test_a_session_of_spark_connect_runs_what_a_classic_one_runs() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / "connect" / "on_connect.py")],
        env=ENVIRONMENT,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
