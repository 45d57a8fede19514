"""A task in a process of its own, with a time limit; the process and all that it started end together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from meander.bench.tasks import Task

ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"),
    "1",
)
LONGEST_MESSAGE = 600


def perform(task: Task, file: Path) -> dict[str, Any]:
    """Measure; returns `{"result": …}`, or `{"failure": …}` if the process failed or took too long."""
    with tempfile.TemporaryDirectory(prefix="meander-bench-", ignore_cleanup_errors=True) as folder:
        request, result = Path(folder) / "request.json", Path(folder) / "result.json"
        request.write_text(json.dumps(task.request(file)), encoding="utf-8")
        command = [sys.executable, "-m", "meander.bench.measures.worker", str(request), str(result)]
        # Spark's workers find Meander by the path of their parent.
        environment = dict(os.environ) | (ONE_THREAD if task.kind != "spark" else {})
        with open(Path(folder) / "stderr", "w+", encoding="utf-8", errors="replace") as errors:
            process = subprocess.Popen(
                command,
                env=environment | {"TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            try:
                status = process.wait(task.patience)
            except subprocess.TimeoutExpired:
                return {"failure": f"not done after {task.patience:,.0f} s"}
            finally:
                _end(process)
            if status == 0 and result.is_file():
                outcome: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
                return outcome
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
    last = lines[-1] if lines else f"the process ended with status {status} and no message"
    return {"failure": last[-LONGEST_MESSAGE:]}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, and every process of its session that is left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
