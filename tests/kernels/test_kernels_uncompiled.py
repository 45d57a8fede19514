"""The kernels' twins once more with the kernels as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_every_kernel_has_the_same_results_uncompiled() -> None:
    here = Path(__file__).parent
    files = [
        str(here / f"test_{name}_kernel.py") for name in ("graph", "pattern", "forest", "changes", "arrivals")
    ]
    # Tests of tables that grow have more rows than plain Python is quick with.
    names = "graph_answers or log_answers or join_finds or trees_hold or a_record or numbers_up"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, *files],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "MEANDER_KERNEL_EXAMPLES": "15"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
