"""Every kernel also runs as plain Python, with the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("law", "chosen"), [("local", "snapshot"), ("demand", "")])
def test_the_law_holds_uncompiled(law: str, chosen: str) -> None:
    file = Path(__file__).with_name(f"test_law_{law}.py")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow",
            "-k",
            chosen,
            "-p",
            "no:cacheprovider",
            file,
        ],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "MEANDER_LAW_EXAMPLES": "60"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
