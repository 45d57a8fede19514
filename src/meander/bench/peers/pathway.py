"""Pathway, as far as it gets in the time limit: runs `pathway_program.py` where Pathway is installed.

Pathway brings over a hundred packages, some of them in other versions than Meander's, so it may live in an
environment of its own: this one, or `.venv-bench` in the project's folder, or the interpreter that
`MEANDER_PATHWAY_PYTHON` names. As the data are preloaded, it emits nothing before it has done everything, so the
prefix that fits the limit is found by runs on growing ones; the last of them is the measurement. The time of a slide
is from one more run on that prefix, slide by slide.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meander.bench.data import PROJECT, Graph, relations
from meander.bench.measurement import BenchError, Measurement, check_equal
from meander.bench.workloads import ROLES, Workload

PROGRAM = Path(__file__).with_name("pathway_program.py")
FIRST_PREFIX = 1_000
GROWTH = 12.0
WORTH_A_RUN = 1.3
STARTING = 15.0
INSTALL = "make bench installs it; or set MEANDER_PATHWAY_PYTHON to an interpreter that has it"


def interpreter() -> str | None:
    """The interpreter that has Pathway, or None."""
    named = os.environ.get("MEANDER_PATHWAY_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("pathway") is not None:
        return sys.executable
    own = PROJECT / ".venv-bench"
    is_installed = any(own.glob("lib/python*/site-packages/pathway"))
    return str(own / "bin" / "python") if is_installed else None


def measure(
    graph: Graph, workload: Workload, *, window: int, slide: int, limit: float, grow: bool = True
) -> Measurement | None:
    """The largest prefix that Pathway is expected to finish within the limit; without `grow`, the whole or nothing.

    None where not even the first prefix was finished.
    """
    if not grow:
        return run(graph, workload, window=window, slide=slide, patience=limit)
    best: Measurement | None = None
    exponent, size = 1.5, FIRST_PREFIX
    while True:
        part = graph.prefix(size, slide)
        if best is not None and part.edges == best.edges:
            return best
        measured = run(part, workload, window=window, slide=slide, patience=2 * limit)
        if measured is None and best is not None and part.edges > GROWTH / 2 * best.edges:
            # Too far at once: the first edges alone say little of a graph that is still filling.
            size = int((best.edges * part.edges) ** 0.5)
            continue
        if measured is None:
            return best
        if best is not None:
            # How the time grows with the prefix: dense graphs are worse than linear.
            growth = np.log(max(measured.seconds, 1e-3) / max(best.seconds, 1e-3)) / np.log(
                measured.edges / best.edges
            )
            exponent = float(np.clip(growth, 1.0, 3.0))
        best = measured
        factor = min(GROWTH, (limit / max(measured.seconds, 1e-3)) ** (1 / exponent))
        if part.edges == graph.edges or factor < WORTH_A_RUN:
            return best
        size = int(part.edges * factor)


def with_p99(
    measured: Measurement, graph: Graph, workload: Workload, *, window: int, slide: int, limit: float
) -> Measurement:
    """The measurement with the tail latency of a slide, from a run of its own over the same edges.

    That run ends after `limit` seconds; its answers have to be those of the measurement.
    """
    result = _perform(
        graph.prefix(measured.edges, slide), workload, window, slide, patience=limit, slide_limit=limit
    )
    if result is None or not result["slide_seconds"]:
        return measured
    first = int(graph.ts[0] // slide)
    counts = {first + number: count for number, count in enumerate(result["slide_counts"])}
    check_equal(f"Pathway on {workload.query}, slide by slide", replace(measured, counts=counts), measured)
    return replace(
        measured,
        p99=float(np.percentile(result["slide_seconds"], 99)),
        details={
            **measured.details,
            "slides": {
                **measured.details["slides"],
                "measured": len(result["slide_seconds"]),
                "seconds": sum(result["slide_seconds"]),
            },
        },
    )


def run(
    graph: Graph, workload: Workload, *, window: int, slide: int, patience: float, pairs: bool = False
) -> Measurement | None:
    """One run over the whole of `graph`; None where it takes longer than `patience`, loading not counted.

    With `pairs`, the answers at the end are in `details`.
    """
    result = _perform(graph, workload, window, slide, patience=patience, pairs=pairs)
    if result is None:
        return None
    first, last = int(graph.ts[0] // slide), int(graph.ts[-1] // slide)
    return Measurement(
        "Pathway",
        graph.edges,
        result["seconds"],
        result["cpu_seconds"],
        {slide_number + first: count for slide_number, count in result["counts"]},
        version=result["version"],
        details={
            "slides": {"number": last - first + 1},
            **({"pairs": {(src, trg) for src, trg in result["pairs"]}} if pairs else {}),
        },
    )


def _perform(
    graph: Graph,
    workload: Workload,
    window: int,
    slide: int,
    *,
    patience: float,
    pairs: bool = False,
    slide_limit: float | None = None,
) -> dict[str, Any] | None:
    """What the program reports, or None if it takes longer than `patience`, loading not counted."""
    python = interpreter()
    if python is None:
        raise BenchError("Pathway is not installed", hint=INSTALL)
    first = int(graph.ts[0] // slide)
    arrays: dict[str, Any] = {}
    repeating = []
    for name, relation in relations(graph, workload, slide).items():
        for column, values in relation._asdict().items():
            arrays[f"{name}.{column}"] = values.astype(np.int64) - (first if column == "slide" else 0)
        pairs_of = relation.src.astype(np.int64) << 32 | relation.trg
        if np.unique(pairs_of).size < pairs_of.size:
            repeating.append(name)
    plan: dict[str, Any] = {
        "roles": dict(zip(ROLES, workload.relations, strict=False)),
        "slides": window // slide,
        "last": int(graph.ts[-1] // slide) - first,
        "repeating": repeating,
        "pairs": pairs,
        "slide_limit": slide_limit,
    }
    with tempfile.TemporaryDirectory(prefix="meander-bench-") as folder:
        source, target = Path(folder) / "input.npz", Path(folder) / "output.json"
        np.savez(source, plan=json.dumps(plan), **arrays)
        # To start takes it some seconds, and to load some 50 µs per edge, which is not measured.
        patience = patience + STARTING + 3e-4 * graph.edges
        command = [python, "-P", str(PROGRAM), str(source), workload.query, str(target)]
        environment = os.environ | {
            "PATHWAY_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }
        environment.pop("PYTHONPATH", None)
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=patience, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0 or not target.is_file():
            raise BenchError(f"Pathway failed on {workload.query}: {_last_line(done.stderr)}")
        result: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return result


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
