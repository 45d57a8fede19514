"""Meander itself: a process of its own, with one thread if not told otherwise, that does what `own_run` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from meander import __version__
from meander.bench.data import Graph
from meander.bench.measurement import BenchError, Measurement
from meander.bench.workloads import Workload

BATCH_ROWS = 65_536
ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"),
    "1",
)


class Way(NamedTuple):
    """A way to answer a query: the answers are the same, the time is not."""

    path_operator: str = "auto"
    threads: int = 1


@dataclass(frozen=True)
class Request:
    """What to measure: the query's text on a file, in each of some ways. `counted` are slides at whose ends the
    answers are counted."""

    file: str
    text: str
    slide: int
    ways: Sequence[Way]
    counted: list[int]
    limit: float
    batch_rows: int = BATCH_ROWS


def measure(
    graph: Graph,
    workload: Workload,
    *,
    window: int,
    slide: int,
    limit: float,
    counted: Sequence[int] = (),
    ways: Sequence[Way] = (Way(),),
) -> list[Measurement]:
    """Meander over `graph` in each way, or over as much of it as it does in the time limit, slide by slide."""
    with tempfile.TemporaryDirectory(prefix="meander-bench-") as folder:
        file, asked, answer = (Path(folder) / name for name in ("edges.tsv", "request.json", "result.json"))
        graph.write(file)
        text = workload.text(window, slide)
        request = Request(str(file), text, slide, ways, list(counted), limit)
        asked.write_text(json.dumps(asdict(request)), encoding="utf-8")
        command = [sys.executable, "-m", "meander.bench.own_run", str(asked), str(answer)]
        done = subprocess.run(
            command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = done.stderr.strip() or f"the process ended with status {done.returncode} and no message"
            raise BenchError(f"Meander failed on {workload.data.name} {workload.query}: {said}")
        results = json.loads(answer.read_text(encoding="utf-8"))
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
