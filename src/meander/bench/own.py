"""Measures Meander in a process of its own (see `own_run`), in which libraries have one thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from meander import __version__
from meander.bench.data import Graph
from meander.bench.measurement import BenchError, Measurement
from meander.bench.workloads import Workload
from meander.options import DEFAULTS, RunOptions

ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"),
    "1",
)


@dataclass(frozen=True)
class Request:
    """What to measure: the query's text on a file, once per variant (the fields of a `RunOptions`).

    `counted` are the slides at whose ends the answers are counted.
    """

    file: str
    text: str
    slide: int
    variants: Sequence[dict[str, Any]]
    counted: list[int]
    limit: float


def measure(
    graph: Graph,
    workload: Workload,
    *,
    window: int,
    slide: int,
    limit: float,
    counted: Sequence[int] = (),
    variants: Sequence[RunOptions] = (DEFAULTS,),
) -> list[Measurement]:
    """Meander over `graph` with each variant's options, or over the part that it processes in the time limit."""
    with tempfile.TemporaryDirectory(prefix="meander-bench-") as folder:
        file, request_file, result_file = (
            Path(folder) / name for name in ("edges.tsv", "request.json", "result.json")
        )
        graph.write(file)
        text = workload.text(window, slide)
        request = Request(str(file), text, slide, list(map(asdict, variants)), list(counted), limit)
        request_file.write_text(json.dumps(asdict(request)), encoding="utf-8")
        command = [sys.executable, "-m", "meander.bench.own_run", str(request_file), str(result_file)]
        done = subprocess.run(
            command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            message = done.stderr.strip() or f"the process ended with status {done.returncode} and no message"
            raise BenchError(f"Meander failed on {workload.data.name} {workload.query}: {message}")
        results = json.loads(result_file.read_text(encoding="utf-8"))
    return [
        Measurement(
            "Meander",
            result["edges"],
            result["seconds"],
            result["cpu_seconds"],
            dict(result["counts"]),
            result["slides"]["p99"],
            __version__,
            {key: result[key] for key in ("parts", "answers", "state_bytes", "slides")},
        )
        for result in results
    ]
